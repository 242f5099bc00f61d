"""Read and check mesh files; every error names the file."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from abut.errors import FileError
from abut.io.declared import check_declared
from abut.io.obj import read_obj


class PlacedMesh(NamedTuple):
    """A mesh of a scene file.

    Attributes:
        name: Name of the node.
        geometry: Name of the mesh; several nodes may share one.
        matrix: (4, 4), affine.
    """

    name: str
    geometry: str
    matrix: np.ndarray
    vertices: np.ndarray
    faces: np.ndarray


def read_mesh(path: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Read the triangles of a file, object after object.

    Vertices are kept as the file has them.

    Returns:
        Vertices (n, 3), faces (m, 3), and the first face of each object followed by m; None
        instead for a file with one object.

    Raises:
        FileError: There is no such file, it holds no triangle, or it is damaged.
    """
    path = existing(path)
    if _is_obj(path):
        return *_one_obj(path), None
    loaded = _load(path)
    dumped = loaded.dump() if hasattr(loaded, "dump") else [loaded]
    pieces = [(np.asarray(p.vertices), np.asarray(p.faces)) for p in dumped if _has_faces(p)]
    shifts = np.cumsum([0] + [len(vertices) for vertices, _ in pieces])
    faces = [faces + shift for (_, faces), shift in zip(pieces, shifts, strict=False)]
    parts = np.cumsum([0] + [len(rows) for rows in faces]) if len(faces) > 1 else None
    return np.concatenate([vertices for vertices, _ in pieces]), np.concatenate(faces), parts


def read_scene(path: Any) -> list[PlacedMesh]:
    """Read the meshes of a file with their transforms, sorted by name.

    Raises:
        FileError: There is no such file, it holds no triangle, or it is damaged.
    """
    path = existing(path)
    if _is_obj(path):
        return [PlacedMesh(path.stem, path.stem, np.eye(4), *_one_obj(path))]
    loaded = _load(path)
    if not hasattr(loaded, "graph"):
        arrays = np.asarray(loaded.vertices), np.asarray(loaded.faces)
        return [PlacedMesh(path.stem, path.stem, np.eye(4), *arrays)]
    found = []
    for node in sorted(loaded.graph.nodes_geometry):
        matrix, name = loaded.graph[node]
        shape = loaded.geometry[name]
        if _has_faces(shape):
            arrays = np.asarray(shape.vertices), np.asarray(shape.faces)
            found.append(PlacedMesh(str(node), name, np.asarray(matrix, np.float64), *arrays))
    return found


def existing(path: Any) -> Path:
    """Return the path of a file; refuse one that does not exist."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"there is no file {path}.")
    return path


def _is_obj(path: Path) -> bool:
    return path.suffix.lower() == ".obj"


def _one_obj(path: Path) -> tuple[np.ndarray, np.ndarray]:
    vertices, faces = read_obj(path)
    if not len(faces):
        raise FileError(f"{path} holds no triangle mesh.")
    return vertices, faces


def _load(path: Path) -> Any:
    """Load a mesh or scene with trimesh, and check its faces against the header."""
    import trimesh

    try:
        loaded = trimesh.load(path, process=False)
    except Exception as error:
        why = " ".join(str(error).split())
        raise FileError(f"{path} cannot be read as a mesh: {why}") from error
    shapes: dict[str, Any] = {"": loaded}
    if isinstance(loaded, trimesh.Scene):
        shapes = dict(loaded.geometry)
    counts = {name: len(shape.faces) for name, shape in shapes.items() if _has_faces(shape)}
    if any(counts.values()) or path.suffix.lower() == ".stl":
        check_declared(path, sum(counts.values()))
    for name, count in counts.items():
        if not count:
            raise FileError(f"{path} holds a mesh {name} without faces.".replace("  ", " "))
    if not counts:
        raise FileError(f"{path} holds no triangle mesh.")
    return loaded


def _has_faces(shape: Any) -> bool:
    """Return whether a shape is a mesh, not points or paths."""
    import trimesh

    return isinstance(shape, trimesh.Trimesh)
