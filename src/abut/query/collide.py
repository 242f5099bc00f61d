"""abut.collide: the pairs of faces of two meshes that meet."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from abut.bounds.fixed import validate_width
from abut.bvh.bvh_cache import bvh_of, curve_effort, obbs_pay
from abut.core.device import require_same_device
from abut.core.pair_queue import (
    KeyLayout,
    lowest_of_each_pose,
    pose_room,
    unpack_keys,
    unpack_rows,
)
from abut.errors import MeshError
from abut.geometry.common_corners import SHARED_NONE
from abut.geometry.poses import batch_size, checked_poses
from abut.mesh import Mesh, require_meshes
from abut.operands.pose_upload import upload_poses
from abut.operands.posed_mesh import defer_posed_mesh, make_posed_mesh
from abut.options import CONTACT_METHODS, CULL_METHODS, Bound, Method, chosen
from abut.query.at_pose import contacts_at_pose, segments_between
from abut.query.one_pose import NO_KEYS
from abut.query.shared import in_chunks, kdops_between, plans_of
from abut.query.steady import steady
from abut.results import Contacts

if TYPE_CHECKING:
    from abut.query.contact_plan import ContactPlan

# Most programs ask about one pose at a time: what other questions need is imported when they come.

DEFAULT_WIDTH = 18  # bits


@steady
def collide(
    a: Mesh,
    b: Mesh,
    *,
    pose_a: Any = None,
    pose_b: Any = None,
    first: bool = False,
    solid: bool = False,
    method: str = "bvh",
    bound: str | None = None,
    width: int = DEFAULT_WIDTH,
    pixels: int = 512,
) -> Contacts:
    """Find every pair of faces, one of each mesh, that share a point.

    Args:
        a, b: Meshes on one device.
        pose_a, pose_b: Rigid motions (4, 4), or batches (B, 4, 4); None leaves a mesh in place.
            The answer is exact for the moved coordinates, rounded to float64.
        first: Stop at one pair per pose, not always the lowest. This is the cheapest way to
            decide whether there is contact.
        solid: Closed meshes are solids: one inside the other is a collision too (``contained``).
        method: ``bvh``; ``kdop``, polytopes in fixed point as the hardware tests them (``bound`` is
            ignored); ``far``, by visibility, without hierarchies; or ``brute``, all pairs. They
            return the same rows. ``cullide`` and ``quick_cullide`` may lose some.
        bound: Bounding volume of the hierarchies, ``aabb``, ``obb``, ``rss`` or ``kdop`` (24). None
            is ``aabb``; on the CPU, queries for all pairs take ``obb`` as soon as the time spent in
            them repays the fitting. All return the same.
        width: Bits of the fixed-point numbers of ``kdop``, 10 to 35.
        pixels: Width of the views of ``far``, ``cullide`` and ``quick_cullide``.

    Returns:
        Sorted pairs; with a batch also their poses, and ``colliding`` per pose.

    Raises:
        DeviceError: The meshes live on different devices.
        PoseError: A pose is not a rigid motion, or the batches differ in size.
        MeshError: ``solid`` with an open mesh.

    Guarantee:
        Exact and complete. Faces are closed: touching and coplanar overlap count. With ``cullide``
        and ``quick_cullide`` Approximate: pairs that meet between the centres of pixels are lost.
    """
    by_boxes = bound is None or bound == "aabb"
    if method == "bvh" and by_boxes and width == DEFAULT_WIDTH and not solid:
        found = contacts_at_pose(a, b, pose_a, pose_b, first)
        if found is not None:
            return found
    require_meshes(a=a, b=b)
    require_same_device(a, b)
    method = chosen(CONTACT_METHODS, method, "method")
    if bound is None:
        tight = method is Method.BVH and not first and obbs_pay(a, b)
        bound = Bound.OBB if tight else Bound.AABB
    bound = chosen(Bound, bound, "bound")
    width = validate_width(width)
    batch = batch_size(pose_a, pose_b)
    empty = not (a.face_count and b.face_count) or batch == 0
    planned = not empty and method not in CULL_METHODS  # plans check poses
    take = partial(upload_poses, device=a.device) if planned else checked_poses
    poses = take(pose_a, "pose_a"), take(pose_b, "pose_b")
    if solid:
        _require_closed(a=a, b=b)
    layout = KeyLayout.of(a.face_count, b.face_count)
    plan = partial(_plan, a, b, layout, first, method, bound, width)
    culled = partial(_culled_keys, a, b, layout, first, method, pixels)

    def keys_at(poses: Any, count: int) -> Any:
        if planned:
            return plan(poses, count).run()
        return NO_KEYS if empty else culled(poses)

    def rows_at(poses: Any, count: int) -> tuple[wp.array, ...]:
        if planned:
            return plan(poses, count).rows()
        return unpack_rows(keys_at(poses, count), layout, count, a.device)

    if batch is None:
        pairs, _ = unpack_keys(keys_at(poses, 1), layout, False, a.device)
        return _contacts(a, b, poses, pairs, None, pairs.shape[0] > 0, solid)
    room = pose_room(layout, a.face_count if method is Method.BRUTE else 1)
    pairs, pose, colliding = in_chunks(rows_at, poses, batch, room)
    return _contacts(a, b, poses, pairs, pose, colliding, solid)


def _culled_keys(
    a: Mesh, b: Mesh, layout: KeyLayout, first: bool, method: Method, pixels: int, poses: Any
) -> np.ndarray:
    """Sorted keys of the pairs that meet, by visibility; with ``first``, of one pair per pose."""
    from abut.query.visible import visible_keys

    keys = visible_keys((a, b), poses, SHARED_NONE, layout, method, pixels)
    return lowest_of_each_pose(keys, layout) if first else keys


def _plan(
    a: Mesh,
    b: Mesh,
    layout: KeyLayout,
    first: bool,
    method: Method,
    bound: Bound,
    width: int,
    poses: Any,
    count: int,
) -> "ContactPlan":
    """This thread's plan for two meshes, the same one as long as nothing but poses changes."""
    moved = tuple(0 if p is None else len(p) for p in poses)
    boxless = method is Method.KDOP
    bound = Bound.KDOP if boxless else bound
    effort = count * (1 if first else curve_effort(a, b))
    trees = ()
    if method is not Method.BRUTE:
        trees = bvh_of(a, bound, effort), bvh_of(b, bound, effort)
    dops, axes = (), None
    if trees and bound is Bound.KDOP:
        dops, axes = kdops_between((a, b), trees, width if boxless else None, any(moved))

    def make() -> "ContactPlan":
        from abut.query.contact_plan import ContactPlan

        sides = (
            make_posed_mesh(a.points, a.faces, poses[0]),
            make_posed_mesh(b.points, b.faces, poses[1]),
        )
        common = (SHARED_NONE, layout, count, first, bound)
        return ContactPlan(a.device, *sides, trees, *common, dops, axes, boxless)

    about = (first, bound, *moved, a.points, b.points, *trees, *dops)
    plan = plans_of(a, b).get(about, make)
    plan.move(*poses)
    return plan


def _contacts(
    a: Mesh,
    b: Mesh,
    poses: Any,
    pairs: wp.array,
    pose: wp.array | None,
    colliding: Any,
    solid: bool,
) -> Contacts:
    """Wrap rows; ``colliding`` is one flag, or for a batch an array."""
    sides = (defer_posed_mesh(mesh, p) for mesh, p in zip((a, b), poses, strict=True))
    segments = partial(segments_between, *sides)
    if not solid:
        return Contacts(pairs, pose, colliding, None, segments)
    met = np.array([colliding]) if pose is None else colliding.numpy().astype(bool)
    inside = _contained(a, b, poses, met)
    if pose is None:
        return Contacts(pairs, None, bool(met[0] or inside[0]), bool(inside[0]), segments)
    colliding = wp.array(met | inside, dtype=wp.bool, device=a.device)
    contained = wp.array(inside, dtype=wp.bool, device=a.device)
    return Contacts(pairs, pose, colliding, contained, segments)


def _contained(a: Mesh, b: Mesh, poses: Any, colliding: np.ndarray) -> np.ndarray:
    """Poses without contact in which a component of one mesh lies inside the other."""
    from abut.narrow.inside import mark_contained

    contained = wp.zeros(len(colliding), dtype=wp.int32, device=a.device)
    wanted = wp.array(np.flatnonzero(~colliding).astype(np.int32), device=a.device)
    posed = [(m, make_posed_mesh(m.points, m.faces, p)) for m, p in zip((a, b), poses, strict=True)]
    for (inner, of), (outer, by) in (posed, posed[::-1]):
        anchors = wp.array(inner.topology.anchors.astype(np.int32), device=a.device)
        oriented = outer.oriented
        mark_contained(of, by, bvh_of(outer).view(), anchors, wanted, oriented, contained)
    return contained.numpy().astype(bool)


def _require_closed(**meshes: Mesh) -> None:
    for name, mesh in meshes.items():
        if not mesh.watertight:
            raise MeshError(f"solid=True needs closed meshes, but {name} is open; repair it.")
