"""SceneFronts: the fronts of a scene's meetings, kept from query to query."""

import numpy as np
import warp as wp

from abut.bvh.batched import SliceBatch
from abut.bvh.leaf_ranges import write_batched_leaf_ranges
from abut.core.pair_queue import KeyLayout, PairQueues
from abut.query.kept_front import CLIMB_EVERY
from abut.scene.objects import Objects
from abut.scene.shape_pool import ShapePool
from abut.traversal.meeting_fronts import BENT, OTHER, SAME

MOST_PAIRS = 1 << 25  # of all fronts together; beyond that scenes are searched from the roots
LEAST_ROOM = 1 << 14
ROUNDS, FEW_ROUNDS = 8, 3  # in which fronts are opened, so that all threads have work
REST = 64  # queries, once fronts have grown too long
LEFT = tuple(f"left_{k}" for k in range(ROUNDS))
QUEUES = ("rows", "even", "even_met", "odd", "odd_met", *LEFT, "faces")
KEY_BITS = 62


class SceneFronts:
    """Pairs of nodes where the last search of each meeting stopped, and which meetings these were.

    They lie in one of two queues, ``even`` and ``odd``, and so do the pairs of objects; a search
    moves them to the other one, and ``turn`` makes it hold. Keys are (rank of the meeting, slots).
    ``rows`` are the keys of faces that were found.

    Attributes:
        size: Pairs of nodes there are.
        poses: Of objects when fronts were moved last.
        changes: (n,) int32, on the device: what has become of the tree of each object since.
        ranges: Leaves below the slots of all bodies, on the device.
    """

    def __init__(self, device: wp.Device) -> None:
        self.device = device
        self.resting = 0  # for so many queries there are no fronts
        self.forget()

    def forget(self) -> None:
        """Begin at the roots."""
        self.queues = PairQueues(self.device, **dict.fromkeys(QUEUES, LEAST_ROOM))
        self.layout = KeyLayout(0, 0)
        self.steps = self.size = 0
        self.changes = wp.zeros(0, dtype=wp.int32, device=self.device)
        self.poses = wp.zeros(0, dtype=wp.mat44d, device=self.device)
        self.ranges = wp.zeros(0, dtype=wp.vec2i, device=self.device)
        self._ranks = wp.empty(0, dtype=wp.int32, device=self.device)
        self._shapes = np.empty((0, 3), np.int64)  # of objects, as their fronts know them
        self._shapes_now = self._shapes
        self._grown = np.empty(0, np.int64)  # of bodies, as their ranges know them
        self._seen = (-1, -1, -1)
        self._any_changed = self._any_new = True

    @property
    def names(self) -> tuple[str, str]:
        """The queue where the fronts are, and the one where they go next."""
        return ("odd", "even") if self.steps % 2 else ("even", "odd")

    @property
    def left(self) -> tuple[str, ...]:
        """Queues of what is yet to be opened, round by round: more where trees are new."""
        return LEFT if self._any_new else LEFT[:FEW_ROUNDS]

    @property
    def climbs(self) -> bool:
        """Whether pairs move up in this step."""
        return self.steps % CLIMB_EVERY == CLIMB_EVERY - 1

    def follow(self, pool: ShapePool, objects: Objects) -> None:
        """Take over which trees there are now."""
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
                self._write_ranges(pool, np.unique(objects.body[objects.living]))
            self._write_changes(pool, objects)
            self._seen = seen

    def room_for(self, meetings: int) -> bool:
        """Whether keys can tell so many meetings apart."""
        return meetings < 1 << (KEY_BITS - self.layout.width)

    @property
    def ranks(self) -> wp.array:
        """(n,) int32, on the device: of the meetings there were, their ranks of now."""
        room = self.queues[f"{self.names[0]}_met"].keys.shape[0]
        if self._ranks.shape[0] < room:
            self._ranks = wp.empty(room, dtype=wp.int32, device=self.device)
        return self._ranks

    def turn(self, size: int, poses: wp.array, rows: wp.array) -> None:
        """What a search has moved is where fronts are now; ``rows`` are what it has found."""
        self.steps += 1
        self.size = size
        self._shapes = self._shapes_now
        wp.copy(self.poses, poses)
        self.queues.make_room({"rows": rows.shape[0]})
        self.queues["rows"].count.fill_(rows.shape[0])
        if rows.shape[0]:
            wp.copy(self.queues["rows"].keys, rows, count=rows.shape[0])

    def give_up(self) -> None:
        """Have no fronts for some time."""
        self.forget()
        self.resting = REST

    def _write_ranges(self, pool: ShapePool, bodies: np.ndarray) -> None:
        """For bodies whose trees have become others since."""
        room = 2 * pool.arrays.faces.shape[0]
        if self.ranges.shape[0] < room:
            self.ranges = wp.empty(room, dtype=wp.vec2i, device=self.device)
            self._grown = np.empty(0, np.int64)
        known = np.zeros(len(pool.trees.build_counts), np.int64)
        known[: len(self._grown)] = self._grown
        new = bodies[
            (pool.trees.build_counts != known)[bodies]
            & (pool.arrays.table["face_count"][bodies] > 0)
        ]
        if len(new):
            parts = SliceBatch.of(new, pool.arrays.table["face_count"][new], self.device)
            write_batched_leaf_ranges(pool.arrays.bvhs, parts, self.ranges)
        known[bodies] = pool.trees.build_counts[bodies]
        self._grown = known

    def _write_changes(self, pool: ShapePool, objects: Objects) -> None:
        """What has become of objects since fronts were moved last."""
        bodies = objects.body
        now = np.stack(
            [bodies, pool.trees.build_counts[bodies], pool.trees.refit_counts[bodies]], axis=1
        ).astype(np.int64)
        before = np.full_like(now, -1)
        known = min(len(now), len(self._shapes))
        before[:known] = self._shapes[:known]
        other, bent = (now[:, :2] != before[:, :2]).any(axis=1), now[:, 2] != before[:, 2]
        changes = np.where(other, OTHER, np.where(bent, BENT, SAME)).astype(np.int32)
        self._shapes_now, self._any_changed = now, bool(changes.any())
        self._any_new = bool((changes == int(OTHER)).any())
        if self.changes.shape[0] != len(now):
            self.changes = wp.empty(len(now), dtype=wp.int32, device=self.device)
            poses = wp.zeros(len(now), dtype=wp.mat44d, device=self.device)
            if known:
                wp.copy(poses, self.poses, count=known)
            self.poses = poses
        self.changes.assign(changes)
