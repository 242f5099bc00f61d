"""Distances and gradients of samples whose nearest faces are known."""

import warp as wp

from abut.faces import Faces, load_face
from abut.field.brick import NO_FACE
from abut.field.grid import FieldGrid, in_steps, position_of, unit_normal
from abut.field.winding import BRICK, is_wound
from abut.geometry.closest_point_tri import closest_point_tri, is_on_tri
from abut.point.surface import Surface, is_inside

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

NEARLY_ON = wp.constant(wp.float64(2.0**-30))  # of a face's size: the way to the foot is noise


@wp.struct
class Ending:
    """What is left to know: faces, how to tell the inside, and where to cut off."""

    faces: Faces
    mesh: Surface
    closure: Surface
    bricks: wp.array3d[wp.vec2f]  # winding numbers; empty: rays tell all
    each: wp.bool  # tell every sample by itself
    outwards: wp.float64  # -1 where the normals of a closed mesh point inwards
    band: wp.float64
    unit: wp.float64  # of the distances to be


@wp.func
def is_within(end: Ending, grid: FieldGrid, i: wp.int32, j: wp.int32, k: wp.int32, p: wp.vec3d):
    """Is a sample inside the mesh?"""
    inside = wp.bool(False)
    if end.each:
        inside = is_inside(p, end.mesh, end.closure)
    else:
        crossings = wp.int32(grid.gradient[i, j, k][0])
        inside = crossings != 0
        if end.bricks.shape[0] > 0:
            brick = end.bricks[i / BRICK, j / BRICK, k / BRICK]
            inside = is_wound(p, crossings, brick, end.mesh, end.closure)
    return inside


@wp.func
def gradient_from(p: wp.vec3d, t: wp.mat33d, weights: wp.vec3d, inside: wp.bool, out: wp.float64):
    """Unit vector from a sample's foot to the sample, turned around inside; a normal in between."""
    way = (p - t[0]) - weights[1] * (t[1] - t[0]) - weights[2] * (t[2] - t[0])
    away = wp.length(way)
    size = wp.max(wp.abs(p - t[0])) + wp.max(wp.abs(t[1] - t[0])) + wp.max(wp.abs(t[2] - t[0]))
    g = unit_normal(t) * out
    if away > NEARLY_ON * size:
        g = way / wp.where(inside, -away, away)
    return g


@wp.kernel
def finish_kernel(
    # in
    span: wp.vec3i,
    end: Ending,
    # out
    grid_out: FieldGrid,
):
    """Turn the bits of nearest faces into distances, and crossings into gradients."""
    plane = grid_out.shape[1] * grid_out.shape[2]
    for n in range(span[0] + wp.tid(), span[1], span[2]):
        i = n / plane
        j = (n - i * plane) / grid_out.shape[2]
        k = n - i * plane - j * grid_out.shape[2]
        p = position_of(grid_out, i, j, k)
        face = wp.cast(grid_out.distance[i, j, k], wp.int32)
        inside = is_within(end, grid_out, i, j, k, p)
        distance = end.band
        g = wp.vec3d(wp.float64(0.0))
        if face != NO_FACE:
            t = load_face(end.faces, face, 0)
            foot = closest_point_tri(p, t)
            away = wp.sqrt(foot.squared)
            if away <= end.band:
                distance = away
                if is_on_tri(p, t, foot):
                    distance = wp.float64(0.0)
                g = gradient_from(p, t, foot.weights, inside, end.outwards)
        if inside and distance > wp.float64(0.0):
            distance = -distance
        grid_out.distance[i, j, k] = wp.float32(distance * end.unit)
        grid_out.gradient[i, j, k] = in_steps(g)
