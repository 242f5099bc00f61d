"""Rows of a batch of poses with at most one pair each, made on the device."""

from collections.abc import Iterator
from typing import Any

import warp as wp

from abut.core.launch import Task
from abut.core.pair_queue import NO_KEY, KeyLayout, unpack_pair
from abut.core.plan import Stage

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def count_found_kernel(
    # in
    span: wp.vec3i,
    best: wp.array[wp.int64],
    # out
    found_out: wp.array[wp.int32],
):
    """Write 1 for each row that has a pair."""
    for row in range(span[0] + wp.tid(), span[1], span[2]):
        found_out[row] = wp.int32(best[row] != NO_KEY)


@wp.kernel
def first_rows_kernel(
    # in
    span: wp.vec3i,
    best: wp.array[wp.int64],
    ends: wp.array[wp.int32],
    bits: wp.vec2i,
    # out
    pairs_out: wp.array2d[wp.int32],
    pose_out: wp.array[wp.int32],
    colliding_out: wp.array[wp.bool],
):
    """Unpack the pair of each row that has one, in the order of rows."""
    for row in range(span[0] + wp.tid(), span[1], span[2]):
        colliding_out[row] = best[row] != NO_KEY
        if best[row] != NO_KEY:
            key = unpack_pair(best[row], bits)
            slot = ends[row] - 1
            pairs_out[slot, 0] = key[1]
            pairs_out[slot, 1] = key[2]
            pose_out[slot] = row


class FirstRows:
    """Stages that make the rows of the best pair of each pose, without waiting for their count.

    Args:
        best: The key found for each pose, or NO_KEY.
        layout: Layout of the keys.
    """

    def __init__(self, best: wp.array, layout: KeyLayout) -> None:
        self._device, self._count = best.device, best.shape[0]
        self._found = wp.empty(self._count, dtype=wp.int32, device=self._device)
        self._ends = wp.empty_like(self._found)
        self._total = wp.empty(1, dtype=wp.int32, device="cpu", pinned=True)
        self._total_view = self._total.numpy()
        self._counting = Task(count_found_kernel, self._count, [best, self._found], self._device)
        args = [best, self._ends, layout.bits, *self._empty()]
        self._filling = Task(first_rows_kernel, self._count, args, self._device)

    def stages(self) -> Iterator[Stage]:
        """Count, scan and fill."""
        yield "rows", self._counting.run
        yield "rows", lambda: wp.utils.array_scan(self._found, self._ends, inclusive=True)
        yield "rows", self._fill

    def take(self) -> tuple[wp.array, wp.array, wp.array]:
        """Return (pairs, pose, colliding) of a run that the host has waited for."""
        pairs, pose, colliding = self._rows
        count = int(self._total_view[0])
        return pairs[:count], pose[:count], colliding

    def _empty(self) -> tuple[Any, ...]:
        """New arrays, because the caller keeps those of the last run."""
        return (
            wp.empty((self._count, 2), dtype=wp.int32, device=self._device),
            wp.empty(self._count, dtype=wp.int32, device=self._device),
            wp.empty(self._count, dtype=wp.bool, device=self._device),
        )

    def _fill(self) -> None:
        self._rows = self._empty()
        for index, array in enumerate(self._rows, start=3):
            self._filling.set_arg(index, array)
        self._filling.run()
        wp.copy(self._total, self._ends, src_offset=self._count - 1, count=1)
