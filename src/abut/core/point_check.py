"""What is asked of points that come in: their bounds, the first that is not finite; as float64."""

from typing import Any

import numpy as np
import warp as wp

from abut.core.arrays import as_vec3_array, scalar_dtype
from abut.core.lanes import WARP_SIZE, lane_count, warp_min
from abut.core.launch import Task
from abut.errors import MeshError

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CUDA_LANES = 8192
CPU_LANES = 8
NO_INDEX = wp.constant(wp.float64(1e300))


@wp.struct
class Bounds:
    """Lower and upper corner of some points, and the first of them that is not finite."""

    lower: wp.vec3d
    upper: wp.vec3d
    first_bad: wp.float64


@wp.func
def bounds_from(p: wp.vec3d):
    """Bounds of no points yet; ``p`` is one that will come, somewhere."""
    out = Bounds()
    out.lower = p
    out.upper = p
    out.first_bad = NO_INDEX
    return out


@wp.func
def with_point(bounds: Bounds, p: wp.vec3d, i: wp.int32):
    """Bounds of one more point."""
    out = bounds
    if not wp.isfinite(p):
        out.first_bad = wp.min(out.first_bad, wp.float64(i))
    out.lower = wp.min(out.lower, p)
    out.upper = wp.max(out.upper, p)
    return out


@wp.func
def range_of(lane: wp.int32, lanes: wp.int32, count: wp.int32):
    """First point, end and step of a lane: neighbours on CUDA read neighbours, else runs."""
    out = wp.vec3i(lane, count, lanes)
    if lane_count() == 1:
        first = wp.int32(wp.int64(lane) * wp.int64(count) / wp.int64(lanes))
        out = wp.vec3i(first, wp.int32(wp.int64(lane + 1) * wp.int64(count) / wp.int64(lanes)), 1)
    return out


@wp.func
def store_bounds(bounds: Bounds, row: wp.int32, rows: wp.array2d[wp.float64]):
    """Write what the lanes of a warp have found together."""
    for x in range(3):
        rows[row, x] = warp_min(bounds.lower[x])
        rows[row, 3 + x] = -warp_min(-bounds.upper[x])
    rows[row, 6] = warp_min(bounds.first_bad)


@wp.kernel
def check_points_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    # out
    rows_out: wp.array2d[wp.float64],
):
    """Bounds of some of the points, and the first of them that is not finite; a row a warp."""
    lanes = rows_out.shape[0] * lane_count()
    for lane in range(span[0] + wp.tid(), span[1], span[2]):
        bounds = bounds_from(points[0])
        part = range_of(lane, lanes, points.shape[0])
        for i in range(part[0], part[1], part[2]):
            bounds = with_point(bounds, points[i], i)
        store_bounds(bounds, lane / lane_count(), rows_out)


@wp.kernel
def check_float32_points_kernel(
    # in
    span: wp.vec3i,
    vertices: wp.array[wp.vec3f],
    # out
    points_out: wp.array[wp.vec3d],
    rows_out: wp.array2d[wp.float64],
):
    """Check float32 points and write them as float64, which is exact."""
    lanes = rows_out.shape[0] * lane_count()
    for lane in range(span[0] + wp.tid(), span[1], span[2]):
        bounds = bounds_from(wp.vec3d(vertices[0]))
        part = range_of(lane, lanes, vertices.shape[0])
        for i in range(part[0], part[1], part[2]):
            p = wp.vec3d(vertices[i])
            points_out[i] = p
            bounds = with_point(bounds, p, i)
        store_bounds(bounds, lane / lane_count(), rows_out)


class PointCheckBuffers:
    """Where bounds are summed up, on the device and for the host; extents take turns in it."""

    def __init__(self, device: wp.Device) -> None:
        self.lanes = CUDA_LANES if device.is_cuda else CPU_LANES
        row_count = self.lanes // WARP_SIZE if device.is_cuda else self.lanes
        self.rows = wp.empty((row_count, 7), dtype=wp.float64, device=device)
        self.host, self.done = self.rows, None
        if device.is_cuda:
            self.host = wp.empty_like(self.rows, device="cpu", pinned=True)
            self.done = wp.Event(device)


class PointCheck:
    """Bounds of an array of points whatever it holds, prepared once.

    With ``vertices`` of float32, these are written to the points first.
    """

    def __init__(
        self,
        points: wp.array,
        room: PointCheckBuffers | None = None,
        vertices: wp.array | None = None,
    ) -> None:
        self.count = points.shape[0]
        self.room = room or PointCheckBuffers(points.device)
        kernel, args = check_points_kernel, [points, self.room.rows]
        if vertices is not None:
            kernel, args = check_float32_points_kernel, [vertices, *args]
        grain = 1 if self.count > 50000 else self.room.lanes
        self.task = Task(kernel, self.room.lanes, args, points.device, grain=grain)

    def start(self, vertices: wp.array | None = None) -> None:
        """Begin to look at the points, made of these vertices if they are given."""
        if self.count:
            if vertices is not None:
                self.task.set_arg(0, vertices)
            self.task.run()
            if self.room.done is not None:
                wp.copy(self.room.host, self.room.rows)
                wp.record_event(self.room.done)

    def read(self) -> tuple[int, np.ndarray]:
        """(first index with a NaN or infinite coordinate, or -1; bounds (2, 3)), once started."""
        if self.count == 0:
            return -1, np.zeros((2, 3))
        if self.room.done is not None:
            wp.synchronize_event(self.room.done)
        rows = self.room.host.numpy()
        first_bad = rows[:, 6].min()
        bounds = np.array([rows[:, :3].min(axis=0), rows[:, 3:6].max(axis=0)])
        return (int(first_bad) if first_bad < self.count else -1), bounds


def check_points(points: wp.array) -> tuple[int, np.ndarray]:
    """``PointCheck.read`` of points that are asked about once."""
    extent = PointCheck(points)
    extent.start()
    return extent.read()


def vertex_rows(vertices: Any, device: wp.Device, name: str = "vertices") -> wp.array:
    """Vertices (n, 3) of a plain array as 3-vectors on the device, float32 or float64 as given."""
    if isinstance(vertices, np.ndarray) and vertices.dtype.kind in "iu":
        vertices = vertices.astype(np.float64)
    kind = scalar_dtype(vertices)
    if kind not in (np.float32, np.float64):
        raise MeshError(f"{name} must be float32 or float64, not {kind}.")
    return as_vec3_array(vertices, wp.vec3f if kind == np.float32 else wp.vec3d, device)


def not_finite_error(name: str, rows: wp.array, row: int) -> MeshError:
    """What to raise about a row that is not finite."""
    value = rows[row : row + 1].numpy()[0]
    return MeshError(f"{name}[{row}] is {value}; coordinates must be finite.")
