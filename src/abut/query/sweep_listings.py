"""SweepListings: what lists the candidates of a continuous query, for each kind of pair.

Trees hold the features of each mesh for the whole step, or until a time. Walks go from the leaves
of one through the other, from fronts, or visit every pair.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import warp as wp

from abut.bvh.layout import Bvh
from abut.bvh.leaf_clusters import leaf_clusters_of
from abut.core.launch import UNKNOWN_COUNT, launch
from abut.core.pair_queue import KeyLayout, PairQueues
from abut.core.timing import stage
from abut.mesh import Mesh
from abut.motion import MIX_ROUNDING, Piece, mixed_points
from abut.operands.ccd_operands import EDGE_EDGE, FACE_VERTEX, VERTEX_FACE, moving
from abut.query.sweep_buffers import corners_of, kept_origin, shared_buffers, swept_tree
from abut.query.sweep_front import FrontRange, SweepFronts
from abut.traversal.overlap.every_pair import every_pair_kernel
from abut.traversal.overlap.leaf_cluster_pairs import cluster_walks, self_open_kernel
from abut.traversal.overlap.leaf_packets import groups_kernel, packet_count_of, self_groups_kernel
from abut.traversal.overlap.leaf_pairs import list_leaves_kernel


@dataclass
class Listing:
    """How to list the candidates of one kind of pair, by ranges of items.

    ``launch`` takes start, stop and queues; ``accept`` tells whether a range that found room for
    its candidates need not be done again after all.
    """

    kind: int
    item_count: int
    sides: tuple[Any, Any]
    launch: Callable[[int, int, PairQueues], None]
    accept: Callable[[], bool] = lambda: True
    by_front: bool = False


@dataclass
class SweepListings:
    """Operands of a continuous query over one piece of motion.

    Attributes:
        meshes, pieces: One for a mesh against itself, or two.
        relation: What the operands share (see common_corners).
        gap: Distance at which features touch, what the pieces stray included.
        brute: Test every pair.
        fronts: Where earlier steps stopped, to go on from there; None starts at the roots.
        token: Tells this query's motions from those of others.
    """

    device: wp.Device
    meshes: tuple[Mesh, ...]
    pieces: tuple[Piece, ...]
    sharing: int
    layout: KeyLayout
    gap: float
    tolerance: float
    brute: bool = False
    fronts: SweepFronts | None = None
    token: object = field(default_factory=object)

    def listings(self, until: float = 1.0) -> Iterator[Listing]:
        """The kinds of pairs there are, with what lists those that may meet by a time."""
        last = len(self.meshes) - 1
        yield self._between(VERTEX_FACE, (0, "vertex"), (last, "face"), until)
        if last == 0:
            yield self._within(until)
            return
        yield self._between(EDGE_EDGE, (0, "edge"), (last, "edge"), until)
        yield self._between(FACE_VERTEX, (last, "vertex"), (0, "face"), until)

    def _between(self, kind: int, one: Any, other: Any, until: float) -> Listing:
        sides = self._views[one[0]], self._views[other[0]]
        counts = [corners_of(self.meshes[side], feature).shape[0] for side, feature in (one, other)]
        if self.brute:
            args = [counts[1], False, self.layout.bits]
            return Listing(kind, counts[0], sides, self._lister(every_pair_kernel, args))
        held = tuple(self._tree(*which, until) for which in (one, other))
        kept = self._from_front(kind, held, sides)
        if kept is not None:
            return kept
        trees = [tree.view() for tree in held]
        if self.device.is_cpu:
            lister = self._lister(groups_kernel, [*trees, self.layout.bits])
            return Listing(kind, packet_count_of(counts[0]), sides, lister)
        # From the leaves of the more numerous side: more walks, and shorter ones.
        swapped = counts[1] > counts[0]
        if swapped:
            trees.reverse()
        args = [*trees, self.layout.bits, swapped]
        return Listing(kind, max(counts), sides, self._lister(list_leaves_kernel, args))

    def _within(self, until: float) -> Listing:
        sides = self._views[0], self._views[0]
        count = corners_of(self.meshes[0], "edge").shape[0]
        if self.brute:
            args = [count, True, self.layout.bits]
            return Listing(EDGE_EDGE, count, sides, self._lister(every_pair_kernel, args))
        tree = self._tree(0, "edge", until)
        kept = self._from_front(EDGE_EDGE, (tree,), sides)
        if kept is not None:
            return kept
        if self.device.is_cpu:
            lister = self._lister(self_groups_kernel, [tree.view(), self.layout.bits])
            return Listing(EDGE_EDGE, packet_count_of(count), sides, lister)
        count = leaf_clusters_of(tree).shape[0]
        return Listing(EDGE_EDGE, count, sides, partial(self._list_edges, tree))

    def _from_front(self, kind: int, trees: tuple[Bvh, ...], sides: Any) -> Listing | None:
        """How to list candidates from where the last step stopped; None to start at the roots."""
        if self.fronts is None:
            return None
        front = self.fronts.of(kind, trees, shared_buffers(self.device).queues)
        if front is None:
            return None
        part = FrontRange(self.fronts, kind, front, self.layout.bits)
        return Listing(kind, front.size, sides, part.launch, part.accept, by_front=True)

    def _lister(self, kernel: wp.Kernel, args: list[Any]) -> Callable[[int, int, PairQueues], None]:
        def list_range(start: int, stop: int, queues: PairQueues) -> None:
            inputs = [*args, queues["candidates"]]
            launch(kernel, stop - start, inputs, self.device, grain=256, start=start)

        return list_range

    def _list_edges(self, tree: Bvh, start: int, stop: int, queues: PairQueues) -> None:
        """Each pair of edges once, on CUDA, where long walks are shared."""
        walks_of_twigs = cluster_walks(tree.view(), leaf_clusters_of(tree), queues)
        kernel, _, args = next(walks_of_twigs)
        launch(kernel, stop - start, args, self.device, start=start)
        for kernel, count, args in walks_of_twigs:
            launch(kernel, count, args, self.device)
        args = [tree.view(), self.layout.bits, False, queues["clusters"], queues["candidates"]]
        launch(self_open_kernel, UNKNOWN_COUNT, args, self.device)

    @cached_property
    def _views(self) -> list[Any]:
        both = zip(self.meshes, self.pieces, strict=True)
        return [moving(mesh, piece.points_t0, piece.points_t1) for mesh, piece in both]

    def _tree(self, side: int, feature: str, until: float) -> Bvh:
        """The tree of features whose boxes hold them until a time."""
        piece = self.pieces[side]
        end, pad = piece.points_t1, self.gap / 2.0
        with stage("hierarchy", self.device):
            if until < 1.0 and piece.place is None:
                end = self._shortened(side, until)
                pad += MIX_ROUNDING * float(np.abs(piece.bounds).max())
            points = piece.points_t0, end
            frame = self._origin, self._bounds
            mesh = self.meshes[side]
            twice = side if mesh is self.meshes[0] else 0
            where = piece.bounds, piece.place or (self.token, until)
            return swept_tree(mesh, feature, points, where, frame, pad, twice)

    def _shortened(self, side: int, until: float) -> wp.array:
        """Where vertices are at a time, made once."""
        made = self.__dict__.setdefault("_made", {})
        if (side, until) not in made:
            piece = self.pieces[side]
            made[side, until] = mixed_points(piece.points_t0, piece.points_t1, until)
        return made[side, until]

    @cached_property
    def _bounds(self) -> np.ndarray:
        """Of all that moves."""
        lower = np.min([piece.bounds[0] for piece in self.pieces], axis=0)
        upper = np.max([piece.bounds[1] for piece in self.pieces], axis=0)
        return np.array([lower, upper])

    @cached_property
    def _origin(self) -> np.ndarray:
        return kept_origin(self.meshes, self._bounds)
