"""abut.primitives: the same questions for plain arrays of triangles, one row each."""

from typing import Any

import numpy as np
import warp as wp

from abut.arrays import scalar_dtype, to_plain
from abut.errors import DeviceError, MeshError
from abut.extent import Extent
from abut.faces import posed_faces
from abut.geometry.common_corners import STRANGERS
from abut.narrow.classify import classify_kernel
from abut.narrow.measure import measured
from abut.narrow.settle import settle_kernel
from abut.pairs import KeyLayout, PairQueues
from abut.runtime import launch, resolve_device
from abut.search import Search


def intersect_tri_tri(a: Any, b: Any) -> wp.array:
    """Does triangle a[i] share a point with triangle b[i]?

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


def distance_tri_tri(a: Any, b: Any) -> tuple[wp.array, wp.array]:
    """How far is triangle a[i] from triangle b[i], and between which points?

    Args:
        a, b: (n, 3, 3) float32 or float64 arrays, corners along the second axis.

    Returns:
        (n,) float64 distances and (n, 2, 3) float64 points, the first on a[i] and the second on
        b[i], on the device of the arrays (the CPU for NumPy).

    Guarantee:
        0 exactly when the triangles share a point, else positive and right to some units in the
        last place of the size of both triangles together.
    """
    rows_a, rows_b = _two_rows(a, b)
    count, device = rows_a.shape[0] // 3, rows_a.device
    sides = _soup(rows_a, count), _soup(rows_b, count)
    met = _met(*sides, count, device).numpy()
    row = np.arange(count, dtype=np.int32)
    pairs = wp.array(np.stack([row, row], axis=1), dtype=wp.int32, device=device)
    return measured(*(lambda side=side: side for side in sides), pairs, None, met, points=True)


def _two_rows(a: Any, b: Any) -> tuple[wp.array, wp.array]:
    """Checked corners of as many triangles, on one device."""
    rows_a, rows_b = _triangles(a, "a"), _triangles(b, "b")
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
    search = Search()
    search.a, search.b, search.relation = faces_a, faces_b, STRANGERS
    search.bits = layout.bits
    search.hits, search.undecided = queues["hits"], queues["undecided"]
    launch(classify_kernel, count, [search, queues["candidates"]], device)
    launch(settle_kernel, queues.read()["undecided"], [search], device, grain=64)
    met = np.zeros(count, dtype=bool)
    hits = search.hits.keys.numpy()[: queues.read()["hits"]]
    met[hits & ((1 << layout.bits_b) - 1)] = True
    return wp.array(met, dtype=wp.bool, device=device)


def _triangles(data: Any, name: str) -> wp.array:
    """(n, 3, 3) coordinates as 3 n points."""
    data = to_plain(data)
    if len(data.shape) != 3 or tuple(data.shape[1:]) != (3, 3):
        raise MeshError(f"{name} must have shape (n, 3, 3), not {tuple(data.shape)}.")
    if scalar_dtype(data).kind not in "fiu":
        raise MeshError(f"{name} must be numbers, not {scalar_dtype(data)}.")
    device = data.device if isinstance(data, wp.array) else resolve_device("cpu")
    host = np.ascontiguousarray(data.numpy() if isinstance(data, wp.array) else data, np.float64)
    points = wp.array(host.reshape(-1, 3), dtype=wp.vec3d, device=device)
    bad, _ = Extent(points).read()
    if bad >= 0:
        raise MeshError(
            f"{name}[{bad // 3}] has the corner {host.reshape(-1, 3)[bad]}; not finite."
        )
    return points


def _soup(points: wp.array, count: int) -> Any:
    """Triangles without shared vertices."""
    corners = np.arange(3 * count, dtype=np.int32).reshape(-1, 3)
    return posed_faces(points, wp.array(corners, dtype=wp.vec3i, device=points.device))
