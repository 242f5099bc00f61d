"""The frames of an animation: a folder with a mesh file each, or one file with all."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from abut.errors import FileError, MeshError
from abut.mesh import Mesh

MESH_FILES = (".ply", ".obj", ".stl", ".off", ".npz")
Frame = tuple[str, np.ndarray, np.ndarray]  # name, vertices, faces


def frames_of(path: Path) -> Iterator[Frame]:
    """Names, vertices and faces of all frames, in order; all faces are those of the first."""
    first = None
    for name, vertices, faces in _all_frames(path):
        first = faces if first is None else first
        if faces is not first and not np.array_equal(faces, first):
            raise MeshError(f"{name} does not have the faces of the frame before it.")
        yield name, vertices, faces


def frame_count(path: Path) -> int:
    """How many frames there are, at least two."""
    count = len(_files(path)) if path.is_dir() else len(_arrays(path)[0])
    if count < 2:
        what = "mesh files" if path.is_dir() else "frames"
        raise FileError(f"{path} has {count} {what}; a step takes two.")
    return count


def _all_frames(path: Path) -> Iterator[Frame]:
    if path.is_dir():
        for file in _files(path):
            if file.suffix.lower() == ".npz":
                shapes, faces = _arrays(file)
                if len(shapes) != 1:
                    raise FileError(f"{file} has {len(shapes)} frames; in a folder each has one.")
                yield file.name, shapes[0], faces
            else:
                mesh = Mesh.load(file, "cpu")
                yield file.name, mesh.vertices.numpy(), mesh.faces.numpy()
        return
    shapes, faces = _arrays(path)
    for k, vertices in enumerate(shapes):
        yield f"frame {k}", vertices, faces


def _files(folder: Path) -> list[Path]:
    """The mesh files of a folder, numbers in their names in order."""
    files = [p for p in folder.iterdir() if p.suffix.lower() in MESH_FILES]
    return sorted(files, key=lambda p: [(int(n or -1), s) for n, s in _words(p.name)])


def _words(name: str) -> Iterator[tuple[str, str]]:
    return iter(re.findall(r"(\d+)|(\D+)", name))


def _arrays(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Vertices of all frames (k, n, 3) and faces (m, 3) of a file of arrays."""
    if file.suffix.lower() != ".npz":
        raise FileError(
            f"{file} is not a folder; --follow wants one with a file for each frame, or one .npz."
        )
    try:
        with np.load(file) as held:
            vertices, faces = (
                _named(held, *names) for names in (("vertices", "V"), ("faces", "F"))
            )
    except (OSError, ValueError, KeyError) as error:
        raise FileError(f"{file} cannot be read as frames: {error}") from None
    if not len(faces):
        raise FileError(f"{file} has no faces.")
    vertices = vertices[None] if vertices.ndim == 2 else vertices
    if vertices.ndim != 3:
        raise FileError(f"{file} has vertices of shape {vertices.shape}, not (frames, n, 3).")
    return vertices, faces


def _named(held: np.lib.npyio.NpzFile, *names: str) -> np.ndarray:
    for name in names:
        if name in held:
            return held[name]
    raise KeyError(f"there is no array {' or '.join(names)}")
