"""FieldPlan: the stages of a question about a mesh in a field, for a number of poses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

import numpy as np
import warp as wp

from abut.core.cache import RecentCache, ThreadCache
from abut.core.lanes import WARP_SIZE
from abut.core.launch import Task
from abut.core.pickling import PicklableResult
from abut.core.plan import Plan, Stage
from abut.core.progress import tracked
from abut.errors import CapacityError
from abut.mesh import Mesh
from abut.options import Sampling
from abut.sdf.draw_batches import QUEUES, DrawQueues
from abut.sdf.field_arguments import pixel_of
from abut.sdf.field_pairs import (
    FieldOperands,
    FieldPair,
    PairInput,
    pixel_transform,
    read_pair,
    read_pose,
)
from abut.sdf.grid import FieldGrid
from abut.sdf.orthographic_raster import SampledMesh

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

SAMPLINGS = tuple(Sampling)  # their numbers in kernels
LEAST_KEYS, MOST_KEYS_AT_FIRST = 1 << 12, 1 << 20  # of each queue
MOST_FACES = 1 << 26
FACES_AT_ONCE = 1 << 22  # in all poses: their patches take memory
LARGE_STAGES = frozenset({"sample large", "blocks", "tiles", "locate"})  # only for large faces


class _Last(threading.local):
    """Weak references to the field, mesh and plan of this thread's last call, and its key."""

    entry: tuple[Any, ...] | None = None


_last = _Last()
_plans = ThreadCache()
_queues = ThreadCache()  # shared by the plans of a thread, which run one at a time


@wp.kernel
def read_pairs_kernel(
    # in
    span: wp.vec3i,
    inputs: wp.array[PairInput],
    fields: wp.array[FieldGrid],
    pixel: wp.float64,
    poses_only: wp.bool,
    # out
    pairs_out: wp.array[FieldPair],
):
    """Unpack the inputs of all pairs, or the poses where nothing else differs from the last run.

    Pairs are not in motion then.
    """
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if poses_only:
            pose = read_pose(inputs[i])
            pairs_out[i].pose = pose
            pairs_out[i].to_pixels = pixel_transform(pose, fields[0].lower, pixel)
        else:
            pairs_out[i] = read_pair(inputs[i], fields[0], pixel)


@dataclass(frozen=True, eq=False, repr=False)
class PlanRows(PicklableResult):
    """Rows of answers of a FieldPlan, one per pose."""

    _rows: np.ndarray = field(repr=False)
    _single: bool = field(repr=False)
    _device: wp.Device = field(repr=False)

    def _array(self, rows: np.ndarray, dtype: Any = wp.float64) -> wp.array:
        """Return rows on the device; for a single pose without their first axis."""
        rows = np.ascontiguousarray(rows[0] if self._single else rows)
        return wp.array(rows, dtype=dtype, device=self._device)

    def _number(self, column: int, dtype: Any = float) -> Any:
        """Return a number per pose; a plain one for a single pose."""
        numbers = self._rows[:, column].astype(dtype)
        return numbers[0].item() if self._single else wp.array(numbers, device=self._device)


def answer_rows(
    plan_type: type[FieldPlan],
    field: Any,
    mesh: Mesh,
    poses: np.ndarray,
    pixels: int,
    options: dict[str, Any],
    *,
    constants: Any,
    fill: Callable[[np.ndarray, slice], None],
    velocities: np.ndarray | None = None,
    keep: Callable[[Any, slice], None] | None = None,
) -> np.ndarray:
    """Return the rows of answers for poses (B, 4, 4), in equal chunks where faces are many.

    Args:
        plan_type: The kind of plan to ask.
        field, mesh, poses, pixels: See DistanceField.closest.
        options: Of the plan.
        constants, velocities: See FieldPlan.ask.
        fill: Writes the inputs of a chunk beside the poses.
        keep: Takes what else the plan has found for a chunk.
    """
    pixel, count = pixel_of(field, pixels), len(poses)
    if mesh.face_count > MOST_FACES:
        raise CapacityError(f"{mesh.face_count} faces are too many; {MOST_FACES} is the most.")
    chunk_count = min(-(-count * mesh.face_count // FACES_AT_ONCE), count)
    step = -(-count // max(chunk_count, 1))
    key = plan_type, step, int(pixels), *options.values()
    plan = plan_for(field, mesh, key, lambda: plan_type(field, mesh, step, pixel, **options))
    rows = np.empty((count, plan_type.columns))
    starts = range(0, count, max(step, 1))
    for start in tracked(starts, len(starts)):
        chunk = slice(min(start, count - step), min(start + step, count))
        rows[chunk] = plan.ask(mesh, poses, chunk, constants, fill, velocities)
        if keep is not None:
            keep(plan, chunk)
    return rows


def plan_for(field: Any, mesh: Mesh, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """Return this thread's plan for a mesh in a field; it lives as long as both."""
    last = _last.entry
    if last is not None and last[0]() is field and last[1]() is mesh and last[2] == key:
        plan = last[3]()
        if plan is not None:
            return plan
    plan = _plans.get((field, mesh), RecentCache).get(key, make)
    _last.entry = ref(field), ref(mesh), key, ref(plan)
    return plan


def _queues_for(device: wp.Device, key_count: int) -> DrawQueues:
    """Return this thread's queues, with room for ``key_count`` keys within limits."""
    queues = _queues.on(device, lambda: DrawQueues(device, LEAST_KEYS))
    capacity = min(max(key_count, LEAST_KEYS), MOST_KEYS_AT_FIRST)
    queues.make_room(dict.fromkeys(QUEUES, capacity))
    return queues


class FieldPlan:
    """Poses of one mesh in one field, and the stages that answer a question about them.

    The first stage reads the inputs from host memory, the last one writes the rows and the counts
    of the queues there, and clears the queues. Stages for large faces are skipped until there is
    one.

    Args:
        field: The DistanceField; only its arrays are held.
        mesh: The mesh; its vertices are taken anew at every call.
        pose_count: Poses of a call.
        pixel: Side of a pixel [length].
        sampling: Samples of the mesh.
        vertex_velocities: Whether calls pass velocities of the mesh's vertices.
    """

    columns: int  # of a row of answers; after them the first row holds the counts of the queues

    def __init__(
        self,
        field: Any,
        mesh: Mesh,
        pose_count: int,
        pixel: float,
        sampling: Sampling,
        vertex_velocities: bool = False,
    ) -> None:
        self.device, self.pose_count, self.pixel = mesh.device, pose_count, pixel
        self.vertex_count = mesh.vertex_count
        self.items_per_pose = -(-self._items_of(mesh) // WARP_SIZE) * WARP_SIZE  # padded_item_count
        self.item_count = pose_count * self.items_per_pose
        self._grid = field.grid  # holds the arrays
        self._points: Any = None
        self._inputs = self._host_array(pose_count, PairInput)
        self.queues = self._make_queues()
        columns = self.columns + len(self.queues.queues)
        self._rows = self._host_array((pose_count, columns), wp.float64)
        self._input_view, self._row_view = self._inputs.numpy(), self._rows.numpy()
        velocity_count = mesh.vertex_count if vertex_velocities else 0
        self._velocities = wp.zeros(velocity_count, dtype=wp.vec3d, device=self.device)
        self.operands = self._make_operands(SAMPLINGS.index(sampling))
        self._constants: Any = None  # of the last call
        self._poses_only = False  # whether pairs on the device are up to date but for the poses
        self._has_large = False
        options = {"accept": self._accept, "read": self._read_counts, "graph": True}
        self._plan = Plan(self.queues, self._record, clear=lambda: None, **options)

    def ask(
        self,
        mesh: Mesh,
        poses: np.ndarray,
        chunk: slice,
        constants: Any,
        fill: Callable[[np.ndarray, slice], None],
        velocities: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the rows of answers for a chunk of poses, valid until the next call.

        Waits for the device.

        Args:
            mesh: The plan's mesh as it is now.
            poses: (B, 4, 4), all of them.
            chunk: As many as the plan is for.
            constants: Whatever inputs depend on beside poses; None always differs.
            fill: Writes those inputs, called when ``constants`` differ from the last call's.
            velocities: (n, 3) of the vertices.
        """
        self._follow(mesh)
        if velocities is not None:
            self._velocities.assign(velocities)
        if constants is None or constants != self._constants:
            fill(self._input_view, chunk)
            self._constants, self._poses_only = constants, False
        self._input_view[:, :16] = poses[chunk].reshape(-1, 16)
        if self.pose_count:
            self._run()
        return self._row_view[:, : self.columns]

    def stages(self) -> Iterable[Stage]:
        """Yield the stages after the pairs are read; the last one makes the rows."""
        raise NotImplementedError

    def over_items(self, kernel: wp.Kernel, *args: Any) -> Callable[[], None]:
        """Return a launch over all faces of all poses."""
        return Task(kernel, self.item_count, [self.operands, *args], self.device, grain=1024).run

    def over(
        self, name: str, kernel: wp.Kernel, *args: Any, per_key: int = 1
    ) -> Callable[[], None]:
        """Return a launch over the keys of a queue."""
        return self.queues.over(name, kernel, [self.operands, *args], per_key=per_key)

    def over_rows(self, kernel: wp.Kernel, warps: int, *args: Any) -> Callable[[], None]:
        """Return a launch that makes the rows of answers, ``warps`` of them a row."""
        every = [self.operands, *args, self.queues.counts, self._rows]
        lanes = WARP_SIZE if self.device.is_cuda else 1
        return Task(kernel, self.pose_count * warps * lanes, every, self.device).run

    def _host_array(self, shape: Any, dtype: Any) -> wp.array:
        return wp.zeros(shape, dtype=dtype, device="cpu", pinned=self.device.is_cuda)

    def _items_of(self, mesh: Mesh) -> int:
        """Return the number of items of a pose."""
        return mesh.face_count

    def _make_queues(self) -> DrawQueues:
        """Return the queues, which the plans of a thread share."""
        return _queues_for(self.device, self.item_count)

    def _undo(self) -> None:
        """Undo the changes of a run whose buffers were too small."""

    def _make_operands(self, sampling: int) -> Any:
        out = FieldOperands()
        out.fields = wp.array([self._grid], dtype=FieldGrid, device=self.device)
        out.meshes = wp.empty(1, dtype=SampledMesh, device=self.device)
        out.pairs = wp.zeros(self.pose_count, dtype=FieldPair, device=self.device)
        first_item = np.arange(self.pose_count + 1, dtype=np.int32) * self.items_per_pose
        out.first_item = wp.array(first_item, dtype=wp.int32, device=self.device)
        out.sampling = sampling
        return out

    def _follow(self, mesh: Mesh) -> None:
        """Take the mesh's vertices as they are now."""
        if mesh.points is self._points:
            return
        view = SampledMesh()
        view.points, view.faces, view.velocities = mesh.points, mesh.faces, self._velocities
        wp.copy(self.operands.meshes, wp.array([view], dtype=SampledMesh, device=self.device))
        self._points = mesh.points

    def _run(self) -> None:
        self._plan.skipped = SKIPPED[self._poses_only, self._has_large]
        try:
            self._plan.run(undo=self._undo)
        except BaseException:  # sums and queues are half filled
            self._plan.forget()
            self.queues.clear()
            raise
        self._poses_only = self._constants is not None

    def _record(self) -> Iterable[Stage]:
        args = [self._inputs, self.operands.fields, wp.float64(self.pixel)]
        for name, poses_only in (("pairs", False), ("poses", True)):
            every = [*args, poses_only, self.operands.pairs]
            yield name, Task(read_pairs_kernel, self.pose_count, every, self.device).run
        yield from self.stages()

    def _read_counts(self) -> dict[str, int]:
        if self.device.is_cuda:
            wp.synchronize_stream(self.device)
        counts = map(int, self._row_view[0, self.columns :].tolist())
        return dict(zip(self.queues.queues, counts, strict=True))

    def _accept(self, counts: dict[str, int]) -> bool:
        """Return False on the first large face: the run has left it out."""
        if self._has_large or not counts["large"]:
            return True
        self._has_large = True
        self._plan.skipped = SKIPPED[self._poses_only, True]
        return False


SKIPPED = {
    (poses_only, has_large): frozenset({"pairs" if poses_only else "poses"})
    | (frozenset() if has_large else LARGE_STAGES)
    for poses_only in (False, True)
    for has_large in (False, True)
}
