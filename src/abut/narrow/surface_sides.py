"""Sides of a solid that another surface is on, near the contacts of their faces."""

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.geometry.local_solid import SurfaceStars, side_at_edge, side_at_vertex
from abut.geometry.planar_overlap import (
    corner_sides,
    depths_in_tri,
    edge_meets_tri,
    open_tri_meets_flat_part,
    seen_along,
)
from abut.mesh import Mesh
from abut.operands.posed_mesh import PosedMesh, load_face, pose_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})


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
    sides_t = corner_sides(other, t)
    sides_other = corner_sides(t, other)
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


def surface_stars(mesh: Mesh) -> SurfaceStars:
    """Return a surface with the faces around each of its vertices."""
    return join_stars(mesh.points, mesh.faces, mesh.topology.welded)


def join_stars(points: wp.array, faces: wp.array, welded: np.ndarray) -> SurfaceStars:
    """Return surfaces in one set of arrays; vertices with the same ``welded`` are one."""
    corners = welded[faces.numpy()].ravel()
    order = np.argsort(corners, kind="stable")
    start = np.searchsorted(corners[order], np.arange(len(welded) + 1))
    out = SurfaceStars()
    out.points, out.faces = points, faces
    for name, rows in (("welded", welded), ("start", start), ("star", order // 3)):
        setattr(out, name, wp.array(rows, dtype=wp.int32, device=points.device))
    return out
