"""SearchCache: the searches of a scene, prepared once and kept while its arrays stay."""

from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

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
        return self._search(ContactSearch, part, where, **options).run()

    def colliding(self, part: Part, poses: Any, own: bool) -> np.ndarray:
        """(B,) bool: copies of the scene with a contact."""
        where = self.environments(part, poses)
        return self._search(ContactSearch, part, where, own=own, any_contact=True).colliding()

    def near(self, kind: type, part: Part, poses: Any = None, **options: Any) -> Any:
        """The NearSearch or NearestSearch with these options."""
        return self._search(kind, part, self.environments(part, poses), **options)

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
        guests = part.objects.poses[part.first_guest :] if part.first_guest else None
        return self._batch.take(poses, len(self.objects), guests)

    def _search(self, kind: type, part: Part, where: tuple[wp.array, int], **options: Any) -> Any:
        """The search of a kind with these options, for the arrays as they are."""
        objects, arrays = part.objects, part.objects.pool.arrays
        bits = max(arrays.most_faces - 1, 1).bit_length()
        sizes = (arrays.generation, len(objects), len(objects.ignored.padded_keys), bits)
        key = (part.is_whole, part.first_guest)
        search = self._recent.get(
            (kind, *key, *where, objects.poses, *sizes, *options, *options.values()),
            lambda: kind(objects, self.queues, *where, **options),
        )
        search.broad.follow(part)
        return search
