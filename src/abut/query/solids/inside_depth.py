"""Depths: the largest distance to a solid's surface of any point common to two solids."""

from typing import Any, NamedTuple

import numpy as np

from abut.mesh import Mesh
from abut.query.points import in_unit, unit_of
from abut.query.solids.depth_cells import BOX, IN_B, MEDIAL, MedialTree, Precision
from abut.query.solids.depth_search import DepthSearch, Waiting
from abut.query.solids.medial_tree import (
    MANY_POSES,
    ROUNDING,
    box_shape,
    first_cells,
    medial_tree_of,
    solid_operand,
)
from abut.query.solids.relation import intersects_itself

LEAST_TOLERANCE = 16.0  # errors of distances
USUAL_CELLS = 1 << 18  # for a pose; more only if no surface intersects itself
MOST_CELLS = 1 << 24


class InsideDepths(NamedTuple):
    """The deepest common point of two solids at each of B poses.

    Attributes:
        depth: (B,) distance of ``deepest`` to a's surface; 0 without a common point.
        bounds: (B, 2) numbers that hold the largest depth of any common point.
        deepest: (B, 3) a common point, up to rounding; NaN without one.
        direction: (B, 3) unit vectors from it to the nearest point of a's surface; NaN without.
    """

    depth: np.ndarray
    bounds: np.ndarray
    deepest: np.ndarray
    direction: np.ndarray


def inside_depths(
    a: Mesh,
    b: Mesh,
    pose_a: np.ndarray | None = None,
    pose_b: np.ndarray | None = None,
    tolerance: float = 0.0,
) -> InsideDepths:
    """Find how deep the common part of two solids lies inside a.

    The depth of a point inside a is its distance to a's surface.

    Args:
        a, b: Closed surfaces, oriented outward (``closed_surface_of``).
        pose_a, pose_b: (B, 4, 4), (1, 4, 4) for one pose of all, or None.
        tolerance: Largest difference of the bounds [mesh length unit].

    Guarantee:
        The bounds hold the truth for the moved coordinates, rounded to float64. They are at most
        ``tolerance`` apart, or 2**-40 of the largest coordinate if that is more. They may be wider
        if a surface intersects itself: cells at such curves could be divided without end.
    """
    sizes = [len(pose) for pose in (pose_a, pose_b) if pose is not None]
    count = next((size for size in sizes if size != 1), 1)
    boxes_a, boxes_b = _boxes(a, pose_a), _boxes(b, pose_b)
    near = (boxes_a[0] <= boxes_b[1]) & (boxes_b[0] <= boxes_a[1])
    out = no_depths(count)
    near = np.flatnonzero(np.broadcast_to(near.all(axis=1), count))
    if len(near):
        poses = [p if p is None or len(p) == 1 else p[near] for p in (pose_a, pose_b)]
        found = _depths(a, b, poses, len(near), tolerance)
        for rows, some in zip(out, found, strict=True):
            rows[near] = some
    return out


def depth_beside(
    a: Mesh, b: Mesh, pose_a: np.ndarray, pose_b: np.ndarray, limit: float
) -> tuple[float, float]:
    """Bounds of the depth of the common part of two solids inside a, to tell it from a limit.

    The search ends at the first common point that is deeper, and the upper bound is then infinite.

    Args:
        a, b: Closed surfaces, oriented outward (``closed_surface_of``).
        pose_a, pose_b: (1, 4, 4).
        limit: Above 0 [mesh length unit].

    Guarantee:
        The depth is between the bounds. The limit is too only if the depth is more than half of it,
        or if a surface intersects itself.
    """
    boxes_a, boxes_b = _boxes(a, pose_a), _boxes(b, pose_b)
    if not ((boxes_a[0] <= boxes_b[1]) & (boxes_b[0] <= boxes_a[1])).all():
        return 0.0, 0.0
    start = 0.5 * limit
    search, cells, noise, unit = _begin(a, b, [pose_a, pose_b], 1, limit - start, start)
    enough = limit / unit + noise
    left = search.run([Waiting(cells)], USUAL_CELLS, enough)
    if left and not (intersects_itself(a) or intersects_itself(b)):
        left = search.run(left, MOST_CELLS, enough)
    if search.reached(enough):
        return float(np.nextafter(limit, np.inf)), np.inf
    search.settle(left)
    low, high = _answers(search, noise, unit).bounds[0]
    return (float(low) if low > start else 0.0), float(high)


def no_depths(count: int) -> InsideDepths:
    """Return the depths of solids without common points at B poses."""
    nowhere = [np.full((count, 3), np.nan) for _ in range(2)]
    return InsideDepths(np.zeros(count), np.zeros((count, 2)), *nowhere)


def _boxes(mesh: Mesh, poses: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """(B, 3) lower and upper corners of boxes around a mesh at each pose."""
    low, high = mesh.bounds
    if poses is None:
        return low[None], high[None]
    rotation, shift = poses[:, :3, :3], poses[:, :3, 3]
    middle = rotation @ (0.5 * (low + high)) + shift
    half = np.abs(rotation) @ (0.5 * (high - low))
    slack = ROUNDING * (np.abs(shift).max(axis=1) + 4.0 * np.abs(mesh.bounds).max())
    half += slack[:, None]
    return middle - half, middle + half


def _depths(
    a: Mesh, b: Mesh, poses: list[np.ndarray | None], count: int, tolerance: float
) -> InsideDepths:
    """``inside_depths`` of solids whose boxes meet."""
    begun = _begin(a, b, poses, count, tolerance)
    search = begun.search
    left = search.run([Waiting(begun.cells)], count * USUAL_CELLS)
    if left and not (intersects_itself(a) or intersects_itself(b)):
        left = search.run(left, count * MOST_CELLS)
    search.settle(left)
    return _answers(search, begun.noise, begun.unit)


class _Begun(NamedTuple):
    """A search in lengths of ``unit``, its first cells, and the errors of distances."""

    search: DepthSearch
    cells: Any
    noise: float
    unit: float


def _begin(
    a: Mesh,
    b: Mesh,
    poses: list[np.ndarray | None],
    count: int,
    tolerance: float,
    start: float = 0.0,
) -> _Begun:
    """Prepare a search in which the depth ``start`` counts as found."""
    unit = max(unit_of(a, b.bounds, poses[0]), unit_of(b, a.bounds, poses[1]))
    if unit != 1.0:
        a, b = in_unit(a, unit), in_unit(b, unit)
        poses = [p if p is None else p / [[1, 1, 1, unit]] for p in poses]
    reach = max(float(np.abs(mesh.bounds).max()) for mesh in (a, b))
    reach += max(0.0 if p is None else float(np.abs(p[:, :3, 3]).max()) for p in poses)
    precision = Precision()
    noise = precision.noise = ROUNDING * reach
    precision.tolerance = max(tolerance / unit - 4.0 * noise, LEAST_TOLERANCE * noise)
    precision.margin = 1.0 + ROUNDING
    solid_a, solid_b = (
        solid_operand(mesh, noise, p, count) for mesh, p in zip((a, b), poses, strict=True)
    )
    medial, slot = MedialTree(), int(BOX)
    if count >= MANY_POSES:
        medial, slot = medial_tree_of(a, count), int(MEDIAL)
    search = DepthSearch(solid_a, solid_b, medial, count, precision, a.device, start / unit)
    shapes = np.zeros((2 * count, 3, 3))
    shapes[1::2] = box_shape(*_common_boxes(a, b, poses, noise))
    slots, known = [2 * b.face_count - 2, slot], [int(IN_B), 0]
    return _Begun(search, first_cells(slots, known, shapes, a.device), noise, unit)


def _common_boxes(
    a: Mesh, b: Mesh, poses: list[np.ndarray | None], noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """(B, 3) lower and upper corners of boxes in a's frame that hold the common part."""
    relative = poses[1]
    if poses[0] is not None:
        back = np.linalg.inv(poses[0])
        relative = back if relative is None else back @ relative
    low, high = _boxes(b, relative)
    low, high = np.maximum(low, a.bounds[0]), np.minimum(high, a.bounds[1])
    return np.minimum(low, high) - 8.0 * noise, np.maximum(low, high) + 8.0 * noise


def _answers(search: DepthSearch, noise: float, unit: float) -> InsideDepths:
    """Wrap the results of a search."""
    depth, upper = search.deepest.best.numpy(), search.deepest.upper.numpy()
    deepest, direction = search.deepest.point.numpy().copy(), search.directions()
    deepest[depth == 0.0] = direction[depth == 0.0] = np.nan
    lower = np.maximum(depth - noise, 0.0)
    upper = np.maximum(upper, depth)
    upper[upper > 0.0] += noise
    bounds = np.stack([lower, upper], axis=1)
    return InsideDepths(depth * unit, bounds * unit, deepest * unit, direction)
