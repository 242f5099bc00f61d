"""SearchCache: the searches of a scene, prepared once and kept while its arrays stay."""

from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from abut.broad.boxes import BOTH_ROLES
from abut.core.cache import RecentCache
from abut.scene.broad_stages import BroadStages, SceneQueues
from abut.scene.contact_search import ContactSearch, FoundContacts
from abut.scene.fronts import SceneFronts, SceneFrontSearch
from abut.scene.inputs import EnvironmentPoses
from abut.scene.objects import ObjectTable
from abut.scene.selection import Part


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

    @cached_property
    def fronts(self) -> SceneFronts:
        """Made when they are first used."""
        return SceneFronts(self.objects.device)

    def contacts(
        self, poses: Any, front: bool, part: Part | None = None, **options: Any
    ) -> FoundContacts:
        """Contacts of the objects, or of copies of the scene at ``poses`` (B, n, 4, 4).

        Args:
            poses: Of all objects in each copy; None takes the objects where they are.
            front: Continue where the last search by fronts stopped; not for a part.
            part: The pairs that are asked about; None: all.
            options: Keywords of ContactSearch.
        """
        where = self._environments(poses, part)
        if front and part is None and self.fronts.follow(self.objects):
            search = self._search(SceneFrontSearch, where, **options, fronts=self.fronts)
            found = search.try_run()
            if found is not None:
                return found
        return self._search(ContactSearch, where, part, **options).run()

    def colliding(self, poses: Any, own: bool, part: Part | None = None) -> np.ndarray:
        """(B,) bool: copies of the scene with a contact."""
        where = self._environments(poses, part)
        return self._search(ContactSearch, where, part, own=own, any_contact=True).colliding()

    def near(
        self, kind: type, part: Part | None = None, *, poses: Any = None, **options: Any
    ) -> Any:
        """The NearSearch or NearestSearch with these options, for the objects where they are."""
        return self._search(kind, self._environments(poses, part), part, **options)

    def layout(self, part: Part | None = None) -> BroadStages:
        """Layouts and rows of a search, for answers that were found without one."""
        objects = self.objects if part is None else part.objects
        objects.pool.flush()
        return BroadStages(objects, self.queues, objects.poses)

    def _environments(self, poses: Any, part: Part | None) -> tuple[wp.array, int]:
        """Bring shapes up to date; return the poses of all environments, and their number."""
        objects = self.objects if part is None else part.objects
        objects.pool.flush()
        if poses is None:
            return objects.poses, 1
        guests = objects.poses[part.first_guest :] if part and part.first_guest else None
        return self._batch.take(poses, len(self.objects), guests)

    def _search(
        self, kind: type, where: tuple[wp.array, int], part: Part | None = None, **options: Any
    ) -> Any:
        """The search of a kind with these options, for the arrays as they are."""
        objects = self.objects if part is None else part.objects
        arrays = objects.pool.arrays
        bits = max(arrays.most_faces - 1, 1).bit_length()
        sizes = (arrays.generation, len(objects), len(objects.ignored), bits)
        search = self._recent.get(
            (kind, part is None, *where, objects.poses, *sizes, *options, *options.values()),
            lambda: kind(objects, self.queues, *where, **options),
        )
        search.broad.follow(objects, BOTH_ROLES if part is None else part.roles)
        return search
