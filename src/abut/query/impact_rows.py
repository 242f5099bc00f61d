"""ImpactRows: the impacts of a query, sorted, refined and joined over pieces of motion."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import warp as wp

from abut.core.atomics import atomic_min_int64
from abut.core.launch import launch
from abut.core.pair_queue import NO_KEY, KeyLayout, unpack_keys
from abut.core.pair_sort import sort_with_order
from abut.core.timing import stage
from abut.narrow.impact_paths import refine_kernel
from abut.query.ccd_queues import CcdQueues
from abut.results import Impacts

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

JUST_BELOW = 1.0 - 2.0**-50  # covers the rounding of times when pieces are joined


@dataclass(frozen=True)
class ImpactRows:
    """Sorted keys (kind, a, b), times and convergence, on the device; and the earliest time."""

    keys: wp.array
    times: wp.array
    converged: wp.array
    first: float

    def __len__(self) -> int:
        """Number of rows."""
        return self.keys.shape[0]

    def placed(self, piece: int, count: int) -> "ImpactRows":
        """The rows of one of ``count`` pieces, with times in the whole step."""
        if count == 1:
            return self
        times = (piece + self.times.numpy()) / count * JUST_BELOW
        first = float(times.min()) if len(times) else float("inf")
        return replace(self, times=wp.array(times, device=self.times.device), first=first)


def empty_impact_rows(device: wp.Device) -> ImpactRows:
    """No impacts."""
    keys, times, converged = (wp.empty(0, t, device) for t in (wp.int64, wp.float64, wp.bool))
    return ImpactRows(keys, times, converged, float("inf"))


def sorted_rows(queues: CcdQueues, count: int, layout: KeyLayout) -> ImpactRows:
    """All impacts, sorted by key."""
    device = queues.device
    if count == 0:
        return empty_impact_rows(device)
    with stage("sort", device):
        first = queues.earliest()
        keys = wp.empty(2 * count, dtype=wp.int64, device=device)  # the sort needs room for two
        if device.is_cpu:
            host = queues["impacts"].keys.numpy()[:count]
            by_key = np.argsort(host)
            keys.numpy()[:count] = host[by_key]
            order = wp.array(by_key.astype(np.int32), device=device)
        else:
            wp.copy(keys, queues["impacts"].keys, count=count)
            order = sort_with_order(keys, count, layout.width + 2)
        times, converged = (_gathered(x, order) for x in (queues.times, queues.converged))
    return ImpactRows(keys[:count], times, converged, first)


def _gathered(values: wp.array, order: wp.array) -> wp.array:
    """The values at these indices."""
    out = wp.empty(order.shape[0], dtype=values.dtype, device=values.device)
    wp.copy(out, wp.indexedarray(values, [order]))
    return out


@wp.kernel
def earliest_impact_kernel(
    # in
    span: wp.vec3i,
    keys: wp.array[wp.int64],
    times: wp.array[wp.float64],
    converged: wp.array[wp.bool],
    best: wp.array[wp.int64],
    # out
    found_out: wp.array[wp.int64],
):
    """Find the lowest key of the earliest time, and the lowest one that has converged."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if wp.cast(times[i], wp.int64) == best[0]:
            atomic_min_int64(found_out, 0, keys[i])
            if converged[i]:
                atomic_min_int64(found_out, 1, keys[i])


def earliest_row(queues: CcdQueues, count: int) -> ImpactRows:
    """The earliest impact; of several the one with the lowest key."""
    device = queues.device
    if count == 0:
        return empty_impact_rows(device)
    found = wp.full(2, int(NO_KEY), dtype=wp.int64, device=device)
    arrays = [queues["impacts"].keys, queues.times, queues.converged, queues.best]
    launch(earliest_impact_kernel, count, [*arrays, found], device)
    key, converged = found.numpy().tolist()
    first = queues.earliest()
    return ImpactRows(
        wp.array([key], dtype=wp.int64, device=device),
        wp.array([first], dtype=wp.float64, device=device),
        wp.array([key == converged], dtype=wp.bool, device=device),
        first,
    )


def refined(rows: ImpactRows, paths: Any, stop: float) -> ImpactRows:
    """Rows whose features meet on their true paths until ``stop``, with their times there."""
    device = rows.keys.device
    count = len(rows)
    times = wp.empty(count, dtype=wp.float64, device=device)
    converged = wp.empty(count, dtype=wp.bool, device=device)
    args = [paths, rows.keys, rows.times, wp.float64(stop), times, converged]
    with stage("refine", device):
        launch(refine_kernel, count, args, device, grain=16)
    return _finite_rows(rows.keys.numpy(), times.numpy(), converged.numpy(), device)


def first_of(rows: ImpactRows) -> ImpactRows:
    """The earliest row; of several the one with the lowest key."""
    if not len(rows):
        return rows
    keys, times, converged = (a.numpy() for a in (rows.keys, rows.times, rows.converged))
    at = [int(np.argmin(times))]
    return _finite_rows(keys[at], times[at], converged[at], rows.keys.device)


def _finite_rows(
    keys: np.ndarray, times: np.ndarray, converged: np.ndarray, device: wp.Device
) -> ImpactRows:
    """The rows with finite times."""
    met = np.isfinite(times)
    return ImpactRows(
        wp.array(keys[met], dtype=wp.int64, device=device),
        wp.array(times[met], dtype=wp.float64, device=device),
        wp.array(converged[met], dtype=wp.bool, device=device),
        float(times.min(initial=np.inf)),
    )


def join_pieces(found: list[ImpactRows]) -> ImpactRows:
    """The earliest row of each key over consecutive pieces."""
    device = found[0].keys.device
    keys, times, converged = (
        np.concatenate([getattr(rows, name).numpy() for rows in found])
        for name in ("keys", "times", "converged")
    )
    keys, at = np.unique(keys, return_index=True)  # the first of each
    return _finite_rows(keys, times[at], converged[at], device)


def to_impacts(rows: ImpactRows, layout: KeyLayout, measure: Any = None) -> Impacts:
    """Impacts of rows; ``measure`` finds their initial distance."""
    features, kind = unpack_keys(rows.keys, layout, True, rows.keys.device)
    assert kind is not None
    return Impacts(rows.times, kind, features, rows.converged, rows.first, measure)
