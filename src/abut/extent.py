"""What is asked of points that come in: their bounds, the first that is not finite; as float64."""

import numpy as np
import warp as wp

from abut.lanes import WARP, lane_count, least_of_lanes
from abut.runtime import Task

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CUDA_LANES = 8192
CPU_LANES = 8
NO_INDEX = wp.constant(wp.float64(1e300))


@wp.kernel
def extent_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    # out
    rows_out: wp.array2d[wp.float64],
):
    """Lower and upper corner of some of the points, and the first of them that is not finite.

    On CUDA neighbours read neighbouring points, and the lanes of a warp share a row; on the CPU a
    thread reads a run of points.
    """
    count = wp.int64(points.shape[0])
    together = lane_count()
    total = rows_out.shape[0] * together
    for lane in range(span[0] + wp.tid(), span[1], span[2]):
        start = wp.int32(lane)
        stop = points.shape[0]
        step = wp.int32(total)
        if together == 1:
            start = wp.int32(wp.int64(lane) * count / wp.int64(total))
            stop = wp.int32(wp.int64(lane + 1) * count / wp.int64(total))
            step = 1
        first_bad = NO_INDEX
        lower = points[0]
        upper = points[0]
        for i in range(start, stop, step):
            p = points[i]
            if not wp.isfinite(p):
                first_bad = wp.min(first_bad, wp.float64(i))
            lower = wp.min(lower, p)
            upper = wp.max(upper, p)
        row = lane / together
        for x in range(3):
            rows_out[row, x] = least_of_lanes(lower[x])
            rows_out[row, 3 + x] = -least_of_lanes(-upper[x])
        rows_out[row, 6] = least_of_lanes(first_bad)


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


class ExtentRoom:
    """Where bounds are summed up, on the device and for the host; extents take turns in it."""

    def __init__(self, device: wp.Device) -> None:
        self.lanes = CUDA_LANES if device.is_cuda else CPU_LANES
        row_count = self.lanes // WARP if device.is_cuda else self.lanes
        self.rows = wp.empty((row_count, 7), dtype=wp.float64, device=device)
        self.host = self.rows
        if device.is_cuda:
            self.host = wp.empty_like(self.rows, device="cpu", pinned=True)


class Extent:
    """Bounds of an array of points whatever it holds, prepared once."""

    def __init__(self, points: wp.array, room: ExtentRoom | None = None) -> None:
        self.count = points.shape[0]
        device = points.device
        self.room = room or ExtentRoom(device)
        lanes = self.room.lanes
        grain = 1 if self.count > 50000 else lanes
        self.task = Task(extent_kernel, lanes, [points, self.room.rows], device, grain=grain)

    def start(self) -> None:
        """Begin to look at the points."""
        if self.count:
            self.task.run()
            if self.room.host is not self.room.rows:
                wp.copy(self.room.host, self.room.rows)

    def read(self) -> tuple[int, np.ndarray]:
        """(first index with a NaN or infinite coordinate, or -1; bounds (2, 3)), once started."""
        if self.count == 0:
            return -1, np.zeros((2, 3))
        if self.room.host is not self.room.rows:
            wp.synchronize_stream(self.room.rows.device)
        rows = self.room.host.numpy()
        first_bad = rows[:, 6].min()
        bounds = np.array([rows[:, :3].min(axis=0), rows[:, 3:6].max(axis=0)])
        return (int(first_bad) if first_bad < self.count else -1), bounds


def extent_of(points: wp.array) -> tuple[int, np.ndarray]:
    """``Extent.read`` of points that are asked about once."""
    extent = Extent(points)
    extent.start()
    return extent.read()
