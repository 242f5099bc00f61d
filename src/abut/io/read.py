"""Read and check mesh files; every error names the file."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from abut.errors import FileError, ToolError
from abut.io.archives import is_archive, unpacked
from abut.io.declared import check_declared
from abut.io.file_errors import existing, reading, require_small_zip
from abut.io.gltf_check import gltf_triangles
from abut.io.obj import read_obj
from abut.io.obj_parts import parts_of_obj

KIND = "a mesh"
STEP = (".step", ".stp")
USUAL = (".ply", ".obj", ".stl", ".off", ".glb", ".gltf", ".3mf", ".dae")
MODELS = (".ifc", ".ifczip", ".usd", ".usda", ".usdc", ".usdz")
PACKED = (".bz2", ".gz", ".xz", ".7z")


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
    placed = _placed_meshes(existing(path))
    with reading(path, KIND):
        pieces = [_in_world(mesh) for mesh in placed]
    shifts = np.cumsum([0] + [len(vertices) for vertices, _ in pieces])
    faces = [faces + shift for (_, faces), shift in zip(pieces, shifts, strict=False)]
    parts = np.cumsum([0] + [len(rows) for rows in faces]) if len(faces) > 1 else None
    return np.concatenate([vertices for vertices, _ in pieces]), np.concatenate(faces), parts


def read_scene(path: Any, *, obj_parts: bool = False) -> list[PlacedMesh]:
    """Read the meshes of a file with their transforms, sorted by name.

    Args:
        path: The file.
        obj_parts: Objects, or groups, of OBJ files are meshes of their own.

    Raises:
        FileError: There is no such file, it holds no triangle, or it is damaged.
    """
    return sorted(_placed_meshes(existing(path), obj_parts), key=lambda mesh: mesh.name)


def _placed_meshes(path: Path, obj_parts: bool = False) -> list[PlacedMesh]:
    """Read the meshes of a file in its order, or those of all files of an archive."""
    if is_archive(path):
        return _meshes_of_archive(path, obj_parts)
    with reading(path, KIND):
        if path.suffix.lower() == ".obj":
            return _meshes_of_obj(path, obj_parts)
        loaded = _load(path)
        if not hasattr(loaded, "graph"):
            return [PlacedMesh(path.stem, path.stem, np.eye(4), *_arrays_of(loaded, path))]
        return _nodes(loaded, path)


def _meshes_of_obj(path: Path, obj_parts: bool) -> list[PlacedMesh]:
    file = read_obj(path)
    if not len(file.faces):
        raise FileError(f"{path} holds no triangle mesh.")
    if not obj_parts:
        return [PlacedMesh(path.stem, path.stem, np.eye(4), file.vertices, file.faces)]
    parts = enumerate(parts_of_obj(file, path.stem))
    return [
        PlacedMesh(part.name, str(k), np.eye(4), part.vertices, part.faces) for k, part in parts
    ]


def _meshes_of_archive(path: Path, obj_parts: bool) -> list[PlacedMesh]:
    found = []
    with unpacked(path) as (folder, files):
        for file in files:
            name = str(file.relative_to(folder))
            try:
                meshes = _placed_meshes(file, obj_parts)
            except FileError as error:
                raise FileError(f"{path}: {str(error).replace(f'{folder}/', '')}") from None
            for mesh in meshes:
                node = name if len(meshes) == 1 else f"{name}/{mesh.name}"
                found.append(mesh._replace(name=node, geometry=f"{name}/{mesh.geometry}"))
    if not found:
        raise FileError(f"{path} holds no triangle mesh.")
    return found


def _load(path: Path) -> Any:
    """Load a mesh or scene with trimesh, and check its faces against the header."""
    import trimesh

    ending = path.suffix.lower()
    if ending in PACKED:
        raise FileError(f"{path} is compressed; unpack it first.")
    if ending in MODELS:
        way = "abut clash reads it, and abut.io.read_model its meshes"
        raise FileError(f"{path} is a model of parts; {way}.")
    if ending not in STEP and ending[1:] not in trimesh.available_formats():
        raise FileError(f"{path} is no mesh that abut reads; it reads {', '.join(USUAL)} and more.")
    if ending in STEP and find_spec("cascadio") is None:
        way = "pip install cascadio brings it. abut clash reads their parts with the extra cad."
        raise ToolError(f"{path}: STEP files need cascadio; {way}")
    require_small_zip(path)
    loaded = trimesh.load(path, process=False)
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


def _nodes(loaded: Any, path: Path) -> list[PlacedMesh]:
    """Return the meshes of a scene graph; every matrix must be finite and affine."""
    found = []
    for node in loaded.graph.nodes_geometry:
        matrix, name = loaded.graph[node]
        shape, matrix = loaded.geometry[name], np.asarray(matrix, np.float64)
        if not np.isfinite(matrix).all() or (matrix[3] != [0, 0, 0, 1]).any():
            raise FileError(f"{path} places {node} by a matrix that is not affine.")
        if _has_faces(shape):
            found.append(PlacedMesh(str(node), name, matrix, *_arrays_of(shape, path)))
    if not found:
        raise FileError(f"{path} holds no triangle mesh that is placed.")
    if path.suffix.lower() in (".glb", ".gltf"):
        declared, count = gltf_triangles(path), sum(len(mesh.faces) for mesh in found)
        if declared not in (None, count):
            raise FileError(f"{path} places {declared} triangles, but {count} can be read.")
    return found


def _has_faces(shape: Any) -> bool:
    """Return whether a shape is a mesh, not points or paths."""
    import trimesh

    return isinstance(shape, trimesh.Trimesh)


def _arrays_of(shape: Any, path: Path) -> tuple[np.ndarray, np.ndarray]:
    vertices, faces = np.asarray(shape.vertices), np.asarray(shape.faces)
    if vertices.ndim != 2 or vertices.shape[1] != 3:
        raise FileError(f"{path} holds vertices of shape {vertices.shape}, not (n, 3).")
    return vertices, faces


def _in_world(mesh: PlacedMesh) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices and faces with the transform applied; a mirrored mesh keeps its outside."""
    import trimesh

    vertices = trimesh.transform_points(mesh.vertices, mesh.matrix)
    mirrored = np.linalg.det(mesh.matrix[:3, :3]) < 0
    return vertices, np.ascontiguousarray(mesh.faces[:, ::-1]) if mirrored else mesh.faces
