"""The folder of compiled kernels: checked before it is used, and replaced where it cannot be.

Warp compiles a kernel once and keeps it in ``wp.config.kernel_cache_dir``. A disk without room ends
the process while LLVM writes, and a damaged kernel crashes when it runs. So room is tried before a
kernel is compiled, and files are sealed with checksums, which are compared before they are loaded.
"""

import logging
import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

import warp as wp

from abut.errors import ToolError

log = logging.getLogger("abut")

ROOM = 1 << 24  # bytes; the largest kernels with their source take less
STDERR = 2
NO_DRIVER = "Could not find or load the NVIDIA CUDA driver"  # also where there is no GPU
SOURCES = (".cpp", ".cu")  # Warp does not read them again
SEAL = ".crc32"


@cache
def init_warp() -> None:
    """Initialise Warp, with a temporary folder of kernels where the usual one cannot be made.

    Raises:
        ToolError: There is no folder for kernels.
    """
    silent = wp.config.log_level in (wp.LOG_INFO, wp.LOG_WARNING)  # not asked to say more
    with without_messages(), stderr_without(NO_DRIVER) if silent else nullcontext():
        try:
            wp.init()
        except OSError as error:
            folder = error.filename or wp.config.kernel_cache_dir
            wp.config.kernel_cache_dir = str(_use_temporary_folder(folder, error))
            wp.init()  # appends its version


@contextmanager
def stderr_without(noise: str) -> Iterator[None]:
    """Drop lines that native code writes to standard error, where they contain ``noise``."""
    try:
        kept = os.dup(STDERR)
    except OSError:  # closed
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    os.dup2(writer, STDERR)
    os.close(writer)
    try:
        yield
    finally:
        os.dup2(kept, STDERR)
        os.close(kept)
        with open(reader, "rb") as held:
            lines = (held.read() or b"").splitlines(keepends=True)
        with suppress(OSError):
            os.write(STDERR, b"".join(line for line in lines if noise.encode() not in line))


@contextmanager
def without_messages() -> Iterator[None]:
    """Silence Warp's messages of starting and of loading modules, unless its log level was set."""
    default = wp.config.log_level == wp.LOG_INFO
    if default:
        wp.config.log_level = wp.LOG_WARNING
    try:
        yield
    finally:
        if default:
            wp.config.log_level = wp.LOG_INFO


def load_kernels(module: Any, device: wp.Device, block: int | None = None) -> None:
    """Compile or load a module; a damaged one is compiled again.

    Raises:
        ToolError: No folder has room for it.
    """
    folder = _folder_of(module, device, block)
    if _is_damaged(folder):
        _drop(folder)
    if not folder.exists():
        _require_room()
        wp.load_module(module, device=device, block_dim=block)
    else:
        try:
            wp.load_module(module, device=device, block_dim=block)
        except Exception:
            _drop(folder)
            module.mark_modified()  # else Warp raises the same error again
            _require_room()
            wp.load_module(module, device=device, block_dim=block)
    _seal(_folder_of(module, device, block))


def _folder_of(module: Any, device: wp.Device, block: int | None) -> Path:
    """Return the folder of a module, whose name contains a hash of its source."""
    default = 1 if device.is_cpu else module.options["block_dim"]
    return Path(wp.config.kernel_cache_dir, module.get_module_identifier(block or default))


def _sealed_files(folder: Path) -> list[Path]:
    files = folder.iterdir() if folder.is_dir() else ()
    return [file for file in files if file.suffix not in (*SOURCES, SEAL)]


def _is_damaged(folder: Path) -> bool:
    """Return whether a file differs from its seal; files without one are trusted."""
    for file in _sealed_files(folder):
        with suppress(FileNotFoundError):
            if file.with_name(file.name + SEAL).read_text() != _checksum(file):
                return True
    return False


def _seal(folder: Path) -> None:
    with suppress(OSError):  # a read-only folder is used as it is
        for file in _sealed_files(folder):
            seal = file.with_name(file.name + SEAL)
            if not seal.exists():
                seal.write_text(_checksum(file))


def _checksum(file: Path) -> str:
    return f"{zlib.crc32(file.read_bytes()):08x}"


def _drop(folder: Path) -> None:
    log.warning("damaged kernels in %s are compiled again", folder)
    shutil.rmtree(folder, ignore_errors=True)


def _require_room() -> None:
    """Try to write to the folder of kernels; use a temporary one where that fails."""
    folder = Path(wp.config.kernel_cache_dir)
    error = _write_error(folder)
    if error is not None:
        instead = _use_temporary_folder(folder, error) / wp.config.version
        wp.config.kernel_cache_dir = str(instead)


def _write_error(folder: Path) -> OSError | None:
    """Return why a folder has no room for kernels, or None."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(ROOM))
    except OSError as error:
        return error
    return None


def _use_temporary_folder(folder: Any, why: OSError) -> Path:
    """Keep kernels in a temporary folder from now on, and return it."""
    try:
        instead = _private_folder()
        failed = _write_error(instead) is not None
    except OSError:
        instead, failed = Path(folder), True
    if failed or Path(folder).is_relative_to(instead):
        raise ToolError(
            f"kernels cannot be compiled: {folder} has no room for them ({why.strerror}), nor has "
            "the folder of temporary files; set WARP_CACHE_PATH to a folder that has."
        ) from why
    log.warning(
        "kernels are kept in %s, because %s has no room for them (%s); WARP_CACHE_PATH names "
        "another folder",
        instead,
        folder,
        why.strerror,
    )
    return instead


def _private_folder() -> Path:
    """Return a folder for temporary kernels that no other user can write to."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir(), f"abut-kernels-{user}")
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user or found.st_mode & 0o022:
        return Path(tempfile.mkdtemp(prefix="abut-kernels-"))
    return folder
