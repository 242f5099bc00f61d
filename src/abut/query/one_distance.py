"""OneDistance: two meshes prepared for questions about their distance at one pose of each."""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import Bvh
from abut.core.call import Call
from abut.core.lanes import WARP_SIZE
from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import KeyLayout, PairQueues
from abut.core.team import TEAM_GRID, TRIPLE_BLOCK
from abut.geometry.common_corners import SHARED_NONE
from abut.mesh import Mesh
from abut.narrow.candidate_distance import lower_bounds_kernel_for, pick_nearest_kernel_for
from abut.operands.distance_queues import distance_queues
from abut.operands.posed_mesh import make_posed_mesh
from abut.operands.posed_pairs import MeshPairs, WorkItems, mesh_pairs
from abut.options import Bound
from abut.query.contact_stages import Strategy
from abut.query.distance_stages import CUDA_TEAMS, MOST_SAMPLES
from abut.results import Distances
from abut.traversal.distance.extremal_faces import far_field_kernel_for
from abut.traversal.distance.near_pairs import near_leaves_kernel_for
from abut.traversal.distance.one_nearest import (
    ANSWERED,
    FAR_APART,
    answer_one_kernel,
    begin_one_kernel,
)
from abut.traversal.distance.seed import sample_kernel_for
from abut.traversal.distance.team_nearest import team_nearest_kernel_for

ANSWERED_INT, FAR_APART_INT = int(ANSWERED), int(FAR_APART)


class OneDistance:
    """Two meshes prepared for questions about their distance at one pose of each.

    Args:
        a, b: The meshes, in their present shapes.
        trees: Their hierarchies.
        bound: Bounding volume of the trees to use.
        extents: MeshExtent of each.
        posed: Which of them have a pose.
        queues: With ``undecided`` and ``candidates``; good until one of them is reallocated.
        strategy: DESCEND or LEAF_WALK; None chooses by the processor.
    """

    def __init__(
        self,
        a: Mesh,
        b: Mesh,
        trees: Sequence[Bvh],
        bound: Bound,
        extents: Sequence[Any],
        posed: tuple[bool, bool],
        queues: PairQueues,
        strategy: Strategy | None = None,
    ) -> None:
        self._device, self._queues, self._bound = a.device, queues, bound
        sides = [make_posed_mesh(mesh.points, mesh.faces) for mesh in (a, b)]
        moving = [side for side, moves in zip(sides, posed, strict=True) if moves]
        poses = [self._one(wp.mat44d) for _ in moving]
        for side, pose in zip(moving, poses, strict=True):
            side.poses, side.pose_count = pose, 1
        views = [tree.view(bound) for tree in trees]
        self._view = mesh_pairs(sides[0], sides[1], SHARED_NONE, 1, views, extents)
        layout = KeyLayout.of(a.face_count, b.face_count)
        self._out = distance_queues(queues, layout, self._one(wp.int64))
        self._frame, self._field = self._one(RelativeFrame), self._one(wp.int32)
        self._counter, self._key = self._one(wp.int32), self._one(wp.int64)
        upper_bound, faces = self._one(wp.float64), self._one(wp.vec3i)
        numbers = wp.empty((1, 7), dtype=wp.float64, device=a.device)
        if strategy is None:
            strategy = Strategy.LEAF_WALK if a.device.is_cuda else Strategy.DESCEND
        search = self._teams() if strategy is Strategy.DESCEND else self._listing()
        about = self._view, upper_bound, self._out, queues["candidates"]
        begin = [*about, self._frame, self._field, self._counter, self._key]
        self._answer = [*about, self._field, self._key], [faces, numbers]
        tasks = [self._task(begin_one_kernel, 1, begin), *search, self._answering(far=False)]
        self._call = Call(tasks, [upper_bound, *poses], [faces, numbers])
        self._bound_view, *self._pose_views = self._call.inputs

    def ask(self, poses: Sequence[np.ndarray], upper_bound: float) -> Distances | None:
        """Return the answer for the poses of the meshes that have one; None where a plan must.

        Faces that meet are not named: they are -1 for a distance of 0.
        """
        for view, pose in zip(self._pose_views, poses, strict=True):
            view[0] = pose
        self._bound_view[0] = upper_bound
        self._call.run()
        faces, numbers = self._call.outputs
        outcome, *pair = faces[0].tolist()
        if outcome == FAR_APART_INT:
            self._far_call.run()
            faces, numbers = self._far_call.outputs
            outcome, *pair = faces[0].tolist()
        if outcome != ANSWERED_INT:
            return None
        distance, *points = numbers[0].tolist()
        witnesses = partial(_witnesses, points, self._device)
        return Distances(distance, np.array(pair, np.int32), self._device, witnesses)

    @cached_property
    def _far_call(self) -> Call:
        """The search of meshes that are far apart for their size, after a call that said so."""
        args = [self._view, self._out, self._field, self._key]
        search = self._task(far_field_kernel_for(MeshPairs, False), 1, args)
        return Call([search, self._answering(far=True)], [], self._answer[1])

    def _answering(self, far: bool) -> Task:
        about, out = self._answer
        return self._task(answer_one_kernel, 1, [*about, far, *out])

    def _teams(self) -> list[Task]:
        """A search by a team, or by many on CUDA."""
        items, cuda, candidates = WorkItems(), self._device.is_cuda, self._queues["candidates"]
        items.deepest = (CUDA_TEAMS if cuda else 1).bit_length() - 1
        items.each = 1 << items.deepest
        args = [self._view, items, self._field, self._counter, self._out, candidates]
        args += [self._one(wp.int64), self._key]
        kernel = team_nearest_kernel_for(MeshPairs, self._bound, cuda)
        if not cuda:
            return [self._task(kernel, 1, args)]
        options = {"threads": min(TEAM_GRID, WARP_SIZE * items.each), "block": TRIPLE_BLOCK}
        search = Task(kernel, UNKNOWN_COUNT, args, self._device, **options)
        return [search, *self._measure()]

    def _listing(self) -> list[Task]:
        """A first bound, then all faces nearer than that by many threads."""
        view, items, candidates = self._view, WorkItems(), self._queues["candidates"]
        items.each = view.a.faces.shape[0]
        samples = min(items.each, MOST_SAMPLES)
        seed = [view, self._frame, self._field, samples, self._out]
        leaves = [view, self._frame, items, self._field, self._out, candidates]
        tasks = [self._task(sample_kernel_for(MeshPairs), samples, seed)]
        tasks.append(self._task(near_leaves_kernel_for(MeshPairs), items.each, leaves))
        return [*tasks, *self._measure()]

    def _measure(self) -> list[Task]:
        """Lower the bound to the distances of the candidates, and choose the nearest."""
        view, candidates = self._view, self._queues["candidates"]
        lower, pick = lower_bounds_kernel_for(MeshPairs), pick_nearest_kernel_for(MeshPairs)
        return [
            self._task(lower, UNKNOWN_COUNT, [view, candidates, self._out]),
            self._task(pick, UNKNOWN_COUNT, [view, self._out, candidates, self._key]),
        ]

    def _task(self, kernel: wp.Kernel, count: int, args: Sequence[Any]) -> Task:
        return Task(kernel, count, args, self._device, grain=UNKNOWN_COUNT)

    def _one(self, dtype: Any, count: int = 1) -> wp.array:
        return wp.zeros(count, dtype=dtype, device=self._device)


def _witnesses(points: Sequence[float], device: wp.Device) -> wp.array:
    numbers = np.reshape(points, (2, 3))
    return wp.array(numbers, dtype=wp.float64, device=device, copy=device.is_cuda)
