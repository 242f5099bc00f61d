"""EncounterPlan: a mesh in a field, prepared once and asked about for many poses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp

from abut.field.grid import FieldGrid
from abut.field.meeting import ASKED, Encounters, Meeting, read_meeting
from abut.field.parts import BLOCK
from abut.field.picture import Sampled
from abut.lanes import WARP
from abut.mesh import Mesh
from abut.pairs import PairQueues
from abut.runtime import EVERYTHING, Kept, Task, can_capture, launch, stage

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

LEAST_BLOCKS = 1 << 12
PARTS_PER_SLICE = 1024
PART_THREADS = 1 << 16  # heavy ones: more would not run at once
ENOUGH_WARPS = 1 << 12
ITEMS_AT_ONCE = 1 << 26  # faces in all poses


class _Shared(threading.local):
    def __init__(self) -> None:
        self.plans: WeakKeyDictionary[Any, WeakKeyDictionary[Mesh, Kept]] = WeakKeyDictionary()


_shared = _Shared()


@wp.kernel
def meet_kernel(
    # in
    span: wp.vec3i,
    asked: wp.array2d[wp.float64],
    fields: wp.array[FieldGrid],
    pixel: wp.float64,
    # out
    meetings_out: wp.array[Meeting],
):
    """What was asked, as the other kernels take it."""
    for m in range(span[0] + wp.tid(), span[1], span[2]):
        meetings_out[m] = read_meeting(asked, m, fields[0], pixel)


def plans_of(field: Any, mesh: Mesh) -> Kept:
    """This thread's plans for a mesh in a field, for as long as both live."""
    by_mesh = _shared.plans.get(field)
    if by_mesh is None:
        by_mesh = _shared.plans[field] = WeakKeyDictionary()
    plans = by_mesh.get(mesh)
    if plans is None:
        plans = by_mesh[mesh] = Kept()
    return plans


def listed_count(queues: PairQueues) -> int:
    """Parts of the blocks in the queue, of the CPU."""
    return int(BLOCK) * min(queues.read()["blocks"], queues["blocks"].keys.shape[0])


class EncounterPlan:
    """Poses of one mesh in one field, and the launches that answer a question about them.

    On CUDA the launches are one graph, whose ends read and write numbers of the host.
    """

    columns: int  # of a row of answers; the last of the first row counts the blocks

    def __init__(
        self, grid: Any, mesh: Mesh, pose_count: int, pixel: float, sampling: int, moving: bool
    ) -> None:
        self.device = mesh.device
        self.pose_count = pose_count
        self.pixel = pixel
        self.moving = moving
        self.items_a_pose = -(-mesh.face_count // WARP) * WARP  # see meeting.padded
        self.item_count = pose_count * self.items_a_pose
        self._held: Any = grid
        self._points: Any = None
        self._graph: Any = None
        self._asked, self._rows = self._of_host(ASKED), self._of_host(self.columns)
        self.asked, self.rows = self._asked.numpy(), self._rows.numpy()
        self._velocities = wp.zeros(mesh.vertex_count * moving, dtype=wp.vec3d, device=self.device)
        self.encounters = self._encounters(grid, mesh, sampling)
        self.queues = PairQueues(self.device, blocks=LEAST_BLOCKS)
        self._generation = -1
        self.settled: Any = None  # what ``asked`` holds beside poses, see queries

    def ask(self, mesh: Mesh, velocities: np.ndarray | None = None) -> np.ndarray:
        """Rows of answers to ``asked``, which is filled in before. Waits for the device."""
        self._follow(mesh)
        if velocities is not None:
            self._velocities.assign(velocities)
        while True:
            if self._generation != self.queues.generation:
                self._record()
            self._go()
            count = int(self.rows[0, -1]) if self.pose_count else 0
            if not self.queues.make_room({"blocks": count}):
                return self.rows.copy()

    def stages(self) -> Iterable[tuple[str, Callable[[], None]]]:
        """The launches between the numbers that come in and those that go out."""
        raise NotImplementedError

    def over_items(self, kernel: Any, *args: Any) -> Callable[[], None]:
        """A launch over all faces of all poses."""
        given = [self.encounters, *args]
        return Task(kernel, self.item_count, given, self.device, grain=1024).run

    def over_groups(self, kernel: Any, *args: Any) -> Callable[[], None]:
        """The same for lanes that draw together, after the faces of a group of lanes are set up."""
        given, count = [self.encounters, *args], self.item_count
        if self.device.is_cuda:
            count = count // self.group * WARP
        return Task(kernel, count, given, self.device, grain=1024).run

    @property
    def group(self) -> int:
        """Lanes of a warp that set up a face: few where there are few faces, to have more warps."""
        if self.device.is_cpu:
            return 1
        fair = self.item_count // ENOUGH_WARPS
        return min(1 << max(fair.bit_length() - 1, 0), WARP)

    def over_parts(self, kernel: Any, *args: Any) -> Callable[[], None]:
        """A launch over the parts of the blocks that are listed by then."""
        given = [self.encounters, *args]
        if self.device.is_cuda:
            return Task(kernel, EVERYTHING, given, self.device, threads=PART_THREADS).run
        return lambda: launch(
            kernel, listed_count(self.queues), given, self.device, grain=PARTS_PER_SLICE
        )

    def over_poses(self, kernel: Any, times: int, *args: Any) -> Callable[[], None]:
        """A launch that makes the rows of answers: so many parts, for the lanes of a warp each."""
        given = [self.encounters, *args, self.queues.counts, self._rows]
        lanes = WARP if self.device.is_cuda else 1
        return Task(kernel, self.pose_count * times * lanes, given, self.device).run

    def _of_host(self, columns: int) -> wp.array:
        """Numbers for each pose that the host and the device see."""
        shape, pinned = (self.pose_count, columns), self.device.is_cuda
        return wp.zeros(shape, dtype=wp.float64, device="cpu", pinned=pinned)

    def _encounters(self, grid: Any, mesh: Mesh, sampling: int) -> Any:
        out = Encounters()
        out.fields = wp.array([grid], dtype=FieldGrid, device=self.device)
        out.meshes = wp.empty(1, dtype=Sampled, device=self.device)
        out.meetings = wp.zeros(self.pose_count, dtype=Meeting, device=self.device)
        firsts = np.arange(self.pose_count + 1, dtype=np.int32) * self.items_a_pose
        out.firsts = wp.array(firsts, dtype=wp.int32, device=self.device)
        out.sampling = sampling
        return out

    def _follow(self, mesh: Mesh) -> None:
        """Take the mesh's vertices as they are now."""
        if mesh.points is self._points:
            return
        view = Sampled()
        view.points, view.faces, view.velocities = mesh.points, mesh.faces, self._velocities
        wp.copy(self.encounters.meshes, wp.array([view], dtype=Sampled, device=self.device))
        self._points = mesh.points

    def _record(self) -> None:
        args = [self._asked, self.encounters.fields, wp.float64(self.pixel)]
        args.append(self.encounters.meetings)
        meet = Task(meet_kernel, self.pose_count, args, self.device)
        self._stages = [("meet", meet.run), *self.stages()]
        self._graph = None
        if can_capture(self.device):
            with wp.ScopedCapture(self.device) as capture:
                self._run_stages()
            self._graph = capture.graph
        self._generation = self.queues.generation

    def _run_stages(self) -> None:
        for name, run in self._stages:
            with stage(name, self.device):
                run()

    def _go(self) -> None:
        if self._graph is None:
            self._run_stages()
        else:
            wp.capture_launch(self._graph)
        if self.device.is_cuda:
            wp.synchronize_stream(self.device)
