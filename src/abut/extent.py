"""Bounds of a set of points, and the first point that is not finite, in one pass."""

import numpy as np
import warp as wp

from abut.runtime import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CUDA_LANES = 4096
CPU_LANES = 8


@wp.kernel
def extent_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    lane_count: wp.int32,
    # out
    first_bad_out: wp.array[wp.int32],
    lower_out: wp.array[wp.vec3d],
    upper_out: wp.array[wp.vec3d],
):
    """Bounds of each lane's run of points."""
    for lane in range(span[0] + wp.tid(), span[1], span[2]):
        count = wp.int64(points.shape[0])
        start = wp.int32(wp.int64(lane) * count / wp.int64(lane_count))
        stop = wp.int32(wp.int64(lane + 1) * count / wp.int64(lane_count))
        first_bad = wp.int32(-1)
        lower = points[start]
        upper = points[start]
        for i in range(start, stop):
            p = points[i]
            if not wp.isfinite(p):
                if first_bad < 0:
                    first_bad = i
            lower = wp.min(lower, p)
            upper = wp.max(upper, p)
        first_bad_out[lane] = first_bad
        lower_out[lane] = lower
        upper_out[lane] = upper


def extent_of(points: wp.array) -> tuple[int, np.ndarray]:
    """(first index with a NaN or infinite coordinate, or -1; bounds (2, 3))."""
    count = points.shape[0]
    if count == 0:
        return -1, np.zeros((2, 3))
    device = points.device
    lanes = min(CUDA_LANES if device.is_cuda else CPU_LANES, count)
    first_bad = wp.empty(lanes, dtype=wp.int32, device=device)
    lower = wp.empty(lanes, dtype=wp.vec3d, device=device)
    upper = wp.empty(lanes, dtype=wp.vec3d, device=device)
    launch(extent_kernel, lanes, [points, lanes, first_bad, lower, upper], device, grain=1)
    found = first_bad.numpy()
    bounds = np.array([lower.numpy().min(axis=0), upper.numpy().max(axis=0)])
    return int(found[found >= 0].min(initial=count)) if (found >= 0).any() else -1, bounds
