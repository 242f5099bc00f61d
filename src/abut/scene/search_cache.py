"""SearchCache: the searches of a scene, prepared once and kept while its arrays stay."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import warp as wp

from abut.core.cache import RecentCache
from abut.scene.broad_stages import BroadStages, SceneQueues
from abut.scene.contact_search import ContactQuery, ContactSearch, FoundContacts
from abut.scene.fronts import SceneFronts, SceneFrontSearch
from abut.scene.inputs import EnvironmentPoses
from abut.scene.objects import ObjectTable


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

    def contacts(self, query: ContactQuery, poses: Any) -> tuple[FoundContacts, wp.array]:
        """Contacts, and the poses of all objects of all environments."""
        objects = self.objects
        objects.pool.flush()
        where, environments = objects.poses, 1
        if poses is not None:
            where, environments = self._batch.take(poses, len(objects))
        if query.front:
            self.fronts.pause = max(self.fronts.pause - 1, 0)
            self.fronts.follow(objects.pool, objects)
            query = replace(query, front=not self.fronts.pause)
        scene = (objects, self.queues, where, environments)
        about = (where, environments)
        if query.front:
            search = self._get(
                (*about, *query.key), lambda: SceneFrontSearch(*scene, query, fronts=self.fronts)
            )
            found = search.try_run()
            if found is not None:
                return found, where
            query = replace(query, front=False)
        return self._get((*about, *query.key), lambda: ContactSearch(*scene, query)).run(), where

    def run(self, kind: type, **options: Any) -> tuple[BroadStages, Any]:
        """Layouts and rows of a search for the objects where they are, and its answer.

        Args:
            kind: NearSearch or NearestSearch.
            options: Arguments after those of BroadStages.
        """
        self.objects.pool.flush()
        scene = (self.objects, self.queues, self.objects.poses)
        search = self._get((kind, *options.values()), lambda: kind(*scene, **options))
        return search.broad, search.run()

    def layout(self) -> BroadStages:
        """Layouts and rows of a search, for answers that were found without one."""
        self.objects.pool.flush()
        return BroadStages(self.objects, self.queues, self.objects.poses)

    def _get(self, about: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """The search for the arrays as they are; its number of objects and key bits stay."""
        objects = self.objects
        arrays = objects.pool.arrays
        bits = max(arrays.most_faces - 1, 1).bit_length()
        sizes = (len(objects), len(objects.ignored), bits)
        search = self._recent.get((*about, arrays.generation, objects.poses, *sizes), make)
        search.broad.follow(objects)
        return search
