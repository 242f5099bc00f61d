"""CcdCandidates: feature pairs whose boxes over a step overlap, by kind of pair and strategy."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property, partial
from typing import Any

import numpy as np
import warp as wp

from abut.bvh.layout import Bvh
from abut.bvh.leaf_clusters import leaf_clusters_of
from abut.bvh.swept_cache import SweptPoints, corners_of, swept_bvh_of, swept_origin
from abut.core.launch import UNKNOWN_COUNT, launch
from abut.core.pair_queue import KeyLayout
from abut.core.timing import stage
from abut.mesh import Mesh
from abut.motion import MIX_ROUNDING, Piece, mixed_points
from abut.operands.ccd_operands import EDGE_EDGE, FACE_VERTEX, VERTEX_FACE, moving_mesh
from abut.options import Bound
from abut.query.bvtt_front import LEAST_ROOM, MOST_PAIRS, MeshFront
from abut.query.ccd_queues import CcdQueues
from abut.traversal.overlap.leaf_cluster_pairs import cluster_walks, open_clusters_kernel
from abut.traversal.overlap.leaf_packets import (
    packet_count_of,
    packet_pairs_kernel,
    self_packet_pairs_kernel,
)
from abut.traversal.overlap.leaf_pairs import every_pair_kernel, leaf_pairs_kernel
from abut.traversal.overlap.volume_leaf_pairs import volume_leaf_pairs_kernel


class CcdStrategy(Enum):
    """Ways to find candidates. All strategies find the same impacts."""

    PACKETS = auto()  # one tree for each packet of leaves of the other
    LEAF_WALK = auto()  # one tree for each leaf of the other; within a tree, by leaf clusters
    FRONT = auto()  # from where the last step stopped; PACKETS or LEAF_WALK without a front
    BRUTE = auto()  # every pair of features


@dataclass
class CcdFronts:
    """The fronts of continuous queries about the same meshes, one for each kind of pair.

    A kind whose front has grown too long has none until its hierarchies are others.

    Attributes:
        room: Keys that the queues of a new front hold.
        most_pairs: Length at which a front is given up.
    """

    kept: dict[int, MeshFront] = field(default_factory=dict)
    given_up: dict[int, tuple[Bvh, ...]] = field(default_factory=dict)
    room: int = LEAST_ROOM
    most_pairs: int = MOST_PAIRS

    @property
    def size(self) -> int:
        """Node pairs in all fronts."""
        return sum(front.size for front in self.kept.values())

    def front_of(
        self, kind: int, trees: tuple[Bvh, ...], unused: Any, bound: Bound = Bound.AABB
    ) -> MeshFront | None:
        """The front of hierarchies; None where there is to be none.

        Keys that a new front pushes to ``unused`` are not read.
        """
        if min(tree.face_count for tree in trees) < 2 or self._has_given_up(kind, trees):
            return None
        front = self.kept.get(kind)
        if front is None or not front.fits(trees, bound):
            front = MeshFront(trees, self.room, self.most_pairs, bound)
            if not front.start(unused):
                self.give_up(kind, trees)
                return None
        front.most_pairs = self.most_pairs
        self.kept[kind] = front
        return front

    def give_up(self, kind: int, trees: tuple[Bvh, ...]) -> None:
        """Delete the front of a kind, and make none for these hierarchies."""
        self.given_up[kind] = trees
        self.kept.pop(kind, None)

    def _has_given_up(self, kind: int, trees: tuple[Bvh, ...]) -> bool:
        before = self.given_up.get(kind, ())
        return len(before) == len(trees) and all(x is y for x, y in zip(before, trees, strict=True))


@dataclass
class FeaturePairs:
    """One kind of feature pair, and how to list its candidates.

    Attributes:
        kind: VERTEX_FACE, EDGE_EDGE or FACE_VERTEX.
        a, b: The moving meshes that keys refer to.
        item_count: Items of work.
        list_items: Lists the candidates of items from a start to a stop, where there is no front.
        front: Where items are node pairs of a front.
        bound: Volumes whose overlap makes a candidate.
    """

    kind: int
    a: Any
    b: Any
    item_count: int
    list_items: Callable[[int, int], None] = lambda start, stop: None
    front: MeshFront | None = None
    bound: Bound = Bound.AABB

    @property
    def key(self) -> tuple[Any, ...]:
        """Key of measured densities of candidates."""
        return self.kind, self.front is not None, self.bound


@dataclass
class CcdCandidates:
    """The candidates of a continuous query over one piece of motion.

    Attributes:
        meshes, pieces: One for a mesh against itself, or two.
        layout: Of keys of features.
        gap: Distance at which features touch, the deviation of pieces included.
        strategy: The way to find them.
        queues: Queues that they are pushed to.
        fronts: For the strategy FRONT.
        bound: Bounding volume of the trees.
        token: Tells the motions of this query from others.
    """

    device: wp.Device
    meshes: tuple[Mesh, ...]
    pieces: tuple[Piece, ...]
    layout: KeyLayout
    gap: float
    strategy: CcdStrategy
    queues: CcdQueues
    fronts: CcdFronts | None = None
    bound: Bound = Bound.AABB
    token: object = field(default_factory=object)
    _mixed: dict[tuple[int, float], wp.array] = field(default_factory=dict)

    @property
    def kinds(self) -> tuple[int, ...]:
        """The kinds of pairs there are."""
        if len(self.meshes) == 1:
            return int(VERTEX_FACE), int(EDGE_EDGE)
        return int(VERTEX_FACE), int(EDGE_EDGE), int(FACE_VERTEX)

    def pairs_of(self, kind: int, until: float = 1.0) -> FeaturePairs:
        """The pairs of a kind; candidates are those that may meet by a time."""
        last, edges = len(self.meshes) - 1, kind == EDGE_EDGE
        own = edges and not last  # the edges of one mesh: one tree against itself
        sides = (last, 0) if kind == FACE_VERTEX else (0, last)
        features = list(zip(sides, ("edge", "edge") if edges else ("vertex", "face"), strict=True))
        counts = [corners_of(self.meshes[side], name).shape[0] for side, name in features]
        a, b, bits = self._views[sides[0]], self._views[sides[1]], self.layout.bits
        if self.strategy is CcdStrategy.BRUTE:
            lister = self._lister(every_pair_kernel, [counts[1], own, bits])
            return FeaturePairs(kind, a, b, counts[0], lister)
        trees = tuple(self.tree(side, name, until) for side, name in features[: 1 if own else 2])
        front = self._front_of(kind, trees)
        if front is not None:
            return FeaturePairs(kind, a, b, front.size, front=front, bound=self.bound)
        views = [tree.view(self.bound) for tree in trees]
        swapped = not own and counts[1] > counts[0]
        if self.bound is not Bound.AABB:
            sides = views[::-1] if swapped else [views[0], views[-1]]
            lister = self._lister(volume_leaf_pairs_kernel, [*sides, own, bits, swapped])
            return FeaturePairs(kind, a, b, max(counts), lister, bound=self.bound)
        if self._walk is CcdStrategy.PACKETS:
            kernel = self_packet_pairs_kernel if own else packet_pairs_kernel
            lister = self._lister(kernel, [*views, bits])
            return FeaturePairs(kind, a, b, packet_count_of(counts[0]), lister)
        if own:
            count = leaf_clusters_of(trees[0]).shape[0]
            return FeaturePairs(kind, a, b, count, partial(self._list_by_clusters, trees[0]))
        # From the leaves of the more numerous side: more walks, and shorter ones.
        if swapped:
            views.reverse()
        lister = self._lister(leaf_pairs_kernel, [*views, bits, swapped])
        return FeaturePairs(kind, a, b, max(counts), lister)

    def tree(self, side: int, feature: str, until: float = 1.0) -> Bvh:
        """The hierarchy of features of a mesh whose boxes hold them until a time."""
        piece, mesh = self.pieces[side], self.meshes[side]
        end, pad = piece.points_t1, self.gap / 2.0
        with stage("hierarchy", self.device):
            if until < 1.0 and piece.place is None:
                end = self._points_at(side, until)
                pad += MIX_ROUNDING * float(np.abs(piece.bounds).max())
            motion = piece.place or (self.token, until)
            points = SweptPoints(piece.points_t0, end, piece.bounds, motion)
            number = side if mesh is self.meshes[0] else 0
            return swept_bvh_of(
                mesh, feature, points, self._origin, self._bounds, pad, number, self.bound
            )

    @property
    def _walk(self) -> CcdStrategy:
        """The strategy; in place of FRONT, the cheapest one without a front."""
        if self.strategy is CcdStrategy.FRONT:
            return cheapest_strategy(self.device)
        return self.strategy

    def _front_of(self, kind: int, trees: tuple[Bvh, ...]) -> MeshFront | None:
        if self.strategy is not CcdStrategy.FRONT or self.fronts is None:
            return None
        return self.fronts.front_of(kind, trees, self.queues["candidates"], self.bound)

    def _lister(self, kernel: wp.Kernel, args: list[Any]) -> Callable[[int, int], None]:
        def list_items(start: int, stop: int) -> None:
            inputs = [*args, self.queues["candidates"]]
            launch(kernel, stop - start, inputs, self.device, grain=256, start=start)

        return list_items

    def _list_by_clusters(self, tree: Bvh, start: int, stop: int) -> None:
        """List each pair of edges once; threads share long walks."""
        queues = self.queues
        walks = cluster_walks(tree.view(), leaf_clusters_of(tree), queues)
        kernel, _, args = next(walks)
        launch(kernel, stop - start, args, self.device, start=start)
        for kernel, count, args in walks:
            launch(kernel, count, args, self.device)
        args = [tree.view(), self.layout.bits, False, queues["clusters"], queues["candidates"]]
        launch(open_clusters_kernel, UNKNOWN_COUNT, args, self.device)

    @cached_property
    def _views(self) -> list[Any]:
        both = zip(self.meshes, self.pieces, strict=True)
        return [moving_mesh(mesh, piece.points_t0, piece.points_t1) for mesh, piece in both]

    def _points_at(self, side: int, t: float) -> wp.array:
        """Vertices of a mesh at a time, computed once."""
        if (side, t) not in self._mixed:
            piece = self.pieces[side]
            self._mixed[side, t] = mixed_points(piece.points_t0, piece.points_t1, t)
        return self._mixed[side, t]

    @cached_property
    def _bounds(self) -> np.ndarray:
        """Of everything that moves."""
        lower = np.min([piece.bounds[0] for piece in self.pieces], axis=0)
        upper = np.max([piece.bounds[1] for piece in self.pieces], axis=0)
        return np.array([lower, upper])

    @cached_property
    def _origin(self) -> np.ndarray:
        return swept_origin(self.meshes, self._bounds)


def cheapest_strategy(device: wp.Device, fronts: CcdFronts | None = None) -> CcdStrategy:
    """The strategy that costs least, as measured (design/ccd.md)."""
    if fronts is not None:
        return CcdStrategy.FRONT
    return CcdStrategy.LEAF_WALK if device.is_cuda else CcdStrategy.PACKETS
