"""Models from NumPy archives: vertices and faces of numbered parts."""

import re
from pathlib import Path

import numpy as np

from abut.errors import FileError
from abut.io.models.mesh_pool import MeshPool, unique_ids
from abut.io.models.part_model import ModelPart, PartModel
from abut.io.numpy_files import read_archive

VERTICES = re.compile(r"p(\d+)__V")


def read_npz_model(path: Path, unit: float | None) -> PartModel:
    """Read ``p0000__V`` (n, 3), ``p0000__F`` (m, 3), … and, if there, ``names`` of the parts.

    A name such as "IfcWall:3cUkl32yn9qRSPvBJVyWw5" gives the type and the id.

    Args:
        path: An ``.npz`` file.
        unit: Metres per unit; None keeps coordinates.
    """
    arrays = read_archive(path, "a model")
    numbers = sorted(match[1] for match in map(VERTICES.fullmatch, arrays) if match)
    if not numbers:
        raise FileError(f"{path} holds no arrays p0000__V and p0000__F, so it is no model.")
    names = [str(name) for name in arrays.get("names", [f"p{number}" for number in numbers])]
    if len(names) != len(numbers):
        raise FileError(f"{path} holds {len(names)} names of {len(numbers)} parts.")
    pool, parts = MeshPool(), []
    ids = unique_ids(name.partition(":")[2] or name for name in names)
    for number, name, own in zip(numbers, names, ids, strict=True):
        vertices, faces = _checked(arrays, number, path)
        index = pool.add(vertices * (1.0 if unit is None else unit), faces)
        kind = name.partition(":")[0] if ":" in name else ""
        parts.append(ModelPart(own, own, kind, "", "", {}, index, np.eye(4)))
    return PartModel(path, unit, 0.0, pool.meshes, parts)


def _checked(
    arrays: dict[str, np.ndarray], number: str, path: Path
) -> tuple[np.ndarray, np.ndarray]:
    """Return the arrays of a part; refuse shapes and types that are no mesh."""
    vertices, faces = arrays[f"p{number}__V"], arrays.get(f"p{number}__F")
    if faces is None:
        raise FileError(f"{path} holds p{number}__V without p{number}__F.")
    for name, array, kinds in (("V", vertices, "fiu"), ("F", faces, "iu")):
        if array.ndim != 2 or array.shape[1] != 3 or array.dtype.kind not in kinds:
            found = f"{array.dtype} of shape {array.shape}"
            raise FileError(f"{path}: p{number}__{name} is {found}, not (n, 3) numbers.")
    return vertices.astype(np.float64), faces
