"""LowestContactSearch: the lowest pair of objects that meet, in each copy of a scene."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from abut.core.pair_queue import NO_KEY_INT
from abut.core.plan import Plan, Stage
from abut.operands.contact_queues import contact_queues
from abut.query.contact_stages import ContactStages, Strategy
from abut.scene.broad_stages import BroadStages
from abut.scene.object_distances import FoundDistances
from abut.traversal.overlap.descend import WANTS_LOWEST


class LowestContactSearch:
    """Searches pairs of objects in their order, and no longer than until two meet.

    Args:
        scene: Arguments of BroadStages.
    """

    def __init__(self, *scene: Any) -> None:
        self.broad = broad = BroadStages(*scene, first=True)
        self._plan = Plan(broad.queues, self._stages, clear=self._clear, accept=broad.accept)

    def run(self) -> FoundDistances:
        """One row for each environment with a contact."""
        counts = self._plan.run()
        assert counts is not None
        broad, layout, objects = self.broad, self.broad.layout, self.broad.object_layout
        best = broad.best[: counts["objects"]].numpy()
        hits = broad.queues["hits"].keys[: counts["hits"]].numpy()
        keys = np.sort(np.concatenate([best[best != NO_KEY_INT], hits]))
        pairs = broad.queues["objects"].keys.numpy()[keys >> layout.width]
        first = np.flatnonzero(np.diff(pairs >> objects.width, prepend=-1))
        keys, pairs = keys[first], pairs[first]
        ends, faces = (
            np.stack(both, axis=1) for both in (objects.split(pairs), layout.split(keys))
        )
        return FoundDistances(pairs >> objects.width, ends, faces, np.zeros(len(keys)))

    def _clear(self) -> None:
        self.broad.clear()
        self.broad.flags.fill_(int(WANTS_LOWEST))

    def _stages(self) -> Iterator[Stage]:
        yield from self.broad
        broad = self.broad
        out = contact_queues(broad.queues, broad.layout)
        out.best = broad.best
        about = (broad.rows, broad.queues, out, Strategy.FIRST)
        yield from ContactStages(*about, colliding=broad.flags)
