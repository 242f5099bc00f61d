"""EncounterPlan: a mesh in a field, prepared once and asked about for many poses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from operator import le
from typing import Any
from weakref import ref

import numpy as np
import warp as wp

from abut.core.cache import RecentCache, ThreadCache
from abut.core.device import can_capture
from abut.core.lanes import WARP_SIZE
from abut.core.launch import Task
from abut.core.pair_queue import PairQueues
from abut.core.timing import stage
from abut.mesh import Mesh
from abut.sdf.draw_batches import QUEUES, missing_room, patches_in
from abut.sdf.grid import FieldGrid
from abut.sdf.launches import over_large, over_listed, over_parts, over_turns
from abut.sdf.orthographic_raster import SampledMesh
from abut.sdf.posed_in_field import (
    FieldOperands,
    FieldPair,
    PairInput,
    pixel_transform,
    read_pair,
    read_pose,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

LEAST_ROOM, MOST_ROOM = 1 << 12, 1 << 20  # in lists, at first
OF_LARGE = {"near", "blocks", "parts", "locate"}  # stages


class Room:
    """Queues of what is listed, and patches: room that plans lend each other, one at a time."""

    def __init__(self, device: wp.Device) -> None:
        self.queues = PairQueues(device, **dict.fromkeys(QUEUES, LEAST_ROOM))
        self.patches: Any = None

    @staticmethod
    def of(device: wp.Device, listed: int) -> Room:
        """This thread's, where so many things can be listed at first, within reason."""
        room = _rooms.on(device, lambda: Room(device))
        room.grow(dict.fromkeys(QUEUES, min(max(listed, LEAST_ROOM), MOST_ROOM)))
        return room

    def grow(self, counts: dict[str, int]) -> None:
        """Make room for so many things."""
        if self.queues.make_room(counts) or self.patches is None:
            self.patches = patches_in(self.queues)


class _Last(threading.local):
    """References to the field, mesh, key and plan of this thread's last call."""

    entry: tuple[Any, ...] | None = None


_last = _Last()
_plans = ThreadCache()
_rooms = ThreadCache()


@wp.kernel
def read_pairs_kernel(
    # in
    span: wp.vec3i,
    inputs: wp.array[PairInput],
    fields: wp.array[FieldGrid],
    pixel: wp.float64,
    # out
    pairs_out: wp.array[FieldPair],
):
    """What was asked, as the other kernels take it."""
    for pair_index in range(span[0] + wp.tid(), span[1], span[2]):
        pairs_out[pair_index] = read_pair(inputs[pair_index], fields[0], pixel)


@wp.kernel
def read_poses_kernel(
    # in
    span: wp.vec3i,
    inputs: wp.array[PairInput],
    fields: wp.array[FieldGrid],
    pixel: wp.float64,
    # out
    pairs_out: wp.array[FieldPair],
):
    """The same where only poses are new, and nothing has a velocity."""
    for pair_index in range(span[0] + wp.tid(), span[1], span[2]):
        pose = read_pose(inputs[pair_index])
        pairs_out[pair_index].pose = pose
        pairs_out[pair_index].to_pixels = pixel_transform(pose, fields[0].lower, pixel)


def plan_for(field: Any, mesh: Mesh, about: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """This thread's plan for a mesh in a field, for as long as both live."""
    last = _last.entry
    if last is not None and last[0]() is field and last[1]() is mesh and last[2] == about:
        plan = last[3]()
        if plan is not None:
            return plan
    plan = _plans.get((field, mesh), RecentCache).get(about, make)
    _last.entry = ref(field), ref(mesh), about, ref(plan)
    return plan


class FieldPlan:
    """Poses of one mesh in one field, and the launches that answer a question about them.

    On CUDA the launches are one graph, whose ends read and write numbers of the host. It is short
    where only poses are new, and where no face was large so far.
    """

    columns: int  # of a row of answers; after them the first row counts what was listed

    def __init__(
        self, grid: Any, mesh: Mesh, pose_count: int, pixel: float, sampling: int, moving: bool
    ) -> None:
        self.device = mesh.device
        self.pose_count = pose_count
        self.pixel = pixel
        self.items_a_pose = -(-mesh.face_count // WARP_SIZE) * WARP_SIZE  # see meeting.padded
        self.item_count = pose_count * self.items_a_pose
        self._held: Any = grid
        self._points: Any = None
        self._graphs: dict[tuple[bool, bool], Any] = {}
        shape = (pose_count, self.columns + len(QUEUES))
        self._asked, self._rows = (
            self._of_host(pose_count, PairInput),
            self._of_host(shape, wp.float64),
        )
        self.inputs, self.rows = self._asked.numpy(), self._rows.numpy()
        self._velocities = wp.zeros(mesh.vertex_count * moving, dtype=wp.vec3d, device=self.device)
        self.operands = self._encounters(grid, mesh, sampling)
        self.poses = self.inputs[:, :16]
        self.room = Room.of(self.device, self.item_count)
        self.queues = self.room.queues
        self._generation = -1  # of the queues that launches were recorded for
        self._large = False  # whether there are large faces
        self.settle(None)

    def settle(self, about: Any) -> None:
        """Say what ``inputs`` holds beside poses, from now on; None: something else every time."""
        self.settled = about
        self._known = False

    def ask(self, mesh: Mesh, velocities: np.ndarray | None = None) -> np.ndarray:
        """Rows of answers to ``inputs``, which is filled in before. Waits for the device."""
        self._follow(mesh)
        if velocities is not None:
            self._velocities.assign(velocities)
        while True:
            if self._generation != self.queues.generation:
                self._record()
            try:
                self._go()
            except BaseException:
                self._forget()
                raise
            if not self.pose_count or not self._falls_short():
                self._known = self.settled is not None
                return self.rows[:, : self.columns].copy()

    def stages(self) -> Iterable[tuple[str, Callable[[], None]]]:
        """The launches between the numbers that come in and those that go out."""
        raise NotImplementedError

    def lists(self, *names: str) -> list[Any]:
        """Queues of what is listed."""
        return [self.queues[name] for name in names]

    def over_items(self, kernel: Any, *args: Any) -> Callable[[], None]:
        """A launch over all faces of all poses."""
        given = [self.operands, *args]
        return Task(kernel, self.item_count, given, self.device, grain=1024).run

    def over_listed(self, name: str, kernel: Any, *args: Any) -> Callable[[], None]:
        """A launch over what is listed in a queue by then."""
        return over_listed(self.queues, name, kernel, [self.operands, *args])

    def over_large(self, kernel: Any, *args: Any) -> Callable[[], None]:
        """A launch over the large faces that are listed by then."""
        return over_large(self.queues, kernel, [self.operands, *args])

    def over_parts(self, kernel: Any, *args: Any) -> Callable[[], None]:
        """A launch over the parts of the blocks that are listed by then."""
        return over_parts(self.queues, kernel, [self.operands, *args])

    def over_turns(self, kernel: Any, *args: Any) -> Callable[[], None]:
        """A launch over the turns that are listed by then."""
        return over_turns(self.queues, kernel, [self.operands, *args])

    def over_poses(self, kernel: Any, times: int, *args: Any) -> Callable[[], None]:
        """A launch that makes the rows of answers: so many parts, for the lanes of a warp each."""
        given = [self.operands, *args, self.queues.counts, self._rows]
        lanes = WARP_SIZE if self.device.is_cuda else 1
        return Task(kernel, self.pose_count * times * lanes, given, self.device).run

    def _of_host(self, shape: Any, dtype: Any) -> wp.array:
        """Numbers that the host and the device see."""
        return wp.zeros(shape, dtype=dtype, device="cpu", pinned=self.device.is_cuda)

    def _encounters(self, grid: Any, mesh: Mesh, sampling: int) -> Any:
        out = FieldOperands()
        out.fields = wp.array([grid], dtype=FieldGrid, device=self.device)
        out.meshes = wp.empty(1, dtype=SampledMesh, device=self.device)
        out.pairs = wp.zeros(self.pose_count, dtype=FieldPair, device=self.device)
        first_item = np.arange(self.pose_count + 1, dtype=np.int32) * self.items_a_pose
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

    def _falls_short(self) -> bool:
        """Whether something found no room or was left out; next time it will not be."""
        counts = self.rows[0, self.columns :].tolist()
        if all(map(le, counts, self._most)):
            return False
        listed = dict(zip(QUEUES, map(int, counts), strict=True))
        self._large |= listed["large"] > 0
        self.room.grow(missing_room(listed, self.queues.room()))
        self._generation = -1
        return True

    def _forget(self) -> None:
        """Begin anew: something was interrupted, and sums and lists are half made."""
        self._generation = -1
        self.queues.clear()

    def _record(self) -> None:
        self.patches = self.room.patches
        room = self.queues.room()
        self._most = [room[name] if self._large or name != "large" else 0 for name in QUEUES]
        args = [self._asked, self.operands.fields, wp.float64(self.pixel)]
        args.append(self.operands.pairs)
        kernels = {"meet": read_pairs_kernel, "move": read_poses_kernel}
        begin = [(n, Task(k, self.pose_count, args, self.device).run) for n, k in kernels.items()]
        self._stages = [*begin, *self.stages()]
        self._graphs.clear()
        self._generation = self.queues.generation

    def _run_stages(self) -> None:
        skipped = {"meet" if self._known else "move"} | (set() if self._large else OF_LARGE)
        for name, run in self._stages:
            if name not in skipped:
                with stage(name, self.device):
                    run()

    def _go(self) -> None:
        kind = self._known, self._large
        graph = self._graphs.get(kind)
        if graph is None and can_capture(self.device):
            with wp.ScopedCapture(self.device) as capture:
                self._run_stages()
            graph = self._graphs[kind] = capture.graph
        if graph is None:
            self._run_stages()
        else:
            wp.capture_launch(graph)
        if self.device.is_cuda:
            wp.synchronize_stream(self.device)
