"""Solids clipped by planes."""

from typing import NamedTuple

import numpy as np

from abut.cases.caps import triangulated
from abut.cases.shape import Shape
from abut.geometry.topology import directed_edges, weld_vertices


class ClippedSolid(NamedTuple):
    """A closed surface of triangles, and of planar regions given by their boundary edges.

    Attributes:
        vertices: (n, 3); some may be unused.
        faces: (m, 3) triangles of the surface.
        rims: (k, 3) directed edges of the planar regions, and the plane of each.
        normals: (p, 3) normals of planes; regions lie to the left of their edges, seen against
            the normal.
    """

    vertices: np.ndarray
    faces: np.ndarray
    rims: np.ndarray
    normals: np.ndarray

    @staticmethod
    def of(shape: Shape) -> "ClippedSolid":
        """Make a solid of a shape: weld equal positions, close holes by fans."""
        faces = weld_vertices(shape.vertices)[shape.faces]
        faces = faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)]
        faces = np.concatenate([faces, _hole_fans(faces, len(shape.vertices))])
        return ClippedSolid(
            shape.vertices, faces, np.zeros((0, 3), np.int64), np.zeros((0, 3))
        ).compact()

    @property
    def empty(self) -> bool:
        """Whether the solid has no surface."""
        return len(self.faces) + len(self.rims) == 0

    def compact(self) -> "ClippedSolid":
        """The solid without unused vertices."""
        corners = np.concatenate([self.faces.ravel(), self.rims[:, :2].ravel()])
        used, renamed = np.unique(corners, return_inverse=True)
        faces, ends = np.split(renamed, [self.faces.size])
        rims = np.column_stack([ends.reshape(-1, 2), self.rims[:, 2]])
        return ClippedSolid(self.vertices[used], faces.reshape(-1, 3), rims, self.normals)

    def shape(self) -> Shape:
        """The whole surface as triangles."""
        faces = [self.faces]
        for plane in np.unique(self.rims[:, 2]):
            starts, ends, _ = self.rims[self.rims[:, 2] == plane].T
            flat = self.vertices @ _axes(self.normals[plane]).T
            faces.append(triangulated(flat, _loops(starts, ends)))
        return Shape(self.vertices, np.concatenate(faces).astype(np.int32))

    def clipped(self, normal: np.ndarray, offset: float) -> "ClippedSolid":
        """The part where ``normal @ x <= offset``.

        Each vertex is classified once and each cut edge has one new vertex, so a closed surface
        stays closed for any rounding of coordinates.
        """
        height = self.vertices @ normal - offset
        inside = height <= 0
        if inside.all():
            return self
        count = inside[self.faces].sum(axis=1)
        ends = inside[self.rims[:, :2]].sum(axis=1)
        whole, crossing = self.faces[count == 3], self.faces[(count == 1) | (count == 2)]
        kept, cut = self.rims[ends == 2], self.rims[ends == 1]
        a, b, c = _alone_first(crossing, inside).T
        vertices, new = _cut_edges(self.vertices, height, [(a, b), (a, c), (cut[:, 0], cut[:, 1])])
        ab, ac, at = new
        faces, seams = _cut_faces(a, b, c, ab, ac, inside)
        ends, across = _cut_rims(cut, at, inside, vertices, np.cross(self.normals, normal))
        seams = np.concatenate([seams, across[:, 1::-1]])
        seams = np.column_stack([seams, np.full(len(seams), len(self.normals))])
        return ClippedSolid(
            vertices,
            np.concatenate([whole, *faces]),
            np.concatenate([kept, *ends, across, seams]),
            np.concatenate([self.normals, [normal]]),
        )


def _alone_first(crossing: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Rotate the corners of faces so that the corner alone on its side comes first."""
    sides = inside[crossing]
    alone = sides == (sides.sum(axis=1) == 1)[:, None]
    return np.take_along_axis(crossing, (np.argmax(alone, axis=1)[:, None] + [0, 1, 2]) % 3, 1)


def _cut_faces(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, ab: np.ndarray, ac: np.ndarray, inside: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Remaining triangles of cut faces, and the edges of the cut in the plane."""
    corner, rest = inside[a], ~inside[a]
    faces = [
        np.stack([a, ab, ac], axis=1)[corner],
        np.stack([ab, b, c], axis=1)[rest],
        np.stack([ab, c, ac], axis=1)[rest],
    ]
    return faces, np.stack([np.where(corner, ac, ab), np.where(corner, ab, ac)], axis=1)


def _cut_rims(
    cut: np.ndarray, at: np.ndarray, inside: np.ndarray, vertices: np.ndarray, lines: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Remaining parts of cut edges, and the edges of the cut across their regions."""
    leaves = inside[cut[:, 0]]
    exits = np.column_stack([cut[:, 0], at, cut[:, 2]])[leaves]
    entries = np.column_stack([at, cut[:, 1], cut[:, 2]])[~leaves]
    # along the line of two planes exits and entries alternate, in one direction
    ahead = [
        np.einsum("ij,ij->i", vertices[points], lines[planes])
        for points, planes in ((exits[:, 1], exits[:, 2]), (entries[:, 0], entries[:, 2]))
    ]
    out = exits[np.lexsort((ahead[0], exits[:, 2]))]
    back = entries[np.lexsort((ahead[1], entries[:, 2]))]
    return [exits, entries], np.column_stack([out[:, 1], back[:, 0], out[:, 2]])


def _cut_edges(
    vertices: np.ndarray, height: np.ndarray, pairs: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """All vertices with those of the cut, and the new vertex of each edge, per list of edges."""
    ends = np.sort(np.concatenate([np.stack(pair, axis=1) for pair in pairs]), axis=1)
    keys, which = np.unique(ends.astype(np.int64) @ [len(vertices), 1], return_inverse=True)
    low, high = np.divmod(keys, len(vertices))
    share = (height[low] / (height[low] - height[high]))[:, None]
    new = (1 - share) * vertices[low] + share * vertices[high]
    sizes = np.cumsum([len(pair[0]) for pair in pairs])[:-1]
    return np.concatenate([vertices, new]), np.split(which + len(vertices), sizes)


def _hole_fans(faces: np.ndarray, count: int) -> np.ndarray:
    """Fans over the holes of a surface."""
    edges = directed_edges(faces.astype(np.int64))
    both = np.concatenate([edges @ [count, 1], edges @ [1, count]])
    known, which = np.unique(both, return_inverse=True)
    surplus = np.bincount(which, weights=np.repeat([1, -1], len(edges))).astype(np.int64)
    rim = np.repeat(known, np.maximum(surplus, 0))
    fans = [
        [loop[0], loop[k + 1], loop[k]]
        for loop in _loops(*np.divmod(rim, count))
        for k in range(1, len(loop) - 1)
    ]
    return np.array(fans, np.int64).reshape(-1, 3)


def _loops(starts: np.ndarray, ends: np.ndarray) -> list[np.ndarray]:
    """Join directed edges, balanced at each vertex, to closed loops of vertices."""
    after = np.empty(len(starts), np.int64)
    after[np.argsort(ends, kind="stable")] = np.argsort(starts, kind="stable")
    loops, follow, seen = [], after.tolist(), [False] * len(starts)
    for first in range(len(starts)):
        chain, at = [], first
        while not seen[at]:
            seen[at] = True
            chain.append(at)
            at = follow[at]
        if chain:
            loops.append(starts[chain])
    return loops


def _axes(normal: np.ndarray) -> np.ndarray:
    """(2, 3) x and y axes of a plane, counter-clockwise seen against its normal."""
    x = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(normal, x) / np.linalg.norm(normal)])
