"""ContactPlan: the stages of a contact query, prepared once for two operands and run many times."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from abut.bounds.relative import Relative
from abut.hierarchy.dops import Dops
from abut.hierarchy.tree import Tree
from abut.mesh import Mesh
from abut.narrow.classify import brute_kernel, classify_kernel
from abut.narrow.settle import settle_kernel
from abut.pairs import KeyLayout, PairQueues
from abut.runtime import EVERYTHING, Kept, Task, launch, stage
from abut.search import Search
from abut.traversal.dop_frames import DopFrames, dop_frames
from abut.traversal.self_tree import self_list_kernel, self_rest_kernel, self_test_kernel
from abut.traversal.two_trees import descend_kernel, first_kernel, list_kernel, relative_kernel

NO_KEY = 2**63 - 1
ITEMS_FOR_FIRST = 256  # subtrees of a for all poses together: part of the answer, so no tuning
LEAVES_PER_ITEM = 256  # of subtrees of a, where every pair is wanted
MOST_LISTED = 1 << 24  # leaves of a in all poses, on CUDA; beyond that walks from roots are fewer
LEAST_ROOM = 1 << 14
LONG_WALK = 96  # visits of one thread on CUDA, before others share the rest

_shared = threading.local()


def shared_queues(device: wp.Device, room: int) -> PairQueues:
    """The queues of this thread on a device; they only ever grow."""
    held = _shared.__dict__.setdefault("queues", {})
    if device.alias not in held:
        sizes = {"hits": room, "undecided": room}
        if device.is_cuda:
            sizes |= {"candidates": 8 * room, "rest": room, "last": room}
        held[device.alias] = PairQueues(device, **sizes)
    held[device.alias].make_room({"hits": room, "undecided": room})
    return held[device.alias]


def plans_of(a: Mesh, b: Mesh) -> Kept:
    """This thread's plans for two meshes, for as long as both live."""
    by_a = _shared.__dict__.setdefault("plans", WeakKeyDictionary())
    by_b = by_a.setdefault(a, WeakKeyDictionary())
    return by_b.setdefault(b, Kept())


@dataclass
class ContactPlan:
    """Operands of a contact query and the launches that answer it.

    Attributes:
        a, b: Posed faces.
        trees: The operands' trees; one for a mesh against itself, none for brute force.
        relation: What the operands share (see common_corners).
        first: Look for one pair per pose only.
        oriented: Use the trees' oriented boxes.
        dops: DOPs of the trees, or none.
        axes: Axes along which DOPs are tested, see axis_choices.
        boxless: DOPs alone decide, axis-aligned boxes do not.
    """

    device: wp.Device
    a: Any
    b: Any
    trees: tuple[Tree, ...]
    relation: int
    layout: KeyLayout
    pose_count: int
    first: bool = False
    oriented: bool = False
    dops: tuple[Dops, ...] = ()
    axes: np.ndarray | None = None
    boxless: bool = False
    _generation: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        """Keep at hand what every run asks for."""
        self._room = max(LEAST_ROOM, self.a.faces.shape[0] + self.b.faces.shape[0])
        self._poses = [side.poses for side in (self.a, self.b)]
        self._pose_views = [
            p.numpy() if p is not None and p.device.is_cpu else None for p in self._poses
        ]

    def move(self, *poses: np.ndarray | None) -> None:
        """Take other poses of a and b, as many as before."""
        for new, held, view in zip(poses, self._poses, self._pose_views, strict=True):
            if new is None:
                continue
            if view is None:
                held.assign(new)
            else:
                view[:] = new

    def run(self) -> Any:
        """Sorted keys of the pairs that meet; with ``first``, of one pair per pose, on the host."""
        queues = shared_queues(self.device, self._room)
        while True:
            if self._generation != queues.generation:
                self._record(queues)
            queues.clear()
            if self.first:
                self._forget_best()
            for name, task in self._tasks:
                with stage(name, self.device):
                    task.run()
            if self.device.is_cpu:
                with stage("settle", self.device):
                    self._settle(queues)
            elif self.first:
                wp.copy(self._best_host, self._best)
            counts = queues.read()  # the one wait for the device
            if not queues.make_room(counts):
                break
        with stage("sort", self.device):
            if self.first:
                return self._one_each(queues, counts["hits"])
            return self._sorted(queues, counts["hits"])

    def _sorted(self, queues: PairQueues, count: int) -> Any:
        width = self.layout.width + (self.pose_count - 1).bit_length()
        return queues.sorted_keys("hits", count, width)

    def _forget_best(self) -> None:
        if self.device.is_cpu:
            self._best_view[:] = NO_KEY
        else:
            self._best.fill_(NO_KEY)

    def _record(self, queues: PairQueues) -> None:
        """Prepare the launches for the queues as they are now."""
        search = Search()
        search.a, search.b, search.relation = self.a, self.b, self.relation
        search.bits = self.layout.bits
        search.hits, search.undecided = queues["hits"], queues["undecided"]
        if self.first:
            self._best = wp.empty(self.pose_count, dtype=wp.int64, device=self.device)
            search.best = self._best
            self._best_host = self._best
            if self.device.is_cuda:
                self._best_host = wp.empty_like(self._best, device="cpu", pinned=True)
            self._best_view = self._best_host.numpy()
        self._search = search
        self._tasks = list(self._stages(search, queues))
        if self.device.is_cuda:
            self._tasks.append(("settle", Task(settle_kernel, EVERYTHING, [search], self.device)))
        self._generation = queues.generation

    def _stages(self, search: Any, queues: PairQueues) -> Iterable[tuple[str, Task]]:
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
            yield "search", Task(self_test_kernel, count, [search, tree], self.device, grain=512)
            return
        found, rest, last = queues["candidates"], queues["rest"], queues["last"]
        args = [tree, search.bits, LONG_WALK, found, rest]
        yield "search", Task(self_list_kernel, count, args, self.device)
        args = [tree, search.bits, LONG_WALK, rest, found, last]
        yield "search", Task(self_rest_kernel, EVERYTHING, args, self.device)
        args = [tree, search.bits, EVERYTHING, last, found, rest]
        yield "search", Task(self_rest_kernel, EVERYTHING, args, self.device)
        yield "classify", self._classify(search, queues)

    def _pair_stages(self, search: Any, queues: PairQueues) -> Iterable[tuple[str, Task]]:
        trees = [tree.view(self.oriented) for tree in self.trees]
        frames = wp.empty(self.pose_count, dtype=Relative, device=self.device)
        args = [self.a, self.b, *trees, int(self.boxless), frames]
        yield "frames", Task(relative_kernel, self.pose_count, args, self.device)
        dops = DopFrames()
        if self.dops:
            sides = (self.a, self.b, *self.dops)
            dops, axes = dop_frames(*sides, self.axes, self.pose_count)
            yield "frames", axes
        leaves = self.pose_count * self.a.faces.shape[0]
        if self.device.is_cuda and leaves <= MOST_LISTED and not self.first:
            args = [*trees, frames, dops, self.a.faces.shape[0], search.bits, queues["candidates"]]
            yield "search", Task(list_kernel, leaves, args, self.device)
            yield "classify", self._classify(search, queues)
            return
        items = ITEMS_FOR_FIRST
        if not self.first:
            items = 1 << 16 if self.device.is_cuda else min(leaves // LEAVES_PER_ITEM, 256)
        depth = max(items // self.pose_count, 1).bit_length() - 1
        args = [search, *trees, frames, dops, depth]
        kernel = first_kernel if self.first else descend_kernel
        grain = 2 * ITEMS_FOR_FIRST if self.first else max(items // 16, 1)
        yield "search", Task(kernel, self.pose_count << depth, args, self.device, grain=grain)

    def _classify(self, search: Any, queues: PairQueues) -> Task:
        return Task(classify_kernel, EVERYTHING, [search, queues["candidates"]], self.device)

    def _settle(self, queues: PairQueues) -> None:
        """Decide the undecided pairs exactly, if there are any."""
        count = min(queues.read()["undecided"], queues["undecided"].keys.shape[0])
        if count:
            launch(settle_kernel, count, [self._search], self.device, grain=64)

    def _one_each(self, queues: PairQueues, settled_count: int) -> Any:
        """One key per pose: of the pairs the filter was sure of, else the lowest settled one."""
        best = self._best_view
        width = self.layout.width
        found = np.flatnonzero(best != NO_KEY)
        keys = (found << width) | (best[found] & ((1 << width) - 1))
        if settled_count and len(found) < self.pose_count:
            settled = lowest_of_each_pose(self._sorted(queues, settled_count), self.layout)
            settled = settled[best[settled >> width] == NO_KEY]
            keys = np.sort(np.concatenate([keys, settled]))
        return keys


def lowest_of_each_pose(keys: Any, layout: KeyLayout) -> np.ndarray:
    """The first key of every pose, of sorted keys."""
    host = keys if isinstance(keys, np.ndarray) else keys.numpy()
    return host[np.flatnonzero(np.diff(host >> layout.width, prepend=-1))]
