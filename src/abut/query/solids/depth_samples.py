"""Samples of the depth in a solid on a grid: first bounds of the depth of points.

The depth, negative outside, changes by at most the way gone. So a sample bounds it everywhere.
"""

from typing import Any

import numpy as np
import warp as wp

from abut.geometry.poses import rotation_of, translation_of
from abut.mesh import Mesh
from abut.operands.posed_mesh import PosedMesh, pose_of
from abut.query.closest_point import closest_point

ROUNDING = wp.constant(wp.float64(1e-4))  # poses are rigid up to 1e-5, samples are float32
SAMPLES_PER_POSE = 8
MOST_SAMPLES = 1 << 17


@wp.struct
class DepthSamples:
    """Samples at ``low + step * (i, j, k)`` in the frame of a solid."""

    values: wp.array3d[wp.float32]
    low: wp.vec3d
    step: wp.float64


@wp.func
def depth_range(
    samples: DepthSamples, side: PosedMesh, pose: wp.int32, p: wp.vec3d, noise: wp.float64
):
    """Bounds of the depth of a point, by the sample nearest to it; infinite without samples.

    ``noise`` is the largest error of a distance by rounding.
    """
    if samples.values.shape[0] == 0:
        return wp.vec2d(-wp.float64(wp.inf), wp.float64(wp.inf))
    at = p
    if side.pose_count > 0:
        motion = pose_of(side, pose)
        at = wp.inverse(rotation_of(motion)) * (p - translation_of(motion))
    at = (at - samples.low) / samples.step
    index = wp.vec3i()
    for axis in range(3):
        last = wp.float64(samples.values.shape[axis] - 1)
        nearest = wp.round(wp.clamp(at[axis], wp.float64(0.0), last))
        index[axis] = wp.int32(nearest)
        at[axis] = at[axis] - nearest
    value = wp.float64(samples.values[index[0], index[1], index[2]])
    away = wp.length(at) * samples.step
    away += ROUNDING * (away + wp.abs(value)) + noise
    return wp.vec2d(value - away, value + away)


def depth_samples_of(mesh: Mesh, pose_count: int) -> Any:
    """Samples of the depth in a closed mesh, as many as pay for so many poses."""
    count = min(SAMPLES_PER_POSE << (pose_count - 1).bit_length(), MOST_SAMPLES)
    known = mesh.per_shape("depth samples", dict)
    if count not in known:
        known[count] = _sampled(mesh, count)
    return known[count]


def _sampled(mesh: Mesh, count: int) -> Any:
    """About ``count`` samples in the box of a mesh."""
    low, high = mesh.bounds
    extent = high - low
    step = max(float(np.prod(extent) / count) ** (1.0 / 3.0), float(extent.max()) / count)
    shape = np.ceil(extent / step).astype(int) + 1
    points = np.indices(shape).reshape(3, -1).T * step + low
    depths = -closest_point(mesh, points, signed=True).distance.numpy().reshape(shape)
    samples = DepthSamples()
    samples.values = wp.array(depths, dtype=wp.float32, device=mesh.device)
    samples.low, samples.step = wp.vec3d(*low), step
    return samples
