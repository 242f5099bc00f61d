"""Decide by exact arithmetic the pairs that the filter left open."""

from functools import cached_property
from typing import Any

import warp as wp

from abut.core.launch import UNKNOWN_COUNT, Task, launch
from abut.core.pair_queue import push_pair, queue_stop, unpack_pair
from abut.geometry.common_corners import common_corners
from abut.geometry.intersect_tri_tri_exact import intersect_tri_tri_exact
from abut.operands.contact_operands import Search
from abut.operands.posed_mesh import load_face

# Loops stay loops: this code is rarely run but always compiled.
wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

CUDA_THREADS = 1 << 15  # they take so much room that no more run at once
FEW = 256  # one thread has settled them before a second one has begun


@wp.func
def settle_pair(search: Search, key: wp.int64):
    """Move an undecided pair to the hits if it meets."""
    row = unpack_pair(key, search.bits)
    a = load_face(search.a, row[1], row[0])
    b = load_face(search.b, row[2], row[0])
    index_a = search.a.faces[row[1]]
    index_b = search.b.faces[row[2]]
    common = common_corners(search.sharing, a, b, index_a, index_b)
    if intersect_tri_tri_exact(a, b, common):
        push_pair(search.hits, key)


@wp.kernel
def settle_kernel(
    # in
    span: wp.vec3i,
    search: Search,
):
    """Move the undecided pairs that meet to the hits."""
    for i in range(span[0] + wp.tid(), queue_stop(search.undecided, span[1]), span[2]):
        settle_pair(search, search.undecided.keys[i])


class Settling:
    """The last stage of a search, recorded when it is first needed.

    On the CPU that is when something is undecided: exact arithmetic takes long to load.
    """

    def __init__(self, search: Any, device: wp.Device) -> None:
        self._search, self._device = search, device
        self._counts = search.undecided.count.numpy() if device.is_cpu else None

    @cached_property
    def _task(self) -> Task:
        options = {"grain": UNKNOWN_COUNT, "threads": CUDA_THREADS}
        return Task(settle_kernel, UNKNOWN_COUNT, [self._search], self._device, **options)

    def run(self) -> None:
        """Move the undecided pairs that meet to the hits."""
        count = FEW if self._counts is None else int(self._counts[0])
        if count > FEW:
            count = min(count, self._search.undecided.keys.shape[0])
            launch(settle_kernel, count, [self._search], self._device, grain=64)
        elif count:
            self._task.run()
