"""Candidate pairs: survivors whose boxes overlap and which overlap in depth in every view.

Near pairs, those of overlapping boxes, are listed by the tiles of a coarse view; where tiles hold
too many survivors, and for faces sampled at pixel centres, by sweep and prune along an axis. Near
pairs of conservative fragments are then looked at in all views, see pair_views. The coarse view may
separate pairs that a sweep leaves.
"""

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.core.pair_queue import PairQueue, PairQueues, pack_pair, push_pair
from abut.core.plan import Plan, QueueLaunch, Stage
from abut.operands.soup import Soup
from abut.visibility.adjacency import neighbours_of
from abut.visibility.coverage import BLOCK
from abut.visibility.pair_bins import bin_survivors_kernel, pair_tiles_kernel
from abut.visibility.pair_filter import PairFilter, may_pair
from abut.visibility.pair_views import INDEX_BITS, pairs_in_views_kernel
from abut.visibility.settings import View, ViewMap, map_of
from abut.visibility.survivors import layout_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MOST_TILES = 1 << 10  # along a side of the view of tiles
MOST_PER_TILE = 512  # survivors; beyond, a sweep lists near pairs
MOST_PER_SURVIVOR = 64  # tiles, on average; likewise
TEAM = 32  # threads that list the tiles of a survivor, on CUDA


@wp.kernel
def sweep_survivors_kernel(
    # in
    span: wp.vec3i,
    boxes: wp.array2d[wp.vec4f],
    order: wp.array[wp.int32],
    axis: wp.int32,
    pairing: PairFilter,
    # out
    near_out: PairQueue,
):
    """Test each box against the later ones whose lower bound it reaches along the axis."""
    count = boxes.shape[0]
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        reach = boxes[order[i], 1][axis]
        step = i + 1
        while step < count:
            if boxes[order[step], 0][axis] > reach:
                step = count
            elif may_pair(pairing, boxes, order[i], order[step]):
                push_pair(near_out, pack_pair(0, order[i], order[step], INDEX_BITS))
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

    Args:
        soup, culler: After a run.
        in_views: Leave out near pairs that some view separates. Before an exact test this costs
            more than it saves.
    """

    def __init__(self, soup: Soup, culler: Any, *, in_views: bool = True) -> None:
        survivors, settings = culler.survivors, culler.settings
        self.soup, self.device, self.settings = soup, soup.device, settings
        self._in_views = in_views and settings.conservative
        self._pairing = PairFilter()
        self._pairing.object_of, self._pairing.within = soup.object_of, settings.within
        if culler.object_state is not None:
            self._pairing.object_state = wp.clone(culler.object_state)
        if settings.within:
            self._pairing.corner_ids = neighbours_of(soup).corner_ids
        self.boxes, self.corners = survivors.boxes, survivors.corners
        self.folds = survivors.fold_keys if survivors.fold_count else None
        self._bounds, self._distance = soup.bounds, settings.distance_in(soup)
        self._axis = int(np.argmax(soup.bounds[1] / 2 - soup.bounds[0] / 2))

    def stages(self, near: Any, queue: Any) -> Iterator[Stage]:
        """Append the keys of all candidate pairs to a queue; ``near`` receives near pairs."""
        if self.boxes.shape[0] > 1:
            binned = self._binned is not None
            yield "near", lambda: (self._pair_tiles if binned else self._sweep)(near)
            args = [near, self.corners, self.boxes, self._views, layout_of(self.soup).bits, queue]
            yield "views", QueueLaunch(pairs_in_views_kernel, near, args, grain=256).run
        if self.folds is not None:
            yield "folds", lambda: self._append_folds(queue)

    def sorted_keys(self) -> Any:
        """Keys of all candidate pairs, ascending."""
        room = 4 * self.boxes.shape[0] + 1024
        queues = PairQueues(self.device, near=2 * room, pairs=room)
        counts = Plan(queues, lambda: self.stages(queues["near"], queues["pairs"])).run()
        assert counts is not None
        return queues.sorted_keys("pairs", counts["pairs"], layout_of(self.soup).width)

    @cached_property
    def _views(self) -> wp.array:
        """Maps of the views; none for sampled faces, which may meet between pixel centres."""
        views = dict.fromkeys(self.settings.views) if self._in_views else ()
        return self._maps(views, self._bounds, self.settings.pixels)

    def _maps(self, views: Any, bounds: np.ndarray, pixels: int) -> wp.array:
        host = np.zeros(len(views), dtype=ViewMap.numpy_dtype())
        for i, view in enumerate(views):
            options = {"conservative": True, "distance": self._distance}
            host[i] = map_of(view, bounds, pixels, **options)
        return wp.array(host, dtype=ViewMap, device=self.device)

    @cached_property
    def _binned(self) -> tuple[wp.array, wp.array] | None:
        """(The map of the view of tiles, sorted keys (tile, survivor)); None: too many."""
        if not self.settings.conservative:
            return None
        count = self.boxes.shape[0]
        corners = self.corners.numpy().reshape(-1, 3)
        bounds = np.stack([corners.min(axis=0), corners.max(axis=0)])
        tiles = min(math.isqrt(count) + 1, MOST_TILES)
        view = View("xyz"[int(np.argmin(bounds[1] / 2 - bounds[0] / 2))])
        maps = self._maps([view], bounds, tiles * BLOCK)
        queues = PairQueues(self.device, entries=4 * count)
        team = TEAM if self.device.is_cuda else 1
        args = [self.corners, maps, team, queues["entries"]]

        def stages() -> Iterator[Stage]:
            yield (
                "bin",
                lambda: launch(bin_survivors_kernel, team * count, args, self.device, grain=512),
            )

        most = MOST_PER_SURVIVOR * count
        found = Plan(queues, stages, needs=lambda counts: _at_most(counts, most)).run()
        if found is None:
            return None
        keys = queues.sorted_keys("entries", found["entries"], 2 * INDEX_BITS[1])
        host = keys if isinstance(keys, np.ndarray) else keys.numpy()
        tile = host >> INDEX_BITS[1]
        if len(tile) > MOST_PER_TILE and (tile[MOST_PER_TILE:] == tile[:-MOST_PER_TILE]).any():
            return None
        return maps, wp.array(host, dtype=wp.int64, device=self.device)

    def _pair_tiles(self, near: Any) -> None:
        assert self._binned is not None
        maps, entries = self._binned
        args = [entries, self.corners, self.boxes, maps, self._pairing, near]
        launch(pair_tiles_kernel, entries.shape[0], args, self.device, grain=256)

    def _sweep(self, near: Any) -> None:
        args = [self.boxes, self._order(), self._axis, self._pairing, near]
        launch(sweep_survivors_kernel, self.boxes.shape[0], args, self.device, grain=256)

    def _append_folds(self, queue: Any) -> None:
        assert self.folds is not None
        launch(append_keys_kernel, self.folds.shape[0], [self.folds, queue], self.device)

    def _order(self) -> wp.array:
        """Boxes sorted by their lower bounds along the axis."""
        count = self.boxes.shape[0]
        if self.device.is_cpu:
            lower = self.boxes.numpy()[:, 0, self._axis]
            return wp.array(np.argsort(lower, kind="stable").astype(np.int32), device="cpu")
        keys = wp.empty(2 * count, dtype=wp.float32, device=self.device)
        order = wp.empty(2 * count, dtype=wp.int32, device=self.device)
        launch(sweep_keys_kernel, count, [self.boxes, self._axis, keys, order], self.device)
        wp.utils.radix_sort_pairs(keys, order, count)
        return order[:count]


def _at_most(counts: dict[str, int], most: int) -> dict[str, int] | None:
    """The counts, or None where they exceed a limit."""
    return counts if max(counts.values()) <= most else None
