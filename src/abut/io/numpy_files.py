"""NumPy files: archives of arrays, and single arrays."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from abut.errors import FileError
from abut.io.file_errors import existing, reading, require_small_zip


def read_archive(path: Any, kind: str) -> dict[str, np.ndarray]:
    """Read all arrays of an ``.npz`` file.

    Raises:
        FileError: There is no such file, it is damaged, or it unpacks beyond the limit.
    """
    path = existing(path)
    with reading(path, kind):
        require_small_zip(path)
        if not zipfile.is_zipfile(path):
            raise FileError(f"{path} cannot be read as {kind}: it is no .npz file.")
        with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
            return {name: held[name] for name in held.files}


def read_numbers(path: Any, kind: str) -> np.ndarray:
    """Read one array of real numbers as float64: an ``.npy`` file, or rows of text.

    Raises:
        FileError: There is no such file, it is damaged, or it holds something else.
    """
    path = Path(path)
    with reading(path, kind):
        if path.suffix.lower() != ".npy":
            return np.loadtxt(path, ndmin=2)
        with path.open("rb") as file:  # np.load would take other kinds of files, too
            held = np.lib.format.read_array(file, allow_pickle=False)
        if held.dtype.kind not in "iuf":
            raise FileError(f"{path} cannot be read as {kind}: it holds {held.dtype}.")
        return held.astype(np.float64)
