"""Mesh files in, through trimesh."""

from pathlib import Path
from typing import Any

import numpy as np
import trimesh

from abut.errors import FileError, MeshError
from abut.mesh import Mesh


def load_mesh(path: Any, device: Any = None) -> Mesh:
    """Read a mesh file; faces of a file with several objects come one object after the other.

    Vertices are kept as the file has them. ``parts`` then holds the first face of each object.

    Raises:
        FileError: There is no such file, or trimesh cannot read a mesh from it.
        MeshError: The mesh in it cannot be used.
    """
    path = Path(path)
    if not path.is_file():
        raise FileError(f"there is no file {path}.")
    try:
        loaded = trimesh.load(path, process=False)
    except Exception as error:
        raise FileError(f"{path} cannot be read as a mesh: {error}") from error
    pieces = loaded.dump() if isinstance(loaded, trimesh.Scene) else [loaded]
    pieces = [piece for piece in pieces if isinstance(piece, trimesh.Trimesh)]
    if not pieces:
        raise FileError(f"{path} holds no triangle mesh.")
    shifts = np.cumsum([0] + [len(piece.vertices) for piece in pieces])
    vertices = np.concatenate([piece.vertices for piece in pieces])
    faces = np.concatenate([p.faces + shift for p, shift in zip(pieces, shifts, strict=False)])
    try:
        mesh = Mesh(np.ascontiguousarray(vertices), faces, device)
    except MeshError as error:
        raise MeshError(f"{path}: {error}") from None
    if len(pieces) > 1:
        mesh.parts = np.cumsum([0] + [len(piece.faces) for piece in pieces])
    return mesh
