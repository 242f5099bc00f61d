"""Read models: the parts of files with names, units and instances."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from abut.errors import FileError, OptionError
from abut.io.archives import ARCHIVES
from abut.io.file_errors import existing, reading
from abut.io.models.part_model import PartModel
from abut.io.read import USUAL

UNITS = {"m": 1.0, "mm": 0.001, "cm": 0.01, "in": 0.0254, "ft": 0.3048}
IFC = (".ifc", ".ifczip")
STEP = (".step", ".stp")
USD = (".usd", ".usda", ".usdc", ".usdz")
NUMPY = (".npz",)
ENDINGS = (*IFC, *STEP, *USD, *USUAL, *NUMPY, *ARCHIVES)


def read_model(path: Any, *, unit: float | str | None = None, chord: float = 0.001) -> PartModel:
    """Read the parts of a model.

    Args:
        path: An IFC, STEP or USD file, or a mesh or scene file.
        unit: Metres per unit, or one of ``UNITS``; only for formats that state no unit. Without
            it such a file is taken to be in metres.
        chord: Largest distance of a mesh from the curved surface it replaces [m].

    Raises:
        FileError: There is no such file, it is damaged, or no reader takes it.
        ToolError: The reader needs a package that is missing.
        OptionError: The unit or the chord is not one.
    """
    path = existing(path)
    metres = unit_in_metres(unit)
    if not (isinstance(chord, int | float) and math.isfinite(chord) and chord > 0):
        raise OptionError(f"chord must be a positive length in metres, not {chord!r}.")
    if not is_model(path):
        raise FileError(f"{path} is no model that can be read; known are {', '.join(ENDINGS)}.")
    with reading(path, "a model"):
        return _parts_of(path, chord, metres)


def _parts_of(path: Path, chord: float, metres: float | None) -> PartModel:
    """Read a model by the reader of its format; each reader is imported when it is needed."""
    ending = path.suffix.lower()
    if ending in IFC:
        from abut.io.models.ifc_model import read_ifc

        return read_ifc(path, chord)
    if ending in STEP:
        from abut.io.models.step_model import read_step

        return read_step(path, chord)
    if ending in USD:
        from abut.io.models.usd_model import read_usd

        return read_usd(path, chord, metres)
    if ending in NUMPY:
        from abut.io.models.npz_model import read_npz_model

        return read_npz_model(path, metres)
    from abut.io.models.mesh_model import read_mesh_model

    return read_mesh_model(path, metres)


def model_files(paths: Iterable[Any]) -> list[Path]:
    """Return files, and the models in folders, sorted, at any depth; each file once.

    Raises:
        FileError: A file is missing or has no reader, or a folder holds no model.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if not path.is_dir():
            if not is_model(existing(path)):
                raise FileError(f"{path} is no model; known are {', '.join(ENDINGS)}.")
            found.append(path)
            continue
        inside = sorted(file for file in path.rglob("*") if file.is_file() and is_model(file))
        if not inside:
            raise FileError(f"{path} holds no model; known are {', '.join(ENDINGS)}.")
        found += inside
    first: dict[Path, Path] = {}
    for file in found:
        first.setdefault(file.resolve(), file)
    return list(first.values())


def is_model(path: Path) -> bool:
    """Return whether a reader takes the file, by its name."""
    return path.name.lower().endswith(ENDINGS)


def unit_in_metres(unit: float | str | None) -> float | None:
    """Return the metres of a unit: a number, or one of ``UNITS``."""
    if unit is None:
        return None
    if isinstance(unit, str) and unit in UNITS:
        return UNITS[unit]
    try:
        metres = float(unit)
    except (TypeError, ValueError):
        metres = math.nan
    if not (math.isfinite(metres) and metres > 0):
        names = ", ".join(UNITS)
        raise OptionError(f"unit must be one of {names} or metres per unit, not {unit!r}.")
    return metres
