"""NearSearch and NearestSearch: the stages of distance queries of a whole scene."""

from typing import Any

import numpy as np
import warp as wp

from abut.broad.neighbours import bound_kernel, neighbour_kernel
from abut.core.launch import launch
from abut.core.pair_queue import NO_KEY
from abut.core.timing import stage
from abut.query.distance_plan import with_contacts
from abut.scene.search import SceneSearch
from abut.traversal.near_meetings import near_frame_kernel, near_meet_kernel
from abut.traversal.nearest_meetings import nearest_meet_kernel
from abut.traversal.remote_meetings import remote_meet_kernel

LEAVES_PER_ITEM = {True: 16, False: 256}  # on CUDA or not


class NearSearch(SceneSearch):
    """Every pair of faces of different objects at most so far apart.

    Args:
        scene: Arguments of SceneSearch.
        distance: How far apart faces may be.
        own: Also faces of one object.
    """

    def __init__(self, *scene: Any, distance: float, own: bool) -> None:
        super().__init__(*scene, own=own, margin=0.5 * distance)
        self.distance = wp.float64(distance)

    def run(self) -> tuple[np.ndarray, np.ndarray] | None:
        """(sorted keys of faces, whether each pair meets), or None where queues had no room."""
        self._forget.run()
        count = self._list_meetings()
        if count:
            leaves = LEAVES_PER_ITEM[self.device.is_cuda]
            with stage("frames", self.device):
                args = [self.crowd, self.distance, leaves, self._frames, self._items]
                size = self.capacity if self.device.is_cuda else count
                launch(near_frame_kernel, size, args, self.device, grain=1024)
            with stage("search", self.device):
                items = self._begin_items(count)
                starts = self._starts if self.device.is_cuda else self._starts[: count + 1]
                args = [self.crowd, self._frames, starts, self.distance, leaves]
                args.append(self.queues["near"])
                launch(near_meet_kernel, items, args, self.device, grain=16)
            self._settle()
        counts = self.queues.read()
        self._require_rigid(counts)
        if self.queues.make_room(counts):
            return None
        near = self.queues["near"].keys[: counts["near"]].numpy()
        settled = self.queues["hits"].keys[: counts["hits"]].numpy()
        keys = with_contacts(near, settled)
        return keys >> 1, (keys & 1).astype(bool)


class NearestSearch(SceneSearch):
    """The smallest distance of every pair of objects at most so far apart.

    Args:
        scene: Arguments of SceneSearch.
        bound: How far apart objects may be; None: at least the nearest of every object.
    """

    def __init__(self, *scene: Any, bound: float | None) -> None:
        super().__init__(*scene, margin=0.0 if bound is None else 0.5 * bound)
        self.bound = bound
        self._bits, self._keys = (
            wp.empty(self.capacity, dtype=wp.int64, device=self.device) for _ in range(2)
        )
        self._bounds = wp.empty(self.total, dtype=wp.float32, device=self.device)

    def run(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """(keys of pairs of objects, distances, keys of faces), or None without room.

        A pair beyond its bound has the distance infinity; one that meets 0, and no faces.
        """
        self._forget.run()
        count = self._list_meetings() or 0
        if count:
            with stage("frames", self.device):
                args = [self.crowd, wp.float64(1e300), 1 << 30, self._frames, self._items]
                launch(near_frame_kernel, count, args, self.device, grain=1024)
            self._write_bounds(count)
            with stage("search", self.device):
                args = [self.crowd, self._frames, self._bits, self._keys]
                launch(nearest_meet_kernel, count, args, self.device, grain=16)
                args = [self.crowd, self._bits, self._keys]
                launch(remote_meet_kernel, count, args, self.device, grain=16)
            self._settle()
        counts = self.queues.read()
        self._require_rigid(counts)
        if self.queues.make_room(counts):
            return None
        value = self._bits.numpy()[:count].view(np.float64).copy()
        faces = self._keys.numpy()[:count].copy()
        value[(faces == NO_KEY) & (value > 0)] = np.inf
        value[value > (np.inf if self.bound is None else self.bound)] = np.inf
        settled = self.queues["hits"].keys[: counts["hits"]].numpy() >> self.layout.width
        value[settled] = 0.0
        return self.queues["objects"].keys[:count].numpy().copy(), value, faces

    def _find_pairs(self) -> None:
        if self.bound is not None:
            super()._find_pairs()
            return
        args = [self.boxes, self.filters, self._bounds]
        launch(bound_kernel, self.total, args, self.device, grain=64)
        args = [self.boxes, self.filters, self._bounds, self.objects.bits, self.queues["objects"]]
        launch(neighbour_kernel, self.total, args, self.device, grain=64)

    def _write_bounds(self, count: int) -> None:
        """Bounds are not 0: that is for objects that meet."""
        bounds = np.full(count, np.inf if self.bound is None else self.bound)
        if self.bound is None:
            low, high = self.objects.split(self.queues["objects"].keys[:count].numpy())
            held = self._bounds.numpy().astype(np.float64)
            bounds = np.maximum(held[low], held[high])
        self._bits[:count].assign(np.maximum(bounds.view(np.int64), 1))
