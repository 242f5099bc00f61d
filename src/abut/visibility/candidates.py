"""Pairs of what is left: boxes that overlap, by sweeping along an axis."""

from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.core.pair_queue import PairQueue, PairQueues, pack_pair, push_pair
from abut.operands.soup import Soup
from abut.visibility.adjacency import neighbours_of
from abut.visibility.occlusion import share_corner
from abut.visibility.state import NEITHER
from abut.visibility.survivors import layout_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class Kin:
    """Which pairs are none: those of one object, or, ``within``, neighbours."""

    within: wp.bool
    object_of: wp.array[wp.int32]
    corner_ids: wp.array[wp.vec3i]


@wp.func
def may_meet(kin: Kin, a: wp.int32, b: wp.int32, state_a: wp.int32, state_b: wp.int32):
    """Is a pair worth a test? Not inside FFV, nor inside SFV."""
    if state_a != NEITHER and state_a == state_b:
        return False
    if kin.within:
        return not share_corner(kin.corner_ids[a], kin.corner_ids[b])
    return kin.object_of[a] != kin.object_of[b]


@wp.kernel
def sweep_kernel(
    # in
    span: wp.vec3i,
    boxes: wp.array2d[wp.vec4f],
    order: wp.array[wp.int32],
    axis: wp.int32,
    kin: Kin,
    bits: wp.vec2i,
    # out
    pairs_out: PairQueue,
):
    """Each box with those that start, in order along the axis, before it ends."""
    count = boxes.shape[0]
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        low = boxes[order[i], 0]
        high = boxes[order[i], 1]
        step = i + 1
        while step < count:
            other = boxes[order[step], 0]
            if other[axis] > high[axis]:
                step = count
            elif other[0] <= high[0] and other[1] <= high[1] and other[2] <= high[2]:
                end = boxes[order[step], 1]
                if low[0] <= end[0] and low[1] <= end[1] and low[2] <= end[2]:
                    a = wp.cast(low[3], wp.int32)
                    b = wp.cast(other[3], wp.int32)
                    if may_meet(kin, a, b, wp.cast(high[3], wp.int32), wp.cast(end[3], wp.int32)):
                        push_pair(pairs_out, pack_pair(0, wp.min(a, b), wp.max(a, b), bits))
            step += 1


@wp.kernel
def ends_kernel(
    # in
    span: wp.vec3i,
    boxes: wp.array2d[wp.vec4f],
    axis: wp.int32,
    # out
    keys_out: wp.array[wp.float32],
    order_out: wp.array[wp.int32],
):
    """Lower ends, and places, of boxes."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        keys_out[i] = boxes[i, 0][axis]
        order_out[i] = i


@wp.kernel
def append_kernel(
    # in
    span: wp.vec3i,
    keys: wp.array[wp.int64],
    # out
    pairs_out: PairQueue,
):
    """Add keys to a queue."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        push_pair(pairs_out, keys[i])


def kin_of(soup: Soup, within: bool) -> Any:
    """The struct for kernels."""
    kin = Kin()
    kin.object_of, kin.within = soup.object_of, within
    if within:
        kin.corner_ids = neighbours_of(soup).corner_ids
    return kin


class Candidates:
    """The pairs of faces that may meet, of what a culler leaves now; listed when asked for."""

    def __init__(self, soup: Soup, culler: Any) -> None:
        remains = culler.remains
        self.soup, self.device = soup, soup.device
        self.kin = kin_of(soup, culler.settings.within)  # as it is now, not when pairs are listed
        self.boxes = remains.boxes
        self.folds = remains.fold_keys if remains.fold_count else None
        self.axis = int(np.argmax(soup.bounds[1] / 2 - soup.bounds[0] / 2))

    def list_into(self, queues: PairQueues, name: str) -> None:
        """Append the keys of all candidate pairs, as many as there is room for."""
        count = self.boxes.shape[0]
        if count > 1:
            args = [self.boxes, self._order(), self.axis, self.kin, layout_of(self.soup).bits]
            launch(sweep_kernel, count, [*args, queues[name]], self.device, grain=256)
        if self.folds is not None:
            args = [self.folds, queues[name]]
            launch(append_kernel, self.folds.shape[0], args, self.device)

    def sorted_keys(self) -> Any:
        """Keys of all candidate pairs, ascending."""
        queues = PairQueues(self.device, pairs=4 * self.boxes.shape[0] + 1024)
        while True:
            queues.clear()
            self.list_into(queues, "pairs")
            found = queues.read()
            if not queues.make_room(found):
                return queues.sorted_keys("pairs", found["pairs"], layout_of(self.soup).width)

    def _order(self) -> wp.array:
        """Boxes by their lower ends along the axis."""
        count = self.boxes.shape[0]
        if self.device.is_cpu:
            ends = self.boxes.numpy()[:, 0, self.axis]
            return wp.array(np.argsort(ends, kind="stable").astype(np.int32), device="cpu")
        keys = wp.empty(2 * count, dtype=wp.float32, device=self.device)
        order = wp.empty(2 * count, dtype=wp.int32, device=self.device)
        launch(ends_kernel, count, [self.boxes, self.axis, keys, order], self.device)
        wp.utils.radix_sort_pairs(keys, order, count)
        return order[:count]
