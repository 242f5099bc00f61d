"""Errors of all readers: a file that is missing, damaged or too large raises a FileError."""

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from abut.errors import AbutError, FileError, OptionError

UNPACKED = 1 << 28  # bytes, see unpack_limit
TIMES = 20  # what unpacks to fewer times its size is no bomb


@contextmanager
def reading(path: Any, kind: str) -> Iterator[None]:
    """Turn every error of a reader into an AbutError of one line that names the file."""
    try:
        yield
    except AbutError as error:
        if str(path) in str(error):
            raise
        raise type(error)(f"{path}: {error}") from error
    except Exception as error:
        why = error.strerror if isinstance(error, OSError) else None
        why = " ".join((why or str(error)).split()) or type(error).__name__
        raise FileError(f"{path} cannot be read as {kind}: {why}") from error


def existing(path: Any) -> Path:
    """Return the path of a file; refuse one that does not exist."""
    path = Path(path)
    try:
        found, folder = path.is_file(), path.is_dir()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from None
    if folder:
        raise FileError(f"{path} is a folder; name a file in it.")
    if not found:
        raise FileError(f"there is no file {path}.")
    return path


def unpack_limit() -> int:
    """Return the bytes a file may unpack to: ``ABUT_UNPACK_LIMIT``, else 256 MiB."""
    asked = os.environ.get("ABUT_UNPACK_LIMIT")
    if asked is None:
        return UNPACKED
    if not (asked.isascii() and asked.isdigit()):
        raise OptionError(f"ABUT_UNPACK_LIMIT must be a number of bytes, not {asked!r}.")
    return int(asked)


def require_room_for(path: Path, unpacked: int) -> None:
    """Refuse a file that unpacks beyond the limit, and to more than TIMES its size."""
    if unpacked > max(unpack_limit(), TIMES * path.stat().st_size):
        raise FileError(
            f"{path} unpacks to {unpacked:,} bytes or more; ABUT_UNPACK_LIMIT=BYTES allows it."
        )


def require_small_zip(path: Path) -> None:
    """Refuse a ZIP file (also 3MF, ZAE, NPZ) that unpacks beyond the limit."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            require_room_for(path, sum(info.file_size for info in archive.infolist()))
