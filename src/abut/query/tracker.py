"""Tracker: the contacts of a sequence of frames, each found from where the last search stopped."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import warp as wp

from abut.bounds.relative import Relative
from abut.errors import OptionError
from abut.faces import posed_faces, posed_later
from abut.geometry.common_corners import INDEXED, STRANGERS, WELDED
from abut.hierarchy.owner import hierarchy_of
from abut.hierarchy.ranges import leaf_ranges
from abut.hierarchy.tree import Tree
from abut.mesh import Mesh, require_meshes
from abut.narrow.classify import classify_kernel
from abut.narrow.meet import meeting_segments
from abut.narrow.settle import settle_kernel
from abut.options import Method, TrackerMethod, chosen
from abut.pairs import KeyLayout, PairQueues, require_room, to_rows
from abut.query.collide import collide
from abut.query.self_collide import self_collide
from abut.results import Contacts
from abut.runtime import EVERYTHING, Kept, Task, launch, require_same_device, stage
from abut.search import Search
from abut.traversal.front import Front, advance_kernel
from abut.traversal.two_trees import relative_kernel

MOST_PAIRS = 1 << 25  # of a front; beyond that every frame is searched from the root
LEAST_ROOM = 1 << 16
CLIMB_EVERY = 8  # steps: to move a pair up costs more than to look at it where it is
STARTING_ROUNDS = 16  # of a new front, opening one pair at a time so that all threads have work


class Tracker:
    """The contacts of one mesh with itself, or of two meshes, frame after frame.

    Args:
        operands: A mesh, or a pair of meshes on one device; they are deformed by ``step``.
        method: ``bvh`` starts each search at the root, ``front`` where the last one stopped; all
            methods return the same rows.
        weld: Of one mesh, vertices at equal positions count as common (see self_collide).

    Raises:
        DeviceError: The meshes live on different devices.

    Guarantee:
        Exact and complete: the rows of ``self_collide`` or ``collide``.
    """

    def __init__(
        self, operands: Mesh | tuple[Mesh, Mesh], *, method: str = "bvh", weld: bool = True
    ) -> None:
        self.meshes = (operands,) if isinstance(operands, Mesh) else tuple(operands)
        if len(self.meshes) not in (1, 2):
            raise OptionError(f"a tracker takes one mesh or two, not {len(self.meshes)}.")
        require_meshes(**dict(zip("ab", self.meshes, strict=False)))
        self.device = require_same_device(*self.meshes)
        self.method = chosen(TrackerMethod, method, "method")
        self.weld = weld
        self.layout = KeyLayout.of(self.meshes[0].face_count, self.meshes[-1].face_count)
        require_room(self.layout, 1, self.meshes[0].face_count)
        self._search: FrontSearch | None = None

    @property
    def front_size(self) -> int:
        """Pairs of nodes in the front; 0 where there is none."""
        return 0 if self._search is None else self._search.size

    def step(self, *vertices: Any) -> Contacts:
        """Move the vertices of the operands (None leaves one as it is); the frame's contacts."""
        if len(vertices) > len(self.meshes):
            raise OptionError(f"{len(vertices)} arrays of vertices for {len(self.meshes)} meshes.")
        for mesh, moved in zip(self.meshes, vertices, strict=False):
            if moved is not None:
                mesh.deform(moved)
        keys = self._from_front() if self._has_front else None
        if keys is None:
            return self._from_root()
        pairs, _ = to_rows(keys, self.layout, False, self.device)
        sides = posed_later(self.meshes[0]), posed_later(self.meshes[-1])
        segments = partial(meeting_segments, *sides, pairs, None)
        return Contacts(pairs, None, pairs.shape[0] > 0, None, segments)

    @property
    def _has_front(self) -> bool:
        return self.method is TrackerMethod.FRONT and min(m.face_count for m in self.meshes) > 1

    def _from_root(self) -> Contacts:
        method = Method.BRUTE if self.method is TrackerMethod.BRUTE else Method.BVH
        if len(self.meshes) == 1:
            return self_collide(self.meshes[0], weld=self.weld, method=method)
        return collide(*self.meshes, method=method)

    def _from_front(self) -> Any:
        """Sorted keys of the pairs that meet; None where the front has grown too long."""
        trees = tuple(hierarchy_of(mesh) for mesh in self.meshes)
        if self._search is None or not self._search.fits(trees):
            relation = STRANGERS if len(trees) == 2 else WELDED if self.weld else INDEXED
            self._search = FrontSearch(self.meshes, trees, relation, self.layout)
        keys = self._search.run()
        if keys is None:
            self._search = None
        return keys


class FrontSearch:
    """A front through the traversal of certain trees, and the launches that move it."""

    def __init__(
        self,
        meshes: tuple[Mesh, ...],
        trees: tuple[Tree, ...],
        relation: int,
        layout: KeyLayout,
    ) -> None:
        self.meshes, self.trees, self.relation, self.layout = meshes, trees, relation, layout
        self.device = meshes[0].device
        self.ranges = [leaf_ranges(tree) for tree in trees]
        self.frames = wp.zeros(1, dtype=Relative, device=self.device)
        names = ("even", "odd", "candidates", "hits", "undecided")
        self.queues = PairQueues(self.device, **dict.fromkeys(names, LEAST_ROOM))
        self.steps = 0
        self.size = 1
        self._names = ("even", "odd")  # where the front is, and where it goes next
        self._recorded = Kept()
        roots = [2 * tree.face_count - 2 for tree in (trees[0], trees[-1])]
        self.queues["even"].keys.fill_((roots[0] << 32) | roots[1])
        self.queues["even"].count.fill_(1)

    def fits(self, trees: tuple[Tree, ...]) -> bool:
        """Whether the front is one of these very trees, refitted as they may be."""
        return all(mine is given for mine, given in zip(self.trees, trees, strict=True))

    def run(self) -> Any:
        """Move the front to the boxes as they are now and test the leaves that overlap."""
        if self.steps == 0:
            for _ in range(STARTING_ROUNDS):
                if self._moved(1) is None:
                    return None
            self._order()
        counts = self._moved(EVERYTHING)
        self.steps += 1
        if counts is None:
            return None
        with stage("sort", self.device):
            return self.queues.sorted_keys("hits", counts["hits"], self.layout.width)

    def _order(self) -> None:
        """Bring a new front, which grew breadth first, into the order of leaves, for the CPU."""
        if self.device.is_cpu:
            self.queues[self._names[0]].keys.numpy()[: self.size].sort()

    def _moved(self, most: int) -> dict[str, int] | None:
        """One round; None when the front has grown too long."""
        here, there = self._names
        while True:
            for name in ("candidates", "hits", "undecided", there):
                self.queues[name].count.zero_()
            self._launch(most)
            counts = self.queues.read()  # the one wait for the device
            if counts[there] > MOST_PAIRS:
                return None
            short = [n for n in counts if counts[n] > self.queues[n].keys.shape[0]]
            if not short:
                break
            self.queues.make_room({n: counts[n] + counts[n] // 4 for n in short})
        self._names = there, here
        self.size = counts[there]
        return counts

    def _launch(self, most: int) -> None:
        if self.device.is_cuda:
            points = [mesh.points for mesh in self.meshes]
            about = (self.queues.generation, self._names[0] == "odd", most, self._climbs, *points)
            for name, task in self._recorded.get(about, lambda: list(self._tasks(most))):
                with stage(name, self.device):
                    task.run()
            return
        for name, kernel, queue, args, grain in self._stages(most):
            with stage(name, self.device):
                count = 1
                if queue:
                    room = self.queues[queue].keys.shape[0]
                    count = min(self.queues.read()[queue], room)
                launch(kernel, count, args, self.device, grain=grain)

    def _tasks(self, most: int) -> Iterator[tuple[str, Task]]:
        for name, kernel, queue, args, _ in self._stages(most):
            yield name, Task(kernel, EVERYTHING if queue else 1, args, self.device)

    @property
    def _climbs(self) -> bool:
        return self.steps % CLIMB_EVERY == CLIMB_EVERY - 1

    def _stages(self, most: int) -> Iterator[tuple[str, wp.Kernel, str, list[Any], int]]:
        """(name, kernel, queue it runs over, arguments, grain) of each launch."""
        here, there = self._names
        front = self._front()
        sides = [posed_faces(mesh.points, mesh.faces) for mesh in self.meshes]
        if len(sides) == 2:
            args = [*sides, front.tree_a, front.tree_b, self.frames]
            yield "frames", relative_kernel, "", args, 1
        found = self.queues["candidates"]
        args = [front, self.queues[here], most, self._climbs, self.layout.bits]
        yield "front", advance_kernel, here, [*args, self.queues[there], found], 1024
        if most == EVERYTHING:
            search = self._test(sides)
            yield "classify", classify_kernel, "candidates", [search, found], 1024
            yield "settle", settle_kernel, "undecided", [search], 64

    def _front(self) -> Any:
        front = Front()
        front.tree_a, front.tree_b = self.trees[0].view(), self.trees[-1].view()
        front.ranges_a, front.ranges_b = self.ranges[0], self.ranges[-1]
        front.frames = self.frames
        front.within = len(self.trees) == 1
        return front

    def _test(self, sides: list[Any]) -> Any:
        search = Search()
        search.a, search.b = sides[0], sides[-1]
        search.relation, search.bits = self.relation, self.layout.bits
        search.hits, search.undecided = self.queues["hits"], self.queues["undecided"]
        return search
