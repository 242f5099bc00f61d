"""Distances and gradients of samples, from their nearest faces or from ``closest_point``."""

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.geometry.closest_point_tri import closest_point_tri
from abut.mesh import Mesh
from abut.operands.posed_mesh import PosedMesh, load_face, make_posed_mesh
from abut.options import Method, Sign
from abut.query.closest_point import closest_point
from abut.sdf.brick import BRICK_SIDE, NO_FACE
from abut.sdf.grid import FieldGrid, quantized, sample_indices, sample_position, unit_normal

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

CHUNK = 1 << 21  # samples at a time
NOISE = wp.constant(wp.float64(2.0**-46))  # of a face's size: nearer points are on the face
NEARLY_ON = wp.constant(wp.float64(2.0**-30))  # of a face's size: the vector to the foot is noise

Progress = Callable[[float], Any]


@wp.struct
class FinishOptions:
    """Parameters of the last pass."""

    outwards: wp.float64  # -1 where the normals of a closed mesh point inwards
    band: wp.float64
    unit: wp.float64  # of the distances written


@wp.func
def is_sample_inside(
    marks: wp.vec3s, bricks: wp.array3d[wp.float32], i: wp.int32, j: wp.int32, k: wp.int32
):
    """Return whether a sample is inside.

    A sign decided before comes first, then crossings and the winding number of the brick.
    """
    crossings = wp.int32(marks[0])
    inside = crossings != 0
    if marks[1] != wp.int16(0):
        inside = marks[1] > wp.int16(0)
    elif bricks.shape[0] > 0:
        number = bricks[i / BRICK_SIDE, j / BRICK_SIDE, k / BRICK_SIDE] - wp.float32(crossings)
        inside = wp.abs(number) > wp.float32(0.5)
    return inside


@wp.func
def gradient_from(p: wp.vec3d, t: wp.mat33d, weights: wp.vec3d, least: wp.float64, out: wp.float64):
    """Return the unit vector from the foot of p to p; nearer than ``least`` the outward normal."""
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
    """Turn the bits of nearest faces into distances, crossings and signs into gradients."""
    for n in range(span[0] + wp.tid(), span[1], span[2]):
        s = sample_indices(grid_out.shape, n)
        i = s[0]
        j = s[1]
        k = s[2]
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
                size = wp.max(wp.abs(p - t[0]))
                size = size + wp.max(wp.abs(t[1] - t[0])) + wp.max(wp.abs(t[2] - t[0]))
                distance = wp.where(away > NOISE * size, away, wp.float64(0.0))
                g = gradient_from(p, t, foot.weights, NEARLY_ON * size, end.outwards)
                if inside and away > NEARLY_ON * size:
                    g = -g
        if inside and distance > wp.float64(0.0):
            distance = -distance
        grid_out.distance[i, j, k] = wp.float32(distance * end.unit)
        grid_out.gradient[i, j, k] = quantized(g)


@wp.kernel
def store_samples_kernel(
    # in
    span: wp.vec3i,
    mesh: PosedMesh,
    points: wp.array[wp.vec3d],
    distance: wp.array[wp.float64],
    foot: wp.array2d[wp.float64],
    face: wp.array[wp.int32],
    band: wp.float64,
    first: wp.int32,
    # out
    grid_out: FieldGrid,
):
    """Write distances, clamped to the band, and gradients of samples from ``first`` on."""
    for row in range(span[0] + wp.tid(), span[1], span[2]):
        s = sample_indices(grid_out.shape, first + row)
        d = distance[row]
        g = wp.vec3d(wp.float64(0.0))
        if wp.abs(d) <= band and face[row] >= 0:
            if d == wp.float64(0.0):
                g = unit_normal(load_face(mesh, face[row], 0))
            else:
                way = points[row] - wp.vec3d(foot[row, 0], foot[row, 1], foot[row, 2])
                g = wp.normalize(way) * wp.sign(d)
        grid_out.distance[s[0], s[1], s[2]] = wp.float32(wp.clamp(d, -band, band))
        grid_out.gradient[s[0], s[1], s[2]] = quantized(g)


def fill_by_pseudonormals(
    mesh: Mesh,
    grid: FieldGrid,
    band: float,
    method: Method,
    progress: Progress | None,
) -> None:
    """Fill a grid by ``closest_point`` with signs by pseudonormals.

    Nested, crossing and flipped meshes get the signs that their normals give.
    """
    device, count = mesh.device, grid.distance.size
    posed = make_posed_mesh(mesh.points, mesh.faces)
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        places = np.unravel_index(np.arange(start, start + size), grid.distance.shape)
        points = np.array(grid.lower) + grid.spacing * np.stack(places, axis=1)
        points = wp.array(points, dtype=wp.vec3d, device=device)
        near = closest_point(mesh, points, signed=Sign.PSEUDONORMAL, method=method)
        found = [near.distance, near.point, near.face]
        args = [posed, points, *found, wp.float64(band), start, grid]
        launch(store_samples_kernel, size, args, device)
        if progress is not None:
            progress((start + size) / count)
