"""abut.collide: the pairs of faces of two meshes that meet."""

from functools import partial
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.fixed import validate_width
from abut.bounds.kdop import axis_choices
from abut.bvh.bvh_cache import bvh_of, kdops_of
from abut.bvh.node_kdops import KdopShape
from abut.core.device import require_same_device
from abut.core.pair_queue import KeyLayout, lowest_of_each_pose, require_key_bits, unpack_keys
from abut.errors import MeshError
from abut.geometry.common_corners import SHARED_NONE
from abut.geometry.poses import batch_size, checked_poses
from abut.mesh import Mesh, require_meshes
from abut.narrow.inside import mark_contained
from abut.narrow.segments import contact_segments
from abut.operands.posed_mesh import defer_posed_mesh, make_posed_mesh
from abut.options import CONTACT_METHODS, CULL_METHODS, Bound, Method, chosen
from abut.query.contact_plan import ContactPlan
from abut.query.shared import plans_of
from abut.results import Contacts

ALL_PAIRS_EFFORT = 16  # of a search for all pairs, in searches for one


def collide(
    a: Mesh,
    b: Mesh,
    *,
    pose_a: Any = None,
    pose_b: Any = None,
    first: bool = False,
    solid: bool = False,
    method: str = "bvh",
    bound: str = "aabb",
    width: int = 18,
    pixels: int = 512,
) -> Contacts:
    """Find every pair of faces, one of each mesh, that share a point.

    Args:
        a, b: Meshes on one device.
        pose_a, pose_b: Rigid motions (4, 4), or batches (B, 4, 4); None leaves a mesh in place.
            The moved coordinates, rounded to float64, are what the answer is about.
        first: Stop at one pair per pose, a fixed one though not the lowest; the cheapest way to
            know whether there is contact.
        solid: Closed meshes are solids: one inside the other is a collision too (``contained``).
        method: ``bvh``; ``kdop``, polytopes in fixed point as the hardware tests them (``bound`` is
            ignored); ``far``, by visibility, without hierarchies; or ``brute`` for the slow truth.
            They return the same rows. ``cullide`` and ``quick_cullide`` may lose some.
        bound: Bounding volume of the hierarchies, ``aabb``, ``obb``, ``rss`` or ``kdop`` (24).
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
    require_meshes(a=a, b=b)
    require_same_device(a, b)
    method, bound = chosen(CONTACT_METHODS, method, "method"), chosen(Bound, bound, "bound")
    width = validate_width(width)
    batch = batch_size(pose_a, pose_b)
    poses = checked_poses(pose_a, "pose_a"), checked_poses(pose_b, "pose_b")
    if solid:
        _require_closed(a=a, b=b)
    layout = KeyLayout.of(a.face_count, b.face_count)
    count = 1 if batch is None else batch
    require_key_bits(layout, count, a.face_count)
    keys = np.empty(0, dtype=np.int64)
    if a.face_count and b.face_count and count:
        if method in CULL_METHODS:
            from abut.query.visible import visible_keys

            keys = visible_keys((a, b), poses, SHARED_NONE, layout, method, pixels)
        else:
            plan = _plan(a, b, poses, layout, count, first, method, bound, width)
            keys = plan.run()
        if first and (method in CULL_METHODS or method is Method.BRUTE):
            keys = lowest_of_each_pose(keys, layout)
    return _contacts(a, b, poses, keys, layout, batch, solid)


def _plan(
    a: Mesh,
    b: Mesh,
    poses: Any,
    layout: KeyLayout,
    count: int,
    first: bool,
    method: Method,
    bound: Bound,
    width: int,
) -> ContactPlan:
    """This thread's plan for two meshes, the same one as long as nothing but poses changes."""
    moved = tuple(0 if p is None else len(p) for p in poses)
    boxless = method is Method.KDOP
    bound = Bound.KDOP if boxless else bound
    shape = KdopShape(width=width) if boxless else KdopShape()
    effort = count if first else ALL_PAIRS_EFFORT * count
    trees = ()
    if method is not Method.BRUTE:
        trees = bvh_of(a, bound, effort), bvh_of(b, bound, effort)
    dops = ()
    if trees and bound is Bound.KDOP:
        dops = kdops_of(a, trees[0], shape), kdops_of(b, trees[1], shape)
    first = first and bool(trees)

    def make() -> ContactPlan:
        axes = axis_choices(shape.sides, shape.sides)
        if not any(moved):
            axes = axes[axes[:, 0] < 0]  # the normals of one are those of the other
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
    a: Mesh, b: Mesh, poses: Any, keys: Any, layout: KeyLayout, batch: int | None, solid: bool
) -> Contacts:
    """Wrap sorted keys."""
    pairs, pose = unpack_keys(keys, layout, batch is not None, a.device)
    sides = (defer_posed_mesh(mesh, p) for mesh, p in zip((a, b), poses, strict=True))
    segments = partial(contact_segments, *sides, pairs, pose)
    if pose is None and not solid:  # sooner for one
        return Contacts(pairs, None, pairs.shape[0] > 0, None, segments)
    colliding = np.zeros(1 if batch is None else batch, dtype=bool)
    if pose is None:
        colliding[0] = pairs.shape[0] > 0
    else:
        colliding[pose.numpy()] = True
    contained = _contained(a, b, poses, colliding) if solid else None
    return Contacts(
        pairs,
        pose,
        _shaped(colliding | contained if solid else colliding, batch, a.device),
        _shaped(contained, batch, a.device) if solid else None,
        segments,
    )


def _contained(a: Mesh, b: Mesh, poses: Any, colliding: np.ndarray) -> np.ndarray:
    """Poses without contact in which a component of one mesh lies inside the other."""
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


def _shaped(values: Any, batch: int | None, device: wp.Device) -> Any:
    """One bool, or a device array for a batch."""
    return bool(values[0]) if batch is None else wp.array(values, dtype=wp.bool, device=device)
