"""The first free translation of a solid along a direction."""

import numpy as np

from abut.bvh.bvh_cache import bvh_of
from abut.mesh import Mesh
from abut.narrow.ray_exit import ray_exits
from abut.operands.posed_mesh import make_posed_mesh
from abut.query.point_signs import signed_distance
from abut.query.solids.free_boundary import NUDGES, boundary_between, crossing
from abut.query.solids.translated_solids import TranslatedSolids

SAMPLES = 256  # points of each surface from which rays start
LEAPS = 32  # without a proof, each at most a quarter of the tolerance; then they grow
WORTH = 2.0  # rays are cast while they prove more than this many times what crossing faces prove


def first_exit(solids: TranslatedSolids, direction: np.ndarray, tolerance: float) -> float:
    """Return the least length at which a solid moved along a unit vector is free.

    A walk from zero: translations are blocked as long as two faces cross, and as long as an inner
    point of one solid stays in the other. The end of such an interval is free, or another one
    covers it. Where faces meet in edges only there may be no interval, and the walk leaps.
    """
    if solids.free(np.zeros((1, 3)))[0]:
        return 0.0
    last = solids.support_width(direction)
    depth = tolerance / 8.0
    samples = (
        _inner_points(solids.a, solids.pose_a, solids.corners_a, depth),
        _inner_points(solids.b, solids.pose_b, solids.corners_b, depth),
    )
    t, leaps, by_rays = 0.0, 0, True
    while t < last:
        stop = crossed = float(crossing(solids, direction, t)[1].max(initial=t))
        if by_rays or stop <= t:
            leave = _ray_exit(solids, samples, direction, t)
            by_rays = leave - t > WORTH * (stop - t)
            stop = max(stop, leave - tolerance / 4.0)  # crossing faces end it precisely
            stop = leave if stop <= t else stop
        if stop <= t:
            leaps += 1
            stop = t + min(solids.ulp * 2.0**leaps, tolerance / 4.0) * 2.0 ** max(0, leaps - LEAPS)
        tried = stop + NUDGES * solids.ulp
        first = solids.first_free(tried[:, None] * direction)
        if first is not None:
            end = float(tried[first])
            if t < stop == crossed:
                return end
            return float(boundary_between(solids, direction, t, end, 0.0) @ direction)
        t = stop
    return last


def _ray_exit(
    solids: TranslatedSolids,
    samples: tuple[np.ndarray, np.ndarray],
    direction: np.ndarray,
    t: float,
) -> float:
    """Return a length up to which some inner point of one solid stays in the other one."""
    shift = t * direction
    pose_b = solids.poses(shift[None])[0]
    corners_b = solids.corners_b + shift
    inside_a = _longest_ray(
        solids.a, solids.pose_a, solids.corners_a, samples[1] + shift, direction
    )
    inside_b = _longest_ray(solids.b, pose_b, corners_b, samples[0], -direction)
    return t + max(inside_a, inside_b)


def _inner_points(
    mesh: Mesh, pose: np.ndarray | None, corners: np.ndarray, depth: float
) -> np.ndarray:
    """Return points inside a solid, about so deep below spread points of its faces.

    A point of the surface may slide along the other surface, which blocks nothing.
    """
    inwards = corners.mean(axis=1, keepdims=True) - corners
    length = np.linalg.norm(inwards, axis=2, keepdims=True)
    below = np.cross(corners[:, 2] - corners[:, 0], corners[:, 1] - corners[:, 0])
    below /= np.maximum(np.linalg.norm(below, axis=1, keepdims=True), np.finfo(float).tiny)
    inwards *= depth / np.maximum(length, depth)
    points = _spread(corners + inwards + depth * below[:, None])
    return points[signed_distance(mesh, points, pose=pose).numpy() < 0.0]


def _spread(corners: np.ndarray) -> np.ndarray:
    """Return a corner of each face (m, 3, 3); if they are few, all, and points spread over each."""
    count = 8 * SAMPLES // len(corners)
    if count == 0:
        return corners[:, 0]
    share = np.outer(np.arange(1, count + 1), [0.7548776662466927, 0.5698402909980532]) % 1.0
    share = np.where(share.sum(axis=1, keepdims=True) > 1.0, 1.0 - share, share)
    weights = np.column_stack([share, 1.0 - share.sum(axis=1)])
    inner = np.einsum("kc,fcd->fkd", weights, corners).reshape(-1, 3)
    return np.concatenate([corners[:, 0], corners[:, 1], corners[:, 2], inner])


def _longest_ray(
    mesh: Mesh,
    pose: np.ndarray | None,
    corners: np.ndarray,
    starts: np.ndarray,
    direction: np.ndarray,
) -> float:
    """Return the longest way along a direction, inside a mesh, of points that are in it; else 0.

    ``corners`` are those of the faces of the mesh.
    """
    low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    starts = starts[((starts > low) & (starts < high)).all(axis=1)]
    if not len(starts):
        return 0.0
    starts = starts[:: 1 + len(starts) // SAMPLES]
    frame = np.eye(4)
    frame[:3, :3] = _frame_along(direction)
    rays = starts @ frame[:3, :3].T
    posed = frame if pose is None else frame @ pose
    side = make_posed_mesh(mesh.points, mesh.faces, posed[None])
    lengths = ray_exits(rays, side, bvh_of(mesh).view(), mesh.device)
    return float(max(lengths.max(), 0.0))


def _frame_along(direction: np.ndarray) -> np.ndarray:
    """Return a rotation that takes a unit vector to x."""
    other = np.eye(3)[np.argmin(np.abs(direction))]
    second = np.cross(direction, other)
    second /= np.linalg.norm(second)
    return np.stack([direction, second, np.cross(direction, second)])
