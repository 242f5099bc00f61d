"""Sides of surfaces near their contacts: which parts of each surface lie inside the other solid."""

import numpy as np
import warp as wp

from abut.bvh.layout import BvhView
from abut.core.launch import launch
from abut.geometry.local_solid import SurfaceStars, side_at_edge, side_at_vertex
from abut.geometry.planar_overlap import (
    cross_properly,
    depths_in_tri,
    edge_meets_tri,
    open_tri_meets_flat_part,
    open_tris_overlap,
    seen_along,
    sides_of_plane,
)
from abut.geometry.poses import move_point
from abut.geometry.predicates import orient2d
from abut.mesh import Mesh
from abut.narrow.inside import cross_ray_tree
from abut.operands.posed_mesh import PosedMesh, load_face, pose_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

# parts of the surface of a inside and outside b, and of b; coplanar faces with normals alike, or
# opposite
A_INSIDE, A_OUTSIDE, B_INSIDE, B_OUTSIDE, ALIKE, OPPOSITE = (1 << k for k in range(6))
CROSSING = A_INSIDE | A_OUTSIDE | B_INSIDE | B_OUTSIDE

_CROSSING = wp.constant(CROSSING)
_ALIKE = wp.constant(ALIKE)
_OPPOSITE = wp.constant(OPPOSITE)


@wp.kernel
def face_contact_kernel(
    # in
    span: wp.vec3i,
    a: PosedMesh,
    b: PosedMesh,
    pairs: wp.array2d[wp.int32],
    pose: wp.array[wp.int32],
    # out
    parts_out: wp.array[wp.int32],
):
    """Parts that the interiors of two faces tell: those of a crossing, or of a common area."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        face_a = load_face(a, pairs[i, 0], pose[i])
        face_b = load_face(b, pairs[i, 1], pose[i])
        sides_a = sides_of_plane(face_b, face_a)
        sides_b = sides_of_plane(face_a, face_b)
        parts = wp.int32(0)
        if wp.min(sides_b) == 0 and wp.max(sides_b) == 0:
            axis = seen_along(face_a)
            if open_tris_overlap(face_a, face_b, axis):
                way_a = orient2d(face_a[0], face_a[1], face_a[2], axis)
                way_b = orient2d(face_b[0], face_b[1], face_b[2], axis)
                parts = wp.where(way_a == way_b, _ALIKE, _OPPOSITE)
        elif cross_properly(face_a, face_b, sides_a, sides_b):
            parts = _CROSSING
        parts_out[i] = parts


@wp.func
def add_side(parts: wp.int32, side: wp.int32):
    """Note that a part of a surface lies inside (bit 0) or outside (bit 1) a solid."""
    out = parts
    if side < 0:
        out = parts | 1
    elif side > 0:
        out = parts | 2
    return out


@wp.func
def face_parts(
    solid: SurfaceStars, motion: wp.mat44d, face: wp.int32, t: wp.mat33d, other: wp.mat33d
):
    """Return where a face of another surface lies near its contact with a face ``t`` of a solid.

    From a common point every corner of the other face is reached along that face; the solid near
    the point tells which side the way begins on.
    """
    parts = wp.int32(0)
    sides_t = sides_of_plane(other, t)
    sides_other = sides_of_plane(t, other)
    axis = seen_along(other)
    f = solid.faces[face]
    for k in range(3):
        v0 = solid.welded[f[k]]
        v1 = solid.welded[f[(k + 1) % 3]]
        touches = wp.bool(False)
        if sides_t[k] == 0:
            touches = wp.min(depths_in_tri(t[k], other, axis)) >= 0
        crosses = edge_meets_tri(t, k, other, sides_t, axis)
        for j in range(3):
            if touches:
                parts = add_side(parts, side_at_vertex(solid, motion, v0, other[j]))
            if crosses:
                parts = add_side(parts, side_at_edge(solid, motion, v0, v1, other[j]))
    if wp.min(sides_other) < 0 or wp.max(sides_other) > 0:
        if open_tri_meets_flat_part(t, other, sides_other, seen_along(t)):
            for j in range(3):
                parts = add_side(parts, sides_other[j])
    return parts


@wp.kernel
def surface_side_kernel(
    # in
    span: wp.vec3i,
    solid: SurfaceStars,
    posed_solid: PosedMesh,
    surface: PosedMesh,
    pairs: wp.array2d[wp.int32],
    column: wp.int32,
    pose: wp.array[wp.int32],
    # out
    parts_out: wp.array[wp.int32],
):
    """Sides of the solid that the other surface is on near each contact."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        face = pairs[i, column]
        t = load_face(posed_solid, face, pose[i])
        other = load_face(surface, pairs[i, 1 - column], pose[i])
        parts_out[i] = face_parts(solid, pose_of(posed_solid, pose[i]), face, t, other)


@wp.kernel
def anchor_side_kernel(
    # in
    span: wp.vec3i,
    inner: PosedMesh,
    outer: PosedMesh,
    tree: BvhView,
    anchors: wp.array[wp.int32],
    pose: wp.array[wp.int32],
    # out
    inside_out: wp.array[wp.bool],
):
    """Whether each vertex of the inner mesh, at a pose, lies inside the outer mesh."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        p = inner.points[anchors[i]]
        if inner.pose_count > 0:
            p = move_point(pose_of(inner, pose[i]), p)
        inside_out[i] = cross_ray_tree(p, outer, pose[i], tree)[0] != 0


def face_contacts(a: PosedMesh, b: PosedMesh, pairs: wp.array, pose: wp.array) -> np.ndarray:
    """Return the parts that interiors of faces tell, for each pair of faces that meet."""
    parts = wp.empty(pairs.shape[0], dtype=wp.int32, device=pairs.device)
    launch(face_contact_kernel, parts.shape[0], [a, b, pairs, pose, parts], pairs.device, grain=64)
    return parts.numpy()


def surface_sides(
    solid: SurfaceStars,
    posed_solid: PosedMesh,
    surface: PosedMesh,
    pairs: wp.array,
    column: int,
    pose: wp.array,
) -> np.ndarray:
    """Return 1 (inside), 2 (outside) or both for the other surface near each contact."""
    parts = wp.empty(pairs.shape[0], dtype=wp.int32, device=pairs.device)
    args = [solid, posed_solid, surface, pairs, column, pose, parts]
    launch(surface_side_kernel, parts.shape[0], args, pairs.device, grain=16)
    return parts.numpy()


def anchors_inside(
    inner: PosedMesh, outer: PosedMesh, tree: BvhView, anchors: np.ndarray, pose: np.ndarray
) -> np.ndarray:
    """Return which vertices of ``inner``, each at a pose, lie inside ``outer``."""
    device = inner.points.device
    inside = wp.empty(len(anchors), dtype=wp.bool, device=device)
    arrays = (wp.array(rows, dtype=wp.int32, device=device) for rows in (anchors, pose))
    args = [inner, outer, tree, *arrays, inside]
    launch(anchor_side_kernel, len(anchors), args, device, grain=64)
    return inside.numpy()


def surface_stars(mesh: Mesh) -> SurfaceStars:
    """Return a surface with the faces around each of its vertices."""
    welded = mesh.topology.welded
    corners = welded[mesh.faces.numpy()].ravel()
    order = np.argsort(corners, kind="stable")
    start = np.searchsorted(corners[order], np.arange(mesh.vertex_count + 1))
    out = SurfaceStars()
    out.points, out.faces = mesh.points, mesh.faces
    for name, rows in (("welded", welded), ("start", start), ("star", order // 3)):
        setattr(out, name, wp.array(rows, dtype=wp.int32, device=mesh.device))
    return out
