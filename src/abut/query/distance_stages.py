"""The stages of distance queries: one list for two meshes, a batch of poses and a scene."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.core.launch import UNKNOWN_COUNT
from abut.core.pair_queue import NO_KEY_INT, PairQueues
from abut.core.plan import QueueLaunch, Stage
from abut.core.team import TRIPLE_BLOCK
from abut.narrow.candidate_distance import (
    brute_near_kernel_for,
    brute_nearest_kernel_for,
    filter_near_kernel_for,
    lower_bounds_kernel_for,
    pick_nearest_kernel_for,
)
from abut.narrow.exact import exact_stage
from abut.operands.pair_rows import MeshRows, Run, SceneRows
from abut.operands.posed_pairs import WorkItems
from abut.options import Bound
from abut.query.contact_stages import Strategy
from abut.query.team_passes import CUDA_TEAMS, DIVIDED_ROWS, rounds_of, team_passes
from abut.traversal.distance.extremal_faces import far_field_kernel_for
from abut.traversal.distance.far_field import CROWDED_FIELD, NEAR_FIELD, far_walk_kernel_for
from abut.traversal.distance.near_pairs import (
    near_items_kernel,
    near_kernel_for,
    near_leaves_kernel_for,
)
from abut.traversal.distance.nearest import choose_kernel
from abut.traversal.distance.seed import sample_kernel_for
from abut.traversal.distance.team_nearest import team_nearest_kernel_for
from abut.traversal.overlap.row_frames import frames_alone, frames_kernel_for

FEW_ROWS = 8  # of two large meshes: divided into walks on the CPU
WALKS_OF_FEW = 16  # a row
FACES_FOR_THREADS = 1 << 19  # smaller meshes are done before a second thread has begun
LEAF_SAMPLES = 1 << 10  # leaves of a that look for a first bound of a row, on CUDA
CUDA_WALKS = 1 << 17  # of all rows together
ROWS_PER_SLICE = {MeshRows: 4, SceneRows: 16}  # of a search for the nearest faces, on the CPU
LEAVES_PER_ITEM = 256  # of a subtree within a distance, on the CPU
CUDA_LEAVES_PER_ITEM = 16  # in a scene
MOST_ITEMS = 256  # of all rows of two meshes, on the CPU
MOST_CUDA_ITEMS = 1 << 16
DEEPEST = 12  # levels down to the subtrees of a row of a scene


@dataclass
class DistanceStages:
    """Makes the stages that find near faces in rows of posed pairs.

    Attributes:
        rows: The posed pairs.
        queues: With ``hits``, ``undecided``, ``candidates`` and, for ``within``, ``near``.
        out: DistanceQueues that the stages fill.
        strategy: DESCEND or BRUTE; LEAF_WALK too within a distance.
        own: Rows may pair a mesh with itself.
        far: Rows may be far apart for their size.
        bound: Volumes of the trees.
        rounds: Of passes of teams before the last; None chooses by the number of rows.
    """

    rows: MeshRows | SceneRows
    queues: PairQueues
    out: Any
    strategy: Strategy
    own: bool = False
    far: bool = False
    bound: Bound = Bound.AABB
    rounds: Sequence[int] | None = None

    def __post_init__(self) -> None:
        """Make the arrays that stages share."""
        self.device, self._kind = self.rows.device, self.rows.kind
        self._frames = self._each_row(RelativeFrame)
        count = self.rows.capacity if self.far else 0
        self._fields = wp.empty(count, dtype=wp.int32, device=self.device)
        self._some_near = self._some_crowded = True

    def within(self) -> Iterator[Stage]:
        """Stages that push to ``near`` all pairs no farther apart than the bound of their row."""
        view, near = self.rows.view, self.queues["near"]
        if self.strategy is Strategy.BRUTE:
            items = self.rows.divide(view.a.faces.shape[0])
            kernel = brute_near_kernel_for(self._kind)
            args = lambda w: [view, w, self.out, near]  # noqa: E731
            steps = view.b.faces.shape[0]
            yield "search", self.rows.over_items(kernel, items, args, 1, steps=steps)
        elif self.strategy is Strategy.LEAF_WALK:
            yield self._make_frames()
            yield from self._list_leaves()
            candidates = self.queues["candidates"]
            args = [view, candidates, self.out, near]
            yield "measure", QueueLaunch(filter_near_kernel_for(self._kind), candidates, args).run
        else:
            yield self._make_frames()
            items, grain = self._subtrees()
            yield from self._count_items(items, leafwise=False)
            kernel = near_kernel_for(self._kind, self.own)
            args = lambda w: [view, self._frames, w, self.out, near]  # noqa: E731
            yield "search", self.rows.over_items(kernel, items, args, grain)
        yield exact_stage(self.rows, self.out.contacts)

    def nearest(self, keys: wp.array) -> Iterator[Stage]:
        """Stages that lower the bounds of rows and find the keys of their nearest faces.

        Args:
            keys: Of each row, NO_KEY before. Where faces meet, the bound is 0 without a key; where
                the exact stage finds out, there is a hit.
        """
        brute = self.strategy is Strategy.BRUTE
        if self.far:
            kernel, args = far_field_kernel_for(self._kind, brute), [self.rows.view, self.out]
            decide = self.rows.over_rows(kernel, [*args, self._fields, keys], self._grain)
            yield "far field", partial(self._note_fields, decide)
        for name, run in self._nearest_in_near_field(keys):
            yield name, self._unless_skipped(run, "_some_near")
        if self.far and not brute:
            items, grain = self._walks()
            args = [self.rows.view, items, self._fields, self.out]
            kernel = far_walk_kernel_for(self._kind)
            for name, run in self._chosen(kernel, args, items.each, grain, keys):
                yield name, self._unless_skipped(run, "_some_crowded")
        yield exact_stage(self.rows, self.out.contacts)

    def _nearest_in_near_field(self, keys: wp.array) -> Iterable[Stage]:
        view = self.rows.view
        if self.strategy is Strategy.BRUTE:
            items = self.rows.divide(view.a.faces.shape[0])
            args = [view, items, self._fields, self.out]
            yield from self._chosen(brute_nearest_kernel_for(self._kind), args, items.each, 1, keys)
            return
        yield from self._nearest_by_teams(keys)

    def _sample_leaves(self) -> Stage:
        """Lower the bounds of rows by some leaves of a."""
        samples = min(self.rows.view.a.faces.shape[0], LEAF_SAMPLES)
        args = [self.rows.view, self._frames, self._fields, samples, self.out]
        return "seed", self.rows.over_rows(sample_kernel_for(self._kind), args, 4096, samples)

    def _nearest_by_teams(self, keys: wp.array) -> Iterable[Stage]:
        """A team a row, or several where rows are few."""
        items, cuda = self._team_items(), self.device.is_cuda
        rounds = self.rounds
        if rounds is None:
            rounds = rounds_of(self.device, self.rows.capacity)
        counts, passes = team_passes(self.device, rounds)
        if cuda:
            yield "search", counts.zero_
            if items.each > 1:
                yield self._make_frames()
                yield self._sample_leaves()
        distances = wp.empty(self.rows.capacity * items.each, dtype=wp.int64, device=self.device)
        found = [distances, keys if items.each == 1 else wp.empty_like(distances)]
        kernel = team_nearest_kernel_for(self._kind, self.bound, cuda)
        grain = self._grain if items.each == 1 else max(items.each // 4, 1)
        for each in passes:
            args = [self._fields, each.counter, each.given, each.rounds]
            args += [self.out, self.queues["candidates"], each.spilled, *found]
            view = self.rows.view
            with_items = partial(_with_items, view, args)
            yield "search", self.rows.over_teams(kernel, items, with_items, grain, TRIPLE_BLOCK)
        if cuda:
            yield from self._measure_candidates(keys)
        elif items.each > 1:
            args = [self.out.bound, *found, items.each, keys]
            yield "choose", self.rows.over_rows(choose_kernel, args, 4096, items.each)

    def _measure_candidates(self, keys: wp.array) -> Iterable[Stage]:
        """Lower the bounds of rows to the distances of candidates, and choose the nearest."""
        view, candidates = self.rows.view, self.queues["candidates"]
        kernel, args = lower_bounds_kernel_for(self._kind), [view, candidates, self.out]
        yield "measure", QueueLaunch(kernel, candidates, args).run
        kernel, args = pick_nearest_kernel_for(self._kind), [view, self.out, candidates, keys]
        yield "choose", QueueLaunch(kernel, candidates, args).run

    def _team_items(self) -> Any:
        """WorkItems of a row: pairs of subtrees, where rows are too few for all teams."""
        items, teams = WorkItems(), 1
        if self.device.is_cuda:
            teams = CUDA_TEAMS // self.rows.capacity if self.rows.capacity <= DIVIDED_ROWS else 1
        elif isinstance(self.rows, MeshRows) and self.rows.capacity <= FEW_ROWS:
            view = self.rows.view
            if view.a.faces.shape[0] + view.b.faces.shape[0] > FACES_FOR_THREADS:
                teams = WALKS_OF_FEW
        items.deepest = max(teams, 1).bit_length() - 1
        items.each = 1 << items.deepest
        return items

    def _chosen(
        self, kernel: wp.Kernel, args: list[Any], each: int, grain: int, keys: wp.array
    ) -> Iterable[Stage]:
        """A search of ``each`` items a row, and the choice among what they find."""
        count = self.rows.capacity * each
        distances = wp.empty(count, dtype=wp.int64, device=self.device)
        found = [distances, keys if each == 1 else wp.empty_like(distances)]
        yield "search", self.rows.over_rows(kernel, [*args, *found], grain, each)
        if each > 1:
            args = [self.out.bound, *found, each, keys]
            yield "choose", self.rows.over_rows(choose_kernel, args, 4096, each)

    def _walks(self) -> tuple[Any, int]:
        """WorkItems of walks of a row, and how many of all walks make a slice.

        Several walks with one bound are no slower than one, and hardly miss an early good pair.
        """
        items, grain = WorkItems(), self._grain
        items.each, items.leaves = 1, 1
        if self.device.is_cuda:
            items.each = 1 << (max(CUDA_WALKS // self.rows.capacity, 1).bit_length() - 1)
            grain = 1
        elif isinstance(self.rows, MeshRows) and self.rows.capacity <= FEW_ROWS:
            view = self.rows.view
            large = view.a.faces.shape[0] + view.b.faces.shape[0] > FACES_FOR_THREADS
            items.each, grain = WALKS_OF_FEW, WALKS_OF_FEW // 4 if large else UNKNOWN_COUNT
        items.deepest = items.each.bit_length() - 1
        return items, grain

    def _subtrees(self) -> tuple[Any, int]:
        """WorkItems within a distance, and how many make a slice."""
        cuda = self.device.is_cuda
        if isinstance(self.rows, SceneRows):
            leaves = CUDA_LEAVES_PER_ITEM if cuda else LEAVES_PER_ITEM
            return self.rows.divide(0, leaves, DEEPEST), 16
        faces, count = self.rows.view.a.faces.shape[0], self.rows.capacity
        if self.own:
            return self.rows.divide(faces), 256
        most = MOST_CUDA_ITEMS if cuda else min(count * faces // LEAVES_PER_ITEM, MOST_ITEMS)
        depth = max(most // count, 1).bit_length() - 1
        return self.rows.divide(1 << depth, 1, depth), max(most // 16, 1)

    def _list_leaves(self) -> Iterable[Stage]:
        view, each = self.rows.view, 0
        if isinstance(self.rows, MeshRows):
            each = view.a.faces.shape[0]
        items = self.rows.divide(each)
        yield from self._count_items(items, leafwise=True)
        kernel = near_leaves_kernel_for(self._kind)
        rest = [self._fields, self.out, UNKNOWN_COUNT]
        rest += [self.queues[name] for name in ("candidates", "skipped")]
        args = lambda w: [view, self._frames, w, *rest]  # noqa: E731
        yield "search", self.rows.over_items(kernel, items, args, 4096)

    def _count_items(self, items: Any, leafwise: bool) -> Iterable[Stage]:
        """In a scene, where rows differ in size, find where the items of each begin."""
        if isinstance(self.rows, SceneRows):
            args = [self.rows.view, self._frames, self.out.bound, self._fields, items, leafwise]
            args.append(self.rows.item_counts)
            yield "items", self.rows.over_rows(near_items_kernel, args, 1024)
            yield self.rows.scan()

    def _make_frames(self) -> Stage:
        args = frames_alone(self.rows.view, self._frames)
        return "frames", self.rows.over_rows(frames_kernel_for(self._kind), args, 1024)

    def _note_fields(self, run: Run) -> None:
        """Run the stage of the far field. On the CPU, note which fields have rows."""
        run()
        if self.device.is_cpu:
            count = self.rows.count if isinstance(self.rows, SceneRows) else self.rows.capacity
            fields = self._fields.numpy()[:count]
            self._some_near = bool((fields == int(NEAR_FIELD)).any())
            self._some_crowded = bool((fields == int(CROWDED_FIELD)).any())

    def _unless_skipped(self, run: Run, field: str) -> Run:
        """A stage that runs only where there are rows of a field, as far as the host knows."""
        if not self.far or self.device.is_cuda:
            return run
        return lambda: run() if getattr(self, field) else None

    @property
    def _grain(self) -> int:
        return ROWS_PER_SLICE[type(self.rows)]

    def _each_row(self, dtype: Any) -> wp.array:
        return wp.empty(self.rows.capacity, dtype=dtype, device=self.device)


def _with_items(view: Any, args: list[Any], items: Any) -> list[Any]:
    return [view, items, *args]


def distances_of(
    bounds: np.ndarray, keys: np.ndarray, met: np.ndarray, upper_bound: float
) -> np.ndarray:
    """(n,) distances of rows: 0 where faces meet, infinite where none are within the bound.

    Args:
        bounds: (n,) float64, as a search has left them.
        keys: (n,) keys of the nearest faces, NO_KEY for none.
        met: Rows that the exact stage has found to meet.
        upper_bound: The bound at the beginning.
    """
    value = bounds.copy()
    if len(met):
        value[met] = 0.0
    if len(value) == 1:  # plain numbers are faster
        if (keys[0] == NO_KEY_INT and value[0] > 0) or value[0] > upper_bound:
            value[0] = np.inf
        return value
    value[((keys == NO_KEY_INT) & (value > 0)) | (value > upper_bound)] = np.inf
    return value
