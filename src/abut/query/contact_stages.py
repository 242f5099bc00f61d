"""ContactStages: how candidate pairs of a contact query are found, launch by launch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import Bvh
from abut.bvh.leaf_clusters import leaf_clusters_of
from abut.bvh.leaf_corners import corner_rows, corners_kernel
from abut.bvh.node_kdops import Dops
from abut.core.pair_queue import KeyLayout, PairQueues
from abut.core.runtime import UNKNOWN_COUNT, Task
from abut.narrow.filter import brute_kernel, classify_kernel
from abut.narrow.plane_filter import plane_filter_kernel
from abut.operands.contact_operands import Search
from abut.options import Bound
from abut.query.shared import LEAVES_PER_ITEM, MOST_LISTED, Operands
from abut.traversal.dop_frames import dop_frames
from abut.traversal.dop_list import listing_of
from abut.traversal.dop_overlap import NARROW_DOPS, DopFrames
from abut.traversal.first_of_all import path_kernel, pick_kernel
from abut.traversal.groups import groups_of, self_test_kernel
from abut.traversal.self_tree import cluster_stages, self_open_kernel
from abut.traversal.two_trees import (
    boundless_kernel,
    descend_walk,
    first_walk,
    list_walk,
    relative_kernel,
)

POSES_PER_SLICE = 512  # where one pair is wanted
MOST_PICKED = 64  # poses of which a first pair is picked from all pairs, on CUDA


@dataclass
class ContactStages(Operands):
    """Operands of a contact query and the ways to search them.

    Attributes:
        a, b: Posed faces.
        trees: The operands' trees; one for a mesh against itself, none for brute force.
        relation: What the operands share (see common_corners).
        first: Look for one pair per pose only.
        bound: Bounding volume of the trees to use.
        dops: DOPs of the trees, or none.
        axes: Axes along which DOPs are tested, see axis_choices.
        boxless: DOPs alone decide, axis-aligned boxes do not.
    """

    device: wp.Device
    a: Any
    b: Any
    trees: tuple[Bvh, ...]
    sharing: int
    layout: KeyLayout
    pose_count: int
    first: bool = False
    bound: Bound = Bound.AABB
    dops: tuple[Dops, ...] = ()
    axes: np.ndarray | None = None
    boxless: bool = False
    _descends: bool = field(default=False, init=False)  # paths were too long to pick by
    _best: wp.array = field(init=False)  # the key of each pose, where one is wanted
    _lowest: wp.array = field(init=False)  # the path to it, which the first has lowest

    def _stages(self, search: Any, queues: PairQueues) -> Iterable[tuple[str, Task]]:
        """Names of stages and their launches, in order."""
        self._finer = self.bound is not Bound.AABB
        self._frames: dict[tuple[int, int], wp.array] = {}
        self._dops: dict[tuple[int, int], Any] = {}
        if not self.trees:
            count = self.pose_count * self.a.faces.shape[0]
            yield "search", Task(brute_kernel, count, [search], self.device, grain=1)
        elif len(self.trees) == 1:
            yield from self._self_stages(search, queues)
        else:
            yield from self._pair_stages(search, queues)

    def _self_stages(self, search: Any, queues: PairQueues) -> Iterable[tuple[str, Task]]:
        tree = self.trees[0].view()
        count = self.a.faces.shape[0]
        if self.device.is_cpu:
            count = groups_of(count)
            yield "search", Task(self_test_kernel, count, [search, tree], self.device, grain=128)
            return
        yield from self._twig_stages(search, queues)

    def _twig_stages(self, search: Any, queues: PairQueues) -> Iterable[tuple[str, Task]]:
        """List pairs of twigs, open them, and let most pairs of leaves fall through a sieve."""
        tree = self.trees[0].view()
        for kernel, count, args in cluster_stages(tree, leaf_clusters_of(self.trees[0]), queues):
            yield "search", Task(kernel, count, args, self.device)
        leaves, rows = queues["leaves"], corner_rows(self.trees[0])
        args = [tree, search.bits, True, queues["twigs"], leaves]
        yield "search", Task(self_open_kernel, UNKNOWN_COUNT, args, self.device)
        args = [self.a.points, self.a.faces, tree.origin, tree.nodes, tree.leaf_slots, rows]
        yield "sift", Task(corners_kernel, self.a.faces.shape[0], args, self.device)
        args = [tree, rows, search.bits, leaves, queues["candidates"]]
        yield "sift", Task(plane_filter_kernel, UNKNOWN_COUNT, args, self.device)
        yield "classify", self._classify(search, queues)

    def _pair_stages(self, search: Any, queues: PairQueues) -> Iterable[tuple[str, Task]]:
        leaves = self.pose_count * max(self.a.faces.shape[0], self.b.faces.shape[0])
        lists = self.device.is_cuda and leaves <= MOST_LISTED
        if lists and not self.first:
            yield from self._list_stages(search, queues)
        elif lists and self.pose_count <= MOST_PICKED and not self._descends:
            yield from self._pick_stages(search, queues)
        else:
            yield from self._descent_stages(search)

    def _views(self, a: int, b: int) -> list[Any]:
        """Two of the trees, as kernels take them."""
        return [self.trees[side].view(self.bound) for side in (a, b)]

    def _frame_stage(self, a: int, b: int) -> Iterable[tuple[str, Task]]:
        """Find out how b's frame sits in a's, unless an earlier stage has."""
        if (a, b) not in self._frames:
            self._frames[a, b] = wp.empty(self.pose_count, dtype=RelativeFrame, device=self.device)
            sides = (self.a, self.b)
            kernel, args = relative_kernel, [sides[a], sides[b], *self._views(a, b)]
            if self.boxless:
                kernel, args = boundless_kernel, []
            args = [*args, self._frames[a, b]]
            yield "frames", Task(kernel, self.pose_count, args, self.device)
            self._dops[a, b] = DopFrames()
            if self.dops:
                dops = self.dops[a], self.dops[b]
                operands = (sides[a], sides[b], *dops, self.axes, self.pose_count)
                self._dops[a, b], task = dop_frames(*operands)
                yield "frames", task

    def _descent_stages(self, search: Any) -> Iterable[tuple[str, Task]]:
        yield from self._frame_stage(0, 1)
        count, grain = self.pose_count, POSES_PER_SLICE
        args = [search, *self._views(0, 1), self._frames[0, 1], self._dops[0, 1]]
        kernel = first_walk(self._finer)
        if not self.first:
            leaves = count * self.a.faces.shape[0]
            items = 1 << 16 if self.device.is_cuda else min(leaves // LEAVES_PER_ITEM, 256)
            depth = max(items // count, 1).bit_length() - 1
            kernel, count, grain = descend_walk(self._finer), count << depth, max(items // 16, 1)
            args.append(depth)
        yield "search", Task(kernel, count, args, self.device, grain=grain)

    def _list_stages(self, search: Any, queues: PairQueues) -> Iterable[tuple[str, Task]]:
        """List what overlaps, from the leaves of the larger mesh; then test."""
        face_counts = self.a.faces.shape[0], self.b.faces.shape[0]
        swapped = face_counts[1] > face_counts[0]
        sides = (1, 0) if swapped else (0, 1)
        yield from self._frame_stage(*sides)
        leaves = max(face_counts)
        kernel, frames = list_walk(self._finer), [self._frames[sides], self._dops[sides]]
        if self.boxless and self._dops[sides].kind == NARROW_DOPS:
            kernel, frames = listing_of(self.a, self.b, self._dops[sides])
        args = [*self._views(*sides), *frames]
        args += [leaves, search.bits, swapped, queues["candidates"]]
        yield "search", Task(kernel, self.pose_count * leaves, args, self.device)
        yield "classify", self._classify(search, queues)

    def _pick_stages(self, search: Any, queues: PairQueues) -> Iterable[tuple[str, Task]]:
        """List all pairs that meet for certain, and pick those that a descent finds first."""
        certain = queues["certain"]
        listing = Search()
        for name in ("a", "b", "relation", "bits", "undecided"):
            setattr(listing, name, getattr(search, name))
        listing.hits = certain
        yield from self._list_stages(listing, queues)
        yield from self._frame_stage(0, 1)
        positions = [tree.positions for tree in self.trees]
        paths = wp.empty(certain.keys.shape[0], dtype=wp.int64, device=self.device)
        args = [*self._views(0, 1), *positions, self._frames[0, 1], search.bits]
        args += [certain, paths, self._lowest]
        yield "pick", Task(path_kernel, UNKNOWN_COUNT, args, self.device)
        args = [search.bits, certain, paths, self._lowest, self._best]
        yield "pick", Task(pick_kernel, UNKNOWN_COUNT, args, self.device)

    def _classify(self, search: Any, queues: PairQueues) -> Task:
        return Task(classify_kernel, UNKNOWN_COUNT, [search, queues["candidates"]], self.device)
