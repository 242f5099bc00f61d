"""Parts of an OBJ file: its objects, or its groups."""

from typing import NamedTuple

import numpy as np

from abut.io.obj import ObjFile


class ObjPart(NamedTuple):
    """An object or a group, with the vertices that its faces use."""

    name: str
    vertices: np.ndarray
    faces: np.ndarray


def parts_of_obj(file: ObjFile, stem: str) -> list[ObjPart]:
    """The objects of a file if it has several, else its groups if it has several, else one part.

    Every ``o`` statement begins an object. A group is all faces of one name, which may be in
    several places. Faces above the first name are a part with the name of the file.

    Args:
        file: A file with faces.
        stem: Name of the file.
    """
    objects = [(text, start) for kind, text, start in file.names if kind == "o"]
    found = _spans(objects, len(file.faces), stem)
    if len(found) < 2:
        groups = [(text, start) for kind, text, start in file.names if kind == "g"]
        found = _joined(_spans(groups, len(file.faces), stem))
    if len(found) < 2:
        return [ObjPart(stem, file.vertices, file.faces)]
    return [ObjPart(name, *_used(file.vertices, file.faces[rows])) for name, rows in found]


def _spans(named: list[tuple[str, int]], count: int, stem: str) -> list[tuple[str, np.ndarray]]:
    """Names with the faces from each to the next, where there are any."""
    texts, starts = [stem], [0]
    for text, start in named:
        texts.append(text or stem)
        starts.append(start)
    stops = [*starts[1:], count]
    rows = zip(texts, starts, stops, strict=True)
    return [(text, np.arange(start, stop)) for text, start, stop in rows if stop > start]


def _joined(spans: list[tuple[str, np.ndarray]]) -> list[tuple[str, np.ndarray]]:
    """The faces of each name, in the order of the first."""
    rows: dict[str, list[np.ndarray]] = {}
    for name, faces in spans:
        rows.setdefault(name, []).append(faces)
    return [(name, np.concatenate(faces)) for name, faces in rows.items()]


def _used(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The vertices that faces use, in their order, and the faces of these."""
    used, new = np.unique(faces, return_inverse=True)
    return vertices[used], new.reshape(-1, 3).astype(np.int32)
