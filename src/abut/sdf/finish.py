"""Distances and gradients of samples whose nearest faces are known."""

import warp as wp

from abut.geometry.closest_point_tri import closest_point_tri
from abut.operands.posed_mesh import PosedMesh, load_face
from abut.sdf.brick import NO_FACE
from abut.sdf.brick_winding import BRICK
from abut.sdf.grid import FieldGrid, quantized, sample_position, unit_normal

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

NOISE = wp.constant(wp.float64(2.0**-46))  # of a face's size: a point on the face
NEARLY_ON = wp.constant(wp.float64(2.0**-30))  # of a face's size: the way to the foot is noise


@wp.struct
class FinishOptions:
    """What is left to know: how to tell the inside, and where to cut off."""

    outwards: wp.float64  # -1 where the normals of a closed mesh point inwards
    band: wp.float64
    unit: wp.float64  # of the distances to be


@wp.func
def is_sample_inside(
    note: wp.vec3s, bricks: wp.array3d[wp.float32], i: wp.int32, j: wp.int32, k: wp.int32
):
    """Is a sample inside, by its crossings, the number of its brick, or as was decided already?"""
    crossings = wp.int32(note[0])
    inside = crossings != 0
    if note[1] != wp.int16(0):
        inside = note[1] > wp.int16(0)
    elif bricks.shape[0] > 0:
        number = bricks[i / BRICK, j / BRICK, k / BRICK] - wp.float32(crossings)
        inside = wp.abs(number) > wp.float32(0.5)
    return inside


@wp.func
def reach_from(p: wp.vec3d, t: wp.mat33d):
    """How far coordinates differ when p meets a triangle."""
    return wp.max(wp.abs(p - t[0])) + wp.max(wp.abs(t[1] - t[0])) + wp.max(wp.abs(t[2] - t[0]))


@wp.func
def gradient_from(p: wp.vec3d, t: wp.mat33d, weights: wp.vec3d, least: wp.float64, out: wp.float64):
    """Unit vector from the foot of p to p; nearer than ``least`` the normal, by ``out``."""
    way = (p - t[0]) - weights[1] * (t[1] - t[0]) - weights[2] * (t[2] - t[0])
    away = wp.length(way)
    g = unit_normal(t) * out
    if away > least:
        g = way / away
    return g


@wp.kernel
def finish_kernel(
    # in
    span: wp.vec3i,
    faces: PosedMesh,
    bricks: wp.array3d[wp.float32],
    end: FinishOptions,
    # out
    grid_out: FieldGrid,
):
    """Turn the bits of nearest faces into distances, and notes into gradients."""
    plane = grid_out.shape[1] * grid_out.shape[2]
    for n in range(span[0] + wp.tid(), span[1], span[2]):
        i = n / plane
        j = (n - i * plane) / grid_out.shape[2]
        k = n - i * plane - j * grid_out.shape[2]
        face = wp.cast(grid_out.distance[i, j, k], wp.int32)
        inside = is_sample_inside(grid_out.gradient[i, j, k], bricks, i, j, k)
        distance = end.band
        g = wp.vec3d(wp.float64(0.0))
        if face != NO_FACE:
            p = sample_position(grid_out.lower, grid_out.spacing, i, j, k)
            t = load_face(faces, face, 0)
            foot = closest_point_tri(p, t)
            away = wp.sqrt(foot.squared)
            if away <= end.band:
                size = reach_from(p, t)
                distance = wp.where(away > NOISE * size, away, wp.float64(0.0))
                g = gradient_from(p, t, foot.weights, NEARLY_ON * size, end.outwards)
                if inside and away > NEARLY_ON * size:
                    g = -g
        if inside and distance > wp.float64(0.0):
            distance = -distance
        grid_out.distance[i, j, k] = wp.float32(distance * end.unit)
        grid_out.gradient[i, j, k] = quantized(g)
