"""Boxes of features that move in straight lines over a step."""

import warp as wp

from abut.bounds.aabb import fit_aabb
from abut.bounds.float32 import next_float32_below


@wp.func
def widened_down(x: wp.float32, pad: wp.float32):
    """A float32 not above x - pad."""
    y = x - pad
    if wp.isfinite(y):
        y = next_float32_below(y)
    return y


@wp.func
def fit_swept(
    points_t0: wp.array[wp.vec3d],
    points_t1: wp.array[wp.vec3d],
    corners: wp.vec3i,
    origin: wp.vec3d,
    pad: wp.float32,
):
    """Lower and upper corner of the box of up to three moving points, widened by ``pad``.

    Guarantee:
        Conservative. The box holds the points at all times of the step.
    """
    lower_t0, upper_t0 = fit_aabb(
        points_t0[corners[0]], points_t0[corners[1]], points_t0[corners[2]], origin
    )
    lower_t1, upper_t1 = fit_aabb(
        points_t1[corners[0]], points_t1[corners[1]], points_t1[corners[2]], origin
    )
    lower = wp.min(lower_t0, lower_t1)
    upper = wp.max(upper_t0, upper_t1)
    if pad > wp.float32(0.0):
        lower = wp.vec3f(
            widened_down(lower[0], pad), widened_down(lower[1], pad), widened_down(lower[2], pad)
        )
        upper = -wp.vec3f(
            widened_down(-upper[0], pad), widened_down(-upper[1], pad), widened_down(-upper[2], pad)
        )
    return lower, upper
