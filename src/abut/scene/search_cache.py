"""SearchCache: the searches of a scene, prepared once and kept while its arrays stay."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.broad.few_objects import MOST_FEW
from abut.broad.phase import object_layout
from abut.core.cache import RecentCache
from abut.core.pair_queue import NO_KEY_INT
from abut.scene.box_cache import BoxCache
from abut.scene.broad_stages import BroadStages, SceneQueues
from abut.scene.contact_search import ContactSearch, FoundContacts
from abut.scene.distance_results import LeastDistance
from abut.scene.few_search import FewSearch
from abut.scene.fronts import SceneFronts, SceneFrontSearch
from abut.scene.inputs import EnvironmentPoses
from abut.scene.least_search import MOST_OBJECTS, LeastSearch
from abut.scene.near import NearSearch
from abut.scene.objects import ObjectTable
from abut.scene.selection import Part


class WitnessCache:
    """The pair of objects that the last query of a whole scene found to meet, or none.

    After a few objects have moved, only these are searched, as far as the pair allows.
    """

    def __init__(self) -> None:
        self._version: tuple[int, int] | None = None
        self._moves = 0
        self._pair = NO_KEY_INT

    def found_pair(
        self,
        objects: ObjectTable,
        search_few: Callable[[list[int]], int | None],
        search_all: Callable[[], int],
    ) -> int:
        """The key of two objects that meet now; NO_KEY_INT where none do."""
        version = (objects.version, objects.pool.version)
        moved = objects.moves.since(self._moves) if version == self._version else None
        found = None
        if moved is not None and (len(moved) == 0 or self._keeps(moved, len(objects))):
            found = self._pair
        elif moved is not None:
            found = search_few(moved)
            if found == NO_KEY_INT and self._pair != NO_KEY_INT:
                found = None  # other objects may meet
        self._pair = search_all() if found is None else found
        self._version, self._moves = version, objects.moves.count
        return self._pair

    def _keeps(self, moved: list[int], count: int) -> bool:
        """Whether two objects that met have not moved."""
        if self._pair == NO_KEY_INT:
            return False
        pair = object_layout(count, 1).split(self._pair)
        return pair[0] not in moved and pair[1] not in moved


class SearchCache:
    """Recent searches of a scene, with the buffers that they share.

    Attributes:
        queues: Queues of all searches.
        fronts: BVTT fronts, kept from query to query.
    """

    def __init__(self, objects: ObjectTable) -> None:
        self.objects = objects
        self.queues = SceneQueues(objects.device)
        self._batch = EnvironmentPoses(objects.device)
        self._recent = RecentCache()
        self._few: FewSearch | None = None  # the last one
        self._witness = WitnessCache()

    @cached_property
    def fronts(self) -> SceneFronts:
        """Made when they are first used."""
        return SceneFronts(self.objects.device)

    def contacts(self, part: Part, poses: Any, front: bool, **options: Any) -> FoundContacts:
        """Contacts of the objects, or of copies of the scene at ``poses`` (B, n, 4, 4).

        Args:
            part: The pairs that are asked about.
            poses: Of all objects in each copy; None takes the objects where they are.
            front: Continue where the last search by fronts stopped; not for a part.
            options: Keywords of ContactSearch.
        """
        where = self.environments(part, poses)
        if front and part.is_whole and self.fronts.follow(self.objects):
            search = self._search(SceneFrontSearch, part, where, **options, fronts=self.fronts)
            found = search.try_run()
            if found is not None:
                return found
        if poses is None and not options.get("brute") and options.get("broad") is None:
            options |= self._box_cache(part, where)
        return self._search(ContactSearch, part, where, **options).run()

    def any_contact(self, part: Part, own: bool) -> bool:
        """Whether there is a contact."""
        where = self.environments(part, None)
        if not own and part.objects.tracks_moves():
            return self._found_pair(part, where) != NO_KEY_INT
        search = self._search(ContactSearch, part, where, own=own, any_contact=True)
        return bool(search.colliding()[0])

    def colliding(self, part: Part, poses: Any, own: bool) -> np.ndarray:
        """(B,) bool: copies of the scene with a contact."""
        where = self.environments(part, poses)
        return self._search(ContactSearch, part, where, own=own, any_contact=True).colliding()

    def _found_pair(self, part: Part, where: tuple[wp.array, int]) -> int:
        """The key of two objects of a part that meet; NO_KEY_INT where none do."""
        if part.is_whole:
            return self._witness.found_pair(
                part.objects,
                lambda few: self._few_pair(part, where, few, (0, len(part.objects))),
                lambda: self._any_pair(part, where),
            )
        found = self._few_pair(part, where, *part.sides)
        return self._any_pair(part, where) if found is None else found

    def _few_pair(self, part: Part, where: Any, few: Any, others: Any) -> int | None:
        """``_found_pair`` of a few objects; None where they are not few."""
        if not 0 < len(few) <= MOST_FEW:
            return None
        search = self._few
        if search is None or not search.box_cache.serves(part):
            search = self._few = FewSearch(self._search(BoxCache, part, where))
        return search.find(few, others)

    def _box_cache(self, part: Part, where: Any) -> dict[str, BoxCache]:
        """The option of a search of a part of which one side is a few objects."""
        return {"box_cache": self._search(BoxCache, part, where)} if part.is_few else {}

    def _any_pair(self, part: Part, where: Any) -> int:
        return self._search(ContactSearch, part, where, any_contact=True).found_pair()

    def near(self, kind: type, part: Part, poses: Any = None, **options: Any) -> Any:
        """The search of a kind with these options."""
        where = self.environments(part, poses)
        if kind is NearSearch and poses is None:
            options |= self._box_cache(part, where)
        return self._search(kind, part, where, **options)

    def least(self, part: Part) -> LeastDistance | None:
        """The nearest two objects of a part where they are; None: ask other searches."""
        if self.objects.device.is_cuda or not 0 < len(part.objects) <= MOST_OBJECTS:
            return None
        where = self.environments(part, None)
        part.objects.pool.trees.clear_rss()
        return self._search(LeastSearch, part, where).find(part)

    def layout(self, part: Part, poses: Any = None) -> BroadStages:
        """Layouts and rows of a search, for answers that were found without one."""
        broad = BroadStages(part.objects, self.queues, *self.environments(part, poses))
        broad.follow(part)
        return broad

    def environments(self, part: Part, poses: Any) -> tuple[wp.array, int]:
        """Bring shapes up to date; return the poses of all environments, and their number."""
        part.objects.pool.flush()
        if poses is None:
            return part.objects.poses, 1
        externals = part.objects.poses[part.first_external :] if part.first_external else None
        return self._batch.take(poses, len(self.objects), externals)

    def _search(self, kind: type, part: Part, where: tuple[wp.array, int], **options: Any) -> Any:
        """The search of a kind with these options, for the arrays as they are."""
        objects, arrays = part.objects, part.objects.pool.arrays
        bits = max(arrays.most_faces - 1, 1).bit_length()
        sizes = (arrays.generation, len(objects), len(objects.ignored.padded_keys), bits)
        key = (part.is_whole, part.first_external)
        search = self._recent.get(
            (kind, *key, *where, objects.poses, *sizes, *options, *options.values()),
            lambda: kind(objects, self.queues, *where, **options),
        )
        search.broad.follow(part)
        return search
