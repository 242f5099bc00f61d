"""The unit of lengths that a COLLADA file states."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from abut.errors import FileError

SUFFIX = ".dae"


def collada_unit(path: Path) -> float:
    """Metres of one unit of a file; 1 for other kinds of files, and where it states none.

    Raises:
        FileError: The unit is no positive number.
    """
    if path.suffix.lower() != SUFFIX:
        return 1.0
    for _, part in ElementTree.iterparse(path, ("end",)):
        tag = part.tag.rpartition("}")[2]
        if tag == "unit":
            return _metres(part.get("meter", "1"), path)
        if tag == "asset":
            break
    return 1.0


def _metres(text: str, path: Path) -> float:
    try:
        metres = float(text)
    except ValueError:
        metres = np.nan
    if not 0 < metres < np.inf:
        raise FileError(f"{path} has a unit of {text!r} metres.")
    return metres
