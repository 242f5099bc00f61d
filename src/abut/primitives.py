"""abut.primitives: the same questions for plain arrays of primitives, one row each."""

from typing import Any

import numpy as np
import warp as wp

from abut.core.arrays import scalar_dtype, to_plain
from abut.core.device import require_same_device, resolve_device
from abut.core.launch import launch
from abut.core.pair_queue import KeyLayout, PairQueues
from abut.core.plan import QueueLaunch
from abut.core.point_check import check_points
from abut.core.unknown_options import explain_options
from abut.errors import DeviceError, MeshError
from abut.narrow.exact import exact_kernel_for
from abut.narrow.filter import filter_kernel_for
from abut.narrow.impact import first_contacts_kernel_for
from abut.narrow.pair_distance import measured
from abut.operands.contact_queues import contact_queues
from abut.operands.posed_mesh import make_posed_mesh
from abut.operands.posed_pairs import MeshPairs, mesh_pairs
from abut.options import LEAST_TOLERANCE, number_from


@explain_options
def intersect_tri_tri(a: Any, b: Any) -> wp.array:
    """Return whether triangles a[i] and b[i] share a point.

    Args:
        a, b: (n, 3, 3) float32 or float64 arrays, corners along the second axis.

    Returns:
        (n,) bool, on the device of the arrays (the CPU for NumPy).

    Guarantee:
        Exact. Triangles are closed; zero-area ones are segments or points.
    """
    rows_a, rows_b = _two_rows(a, b)
    count = rows_a.shape[0] // 3
    return _met(_soup(rows_a, count), _soup(rows_b, count), count, rows_a.device)


@explain_options
def distance_tri_tri(a: Any, b: Any) -> tuple[wp.array, wp.array]:
    """Return the distance between triangles a[i] and b[i], and their nearest points.

    Args:
        a, b: (n, 3, 3) float32 or float64 arrays, corners along the second axis.

    Returns:
        (n,) float64 distances and (n, 2, 3) float64 points, the first on a[i] and the second on
        b[i], on the device of the arrays (the CPU for NumPy).

    Guarantee:
        0 exactly when the triangles share a point, else positive, with an error of some units in
        the last place of the extent of both triangles together.
    """
    rows_a, rows_b = _two_rows(a, b)
    count, device = rows_a.shape[0] // 3, rows_a.device
    sides = _soup(rows_a, count), _soup(rows_b, count)
    met = _met(*sides, count, device).numpy()
    row = np.arange(count, dtype=np.int32)
    pairs = wp.array(np.stack([row, row], axis=1), dtype=wp.int32, device=device)
    return measured(lambda: sides[0], lambda: sides[1], pairs, None, met, points=True)


def _two_rows(a: Any, b: Any) -> tuple[wp.array, wp.array]:
    """Checked corners of as many triangles, on one device."""
    rows_a, rows_b = _rows(a, "a", 3), _rows(b, "b", 3)
    if rows_a.device != rows_b.device:
        raise DeviceError(f"a is on {rows_a.device} but b is on {rows_b.device}.")
    if rows_a.shape != rows_b.shape:
        raise MeshError(
            f"a and b must have as many triangles, not {rows_a.shape[0] // 3} "
            f"and {rows_b.shape[0] // 3}."
        )
    return rows_a, rows_b


def _met(faces_a: Any, faces_b: Any, count: int, device: wp.Device) -> wp.array:
    """(n,) bool: whether face i of one meets face i of the other."""
    if count == 0:
        return wp.empty(0, dtype=wp.bool, device=device)
    layout = KeyLayout.of(count, count)
    queues = PairQueues(device, candidates=count, hits=count, undecided=count)
    row = np.arange(count, dtype=np.int64)
    queues["candidates"].keys.assign((row << layout.bits_b) | row)
    queues["candidates"].count.fill_(count)
    pairs, out = mesh_pairs(faces_a, faces_b), contact_queues(queues, layout)
    kernel = filter_kernel_for(MeshPairs, device.is_cpu)
    launch(kernel, count, [pairs, queues["candidates"], out], device)
    QueueLaunch(exact_kernel_for(MeshPairs), out.undecided, [pairs, out]).run()
    met = np.zeros(count, dtype=bool)
    hits = out.hits.keys.numpy()[: queues.read()["hits"]]
    met[layout.split(hits)[1]] = True
    return wp.array(met, dtype=wp.bool, device=device)


@explain_options
def ccd_vertex_face(
    t0: Any, t1: Any, *, min_distance: float = 0.0, tolerance: float = 1e-6
) -> wp.array:
    """Return the time at which each moving vertex first touches its moving face.

    Args:
        t0, t1: (n, 4, 3) float32 or float64 arrays, at the start and at the end of the step: the
            vertex and the three corners of the face along the second axis. Points move in
            straight lines.
        min_distance: Gap to keep; features touch when they are no farther apart.
        tolerance: Times are at most this much before the first contact [share of the step].

    Returns:
        (n,) float64 times in [0, 1], infinity for none, on the device of the arrays.

    Guarantee:
        Conservative. No contact is missed; no time is later than the true one.
    """
    return _first_contacts(first_contacts_kernel_for(False), t0, t1, min_distance, tolerance)


@explain_options
def ccd_edge_edge(
    t0: Any, t1: Any, *, min_distance: float = 0.0, tolerance: float = 1e-6
) -> wp.array:
    """Return the time at which each two moving edges first touch.

    Args:
        t0, t1: (n, 4, 3) float32 or float64 arrays, at the start and at the end of the step: the
            ends of the first and of the second edge along the second axis. Points move in
            straight lines.
        min_distance: Gap to keep; features touch when they are no farther apart.
        tolerance: Times are at most this much before the first contact [share of the step].

    Returns:
        (n,) float64 times in [0, 1], infinity for none, on the device of the arrays.

    Guarantee:
        Conservative. No contact is missed; no time is later than the true one.
    """
    return _first_contacts(first_contacts_kernel_for(True), t0, t1, min_distance, tolerance)


def _first_contacts(
    kernel: wp.Kernel, t0: Any, t1: Any, min_distance: float, tolerance: float
) -> wp.array:
    start, end = _rows(t0, "t0", 4), _rows(t1, "t1", 4)
    device = require_same_device(start, end)
    if start.shape != end.shape:
        raise MeshError(
            f"t0 and t1 must have as many rows, not {start.shape[0] // 4} and {end.shape[0] // 4}."
        )
    count = start.shape[0] // 4
    gap = wp.float64(number_from(min_distance, "min_distance", 0.0))
    tolerance = number_from(tolerance, "tolerance", LEAST_TOLERANCE)
    times = wp.empty(count, dtype=wp.float64, device=device)
    converged = wp.empty(count, dtype=wp.bool, device=device)
    args = [start, end, gap, wp.float64(tolerance), times, converged]
    launch(kernel, count, args, device, grain=256)
    return times


def _rows(data: Any, name: str, corners: int) -> wp.array:
    """(n, corners, 3) coordinates as points, one after the other."""
    data = to_plain(data)
    if len(data.shape) != 3 or tuple(data.shape[1:]) != (corners, 3):
        raise MeshError(f"{name} must have shape (n, {corners}, 3), not {tuple(data.shape)}.")
    if scalar_dtype(data).kind not in "fiu":
        raise MeshError(f"{name} must be numbers, not {scalar_dtype(data)}.")
    device = data.device if isinstance(data, wp.array) else resolve_device("cpu")
    host = np.ascontiguousarray(data.numpy() if isinstance(data, wp.array) else data, np.float64)
    points = wp.array(host.reshape(-1, 3), dtype=wp.vec3d, device=device)
    bad, _ = check_points(points)
    if bad >= 0:
        corner = host.reshape(-1, 3)[bad]
        raise MeshError(f"{name}[{bad // corners}] has the corner {corner}; not finite.")
    return points


def _soup(points: wp.array, count: int) -> Any:
    """Triangles without shared vertices."""
    corners = np.arange(3 * count, dtype=np.int32).reshape(-1, 3)
    return make_posed_mesh(points, wp.array(corners, dtype=wp.vec3i, device=points.device))
