"""SceneSearch: what every search of a whole scene begins with."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.broad.boxes import empty_boxes, make_filters
from abut.broad.phase import BroadPhase, object_layout
from abut.broad.posed import box_kernel, forget_kernel
from abut.core.launch import Task
from abut.core.pair_queue import KeyLayout
from abut.core.plan import Stage
from abut.errors import CapacityError, PoseError
from abut.geometry.common_corners import SHARED_BY_POSITION
from abut.operands.pair_rows import SceneRows
from abut.operands.posed_pairs import ScenePairs
from abut.options import BroadMethod
from abut.scene.objects import Objects
from abut.scene.queues import SceneQueues
from abut.scene.shape_pool import ShapePool


class SceneSearch:
    """What every search of a scene begins with, prepared for a scene as it is: boxes and pairs.

    Args:
        pool, objects, queues: The scene.
        poses: Of all objects of all copies.
        copies: Copies of the scene.
        own: Also list each object and itself.
        margin: How much boxes are larger than what they hold.
        broad: How pairs of objects are found.
    """

    def __init__(
        self,
        pool: ShapePool,
        objects: Objects,
        queues: SceneQueues,
        poses: wp.array,
        copies: int = 1,
        *,
        own: bool = False,
        margin: float = 0.0,
        broad: BroadMethod | None = None,
    ) -> None:
        self.device, self.queues, self.copies = pool.device, queues, copies
        self.best: wp.array | None = None  # the pair found for each row, where one is wanted
        self.layout = KeyLayout.of(pool.arrays.most_faces, pool.arrays.most_faces)
        self.objects = object_layout(max(len(objects), 1), copies)
        self.width = self.objects.width + max(copies - 1, 0).bit_length()
        self.total = len(objects) * copies
        self.capacity = queues["objects"].keys.shape[0]
        if self.capacity >= 1 << (62 - self.layout.width):
            raise CapacityError("the scene has too many pairs of objects for meshes of this size.")
        self.pairs = self._make_pairs(pool, objects, poses)
        self.rows = SceneRows(self.pairs, queues)
        self.boxes = empty_boxes(len(objects), copies, self.device)
        about = (objects.static, objects.group, objects.mask, objects.ignored)
        self.filters = make_filters(*about, self.device)
        self._version = objects.version
        args = [self.pairs, wp.float64(margin), own, self.boxes, queues["bad"], queues["objects"]]
        self._box = Task(box_kernel, self.total, args, self.device, grain=1024)
        self._broad = BroadPhase(self.boxes, self.filters, queues, copies, broad)
        self.flags = wp.zeros(copies, dtype=wp.int32, device=self.device)
        self._frames = wp.empty(self.capacity, dtype=RelativeFrame, device=self.device)

    def follow(self, objects: Objects) -> None:
        """Take over who the objects are now: as many as before, with as many ignored pairs."""
        if self._version == objects.version:
            return
        self._version = objects.version
        if len(objects):
            about = (objects.static, objects.group, objects.mask, objects.ignored)
            new = make_filters(*about, self.device)
            wp.copy(self.filters.about, new.about)
            if new.ignored.shape[0]:
                wp.copy(self.filters.ignored, new.ignored)
            self.pairs.mesh.assign(objects.body)

    def _make_pairs(self, pool: ShapePool, objects: Objects, poses: wp.array) -> Any:
        pairs = ScenePairs()
        pairs.bvhs = pool.arrays.bvhs
        pairs.mesh = wp.array(objects.body, dtype=wp.int32, device=self.device)
        pairs.poses, pairs.object_count = poses, len(objects)
        pairs.object_pairs, pairs.object_bits = self.queues["objects"], self.objects.bits
        pairs.sharing = SHARED_BY_POSITION
        return pairs

    def broad_stages(self) -> Iterator[Stage]:
        """Stages that list the pairs of objects whose boxes overlap, in order."""
        yield "boxes", self._box.run
        yield "broad", self._find_pairs
        yield "sort", self._sort_pairs

    def _sort_pairs(self) -> None:
        count = None
        if self.device.is_cpu:
            count = min(self.queues.read()["objects"], self.capacity)
        self.queues.sort_objects(self.width, count)

    @cached_property
    def _forget(self) -> Task:
        """Begins anew."""
        nothing = wp.empty(0, dtype=wp.int64, device=self.device)
        best = self.best if self.best is not None else nothing
        args = [wp.int64(1 << self.width), self.boxes, self.queues.counts]
        args += [self.queues["objects"].keys if self.device.is_cuda else nothing, best, self.flags]
        count = max(self.capacity if self.device.is_cuda else len(self.queues.queues), 6)
        count = max(count, best.shape[0], self.flags.shape[0])
        return Task(forget_kernel, count, args, self.device, grain=1 << 16)

    def _find_pairs(self) -> None:
        self._broad.run()

    def _clear(self) -> None:
        self._forget.run()

    def _accept(self, counts: dict[str, int]) -> bool:
        self._require_rigid(counts)
        return True

    def _require_rigid(self, counts: dict[str, int]) -> None:
        """Refuse poses that are no rigid motions; the lowest is named where all found room."""
        if counts["bad"]:
            held = min(counts["bad"], self.queues["bad"].keys.shape[0])
            bad = int(self.queues["bad"].keys[:held].numpy().min())
            copy, row = divmod(bad, max(self.pairs.object_count, 1))
            where = f" in copy {copy}" if self.copies > 1 else ""
            raise PoseError(f"the pose of object {row}{where} is not a rigid motion.")
