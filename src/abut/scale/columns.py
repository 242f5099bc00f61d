"""Columns on disk: arrays and texts that are appended to, and read by memory mapping."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from abut.errors import FileError
from abut.io.file_errors import reading


class ArrayWriter:
    """Appends rows to an ``.npy`` file.

    Args:
        path: The file.
        dtype: Type of the elements.
        shape: Shape of a row.
    """

    def __init__(self, path: Path, dtype: Any, shape: tuple[int, ...] = ()) -> None:
        self.path, self.dtype, self.shape = path, np.dtype(dtype), shape
        self.count = 0
        self.digest = hashlib.sha256(f"{path.name} {self.dtype.str} {shape}".encode())
        self._file: BinaryIO = path.open("wb")
        self._start = self._write_header()

    def append(self, rows: Any) -> None:
        """Append rows."""
        rows = np.ascontiguousarray(rows, self.dtype).reshape(-1, *self.shape)
        data = rows.tobytes()
        self.digest.update(data)
        self._file.write(data)
        self.count += len(rows)

    def close(self) -> None:
        """Write the number of rows into the header."""
        self._file.seek(0)
        if self._write_header() != self._start:
            raise FileError(f"{self.path} cannot be written: its header has grown.")
        self._file.close()

    def abandon(self) -> None:
        """Close the file as it is."""
        self._file.close()

    def _write_header(self) -> int:
        """Write the header, which leaves room for a larger count; return its size."""
        header = {
            "descr": np.lib.format.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": (self.count, *self.shape),
        }
        np.lib.format.write_array_header_1_0(self._file, header)
        return self._file.tell()


class TextWriter:
    """Appends texts: their UTF-8 bytes in one file, the ends of the texts in another."""

    def __init__(self, folder: Path, name: str) -> None:
        self._bytes = ArrayWriter(folder / f"{name}.npy", np.uint8)
        self._ends = ArrayWriter(folder / f"{name}_ends.npy", np.int64)
        self.writers = self._bytes, self._ends

    def append(self, texts: Iterable[str]) -> None:
        """Append texts."""
        coded = [text.encode() for text in texts]
        ends = self._bytes.count + np.cumsum([len(data) for data in coded], dtype=np.int64)
        self._bytes.append(np.frombuffer(b"".join(coded), np.uint8))
        self._ends.append(ends)


class TextColumn:
    """Texts that a ``TextWriter`` wrote."""

    def __init__(self, folder: Path, name: str) -> None:
        self._bytes = open_array(folder / f"{name}.npy")
        self._ends = open_array(folder / f"{name}_ends.npy")

    def __len__(self) -> int:
        """Number of texts."""
        return len(self._ends)

    def __getitem__(self, row: int) -> str:
        """The text of a row."""
        start = int(self._ends[row - 1]) if row else 0
        return self._bytes[start : int(self._ends[row])].tobytes().decode()

    def of(self, rows: Sequence[int] | np.ndarray) -> list[str]:
        """The texts of rows."""
        return [self[row] for row in np.asarray(rows).tolist()]


def open_array(path: Path) -> np.ndarray:
    """Return an array of a file, memory-mapped and read-only.

    Raises:
        FileError: The file is missing or damaged.
    """
    with reading(path, "a column"):
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            shape, _, _ = np.lib.format.read_array_header_1_0(file)
        empty = 0 in shape  # cannot be mapped
        return np.load(path, mmap_mode=None if empty else "r", allow_pickle=False)
