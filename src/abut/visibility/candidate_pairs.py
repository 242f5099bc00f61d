"""Candidate pairs: survivors whose boxes overlap, by sweep and prune along an axis."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.core.pair_queue import PairQueue, PairQueues, pack_pair, push_pair
from abut.core.plan import Plan, Stage
from abut.operands.soup import Soup
from abut.visibility.adjacency import neighbours_of
from abut.visibility.state import NEITHER, share_corner
from abut.visibility.survivors import layout_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class CandidateFilter:
    """Excludes pairs of one object or, ``within`` objects, neighbours."""

    within: wp.bool
    object_of: wp.array[wp.int32]
    corner_ids: wp.array[wp.vec3i]


@wp.func
def is_candidate(
    pairing: CandidateFilter, a: wp.int32, b: wp.int32, state_a: wp.int32, state_b: wp.int32
):
    """Whether two faces may collide: no pair inside FFV, nor inside SFV, does."""
    if state_a != NEITHER and state_a == state_b:
        return False
    if pairing.within:
        return not share_corner(pairing.corner_ids[a], pairing.corner_ids[b])
    return pairing.object_of[a] != pairing.object_of[b]


@wp.kernel
def sweep_survivors_kernel(
    # in
    span: wp.vec3i,
    boxes: wp.array2d[wp.vec4f],
    order: wp.array[wp.int32],
    axis: wp.int32,
    pairing: CandidateFilter,
    bits: wp.vec2i,
    # out
    pairs_out: PairQueue,
):
    """Test each box against the later ones whose lower bound it reaches along the axis."""
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
                    state_a = wp.cast(high[3], wp.int32)
                    if is_candidate(pairing, a, b, state_a, wp.cast(end[3], wp.int32)):
                        push_pair(pairs_out, pack_pair(0, wp.min(a, b), wp.max(a, b), bits))
            step += 1


@wp.kernel
def sweep_keys_kernel(
    # in
    span: wp.vec3i,
    boxes: wp.array2d[wp.vec4f],
    axis: wp.int32,
    # out
    keys_out: wp.array[wp.float32],
    order_out: wp.array[wp.int32],
):
    """Write the lower bounds and the indices of boxes, to be sorted."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        keys_out[i] = boxes[i, 0][axis]
        order_out[i] = i


@wp.kernel
def append_keys_kernel(
    # in
    span: wp.vec3i,
    keys: wp.array[wp.int64],
    # out
    pairs_out: PairQueue,
):
    """Append keys to a queue."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        push_pair(pairs_out, keys[i])


class Candidates:
    """Pairs of survivors of a culler that may collide, listed on request.

    The survivors are copied at construction; later runs of the culler do not change the pairs.
    """

    def __init__(self, soup: Soup, culler: Any) -> None:
        survivors = culler.survivors
        self.soup, self.device = soup, soup.device
        self._pairing = CandidateFilter()
        self._pairing.object_of, self._pairing.within = soup.object_of, culler.settings.within
        if culler.settings.within:
            self._pairing.corner_ids = neighbours_of(soup).corner_ids
        self.boxes = survivors.boxes
        self.folds = survivors.fold_keys if survivors.fold_count else None
        self.axis = int(np.argmax(soup.bounds[1] / 2 - soup.bounds[0] / 2))

    def stages(self, queue: Any) -> Iterator[Stage]:
        """Append the keys of all candidate pairs to a queue."""
        if self.boxes.shape[0] > 1:
            yield "pair", lambda: self._sweep(queue)
        if self.folds is not None:
            yield "pair", lambda: self._append_folds(queue)

    def sorted_keys(self) -> Any:
        """Keys of all candidate pairs, ascending."""
        queues = PairQueues(self.device, pairs=4 * self.boxes.shape[0] + 1024)
        counts = Plan(queues, lambda: self.stages(queues["pairs"])).run()
        assert counts is not None
        return queues.sorted_keys("pairs", counts["pairs"], layout_of(self.soup).width)

    def _sweep(self, queue: Any) -> None:
        args = [self.boxes, self._order(), self.axis, self._pairing, layout_of(self.soup).bits]
        count = self.boxes.shape[0]
        launch(sweep_survivors_kernel, count, [*args, queue], self.device, grain=256)

    def _append_folds(self, queue: Any) -> None:
        assert self.folds is not None
        launch(append_keys_kernel, self.folds.shape[0], [self.folds, queue], self.device)

    def _order(self) -> wp.array:
        """Boxes sorted by their lower bounds along the axis."""
        count = self.boxes.shape[0]
        if self.device.is_cpu:
            lower = self.boxes.numpy()[:, 0, self.axis]
            return wp.array(np.argsort(lower, kind="stable").astype(np.int32), device="cpu")
        keys = wp.empty(2 * count, dtype=wp.float32, device=self.device)
        order = wp.empty(2 * count, dtype=wp.int32, device=self.device)
        launch(sweep_keys_kernel, count, [self.boxes, self.axis, keys, order], self.device)
        wp.utils.radix_sort_pairs(keys, order, count)
        return order[:count]
