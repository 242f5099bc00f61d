"""Validate points: bounds, first non-finite index, float64 copy."""

from functools import cache
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
def vertex_at(vertices: wp.array[wp.vec3f], points: wp.array[wp.vec3d], i: wp.int32):
    """Return a point; where there are float32 vertices, their exact float64 copy."""
    if vertices.shape[0] > 0:
        return wp.vec3d(vertices[i])
    return points[i]


@wp.func
def lane_range(lane: wp.int32, lanes: wp.int32, count: wp.int32):
    """Return first point, end and step of a lane: strided on CUDA, contiguous on the CPU."""
    out = wp.vec3i(lane, count, lanes)
    if lane_count() == 1:
        first = wp.int32(wp.int64(lane) * wp.int64(count) / wp.int64(lanes))
        out = wp.vec3i(first, wp.int32(wp.int64(lane + 1) * wp.int64(count) / wp.int64(lanes)), 1)
    return out


@wp.func
def store_bounds(bounds: Bounds, row: wp.int32, rows: wp.array2d[wp.float64]):
    """Write the union of the bounds of all lanes of a warp."""
    for x in range(3):
        rows[row, x] = warp_min(bounds.lower[x])
        rows[row, 3 + x] = -warp_min(-bounds.upper[x])
    rows[row, 6] = warp_min(bounds.first_bad)


@wp.kernel
def check_points_kernel(
    # in
    span: wp.vec3i,
    vertices: wp.array[wp.vec3f],
    # out
    points_out: wp.array[wp.vec3d],
    rows_out: wp.array2d[wp.float64],
):
    """Find the bounds and the first non-finite point, one row per warp.

    Where there are float32 vertices, write them as points.
    """
    lanes = rows_out.shape[0] * lane_count()
    for lane in range(span[0] + wp.tid(), span[1], span[2]):
        bounds = Bounds()
        bounds.lower = vertex_at(vertices, points_out, 0)
        bounds.upper = bounds.lower
        bounds.first_bad = NO_INDEX
        part = lane_range(lane, lanes, points_out.shape[0])
        for i in range(part[0], part[1], part[2]):
            p = vertex_at(vertices, points_out, i)
            if vertices.shape[0] > 0:
                points_out[i] = p
            if not wp.isfinite(p):
                bounds.first_bad = wp.min(bounds.first_bad, wp.float64(i))
            bounds.lower = wp.min(bounds.lower, p)
            bounds.upper = wp.max(bounds.upper, p)
        store_bounds(bounds, lane / lane_count(), rows_out)


class PointCheckBuffers:
    """Buffers of the bounds, on the device and the host; checks of one mesh share them."""

    def __init__(self, device: wp.Device) -> None:
        self.lanes = CUDA_LANES if device.is_cuda else CPU_LANES
        row_count = self.lanes // WARP_SIZE if device.is_cuda else self.lanes
        self.rows = wp.empty((row_count, 7), dtype=wp.float64, device=device)
        self.host, self.done = self.rows, None
        if device.is_cuda:
            self.host = wp.empty_like(self.rows, device="cpu", pinned=True)
            self.done = wp.Event(device)


class PointCheck:
    """The check of one array of points, prepared once and run many times.

    With float32 ``vertices``, it also converts them into the points.
    """

    def __init__(
        self,
        points: wp.array,
        buffers: PointCheckBuffers | None = None,
        vertices: wp.array | None = None,
    ) -> None:
        self.count = points.shape[0]
        self.buffers = buffers or PointCheckBuffers(points.device)
        if vertices is None:
            vertices = _no_vertices(points.device.alias)
        args, lanes = [vertices, points, self.buffers.rows], self.buffers.lanes
        grain = 1 if self.count > 50000 else lanes
        self.task = Task(check_points_kernel, lanes, args, points.device, grain=grain)

    def start(self, vertices: wp.array | None = None) -> None:
        """Start the check, of points converted from ``vertices`` if they are given."""
        if self.count:
            if vertices is not None:
                self.task.set_arg(0, vertices)
            self.task.run()
            if self.buffers.done is not None:
                wp.copy(self.buffers.host, self.buffers.rows)
                wp.record_event(self.buffers.done)

    def read(self) -> tuple[int, np.ndarray]:
        """Wait; return the first index with a non-finite coordinate, or -1, and bounds (2, 3)."""
        if self.count == 0:
            return -1, np.zeros((2, 3))
        if self.buffers.done is not None:
            wp.synchronize_event(self.buffers.done)
        rows = self.buffers.host.numpy()
        first_bad = rows[:, 6].min()
        bounds = np.array([rows[:, :3].min(axis=0), rows[:, 3:6].max(axis=0)])
        return (int(first_bad) if first_bad < self.count else -1), bounds


@cache
def _no_vertices(alias: str) -> wp.array:
    return wp.empty(0, dtype=wp.vec3f, device=alias)


def check_points(points: wp.array) -> tuple[int, np.ndarray]:
    """Check points once; see ``PointCheck.read``."""
    check = PointCheck(points)
    check.start()
    return check.read()


def vertex_rows(vertices: Any, device: wp.Device, name: str = "vertices") -> wp.array:
    """Return vertices (n, 3) as 3-vectors on the device, float32 or float64 as given."""
    if isinstance(vertices, np.ndarray) and vertices.dtype.kind in "iu":
        vertices = vertices.astype(np.float64)
    kind = scalar_dtype(vertices)
    if kind not in (np.float32, np.float64):
        raise MeshError(f"{name} must be float32 or float64, not {kind}.")
    return as_vec3_array(vertices, wp.vec3f if kind == np.float32 else wp.vec3d, device)


def not_finite_error(name: str, rows: wp.array, row: int) -> MeshError:
    """Return the error about a row that is not finite."""
    value = rows[row : row + 1].numpy()[0]
    return MeshError(f"{name}[{row}] is {value}; coordinates must be finite.")
