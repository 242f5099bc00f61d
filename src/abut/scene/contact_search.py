"""ContactSearch: the plan of a contact query of a whole scene."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from abut.broad.boxes import EVERYWHERE
from abut.core.pair_queue import NO_KEY_INT, lowest_of_each_pose
from abut.core.plan import Plan, Stage
from abut.operands.contact_queues import contact_queues
from abut.options import BroadMethod
from abut.query.contact_stages import ContactStages, Strategy
from abut.scene.box_cache import BoxCache
from abut.scene.broad_stages import BroadStages, SceneQueues
from abut.scene.first_rows_of_pairs import FirstRowsOfPairs
from abut.scene.objects import ObjectTable
from abut.scene.rows import RowsAhead

LEAST_EXPECTED = 1024  # rows


@dataclass
class FoundContacts:
    """Contacts of a search.

    Attributes:
        view: ScenePairs of the search.
        rows: (n,) environments, (n, 2) objects and (n, 2) faces, sorted.
        poses: Poses of all objects of all environments, a copy.
        first_external: As in Part.
    """

    view: Any = field(repr=False)
    rows: tuple[wp.array, wp.array, wp.array]
    poses: wp.array
    first_external: int = 0


class ContactSearch:
    """The plan that answers one kind of contact query of a scene.

    Args:
        objects: The objects of the scene.
        queues: Queues of the scene.
        poses: Poses of all objects, environment after environment.
        environments: Copies of the scene, whose objects do not meet.
        own: Also faces of one object.
        first: One pair of faces for each pair of objects.
        any_contact: Only which environments have a contact, for ``colliding``.
        brute: Every pair of faces of every pair of objects that the filters leave.
        broad: Broad phase; None chooses one.
        box_cache: As in BroadStages.
    """

    def __init__(
        self,
        objects: ObjectTable,
        queues: SceneQueues,
        poses: wp.array,
        environments: int,
        *,
        own: bool = False,
        first: bool = False,
        any_contact: bool = False,
        brute: bool = False,
        broad: BroadMethod | None = None,
        box_cache: BoxCache | None = None,
    ) -> None:
        self.device, self.queues = queues.device, queues
        self.own, self.first, self.any_contact, self.brute = own, first, any_contact, brute
        self._stops = (first or any_contact) and not brute  # at the first pair
        self.broad = BroadStages(
            objects,
            queues,
            poses,
            environments,
            own=own,
            margin=EVERYWHERE if brute else 0.0,
            method=BroadMethod.ALL_PAIRS if brute else broad,
            first=self._stops,
            box_cache=box_cache,
        )
        self.layout = self.broad.layout
        self.strategy = self._cheapest()
        self._ahead: RowsAhead | None = None  # on CUDA, once it is known how many rows to expect
        self._expected = 0  # rows, with ``first``
        self._rows: Any = None
        self._poses_then: Any = None
        self._first: FirstRowsOfPairs | None = None
        self._plan = Plan(queues, self._stages, clear=self._clear, accept=self._accept)

    def run(self) -> FoundContacts:
        """Search."""
        counts = self._plan.run()
        assert counts is not None
        return self._found(counts)

    def colliding(self) -> np.ndarray:
        """(environments,) bool: flagged by the search, or of a pair that the exact stage found."""
        counts = self._plan.run()
        assert counts is not None
        colliding = self.broad.flags.numpy().astype(bool)
        if counts["hits"]:
            colliding[self._exact_pairs(counts) >> self.broad.object_layout.width] = True
        return colliding

    def found_pair(self) -> int:
        """The key of two objects that meet, of one environment; NO_KEY_INT where none do."""
        counts = self._plan.run()
        assert counts is not None
        if counts["hits"]:
            return int(self._exact_pairs(counts)[0])
        found = np.flatnonzero(self.broad.best.numpy()[: counts["objects"]] != NO_KEY_INT)
        return int(self.queues["objects"].keys.numpy()[found[0]]) if len(found) else NO_KEY_INT

    def _exact_pairs(self, counts: dict[str, int]) -> np.ndarray:
        """Keys of object pairs of the hits that the exact stage has added."""
        ranks = self.queues["hits"].keys[: counts["hits"]].numpy() >> self.layout.width
        return self.queues["objects"].keys[: counts["objects"]].numpy()[ranks]

    def _found(self, counts: dict[str, int]) -> FoundContacts:
        view, ahead, count = self.broad.rows.view, self._ahead, counts["hits"]
        if self._first is not None:
            rows = self._first.rows(self._rows)
            self._expected = len(rows[0]) + len(rows[0]) // 4 + LEAST_EXPECTED
            return FoundContacts(view, rows, self._poses_then, self.broad.first_external)
        if self._poses_then is not None and ahead is not None and count <= ahead.size:
            rows = tuple(array[:count] for array in self._rows)
            return FoundContacts(view, rows, self._poses_then, self.broad.first_external)
        rank_bits = max(counts["objects"] - 1, 1).bit_length()
        keys = self.queues.sorted_keys("hits", count, self.layout.width + rank_bits)
        if self.first:
            keys = lowest_of_each_pose(keys, self.layout)
        self._expect(count)
        rows = self.broad.rows_of(keys)
        return FoundContacts(view, rows, wp.clone(view.poses), self.broad.first_external)

    @property
    def _foresees(self) -> bool:
        """Whether rows are made before the host knows how many."""
        return self.device.is_cuda and not self.first

    def _expect(self, count: int) -> None:
        """Make rows ahead from now on, a quarter more than there were."""
        if self._foresees:
            size = count + count // 4 + LEAST_EXPECTED
            layouts = (self.broad.object_layout, self.layout, self.broad.first_external)
            self._ahead = RowsAhead(self.queues, *layouts, size)

    def _cheapest(self) -> Strategy:
        """The strategy that costs least, as measured (design/scene.md)."""
        if self.brute:
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
        self._first = None
        if self.first and self._stops:
            layouts = (self.broad.object_layout, self.layout, self.broad.first_external)
            self._first = FirstRowsOfPairs(self.queues, self.broad.best, *layouts)
            yield "rows", self._make_first_rows
        elif self._foresees:
            yield "rows", self._make_rows

    def _contact_stages(self) -> Iterable[Stage]:
        return ContactStages(
            self.broad.rows,
            self.queues,
            self.out,
            self.strategy,
            own=self.own,
            colliding=self.broad.flags if self.any_contact else None,
        )

    def _clear(self) -> None:
        self.broad.clear()

    def _make_rows(self) -> None:
        """Make as many rows as are expected, while the device is busy."""
        self._rows, self._poses_then = None, None
        if self._ahead is not None:
            self._rows, self._poses_then = self._ahead.start(), wp.clone(self.broad.rows.view.poses)

    def _make_first_rows(self) -> None:
        """Make as many rows as are expected, while the device is busy."""
        assert self._first is not None
        self._rows = self._first.start(self._expected)
        self._poses_then = wp.clone(self.broad.rows.view.poses)

    def _accept(self, counts: dict[str, int]) -> bool:
        """Refuse poses that are not rigid; descend where a leaf walk had too many leaves."""
        self.broad.require_rigid(counts)
        if counts["skipped"]:
            self.strategy = Strategy.DESCEND
            self._plan.forget()
            return False
        return True


def found_from_rows(
    scene: BroadStages, objects: np.ndarray, faces: np.ndarray, first: bool
) -> FoundContacts:
    """Contacts of rows (n, 2) of objects and faces in any order of rows, as a search finds them."""
    order = np.lexsort((*faces.T[::-1], *objects.T[::-1]))
    objects, faces = objects[order], faces[order]
    if first:
        new = np.diff(objects, axis=0, prepend=-1).any(axis=1)
        objects, faces = objects[new], faces[new]
    columns = (np.zeros(len(objects)), objects - [0, scene.first_external], faces)
    rows = tuple(wp.array(x.astype(np.int32), device=scene.device) for x in columns)
    view = scene.rows.view
    return FoundContacts(view, rows, wp.clone(view.poses), scene.first_external)
