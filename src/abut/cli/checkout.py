"""A checkout of abut, where benchmarks and data are found."""

import os
from pathlib import Path


def checkout() -> Path | None:
    """The checkout we are in, or the one this package is run from."""
    here = Path.cwd()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[3]):
        if (folder / "src" / "abut").is_dir() and (folder / "pyproject.toml").is_file():
            return folder
    return None


def data_folder() -> Path | None:
    """Models for tests and benchmarks: ``ABUT_DATA``, else ``../shared/data`` of the checkout."""
    root = checkout()
    beside = root.parent / "shared" / "data" if root else None
    folder = Path(os.environ["ABUT_DATA"]) if "ABUT_DATA" in os.environ else beside
    return folder if folder and folder.is_dir() else None
