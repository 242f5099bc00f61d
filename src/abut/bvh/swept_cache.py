"""Swept BVHs that each thread keeps for the features of a mesh, from query to query."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.bvh.bvh_cache import refit_or_rebuild
from abut.bvh.layout import Bvh
from abut.bvh.lbvh import frame_origin, in_frame
from abut.bvh.swept_bvh import build_swept, refit_swept
from abut.core.cache import ThreadCache
from abut.mesh import Mesh
from abut.options import Bound

_entries = ThreadCache()


@dataclass(frozen=True)
class SweptEntry:
    """A BVH, the motion it was last fitted to, the margin of its boxes, and its other volumes."""

    tree: Bvh
    motion: Any
    pad: float
    fitted: frozenset[Bound] = frozenset()


@dataclass(frozen=True)
class SweptPoints:
    """Vertices over a step.

    Attributes:
        points_t0, points_t1: Where vertices are at the start and at the end.
        bounds: (2, 3), of both.
        motion: Tells this motion from others; a BVH that was fitted to it is kept as it is.
    """

    points_t0: wp.array
    points_t1: wp.array
    bounds: np.ndarray
    motion: Any


def swept_bvh_of(
    mesh: Mesh,
    feature: str,
    points: SweptPoints,
    origin: np.ndarray,
    whole: np.ndarray,
    pad: float,
    side: int = 0,
    bound: Bound = Bound.AABB,
) -> Bvh:
    """The BVH of moving vertices, edges or faces, refitted where this thread has one.

    Args:
        mesh: The mesh, the owner of the BVH.
        feature: ``vertex``, ``edge`` or ``face``.
        points: The motion of the vertices.
        origin: Origin of box coordinates.
        whole: (2, 3), bounds of everything that moves in the query.
        pad: Margin of boxes.
        side: Tells two motions of one mesh in a query apart.
        bound: Node volumes that the search needs, AABB, OBB or RSS.
    """
    corners = corners_of(mesh, feature)
    entries = _entries_of(mesh)
    both = points.points_t0, points.points_t1
    known = entries.get((feature, side))
    if known is not None and not np.array_equal(known.tree.origin, origin):
        known = None
    if known is not None and (known.motion, known.pad) == (points.motion, pad):
        tree, fitted = known.tree, known.fitted
    else:
        tree, fitted = _fitted_boxes(known, points, corners, origin, whole, pad), frozenset()
    if bound is not Bound.AABB and bound not in fitted:
        from abut.bvh.swept_volumes import fit_swept_volumes

        fit_swept_volumes(tree, *both, corners, pad, bound)
        fitted |= {bound}
    entries[feature, side] = SweptEntry(tree, points.motion, pad, fitted)
    return tree


def _fitted_boxes(
    known: SweptEntry | None,
    points: SweptPoints,
    corners: wp.array,
    origin: np.ndarray,
    whole: np.ndarray,
    pad: float,
) -> Bvh:
    """A BVH whose boxes hold a motion: a new one, or that of another motion refitted."""
    both = points.points_t0, points.points_t1

    def build() -> Bvh:
        return build_swept(*both, corners, points.bounds, origin, pad)

    if known is None:
        return build()
    tree = known.tree
    return refit_or_rebuild(tree, whole, build, lambda: refit_swept(tree, *both, corners, pad))


def swept_origin(meshes: tuple[Mesh, ...], bounds: np.ndarray) -> np.ndarray:
    """The origin of boxes: that of BVHs which this thread has, unless it is far away."""
    for mesh in meshes:
        for known in _entries_of(mesh).values():
            if in_frame(known.tree.origin, bounds):
                return known.tree.origin
    return frame_origin(bounds)


def _entries_of(mesh: Mesh) -> dict[tuple[str, int], SweptEntry]:
    return _entries.get((mesh,), dict)


def corners_of(mesh: Mesh, feature: str) -> wp.array:
    """Vertices of all vertices, edges or faces of a mesh, three a row, some of them repeated."""
    if feature == "face":
        return mesh.faces
    name = ("corners", feature)
    with mesh.lock:
        if name not in mesh.cache:
            rows = np.arange(mesh.vertex_count, dtype=np.int32)[:, None]
            rows = rows if feature == "vertex" else mesh.edges.numpy()
            rows = np.ascontiguousarray(rows[:, [0, -1, -1]])
            mesh.cache[name] = wp.array(rows, dtype=wp.vec3i, device=mesh.device)
        return mesh.cache[name]
