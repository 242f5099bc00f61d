"""How deep the common part of two solids lies inside one of them, with certified bounds."""

from typing import Any, NamedTuple

import numpy as np
import warp as wp

from abut.bvh.bvh_cache import bvh_of
from abut.bvh.wide import wide_nodes_of
from abut.mesh import Mesh
from abut.operands.posed_mesh import make_posed_mesh
from abut.query.points import in_unit, unit_of
from abut.query.solids.depth_cells import BOX, SolidOperand
from abut.query.solids.depth_search import DepthSearch, make_cells

ROUNDING = 2.0**-45  # of the largest coordinate: more than the error of any distance
LEAST_TOLERANCE = 16.0  # errors of distances


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
        ``tolerance`` apart, or 2**-40 of the largest coordinate if that is more.
    """
    count = max(1 if pose is None else len(pose) for pose in (pose_a, pose_b))
    boxes_a, boxes_b = _boxes(a, pose_a), _boxes(b, pose_b)
    low = np.maximum(boxes_a[0], boxes_b[0])
    high = np.minimum(boxes_a[1], boxes_b[1])
    out = _nothing(count)
    near = np.flatnonzero(np.broadcast_to((low <= high).all(axis=1), count))
    if len(near) == 0:
        return out
    low, high = (np.broadcast_to(x, (count, 3))[near] for x in (low, high))
    poses = [None if p is None else p if len(p) == 1 else p[near] for p in (pose_a, pose_b)]
    found = _depths_in_boxes(a, b, poses, low, high, tolerance)
    for rows, some in zip(out, found, strict=True):
        rows[near] = some
    return out


def _nothing(count: int) -> InsideDepths:
    """The answer where there is no common point."""
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


def _depths_in_boxes(
    a: Mesh,
    b: Mesh,
    poses: list[np.ndarray | None],
    low: np.ndarray,
    high: np.ndarray,
    tolerance: float,
) -> InsideDepths:
    """``inside_depths`` where boxes with the corners ``low`` and ``high`` hold the common part."""
    unit = max(unit_of(a, b.bounds, poses[0]), unit_of(b, a.bounds, poses[1]))
    if unit != 1.0:
        a, b = in_unit(a, unit), in_unit(b, unit)
        poses = [p if p is None else p / [[1, 1, 1, unit]] for p in poses]
        low, high, tolerance = low / unit, high / unit, tolerance / unit
    reach = max(float(np.abs(mesh.bounds).max()) for mesh in (a, b))
    reach += max(0.0 if p is None else float(np.abs(p[:, :3, 3]).max()) for p in poses)
    noise = ROUNDING * reach
    slack = max(tolerance - 4.0 * noise, LEAST_TOLERANCE * noise)
    search = DepthSearch(_solid(a, poses[0]), _solid(b, poses[1]), len(low), slack, noise, a.device)
    search.run(_first_cells(bvh_of(b).face_count, low, high, noise, a.device))
    return _answers(search, noise, unit)


def _solid(mesh: Mesh, poses: np.ndarray | None) -> Any:
    """The struct that kernels receive."""
    tree, solid = bvh_of(mesh), SolidOperand()
    solid.faces = make_posed_mesh(mesh.points, mesh.faces, poses)
    solid.tree, solid.wide = tree.view(), wide_nodes_of(mesh, tree)
    return solid


def _first_cells(
    face_count: int, low: np.ndarray, high: np.ndarray, noise: float, device: wp.Device
) -> Any:
    """For each pose the root of b's tree and the box of the common part."""
    count = len(low)
    shapes = np.zeros((2 * count, 3, 3))
    shapes[1::2, 0] = 0.5 * (low + high)
    shapes[1::2, 1] = 0.5 * (high - low) + noise
    cells = make_cells(2 * count, device)
    cells.pose.assign(np.repeat(np.arange(count, dtype=np.int32), 2))
    cells.slot.assign(np.tile(np.array([2 * face_count - 2, int(BOX)], np.int32), count))
    cells.shape.assign(shapes)
    cells.faces.fill_(wp.vec4i(-1))
    cells.known.assign(np.tile(np.array([2, 0], np.int32), count))
    return cells


def _answers(search: DepthSearch, noise: float, unit: float) -> InsideDepths:
    """Wrap the results of a search."""
    depth, upper = search.deepest.best.numpy(), search.deepest.upper.numpy()
    deepest, direction = search.deepest.point.numpy().copy(), search.directions()
    deepest[depth == 0.0] = direction[depth == 0.0] = np.nan
    lower = np.maximum(depth - noise, 0.0)
    upper = np.maximum(upper, depth) + noise
    bounds = np.stack([lower, upper], axis=1)
    return InsideDepths(depth * unit, bounds * unit, deepest * unit, direction)
