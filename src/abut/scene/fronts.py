"""BVTT fronts of a scene's object pairs, kept from query to query, and the search from them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.batched import SliceBatch
from abut.bvh.leaf_ranges import write_batched_leaf_ranges
from abut.core.cache import RecentCache
from abut.core.launch import UNKNOWN_COUNT
from abut.core.pair_queue import JoinedQueues, KeyLayout
from abut.core.plan import Counts, Plan, QueueLaunch, Stage
from abut.operands.posed_pairs import ScenePairs
from abut.query.bvtt_front import GRAIN, MOST_PAIRS, BvttFront
from abut.query.contact_stages import ContactStages, Strategy
from abut.scene.contact_search import ContactSearch, FoundContacts
from abut.scene.objects import ObjectTable
from abut.scene.shape_pool import ShapePool
from abut.traversal.front.advance import WIDE, advance_kernel_for
from abut.traversal.front.matching import (
    REBUILT,
    REFITTED,
    UNCHANGED,
    keep_contacts_kernel,
    match_rows_kernel,
)
from abut.traversal.front.traversal_tree import FrontRows

LEAST_ROOM = 1 << 14
PAUSE = 64  # queries without fronts, once they have grown too long
ROUNDS, FEW_ROUNDS = 8, 3  # launches that open the pairs of new fronts, so that threads share them
UNOPENED = tuple(f"unopened_{k}" for k in range(ROUNDS))
QUEUES = ("even_objects", "odd_objects", "contacts", *UNOPENED, "faces")
KEY_BITS = 62
THREADS, FEW_THREADS = 1 << 16, 1 << 14  # of the front and of rounds, on CUDA


class SceneFronts(BvttFront):
    """The fronts of all object pairs, side by side.

    A pair keeps its front while both objects are listed and their hierarchies keep their topology;
    other pairs start at the roots. Beside the front lie the object pairs it belongs to, in the
    order of their ranks, and the contacts of the last query.

    Attributes:
        pause: Queries to come without fronts.
        poses: Of objects in the last query.
        changes: (n,) int32, on the device: how the hierarchy of each object has changed since.
        ranges: First and last leaf below the slots of all hierarchies, on the device.
    """

    def __init__(self, device: wp.Device, most_pairs: int = MOST_PAIRS) -> None:
        self.device, self.most_pairs, self.pause = device, most_pairs, 0
        self.forget()

    def forget(self) -> None:
        """Start at the roots."""
        super().__init__(self.device, KeyLayout(0, 0), LEAST_ROOM, self.most_pairs, QUEUES)
        self.changes = wp.zeros(0, dtype=wp.int32, device=self.device)
        self.poses = wp.zeros(0, dtype=wp.mat44d, device=self.device)
        self.ranges = wp.zeros(0, dtype=wp.vec2i, device=self.device)
        self._ranks = wp.empty(0, dtype=wp.int32, device=self.device)
        self._shapes = np.empty((0, 3), np.int64)  # of objects in the last query
        self._shapes_now = self._shapes
        self._build_counts = np.empty(0, np.int64)  # of shapes when their ranges were written
        self._seen = (-1, -1, -1)
        self._any_changed = self._any_rebuilt = True

    def give_up(self) -> None:
        """Delete the fronts, and make none for some queries."""
        self.forget()
        self.pause = PAUSE

    def follow(self, objects: ObjectTable) -> bool:
        """Take over which hierarchies there are now; False while queries go without fronts."""
        pool = objects.pool
        self.pause = max(self.pause - 1, 0)
        slots = 2 * pool.arrays.most_faces
        layout = KeyLayout.of(slots, slots)
        if layout != self.layout:
            self.forget()
            self.layout = layout
        seen = (
            int(pool.trees.build_counts.sum()),
            int(pool.trees.refit_counts.sum()),
            objects.version,
        )
        if seen != self._seen or self._any_changed:
            if seen[::2] != self._seen[::2]:
                self._write_ranges(pool, np.unique(objects.shapes[objects.living]))
            self._write_changes(objects)
            self._seen = seen
        return not self.pause

    def has_bits_for(self, row_count: int) -> bool:
        """Whether keys can tell so many rows apart."""
        return row_count < 1 << (KEY_BITS - self.layout.width)

    @property
    def unopened(self) -> tuple[str, ...]:
        """Queues of the pairs that each round leaves: more where hierarchies are new."""
        return UNOPENED if self._any_rebuilt else UNOPENED[:FEW_ROUNDS]

    @property
    def ranks(self) -> wp.array:
        """(n,) int32, on the device: rank of each row of the last query in this one."""
        room = self.queues[f"{self.names[0]}_objects"].keys.shape[0]
        if self._ranks.shape[0] < room:
            self._ranks = wp.empty(room, dtype=wp.int32, device=self.device)
        return self._ranks

    def clear(self) -> None:
        """Empty the queues that the next query fills; no row is matched yet."""
        self.queues.clear()
        self.ranks.fill_(-1)

    def commit(self, counts: Counts, poses: wp.array, contacts: wp.array) -> None:
        """Take over what a query has written, where objects were, and the contacts it found."""
        here, there = self.names
        self.queues.keep(f"{here}_objects", 0)
        self.queues.keep(f"{there}_objects", counts[f"{there}_objects"])
        self.turn(counts[there])
        self.steps += 1
        self._shapes = self._shapes_now
        wp.copy(self.poses, poses)
        self.queues.keep("contacts", 0)
        self.queues.make_room({"contacts": contacts.shape[0]})
        self.queues.keep("contacts", contacts.shape[0])
        if contacts.shape[0]:
            wp.copy(self.queues["contacts"].keys, contacts, count=contacts.shape[0])

    def _write_ranges(self, pool: ShapePool, shapes: np.ndarray) -> None:
        """Write the leaf ranges of shapes whose hierarchies are new."""
        room = 2 * pool.arrays.faces.shape[0]
        if self.ranges.shape[0] < room:
            self.ranges = wp.empty(room, dtype=wp.vec2i, device=self.device)
            self._build_counts = np.empty(0, np.int64)
        builds = pool.trees.build_counts
        known = np.zeros(len(builds), np.int64)
        known[: len(self._build_counts)] = self._build_counts
        face_counts = pool.arrays.table["face_count"]
        new = shapes[(builds != known)[shapes] & (face_counts[shapes] > 0)]
        if len(new):
            batch = SliceBatch.of(new, face_counts[new], self.device)
            write_batched_leaf_ranges(pool.arrays.bvhs, batch, self.ranges)
        known[shapes] = builds[shapes]
        self._build_counts = known

    def _write_changes(self, objects: ObjectTable) -> None:
        """Write how the hierarchies of objects have changed since the last query."""
        shapes, trees = objects.shapes, objects.pool.trees
        now = [shapes, trees.build_counts[shapes], trees.refit_counts[shapes]]
        now = np.stack(now, axis=1).astype(np.int64)
        before = np.full_like(now, -1)
        known = min(len(now), len(self._shapes))
        before[:known] = self._shapes[:known]
        rebuilt, refitted = (now[:, :2] != before[:, :2]).any(axis=1), now[:, 2] != before[:, 2]
        changes = np.where(rebuilt, REBUILT, np.where(refitted, REFITTED, UNCHANGED))
        self._shapes_now, self._any_changed = now, bool(changes.any())
        self._any_rebuilt = bool(rebuilt.any())
        if self.changes.shape[0] != len(now):
            self.changes = wp.empty(len(now), dtype=wp.int32, device=self.device)
            poses = wp.zeros(len(now), dtype=wp.mat44d, device=self.device)
            if known:
                wp.copy(poses, self.poses, count=known)
            self.poses = poses
        self.changes.assign(changes.astype(np.int32))


class SceneFrontSearch(ContactSearch):
    """A contact search that advances fronts in place of descending from the roots.

    Args:
        scene, options: Arguments of ContactSearch.
        fronts: The fronts; a run that finds room for everything commits to them.
    """

    def __init__(self, *scene: Any, fronts: SceneFronts, **options: Any) -> None:
        self.fronts = fronts
        super().__init__(*scene, **options)
        self._resting = wp.zeros(0, dtype=wp.int32, device=self.device)
        self._row_frames = wp.empty(0, dtype=RelativeFrame, device=self.device)
        self._plans = RecentCache()

    def try_run(self) -> FoundContacts | None:
        """Search; None where the fronts were given up."""
        fronts = self.fronts
        if not fronts.has_bits_for(self.broad.capacity):
            fronts.give_up()
            return None
        key = (fronts.is_odd, fronts.climbs, len(fronts.unopened), fronts.queues)
        key = (*key, fronts.changes, fronts.ranges, fronts.ranks)
        self._plan = self._plans.get(key, self._front_plan)
        counts = self._plan.run()
        if counts is None:
            return None
        contacts = self.queues["hits"].keys[: counts["hits"]]
        fronts.commit(counts, self.broad.rows.view.poses, contacts)
        return self._found(counts)

    def _front_plan(self) -> Plan:
        queues = JoinedQueues(self.queues, self.fronts.queues)
        return Plan(queues, self._stages, clear=self._clear, needs=self._needs, accept=self._accept)

    def _clear(self) -> None:
        super()._clear()
        self.fronts.clear()

    def _needs(self, counts: Counts) -> Counts | None:
        needed = self.fronts.needs(counts)
        if needed is None or not self.fronts.has_bits_for(2 * counts["objects"]):
            self.fronts.give_up()
            return None
        return needed

    def _contact_stages(self) -> Iterator[Stage]:
        fronts, pairs, rows = self.fronts, self.broad.rows.view, self._front_rows()
        queues, (here, there) = fronts.queues, fronts.names
        unopened, found = fronts.unopened, queues["faces"]
        args = [pairs, queues[f"{here}_objects"], fronts.changes, fronts.poses, rows]
        args += [queues[f"{there}_objects"], queues[unopened[0]]]
        yield "match", self.broad.rows.over_rows(match_rows_kernel, args, GRAIN)
        contacts = queues["contacts"]
        args = [rows, contacts, self.queues["hits"]]
        yield "match", QueueLaunch(keep_contacts_kernel, contacts, args, grain=GRAIN).run
        for source, rest in zip(("", *unopened), (*unopened, ""), strict=True):
            most = int(WIDE) if rest else UNKNOWN_COUNT
            args = fronts.arguments(pairs, rows, found, most, source, rest)
            over = queues[source or here]
            threads = FEW_THREADS if source else THREADS
            kernel = advance_kernel_for(ScenePairs)
            yield "front", QueueLaunch(kernel, over, args, grain=GRAIN, threads=threads).run
        stages = ContactStages(self.broad.rows, self.queues, self.out, Strategy.BRUTE)
        yield stages.filter(found)
        yield stages.exact()

    def _front_rows(self) -> Any:
        capacity = self.broad.capacity
        if self._resting.shape[0] != capacity:
            self._resting = wp.zeros(capacity, dtype=wp.int32, device=self.device)
            self._row_frames = wp.empty(capacity, dtype=RelativeFrame, device=self.device)
        rows = FrontRows()
        rows.frames, rows.resting = self._row_frames, self._resting
        rows.leaf_ranges, rows.ranks = self.fronts.ranges, self.fronts.ranks
        rows.slot_bits, rows.bits = self.fronts.layout.bits, self.layout.bits
        return rows
