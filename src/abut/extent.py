"""What is asked of points that come in: their bounds, the first that is not finite; as float64."""

import numpy as np
import warp as wp

from abut.runtime import Task

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CUDA_LANES = 8192
CPU_LANES = 8
FEW_ROWS = 64
NO_INDEX = wp.constant(wp.float64(1e300))


@wp.kernel
def extent_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    lane_count: wp.int32,
    strided: wp.bool,
    # out
    rows_out: wp.array2d[wp.float64],
):
    """Lower and upper corner of each lane's points, and the first of them that is not finite.

    A lane has every ``lane_count``-th point, or (not ``strided``) a run of points.
    """
    for lane in range(span[0] + wp.tid(), span[1], span[2]):
        count = wp.int64(points.shape[0])
        start = wp.int32(lane)
        stop = points.shape[0]
        step = wp.int32(lane_count)
        if not strided:
            start = wp.int32(wp.int64(lane) * count / wp.int64(lane_count))
            stop = wp.int32(wp.int64(lane + 1) * count / wp.int64(lane_count))
            step = 1
        first_bad = NO_INDEX
        lower = points[start]
        upper = points[start]
        for i in range(start, stop, step):
            p = points[i]
            if not wp.isfinite(p):
                first_bad = wp.min(first_bad, wp.float64(i))
            lower = wp.min(lower, p)
            upper = wp.max(upper, p)
        for x in range(3):
            rows_out[lane, x] = lower[x]
            rows_out[lane, 3 + x] = upper[x]
        rows_out[lane, 6] = first_bad


@wp.kernel
def fold_kernel(
    # in
    span: wp.vec3i,
    rows: wp.array2d[wp.float64],
    # out
    rows_out: wp.array2d[wp.float64],
):
    """Fold many rows of ``extent_kernel`` into few."""
    for lane in range(span[0] + wp.tid(), span[1], span[2]):
        for x in range(7):
            value = rows[lane, x]
            for i in range(lane, rows.shape[0], rows_out.shape[0]):
                if x < 3 or x == 6:
                    value = wp.min(value, rows[i, x])
                else:
                    value = wp.max(value, rows[i, x])
            rows_out[lane, x] = value


@wp.kernel
def widen_kernel(
    # in
    span: wp.vec3i,
    vertices: wp.array[wp.vec3f],
    # out
    points_out: wp.array[wp.vec3d],
):
    """Float32 coordinates as float64, which is exact."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        points_out[i] = wp.vec3d(vertices[i])


class Extent:
    """Bounds of an array of points whatever it holds, prepared once."""

    def __init__(self, points: wp.array) -> None:
        self.count = points.shape[0]
        device = points.device
        lanes = min(CUDA_LANES if device.is_cuda else CPU_LANES, self.count)
        self.rows = wp.empty((lanes, 7), dtype=wp.float64, device=device)
        args = [points, lanes, device.is_cuda, self.rows]
        grain = 1 if self.count > 50000 else lanes
        self.tasks = [Task(extent_kernel, lanes, args, device, grain=grain)] if lanes else []
        if lanes > FEW_ROWS:
            few = wp.empty((FEW_ROWS, 7), dtype=wp.float64, device=device)
            self.tasks.append(Task(fold_kernel, FEW_ROWS, [self.rows, few], device))
            self.rows = few
        self.host = self.rows
        if device.is_cuda:
            self.host = wp.empty_like(self.rows, device="cpu", pinned=True)

    def read(self) -> tuple[int, np.ndarray]:
        """(first index with a NaN or infinite coordinate, or -1; bounds (2, 3))."""
        if self.count == 0:
            return -1, np.zeros((2, 3))
        for task in self.tasks:
            task.run()
        if self.host is not self.rows:
            wp.copy(self.host, self.rows)
            wp.synchronize_stream(self.rows.device)
        rows = self.host.numpy()
        first_bad = rows[:, 6].min()
        bounds = np.array([rows[:, :3].min(axis=0), rows[:, 3:6].max(axis=0)])
        return (int(first_bad) if first_bad < self.count else -1), bounds
