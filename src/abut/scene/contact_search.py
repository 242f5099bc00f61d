"""ContactSearch: the plan of a contact query of a whole scene."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from abut.broad.boxes import EVERYWHERE
from abut.core.pair_queue import NO_KEY, KeyLayout, lowest_of_each_pose
from abut.core.plan import Plan, Stage
from abut.operands.contact_queues import contact_queues
from abut.options import BroadMethod
from abut.query.contact_stages import ContactStages, Strategy
from abut.scene.broad_stages import BroadStages, SceneQueues
from abut.scene.objects import ObjectTable
from abut.scene.rows import RowsAhead

LEAST_EXPECTED = 1024  # rows


@dataclass(frozen=True)
class ContactQuery:
    """Options of a contact query.

    Attributes:
        own: Also faces of one object.
        first: One pair of faces for each pair of objects.
        any_contact: Only which environments have a contact.
        brute: Every pair of faces of every pair of objects that the filters leave.
        front: Continue where the last search stopped.
        broad: Broad phase; None chooses one.
    """

    own: bool = False
    first: bool = False
    any_contact: bool = False
    brute: bool = False
    front: bool = False
    broad: BroadMethod | None = None

    @property
    def key(self) -> tuple[int, int]:
        """Numbers that differ between queries."""
        flags = (self.own, self.first, self.any_contact, self.brute, self.front)
        broad = 0 if self.broad is None else 1 + list(BroadMethod).index(self.broad)
        return sum(flag << k for k, flag in enumerate(flags)), broad


@dataclass
class FoundContacts:
    """Contacts of a search: sorted keys, or rows made of them.

    Attributes:
        pairs: ScenePairs of the search.
        object_pairs: Keys of the object pairs.
        keys: Keys (rank of the object pair, face, face).
        objects, layout: Bits of keys that objects take, and faces.
        colliding: (environments,) bool, of a query for any contact.
        rows: (environments, objects, faces), where they were made ahead.
        poses: Copy of the poses, where rows were made ahead.
    """

    pairs: Any = field(repr=False)
    objects: KeyLayout
    layout: KeyLayout
    object_pairs: Any = None
    keys: Any = None
    colliding: np.ndarray | None = None
    rows: tuple[wp.array, wp.array, wp.array] | None = None
    poses: wp.array | None = None


class ContactSearch:
    """The plan that answers one kind of contact query of a scene.

    Args:
        objects: The objects of the scene.
        queues: Queues of the scene.
        poses: Poses of all objects, environment after environment.
        environments: Copies of the scene, whose objects do not meet.
        query: Options of the query.
    """

    def __init__(
        self,
        objects: ObjectTable,
        queues: SceneQueues,
        poses: wp.array,
        environments: int,
        query: ContactQuery,
    ) -> None:
        self.device, self.queues, self.query = queues.device, queues, query
        self._stops = (query.first or query.any_contact) and not query.brute  # at the first pair
        self.broad = BroadStages(
            objects,
            queues,
            poses,
            environments,
            own=query.own,
            margin=EVERYWHERE if query.brute else 0.0,
            method=BroadMethod.ALL_PAIRS if query.brute else query.broad,
            first=self._stops,
        )
        self.layout = self.broad.layout
        self.strategy = self._cheapest()
        self._ahead: RowsAhead | None = None  # on CUDA, once it is known how many rows to expect
        self._rows: Any = None
        self._poses_then: wp.array | None = None
        self._plan = Plan(queues, self._stages, clear=self._clear, accept=self._accept)

    def run(self) -> FoundContacts:
        """Search."""
        counts = self._plan.run()
        assert counts is not None
        return self._found(counts)

    def _found(self, counts: dict[str, int]) -> FoundContacts:
        out = FoundContacts(self.broad.rows.view, self.broad.object_layout, self.layout)
        ahead = self._ahead
        if self._rows is not None and ahead is not None and counts["hits"] <= ahead.size:
            out.rows = tuple(array[: counts["hits"]] for array in self._rows)
            out.poses = self._poses_then
            return out
        out.object_pairs = self.queues["objects"].keys[: counts["objects"]]
        rank_bits = max(counts["objects"] - 1, 1).bit_length()
        keys = self.queues.sorted_keys("hits", counts["hits"], self.layout.width + rank_bits)
        out.keys = self._one_each(keys, counts["objects"]) if self.query.first else keys
        if self.query.any_contact:
            out.colliding = self._colliding(out)
        else:
            self._expect(counts["hits"])
        return out

    def _colliding(self, found: FoundContacts) -> np.ndarray:
        """Environments that the search has flagged, or for which the exact stage found a pair."""
        colliding = self.broad.flags.numpy().astype(bool)
        if len(found.keys):
            host = found.keys if isinstance(found.keys, np.ndarray) else found.keys.numpy()
            exact = found.object_pairs.numpy()[host >> self.layout.width]
            colliding[exact >> self.broad.object_layout.width] = True
        return colliding

    @property
    def _foresees(self) -> bool:
        """Whether rows are made before the host knows how many."""
        return self.device.is_cuda and not self.query.first

    def _expect(self, count: int) -> None:
        """Make rows ahead from now on, a quarter more than there were."""
        if self._foresees:
            size = count + count // 4 + LEAST_EXPECTED
            self._ahead = RowsAhead(self.queues, self.broad.object_layout, self.layout, size)

    def _cheapest(self) -> Strategy:
        """The strategy that costs least, as measured (design/scene.md)."""
        if self.query.brute:
            return Strategy.BRUTE
        if self._stops:
            return Strategy.FIRST
        return Strategy.LEAF_WALK if self.device.is_cuda else Strategy.DESCEND

    def _stages(self) -> Iterator[Stage]:
        yield from self.broad
        self._ahead = None
        self.out = contact_queues(self.queues, self.layout)
        self.out.best = self.broad.best
        yield from self._contact_stages()
        if self._foresees:
            yield "rows", self._make_rows

    def _contact_stages(self) -> Iterable[Stage]:
        return ContactStages(
            self.broad.rows,
            self.queues,
            self.out,
            self.strategy,
            own=self.query.own,
            colliding=self.broad.flags if self.query.any_contact else None,
        )

    def _clear(self) -> None:
        self.broad.clear()

    def _make_rows(self) -> None:
        """Make as many rows as are expected, while the device is busy."""
        self._rows, self._poses_then = None, None
        if self._ahead is not None:
            self._rows, self._poses_then = self._ahead.start(), wp.clone(self.broad.rows.view.poses)

    def _accept(self, counts: dict[str, int]) -> bool:
        """Refuse poses that are not rigid; descend where a leaf walk had too many leaves."""
        self.broad.require_rigid(counts)
        if counts["skipped"]:
            self.strategy = Strategy.DESCEND
            self._plan.forget()
            return False
        return True

    def _one_each(self, keys: Any, count: int) -> np.ndarray:
        """One key for each object pair: of a certain hit, else the lowest of the exact stage."""
        best = self.broad.best.numpy()[:count] if self._stops else np.full(count, NO_KEY)
        exact = lowest_of_each_pose(keys, self.layout)
        exact = exact[best[exact >> self.layout.width] == NO_KEY]
        return np.sort(np.concatenate([best[best != NO_KEY], exact]))


def found_from_rows(
    scene: BroadStages, objects: np.ndarray, faces: np.ndarray, first: bool
) -> FoundContacts:
    """Contacts of rows (n, 2) of objects and faces in any order, as a search finds them."""
    order = np.lexsort((*faces.T[::-1], *objects.T[::-1]))
    objects, faces = objects[order].astype(np.int64), faces[order].astype(np.int64)
    layout, pairs = scene.layout, scene.object_layout
    ranked, rank = np.unique((objects[:, 0] << pairs.bits_b) | objects[:, 1], return_inverse=True)
    keys = (((rank.ravel() << layout.bits_a) | faces[:, 0]) << layout.bits_b) | faces[:, 1]
    if first:
        keys = lowest_of_each_pose(keys, layout)
    held = wp.array(ranked, dtype=wp.int64, device=scene.device)
    return FoundContacts(scene.rows.view, pairs, layout, held, keys)
