"""Frames of an animation: a folder of mesh files, or one .npz."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from abut.errors import FileError, MeshError
from abut.io import reading
from abut.io.numpy_files import read_archive
from abut.mesh import Mesh

FRAME_FILES = (".ply", ".obj", ".stl", ".off", ".npz")
FOLLOW = "all frames of an animation, one line each: a folder of frames, or a .npz with vertices "
FOLLOW += "(frames, n, 3) and faces"

Frame = tuple[str, np.ndarray, np.ndarray]  # name, vertices, faces


def frames_of(path: Path) -> Iterator[Frame]:
    """Yield the name, vertices and faces of all frames; refuses frames with other faces."""
    first = None
    for name, vertices, faces in _all_frames(path):
        first = faces if first is None else first
        if faces is not first and not np.array_equal(faces, first):
            raise MeshError(f"{name} does not have the faces of the frame before it.")
        if not np.isfinite(vertices).all():
            raise MeshError(f"{path}: a vertex of {name} is not finite.")
        yield name, vertices, faces


def frame_count(path: Path, least: int = 2) -> int:
    """Number of frames; refuses fewer than ``least``."""
    count = len(_files(path)) if path.is_dir() else len(_arrays(path)[0])
    if count < least:
        what = "mesh files" if path.is_dir() else "frames"
        raise FileError(f"{path} has {count} {what}; at least {least} are needed.")
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
    """Mesh files of a folder, sorted by the numbers in their names."""
    with reading(folder, "frames"):
        return in_order(p for p in folder.iterdir() if p.suffix.lower() in FRAME_FILES)


def in_order(files: Iterable[Path]) -> list[Path]:
    """Files sorted by the numbers in their names."""
    return sorted(files, key=lambda p: [(int(n or -1), s) for n, s in _words(p.name)])


def _words(name: str) -> Iterator[tuple[str, str]]:
    return iter(re.findall(r"(\d+)|(\D+)", name))


def _arrays(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Load vertices of all frames (k, n, 3) and faces (m, 3) from an .npz file."""
    if file.suffix.lower() != ".npz":
        raise FileError(
            f"{file} is not a folder; --follow wants one with a file for each frame, or one .npz."
        )
    held = read_archive(file, "frames")
    vertices, faces = (_named(held, file, *names) for names in (("vertices", "V"), ("faces", "F")))
    if not len(faces):
        raise FileError(f"{file} has no faces.")
    vertices = vertices[None] if vertices.ndim == 2 else vertices
    if vertices.ndim != 3 or vertices.shape[2] != 3 or vertices.dtype.kind not in "fiu":
        found = f"{vertices.shape} of {vertices.dtype}"
        raise FileError(f"{file} has vertices of shape {found}, not (frames, n, 3) of numbers.")
    return vertices, faces


def _named(held: dict[str, np.ndarray], file: Path, *names: str) -> np.ndarray:
    for name in names:
        if name in held and held[name].ndim:
            return held[name]
    raise FileError(f"{file} cannot be read as frames: there is no array {' or '.join(names)}.")
