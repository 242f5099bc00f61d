"""abut.within: the pairs of faces within a distance of each other."""

from functools import partial
from typing import Any

import numpy as np
import warp as wp

from abut.bvh.bvh_cache import bvh_of
from abut.core.device import require_same_device
from abut.core.pair_queue import KeyLayout, pose_room, unpack_keys
from abut.errors import OptionError
from abut.geometry.common_corners import SHARED_BY_POSITION, SHARED_NONE
from abut.geometry.poses import batch_size, checked_poses
from abut.mesh import Mesh, require_meshes
from abut.narrow.pair_distance import measured
from abut.operands.posed_mesh import defer_posed_mesh, make_posed_mesh
from abut.options import TREE_METHODS, Method, chosen, require_length
from abut.query.at_pose import gaps_at_pose, no_gaps
from abut.query.distance_plan import NearPlan
from abut.query.shared import in_chunks, plans_of
from abut.query.steady import steady
from abut.results import Gaps

WITHIN_EFFORT = 2048  # of a search, in searches for one pair that meets


@steady
def within(
    a: Mesh,
    b: Mesh | None,
    distance: float,
    *,
    pose_a: Any = None,
    pose_b: Any = None,
    method: str = "bvh",
) -> Gaps:
    """Find every pair of faces at most ``distance`` apart.

    Args:
        a, b: Meshes on one device. Without ``b``, faces of ``a`` are compared with each other:
            faces that share a vertex (or have vertices at equal positions) count only where they
            meet beyond what they share, as in ``self_collide``.
        distance: Largest distance of a pair [mesh length unit]. 0 gives the pairs that meet.
        pose_a, pose_b: Rigid motions (4, 4), or batches (B, 4, 4); None leaves a mesh in place.
        method: ``bvh``, or ``brute`` for brute force. Both return the same rows.

    Returns:
        Sorted pairs with their distances and, on request, their nearest points; with a batch
        also their poses.

    Raises:
        DeviceError: The meshes live on different devices.
        PoseError: A pose is not a rigid motion, or the batches differ in size.
        OptionError: The distance is negative, infinite or NaN; poses without ``b``.

    Guarantee:
        Complete. Distances are rounded float64, compared as computed; pairs that meet are found
        exactly and have distance 0.
    """
    if method == "bvh" and b is not None:
        found = gaps_at_pose(a, b, distance, pose_a, pose_b)
        if found is not None:
            return found
    require_meshes(a=a)
    method = chosen(TREE_METHODS, method, "method")
    require_length(distance=distance)
    distance = float(distance)
    if np.isinf(distance):
        raise OptionError("distance must be finite; abut.distance finds the nearest pair.")
    if b is None:
        if pose_a is not None or pose_b is not None:
            raise OptionError("a mesh against itself has no poses; leave pose_a and pose_b out.")
    else:
        require_meshes(b=b)
        require_same_device(a, b)
    other = a if b is None else b
    batch = batch_size(pose_a, pose_b)
    poses = checked_poses(pose_a, "pose_a"), checked_poses(pose_b, "pose_b")
    layout = KeyLayout.of(a.face_count, other.face_count)
    sides = defer_posed_mesh(a, poses[0]), defer_posed_mesh(other, poses[1])
    if not (a.face_count and other.face_count) or batch == 0:
        return no_gaps(None if batch is None else wp.empty(0, wp.int32, a.device), a.device)
    sharing = SHARED_BY_POSITION if b is None else SHARED_NONE

    def ask(poses: Any, count: int) -> tuple[Any, ...]:
        trees: tuple[Any, ...] = ()
        if method is not Method.BRUTE:
            meshes = (a,) if b is None else (a, b)
            trees = tuple(bvh_of(mesh, effort=WITHIN_EFFORT * count) for mesh in meshes)
        plan = _plan(a, other, poses, trees, sharing, layout, count, distance)
        return _rows(plan, layout, batch is not None)

    if batch is None:
        pairs, pose, lengths, met = ask(poses, 1)
    else:
        room = pose_room(layout, a.face_count, key_bits=62)
        pairs, pose, lengths, met = in_chunks(ask, poses, batch, room)
    return Gaps(pairs, pose, lengths, partial(_points, sides, pairs, pose, met))


def _plan(
    a: Mesh,
    b: Mesh,
    poses: Any,
    trees: Any,
    sharing: int,
    layout: KeyLayout,
    count: int,
    distance: float,
) -> NearPlan:
    """This thread's plan for two meshes, the same one as long as nothing but poses changes."""
    moved = tuple(0 if p is None else len(p) for p in poses)

    def make() -> NearPlan:
        sides = (
            make_posed_mesh(a.points, a.faces, poses[0]),
            make_posed_mesh(b.points, b.faces, poses[1]),
        )
        return NearPlan(a.device, *sides, trees, sharing, layout, count, distance)

    about = (NearPlan, sharing, distance, *moved, a.points, b.points, *trees)
    plan = plans_of(a, b).get(about, make)
    plan.move(*poses)
    return plan


def _rows(plan: NearPlan, layout: KeyLayout, posed: bool) -> tuple[Any, ...]:
    """Pairs, their poses and distances, and which of them meet: the lowest bit of a plan's keys."""
    keys = plan.run()
    host = keys if isinstance(keys, np.ndarray) else keys.numpy()
    pairs, pose = unpack_keys(host >> 1, layout, posed, plan.device)
    met = (host & 1).astype(bool)
    distance, _ = measured(lambda: plan.a, lambda: plan.b, pairs, pose, met, points=False)
    return pairs, pose, distance, met


def _points(
    sides: tuple[Any, Any], pairs: wp.array, pose: wp.array | None, met: np.ndarray
) -> wp.array:
    return measured(*sides, pairs, pose, met, points=True)[1]
