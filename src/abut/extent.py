"""Bounds of a set of points, and the first point that is not finite, in one pass."""

import numpy as np
import warp as wp

from abut.runtime import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CUDA_LANES = 512
CPU_LANES = 8
NO_INDEX = wp.constant(wp.float64(1e300))


@wp.kernel
def extent_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    lane_count: wp.int32,
    # out
    rows_out: wp.array2d[wp.float64],
):
    """Lower and upper corner of each lane's run of points, and its first point not finite."""
    for lane in range(span[0] + wp.tid(), span[1], span[2]):
        count = wp.int64(points.shape[0])
        start = wp.int32(wp.int64(lane) * count / wp.int64(lane_count))
        stop = wp.int32(wp.int64(lane + 1) * count / wp.int64(lane_count))
        first_bad = NO_INDEX
        lower = points[start]
        upper = points[start]
        for i in range(start, stop):
            p = points[i]
            if not wp.isfinite(p):
                first_bad = wp.min(first_bad, wp.float64(i))
            lower = wp.min(lower, p)
            upper = wp.max(upper, p)
        for x in range(3):
            rows_out[lane, x] = lower[x]
            rows_out[lane, 3 + x] = upper[x]
        rows_out[lane, 6] = first_bad


def extent_of(points: wp.array) -> tuple[int, np.ndarray]:
    """(first index with a NaN or infinite coordinate, or -1; bounds (2, 3))."""
    count = points.shape[0]
    if count == 0:
        return -1, np.zeros((2, 3))
    device = points.device
    lanes = min(CUDA_LANES if device.is_cuda else CPU_LANES, count)
    out = wp.empty((lanes, 7), dtype=wp.float64, device=device)
    launch(extent_kernel, lanes, [points, lanes, out], device, grain=1 if count > 50000 else lanes)
    rows = out.numpy()
    first_bad = rows[:, 6].min()
    bounds = np.array([rows[:, :3].min(axis=0), rows[:, 3:6].max(axis=0)])
    return (int(first_bad) if first_bad < count else -1), bounds
