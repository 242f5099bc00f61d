"""ContactPlan: the stages of a contact query, prepared once for two operands and run many times."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from abut.bounds.relative import Relative
from abut.hierarchy.corners import corner_rows, corners_kernel
from abut.hierarchy.dops import Dops
from abut.hierarchy.tree import Tree
from abut.hierarchy.twigs import twigs_of
from abut.mesh import Mesh
from abut.narrow.classify import brute_kernel, classify_kernel
from abut.narrow.settle import settle_kernel
from abut.narrow.sift import sift_kernel
from abut.options import Bound
from abut.ordering import MOST_ROWS, FewOrder, RowOrder
from abut.pairs import KeyLayout, PairQueues, to_rows, unpack_queue_kernel
from abut.runtime import EVERYTHING, Kept, Task, launch, stage
from abut.search import Search
from abut.traversal.dop_frames import NARROW_DOPS, DopFrames, dop_frames
from abut.traversal.dop_list import listing_of
from abut.traversal.first_of_all import TOO_LONG, path_kernel, pick_kernel
from abut.traversal.groups import groups_of, self_test_kernel
from abut.traversal.self_tree import SHARES, self_open_kernel, twig_walks
from abut.traversal.two_trees import (
    NO_KEY,
    boundless_kernel,
    forget_kernel,
    relative_kernel,
    walks,
)

POSES_PER_SLICE = 512  # where one pair is wanted
LEAVES_PER_ITEM = 256  # of subtrees of a, where every pair is wanted
MOST_LISTED = 1 << 24  # leaves in all poses, on CUDA; beyond that walks from roots are fewer
MOST_PICKED = 64  # poses of which a first pair is picked from all pairs, on CUDA
LEAST_ROOM = 1 << 14
LEAST_EXPECTED = 256  # rows
UNPACKING_THREADS = 1 << 16
SETTLING_THREADS = 1 << 15  # on CUDA: they take so much room that no more run at once

_shared = threading.local()


def shared_queues(device: wp.Device, room: int) -> PairQueues:
    """The queues of this thread on a device; they only ever grow."""
    held = _shared.__dict__.setdefault("queues", {})
    if device.alias not in held:
        sizes = {"hits": room, "undecided": room, "near": room}
        if device.is_cuda:
            sizes |= {"candidates": 8 * room, **dict.fromkeys(SHARES, room)}
            sizes |= {"twigs": 4 * room, "leaves": 8 * room, "certain": room}
        held[device.alias] = PairQueues(device, **sizes)
    held[device.alias].make_room({"hits": room, "undecided": room})
    return held[device.alias]


def plans_of(a: Mesh, b: Mesh) -> Kept:
    """This thread's plans for two meshes, for as long as both live."""
    by_a = _shared.__dict__.get("plans")
    if by_a is None:
        by_a = _shared.plans = WeakKeyDictionary()
    by_b = by_a.get(a)
    if by_b is None:
        by_b = by_a[a] = WeakKeyDictionary()
    plans = by_b.get(b)
    if plans is None:
        plans = by_b[b] = Kept()
    return plans


class Operands:
    """Two posed operands of a plan, whose poses may change between runs."""

    a: Any
    b: Any

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


@dataclass
class ContactPlan(Operands):
    """Operands of a contact query and the launches that answer it.

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
    trees: tuple[Tree, ...]
    relation: int
    layout: KeyLayout
    pose_count: int
    first: bool = False
    bound: Bound = Bound.AABB
    dops: tuple[Dops, ...] = ()
    axes: np.ndarray | None = None
    boxless: bool = False
    _generation: int = field(default=-1, init=False)
    _descends: bool = field(default=False, init=False)  # paths were too long to pick by
    _expected: int = field(default=0, init=False)  # rows, by the last answer

    def run(self) -> Any:
        """Sorted keys of the pairs that meet; with ``first``, of one pair per pose, on the host."""
        counts = self._counts()
        assert counts is not None
        queues = shared_queues(self.device, self._room)
        with stage("sort", self.device):
            if self.first:
                return self._one_each(queues, counts["hits"])
            return self._sorted(queues, counts["hits"])

    def pairs(self, sound: Callable[[], bool] | None = None) -> wp.array | None:
        """(n, 2) sorted pairs that meet, of a query without poses.

        ``sound`` is asked while the device is busy, before anything grows: if it says no, the
        answer is None. On CUDA rows are made before their number is known, as many as last time
        and some more, so that nothing is left to do then.
        """
        rows = None
        if self.device.is_cuda and self._expected:
            rows = wp.empty((self._expected, 2), dtype=wp.int32, device=self.device)
        counts = self._counts(rows, sound)
        if counts is None:
            return None
        count = counts["hits"]
        self._expected = count + count // 4 + LEAST_EXPECTED
        if rows is not None and self._in_order(count) and count <= rows.shape[0]:
            return rows[:count]
        keys = self._sorted(shared_queues(self.device, self._room), count)
        return to_rows(keys, self.layout, False, self.device)[0]

    def _counts(
        self, rows: wp.array | None = None, sound: Callable[[], bool] | None = None
    ) -> dict[str, int] | None:
        """Search; what the queues hold then. None if it was not ``sound``."""
        queues = shared_queues(self.device, self._room)
        while True:
            if self._generation != queues.generation:
                self._record(queues)
            self._forget(queues)
            for name, task in self._tasks:
                with stage(name, self.device):
                    task.run()
            if self._orders:
                few, many = self._orders
                self._order = few if rows is not None and rows.shape[0] < few.most else many
                with stage("sort", self.device):
                    self._order.run()
            if self.device.is_cpu:
                with stage("settle", self.device):
                    self._settle(queues)
            elif self.first:
                wp.copy(self._best_host, self._best)
            if rows is not None:
                self._unpacking.give(2, rows)
                self._unpacking.run()
            if sound is not None and not sound():
                return None
            counts = queues.read()  # the one wait for the device
            if queues.make_room(counts):
                continue
            if not (self._picks and (self._best_view == TOO_LONG).any()):
                return counts
            self._descends, self._generation = True, -1

    @property
    def _picks(self) -> bool:
        return self.first and self.device.is_cuda

    def _sorted(self, queues: PairQueues, count: int) -> Any:
        if self._in_order(count):
            return queues["hits"].keys[:count]
        width = self.layout.width + (self.pose_count - 1).bit_length()
        return queues.sorted_keys("hits", count, width)

    def _in_order(self, count: int) -> bool:
        """Whether so many hits were sorted where they are."""
        return bool(self._orders) and count <= self._order.most

    def _forget(self, queues: PairQueues) -> None:
        """Empty the queues, in one launch on CUDA and by hand on the CPU."""
        if self.first and self.device.is_cuda:
            self._forgetting.run()
            return
        queues.clear()
        if self.first:
            self._best_view[:] = NO_KEY

    def _record(self, queues: PairQueues) -> None:
        """Prepare the launches for the queues as they are now."""
        search = Search()
        search.a, search.b, search.relation = self.a, self.b, self.relation
        search.bits = self.layout.bits
        search.hits, search.undecided = queues["hits"], queues["undecided"]
        if self.first:
            search.best = self._room_for_best(queues)
        self._search = search
        self._walks = walks(self.bound is not Bound.AABB)
        self._frames: dict[tuple[int, int], wp.array] = {}
        self._dops: dict[tuple[int, int], Any] = {}
        self._tasks = list(self._stages(search, queues))
        if self.device.is_cuda:
            self._tasks.append(("settle", self._settling(search)))
            args = [queues["hits"], self.layout.bits, wp.empty((0, 2), wp.int32, self.device)]
            self._unpacking = Task(unpack_queue_kernel, UNPACKING_THREADS, args, self.device)
        self._orders = self._sorting(queues)
        self._generation = queues.generation

    def _sorting(self, queues: PairQueues) -> tuple[FewOrder, RowOrder] | None:
        """Ways to sort the hits without waiting for the device: where they are few, and many."""
        row_count = self.pose_count << self.layout.bits_a
        if self.device.is_cpu or self.first or row_count > MOST_ROWS:
            return None
        hits = queues["hits"]
        many = RowOrder(hits, self.layout.bits_b, row_count, self.device)
        return FewOrder(hits, self.device), many

    def _room_for_best(self, queues: PairQueues) -> wp.array:
        """The best key of each pose, beside it the lowest path, and a copy for the host."""
        count = self.pose_count
        bests = wp.empty(2 * count, dtype=wp.int64, device=self.device)
        self._best, self._lowest = bests[:count], bests[count:]
        self._forgetting = Task(forget_kernel, 2 * count, [queues.counts, bests], self.device)
        self._best_host = self._best
        if self.device.is_cuda:
            self._best_host = wp.empty_like(self._best, device="cpu", pinned=True)
        self._best_view = self._best_host.numpy()
        return self._best

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
            count = groups_of(count)
            yield "search", Task(self_test_kernel, count, [search, tree], self.device, grain=128)
            return
        yield from self._twig_stages(search, queues)

    def _twig_stages(self, search: Any, queues: PairQueues) -> Iterable[tuple[str, Task]]:
        """List pairs of twigs, open them, and let most pairs of leaves fall through a sieve."""
        tree = self.trees[0].view()
        for kernel, count, args in twig_walks(tree, twigs_of(self.trees[0]), queues):
            yield "search", Task(kernel, count, args, self.device)
        leaves, rows = queues["leaves"], corner_rows(self.trees[0])
        args = [tree, search.bits, True, queues["twigs"], leaves]
        yield "search", Task(self_open_kernel, EVERYTHING, args, self.device)
        args = [self.a.points, self.a.faces, tree.origin, tree.nodes, tree.leaf_slots, rows]
        yield "sift", Task(corners_kernel, self.a.faces.shape[0], args, self.device)
        args = [tree, rows, search.bits, leaves, queues["candidates"]]
        yield "sift", Task(sift_kernel, EVERYTHING, args, self.device)
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
            self._frames[a, b] = wp.empty(self.pose_count, dtype=Relative, device=self.device)
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
        kernel = self._walks.first
        if not self.first:
            leaves = count * self.a.faces.shape[0]
            items = 1 << 16 if self.device.is_cuda else min(leaves // LEAVES_PER_ITEM, 256)
            depth = max(items // count, 1).bit_length() - 1
            kernel, count, grain = self._walks.descend, count << depth, max(items // 16, 1)
            args.append(depth)
        yield "search", Task(kernel, count, args, self.device, grain=grain)

    def _list_stages(self, search: Any, queues: PairQueues) -> Iterable[tuple[str, Task]]:
        """List what overlaps, from the leaves of the larger mesh; then test."""
        face_counts = self.a.faces.shape[0], self.b.faces.shape[0]
        swapped = face_counts[1] > face_counts[0]
        sides = (1, 0) if swapped else (0, 1)
        yield from self._frame_stage(*sides)
        leaves = max(face_counts)
        kernel, frames = self._walks.list, [self._frames[sides], self._dops[sides]]
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
        yield "pick", Task(path_kernel, EVERYTHING, args, self.device)
        args = [search.bits, certain, paths, self._lowest, self._best]
        yield "pick", Task(pick_kernel, EVERYTHING, args, self.device)

    def _classify(self, search: Any, queues: PairQueues) -> Task:
        return Task(classify_kernel, EVERYTHING, [search, queues["candidates"]], self.device)

    def _settling(self, search: Any) -> Task:
        return Task(settle_kernel, EVERYTHING, [search], self.device, threads=SETTLING_THREADS)

    def _settle(self, queues: PairQueues) -> None:
        """Decide the undecided pairs exactly, if there are any."""
        count = min(queues.read()["undecided"], queues["undecided"].keys.shape[0])
        if count:
            launch(settle_kernel, count, [self._search], self.device, grain=64)

    def _one_each(self, queues: PairQueues, settled_count: int) -> Any:
        """One key per pose: of the pairs the filter was sure of, else the lowest settled one."""
        best = self._best_view
        width = self.layout.width
        keys = best[best != NO_KEY]
        if settled_count and len(keys) < self.pose_count:
            settled = lowest_of_each_pose(self._sorted(queues, settled_count), self.layout)
            settled = settled[best[settled >> width] == NO_KEY]
            keys = np.sort(np.concatenate([keys, settled]))
        return keys


def lowest_of_each_pose(keys: Any, layout: KeyLayout) -> np.ndarray:
    """The first key of every pose, of sorted keys."""
    host = keys if isinstance(keys, np.ndarray) else keys.numpy()
    return host[np.flatnonzero(np.diff(host >> layout.width, prepend=-1))]
