"""Meshes of a model, each held once."""

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np

from abut.io.models.part_model import PartMesh


class MeshPool:
    """The meshes of a model; equal arrays are one mesh."""

    def __init__(self) -> None:
        self.meshes: list[PartMesh] = []
        self._places: dict[bytes, list[int]] = {}

    def add(self, vertices: np.ndarray, faces: np.ndarray) -> int:
        """Return the index of a mesh, which is added if no equal one is held."""
        mesh = PartMesh(
            np.ascontiguousarray(vertices, np.float64), np.ascontiguousarray(faces, np.int32)
        )
        digest = blake2b(mesh.vertices.tobytes() + mesh.faces.tobytes()).digest()
        places = self._places.setdefault(digest, [])
        for place in places:
            held = self.meshes[place]
            if _equal(held.vertices, mesh.vertices) and _equal(held.faces, mesh.faces):
                return place
        places.append(len(self.meshes))
        self.meshes.append(mesh)
        return places[-1]


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def unique_ids(wanted: Iterable[str]) -> list[str]:
    """Return ids in the order of the wanted ones; repeated ones get "#2", "#3", ….

    An id that was wanted as it is keeps its text: a, a, a#2 become a, a#3, a#2.
    """
    wanted = list(wanted)
    taken, seen, found = set(wanted), set(), []
    for name in wanted:
        given, number = name, 2
        while given in seen or (given != name and given in taken):
            given, number = f"{name}#{number}", number + 1
        seen.add(given)
        found.append(given)
    return found


def welded(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merge vertices at equal positions; the order of first use stays, and so do the faces."""
    _, first, place = np.unique(vertices, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return vertices[first[order]], rank[place.reshape(-1)][faces]
