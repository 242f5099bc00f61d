"""OneDistance: two meshes prepared for questions about their distance at one pose of each."""

from collections.abc import Sequence
from functools import cached_property, partial
from time import perf_counter
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.deferred_subtrees import build_deferred
from abut.bvh.layout import Bvh
from abut.core.call import Call
from abut.core.lanes import WARP_SIZE
from abut.core.launch import UNKNOWN_COUNT, Task
from abut.core.pair_queue import KeyLayout, PairQueue, PairQueues
from abut.core.team import TRIPLE_BLOCK
from abut.geometry.common_corners import SHARED_NONE
from abut.mesh import Mesh
from abut.narrow.candidate_distance import lower_bounds_kernel_for, pick_nearest_kernel_for
from abut.operands.distance_queues import distance_queues
from abut.operands.posed_mesh import make_posed_mesh
from abut.operands.posed_pairs import MeshPairs, WorkItems, mesh_pairs
from abut.options import Bound
from abut.query.contact_stages import Strategy
from abut.query.distance_stages import LEAF_SAMPLES
from abut.query.team_passes import CUDA_TEAMS, rounds_of, team_passes
from abut.results import Distances
from abut.traversal.distance.extremal_faces import far_field_kernel_for
from abut.traversal.distance.near_pairs import near_leaves_kernel_for
from abut.traversal.distance.one_nearest import (
    ANSWERED,
    CROWDED,
    FAR_APART,
    answer_one_kernel,
    begin_one_kernel,
)
from abut.traversal.distance.seed import sample_kernel_for
from abut.traversal.distance.team_nearest import team_nearest_kernel_for

ANSWERED_INT, FAR_APART_INT, CROWDED_INT = int(ANSWERED), int(FAR_APART), int(CROWDED)
LISTING_SAMPLES = 1 << 14  # leaves that look for a first bound; the better it is, the fewer faces
MOST_WALK_NODES = 1 << 10  # of a walk
MOST_LISTED_PAIRS = 1 << 17  # of all walks
LONG_S = 0.02  # of a search by one thread, after which
FOR_THREADS = 16  # questions are for all threads, where meshes are large


class OneDistance:
    """Two meshes prepared for questions about their distance at one pose of each.

    Args:
        a, b: The meshes, in their present shapes.
        trees: Their hierarchies.
        bound: Bounding volume of the trees to use.
        extents: MeshExtent of each.
        posed: Which of them have a pose.
        queues: With ``undecided``, ``candidates`` and ``skipped``; good until one of them is
            reallocated.
        strategy: DESCEND, or LEAF_WALK, which is faster on CUDA where few faces are near.

    Attributes:
        crowded: Too many faces were near at some pose: a leaf walk is not the way to ask.
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
        strategy: Strategy = Strategy.DESCEND,
    ) -> None:
        self._device, self._bound, self.crowded = a.device, bound, False
        self._hierarchies = [
            (tree, mesh.points, mesh.faces) for tree, mesh in zip(trees, (a, b), strict=True)
        ]
        self._for_threads = 0  # questions
        self._candidates, self._skipped = PairQueue(), queues["skipped"]
        self._candidates.keys = queues["candidates"].keys
        self._candidates.count = queues["candidates"].count
        # Views before points: a search fits swept spheres to these points, and other threads may
        # deform the meshes and come with the volumes of a later shape meanwhile.
        views = [tree.view(bound) for tree in trees]
        sides = [make_posed_mesh(mesh.points, mesh.faces) for mesh in (a, b)]
        moving = [side for side, moves in zip(sides, posed, strict=True) if moves]
        poses = [self._one(wp.mat44d) for _ in moving]
        for side, pose in zip(moving, poses, strict=True):
            side.poses, side.pose_count = pose, 1
        self._view = mesh_pairs(sides[0], sides[1], SHARED_NONE, 1, views, extents)
        layout = KeyLayout.of(a.face_count, b.face_count)
        self._out = distance_queues(queues, layout, self._one(wp.int64))
        self._frame, self._field = self._one(RelativeFrame), self._one(wp.int32)
        self._counter, self._key = self._one(wp.int32), self._one(wp.int64)
        upper_bound, faces = self._one(wp.float64), self._one(wp.vec3i)
        numbers = wp.empty((1, 7), dtype=wp.float64, device=a.device)
        search = self._teams() if strategy is Strategy.DESCEND else self._listing()
        about = self._view, upper_bound, self._out, self._candidates, self._skipped
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
        start = perf_counter()
        self._call.run()
        if perf_counter() - start > LONG_S:
            self._for_threads = FOR_THREADS
        faces, numbers = self._call.outputs
        outcome, *pair = faces[0].tolist()
        if outcome == FAR_APART_INT:
            self._far_call.run()
            faces, numbers = self._far_call.outputs
            outcome, *pair = faces[0].tolist()
        self.crowded |= outcome == CROWDED_INT
        if outcome != ANSWERED_INT:
            return None
        distance, *points = numbers[0].tolist()
        witnesses = partial(_witnesses, points, self._device)
        return Distances(distance, np.array(pair, np.int32), self._device, witnesses)

    def is_for_threads(self) -> bool:
        """Whether all threads should answer a question, because an earlier one took long."""
        if self._for_threads:
            self._for_threads -= 1
            return True
        return False

    @cached_property
    def _far_call(self) -> Call:
        """The search of meshes that are far apart for their size, after a call that said so."""
        for tree, points, faces in self._hierarchies:
            build_deferred(tree, points, faces)
        args = [self._view, self._out, self._field, self._key]
        search = self._task(far_field_kernel_for(MeshPairs, False), 1, args)
        return Call([search, self._answering(far=True)], [], self._answer[1])

    def _answering(self, far: bool) -> Task:
        about, out = self._answer
        return self._task(answer_one_kernel, 1, [*about, far, *out])

    def _teams(self) -> list[Task]:
        """A search by a team, or by many on CUDA."""
        items, cuda = WorkItems(), self._device.is_cuda
        items.deepest = (CUDA_TEAMS if cuda else 1).bit_length() - 1
        items.each = 1 << items.deepest
        kernel = team_nearest_kernel_for(MeshPairs, self._bound, cuda)
        options = {"threads": WARP_SIZE * items.each, "block": TRIPLE_BLOCK} if cuda else {}
        options["grain"] = UNKNOWN_COUNT
        self._counter, passes = team_passes(self._device, rounds_of(self._device, 1))
        tasks = [self._sampling(LEAF_SAMPLES)] if cuda else []
        for each in passes:
            args = [self._view, items, self._field, each.counter, each.given, each.rounds]
            args += [self._out, self._candidates, each.spilled, self._one(wp.int64), self._key]
            count = UNKNOWN_COUNT if cuda else 1
            tasks.append(Task(kernel, count, args, self._device, **options))
        return [*tasks, *self._measure()] if cuda else tasks

    def _listing(self) -> list[Task]:
        """A first bound, then all faces nearer than that by many threads, unless there are many."""
        view, items = self._view, WorkItems()
        items.each = view.a.faces.shape[0]
        room = min(self._candidates.keys.shape[0], MOST_LISTED_PAIRS)
        self._candidates.keys = self._candidates.keys[:room]
        args = [view, self._frame, items, self._field, self._out, MOST_WALK_NODES]
        args += [self._candidates, self._skipped]
        search = self._task(near_leaves_kernel_for(MeshPairs), items.each, args)
        return [self._sampling(LISTING_SAMPLES), search, *self._measure()]

    def _sampling(self, most: int) -> Task:
        """Lower the bound by some leaves of a."""
        samples = min(self._view.a.faces.shape[0], most)
        args = [self._view, self._frame, self._field, samples, self._out]
        return self._task(sample_kernel_for(MeshPairs), samples, args)

    def _measure(self) -> list[Task]:
        """Lower the bound to the distances of the candidates, and choose the nearest."""
        view, candidates = self._view, self._candidates
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
