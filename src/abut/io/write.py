"""Write files beside their target, and replace it when they are whole."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from abut.errors import FileError


@contextmanager
def replacing(path: Any, *, folders: bool = False) -> Iterator[Path]:
    """Yield the name of a new file, which replaces ``path`` at the end.

    The new file lies beside ``path`` and has its suffix. After an error it is removed, and ``path``
    is as it was. Devices and pipes are written directly. Missing ``folders`` may be created.

    Raises:
        FileError: The file cannot be written; names ``path``.
    """
    target = Path(os.path.realpath(path))
    direct = target.exists() and not target.is_file()
    new = target.with_name(f".{target.stem}.{secrets.token_hex(4)}{target.suffix}")
    try:
        if folders:
            target.parent.mkdir(parents=True, exist_ok=True)
        yield target if direct else new
        if not direct:
            _replace(new, target)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}.") from None
    finally:
        with suppress(OSError):  # its folder may be missing
            new.unlink()


def require_writable(path: Any, *, folders: bool = False) -> None:
    """Refuse a file that cannot be written, before any work is done for it; see ``replacing``."""
    target = Path(os.path.realpath(path))
    try:
        if folders:
            target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            os.close(os.open(target, os.O_WRONLY))
        if not target.exists() or target.is_file():
            new = target.with_name(f".{target.stem}.{secrets.token_hex(4)}{target.suffix}")
            new.touch()
            new.unlink()
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror or error}.") from None


def _replace(new: Path, target: Path) -> None:
    """Move a whole file to its target, whose permissions stay."""
    with new.open("rb+") as file:
        os.fsync(file.fileno())
    if target.exists():
        shutil.copymode(target, new)
    os.replace(new, target)
