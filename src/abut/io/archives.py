"""Archives of mesh files: ZIP and TAR, unpacked into a temporary folder."""

import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from abut.errors import FileError
from abut.io.file_errors import reading, require_room_for

ARCHIVES = (".zip", ".tar.gz", ".tar.bz2", ".tgz")
MOST_ZEROS = 1000  # records at the end of a TAR file
OTHERS = (".mtl", ".bin", ".png", ".jpg", ".jpeg", ".txt", ".md", ".json", ".yaml", ".yml")


def is_archive(path: Path) -> bool:
    """Return whether a file is an archive, by its name."""
    return path.name.lower().endswith(ARCHIVES)


@contextmanager
def unpacked(path: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Unpack an archive for a while; yield the folder and its mesh files, sorted.

    Textures, materials, buffers and notes are unpacked beside them.

    Raises:
        FileError: The archive is damaged, unpacks beyond the limit, or holds an archive.
    """
    with tempfile.TemporaryDirectory(prefix="abut-") as folder:
        with reading(path, "an archive"):
            (_unpack_zip if path.suffix.lower() == ".zip" else _unpack_tar)(path, folder)
            files = sorted(file for file in Path(folder).rglob("*") if file.is_file())
        meshes = [file for file in files if file.suffix.lower() not in OTHERS]
        for file in meshes:
            if is_archive(file):
                raise FileError(f"{path} holds an archive, {file.name}; unpack it first.")
        yield Path(folder), meshes


def _unpack_zip(path: Path, folder: str) -> None:
    with zipfile.ZipFile(path) as archive:
        require_room_for(path, sum(info.file_size for info in archive.infolist()))
        archive.extractall(folder)


def _unpack_tar(path: Path, folder: str) -> None:
    with tarfile.open(path) as archive:
        total = 0
        for member in archive:
            total += member.size
            require_room_for(path, total)
        _require_end(archive)
        archive.extractall(folder, filter="data")


def _require_end(archive: tarfile.TarFile) -> None:
    """Refuse an archive that does not end in zeros: tarfile stops at a damaged header, silently."""
    assert archive.fileobj is not None
    archive.fileobj.seek(archive.offset)
    if archive.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise ValueError("a header is damaged.")
    for _ in range(MOST_ZEROS):
        if not archive.fileobj.read(tarfile.RECORDSIZE):  # checks the checksum of gzip
            return
    raise ValueError("it does not end.")
