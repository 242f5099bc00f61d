"""BroadStages: the first stages of every search of a scene, and the queues that searches share."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import warp as wp

from abut.broad.boxes import BOTH_ROLES, EMPTY_EXTENT, Boxes, empty_boxes, object_box_kernel
from abut.broad.phase import BroadPhase, object_layout
from abut.core.launch import Task
from abut.core.pair_queue import NO_KEY, KeyLayout, PairQueues
from abut.core.plan import Stage
from abut.errors import CapacityError, PoseError
from abut.geometry.common_corners import SHARED_BY_POSITION
from abut.operands.pair_rows import SceneRows
from abut.operands.posed_pairs import ScenePairs
from abut.options import BroadMethod
from abut.scene.box_cache import BoxCache, FewPairs
from abut.scene.objects import ObjectTable
from abut.scene.rows import object_rows
from abut.scene.selection import Part

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CAPACITIES = {"found": 1024, "objects": 1024, "bad": 1024, "skipped": 1}
CAPACITIES |= {"hits": 1 << 14, "undecided": 1 << 14, "near": 1 << 12}
KEY_BITS = 62


@wp.kernel
def clear_search_kernel(
    # in
    span: wp.vec3i,
    unused: wp.int64,
    # out
    boxes_out: Boxes,
    counts_out: wp.array[wp.int64],
    keys_out: wp.array[wp.int64],
    best_out: wp.array[wp.int64],
    flags_out: wp.array[wp.int32],
):
    """Reset extents, counts, best pairs and flags; fill keys with one above all others."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if i < 6:
            boxes_out.extent[i] = EMPTY_EXTENT
        if i < counts_out.shape[0]:
            counts_out[i] = wp.int64(0)
        if i < keys_out.shape[0]:
            keys_out[i] = unused
        if i < best_out.shape[0]:
            best_out[i] = NO_KEY
        if i < flags_out.shape[0]:
            flags_out[i] = 0


class SceneQueues(PairQueues):
    """Queues of all searches of a scene; the queue of object pairs can be sorted in place."""

    def __init__(self, device: wp.Device) -> None:
        candidates = 1 << 17 if device.is_cuda else 1 << 8
        super().__init__(device, **CAPACITIES, candidates=candidates)

    def sort_objects(self, width: int, count: int | None = None) -> None:
        """Sort the first ``count`` object pairs, of ``width`` bits.

        On CUDA the count may be unknown: then the whole queue is sorted, whose unused keys must be
        above all others.
        """
        if self.device.is_cpu:
            self.queues["objects"].keys.numpy()[:count].sort()
        elif count != 0:
            room = self.queues["objects"].keys.shape[0] if count is None else count
            wp.utils.radix_sort_pairs(self._objects, self._ranks, room, 0, width + 1)

    def _allocate(self, name: str, capacity: int) -> None:
        if name != "objects" or self.device.is_cpu:
            super()._allocate(name, capacity)
            return
        super()._allocate(name, 2 * capacity)  # the radix sort needs a second half
        self._objects: Any = self.queues[name].keys
        self._ranks = wp.zeros(2 * capacity, dtype=wp.int32, device=self.device)
        self.queues[name].keys = self._objects[:capacity]
        self._capacities[name] = capacity


class BroadStages:
    """Stages that list the object pairs of a scene: boxes, broad phase, sort.

    Iterating records everything that depends on the capacity of the queues, so that a Plan may
    let them grow.

    Args:
        objects: The objects and their shapes.
        queues: Queues of the scene.
        poses: Poses of all objects, environment after environment.
        environments: Copies of the scene, whose objects do not meet.
        own: Also list each object with itself.
        margin: Padding of the boxes.
        method: Broad phase; None chooses one.
        first: Rows keep one pair of faces each, in ``best``.
        find: Lists object pairs in place of the broad phase, where given.
        box_cache: Cached boxes, for parts of which one side is a few objects.

    Attributes:
        layout: Bits of a key that the two faces take; above them is the rank of the object pair.
        object_layout: Bits of a key that the two objects take; above them is the environment.
        rows: The object pairs as rows of posed pairs.
        first_external: As in Part.
        best: (capacity,) key of the pair found for each row; empty without ``first``.
        flags: (environments,) int32, set where an environment has a contact.
    """

    def __init__(
        self,
        objects: ObjectTable,
        queues: SceneQueues,
        poses: wp.array,
        environments: int = 1,
        *,
        own: bool = False,
        margin: float = 0.0,
        method: BroadMethod | None = None,
        first: bool = False,
        find: Callable[[], None] | None = None,
        box_cache: BoxCache | None = None,
    ) -> None:
        pool = objects.pool
        self.device, self.queues, self.environments = pool.device, queues, environments
        self.layout = KeyLayout.of(pool.arrays.most_faces, pool.arrays.most_faces)
        self.object_layout = object_layout(max(len(objects), 1), environments)
        self.width = self.object_layout.width + max(environments - 1, 0).bit_length()
        self.total = len(objects) * environments
        self.boxes = empty_boxes(len(objects), environments, self.device)
        self.flags = wp.zeros(environments, dtype=wp.int32, device=self.device)
        self._bvhs, self._poses, self._object_count = pool.arrays.bvhs, poses, len(objects)
        if box_cache is None:
            self._shapes = wp.array(objects.shapes, dtype=wp.int32, device=self.device)
            self.filters = objects.filters()
        else:
            self._shapes, self.filters = box_cache.shapes, box_cache.filters
        self._own, self._margin, self._first = own, margin, first
        self._method, self._find, self._box_cache = method, find, box_cache
        self._version, self._roles, self.first_external = objects.version, BOTH_ROLES, 0
        self._generation = -1
        self._record()

    def follow(self, part: Part) -> None:
        """Take over shapes and filters of as many objects, with as many ignored pairs."""
        self._part, self.first_external = part, part.first_external
        if self._box_cache is not None:
            return
        objects, roles = part.objects, part.roles
        if self._version == objects.version and np.array_equal(roles, self._roles):
            return
        self._version, self._roles = objects.version, roles
        if len(objects):
            new = objects.filters(roles)
            wp.copy(self.filters.about, new.about)
            if new.ignored.shape[0]:
                wp.copy(self.filters.ignored, new.ignored)
            self._shapes.assign(objects.shapes)

    def __iter__(self) -> Iterator[Stage]:
        """Record the stages."""
        self._record()
        few = self._few
        if few is None:
            yield "boxes", self._box.run
            yield "broad", self._find or self._broad.run
        else:
            yield "boxes", lambda: few.boxes(self._part)
            yield "broad", few.pairs
        yield "sort", self._sort_pairs

    def rows_of(self, keys: Any) -> tuple[wp.array, wp.array, wp.array]:
        """((n,) environments, (n, 2) objects, (n, 2) faces) of keys of faces."""
        pairs = self.rows.view.object_pairs.keys
        layouts = (self.object_layout, self.layout, self.first_external)
        return object_rows(pairs, keys, *layouts, self.device)

    def environment_poses(self) -> np.ndarray:
        """(B, n, 4, 4) poses of all objects in every environment, on the host."""
        return self._poses.numpy().reshape(self.environments, self._object_count, 4, 4)

    def clear(self) -> None:
        """Reset everything that stages accumulate."""
        self._clearing.run()

    def require_rigid(self, counts: dict[str, int]) -> None:
        """Refuse poses that are not rigid motions; names the lowest one that is listed."""
        if counts["bad"]:
            held = min(counts["bad"], self.queues["bad"].keys.shape[0])
            bad = int(self.queues["bad"].keys[:held].numpy().min())
            environment, row = divmod(bad, max(self._object_count, 1))
            where = f" in copy {environment}" if self.environments > 1 else ""
            raise PoseError(f"the pose of object {row}{where} is not a rigid motion.")

    def accept(self, counts: dict[str, int]) -> bool:
        """Accept the counts of a run whose poses were rigid."""
        self.require_rigid(counts)
        return True

    def _record(self) -> None:
        """Make everything that depends on the capacity of the queues, if that has changed."""
        queues = self.queues
        if self._generation == queues.generation:
            return
        self._generation = queues.generation
        self.capacity = queues["objects"].keys.shape[0]
        if self.capacity >= 1 << (KEY_BITS - self.layout.width):
            raise CapacityError("the scene has too many pairs of objects for meshes of this size.")
        self.rows = SceneRows(self.make_pairs(queues["objects"]), queues)
        args = [self.rows.view, wp.float64(self._margin), self._own, self.filters]
        args += [self.boxes, queues["bad"], queues["objects"]]
        self._box = Task(object_box_kernel, self.total, args, self.device, grain=1024)
        about = (self.boxes, self.filters, queues, self.environments, self._method)
        self._broad = BroadPhase(*about)
        self._few = None
        if self._box_cache is not None:
            self._few = FewPairs(self._box_cache, self.rows.view, 2.0 * self._margin, self._own)
        rows = self.capacity if self._first else 0
        self.best = wp.empty(rows, dtype=wp.int64, device=self.device)
        self._clearing = self._make_clearing()

    def make_pairs(self, object_pairs: Any) -> Any:
        """ScenePairs of the objects, with the pairs of a queue."""
        pairs = ScenePairs()
        pairs.bvhs, pairs.mesh = self._bvhs, self._shapes
        pairs.poses, pairs.object_count = self._poses, self._object_count
        pairs.object_pairs, pairs.object_bits = object_pairs, self.object_layout.bits
        pairs.sharing = SHARED_BY_POSITION
        return pairs

    def _make_clearing(self) -> Task:
        keys = wp.empty(0, dtype=wp.int64, device=self.device)
        if self.device.is_cuda:
            keys = self.queues["objects"].keys
        counts = self.queues.counts
        args = [wp.int64(1 << self.width), self.boxes, counts, keys, self.best, self.flags]
        count = max(6, *(x.shape[0] for x in (counts, keys, self.best, self.flags)))
        return Task(clear_search_kernel, count, args, self.device, grain=1 << 16)

    def _sort_pairs(self) -> None:
        count = None
        if self.device.is_cpu:
            count = min(self.queues.read()["objects"], self.capacity)
        self.queues.sort_objects(self.width, count)
