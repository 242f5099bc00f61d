"""What continuous queries of a thread share: queues and trees, kept from one query to the next."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.bvh.bvh_cache import measure_built_cost, refit_or_rebuild
from abut.bvh.layout import Bvh
from abut.bvh.lbvh import frame_origin, in_frame
from abut.bvh.swept_bvh import build_swept, refit_swept
from abut.core.cache import ThreadCache
from abut.core.pair_queue import PairQueues
from abut.mesh import Mesh
from abut.traversal.overlap.leaf_cluster_pairs import SHARES

KINDS = 3  # of pairs, at most, in a query
NO_TIME = 0x7FF0000000000000  # bits of infinity
LEAST_ROOM = {"cpu": 1 << 14, "cuda": 1 << 20}
MOST_CANDIDATES = {"cpu": 1 << 23, "cuda": 1 << 25}  # held at once

_buffers = ThreadCache()
_trees = ThreadCache()


class SweepBuffers:
    """Queues of continuous queries on a device, and the times of impacts; they only ever grow."""

    def __init__(self, device: wp.Device) -> None:
        kind = "cuda" if device.is_cuda else "cpu"
        self.device = device
        self.most_candidates = MOST_CANDIDATES[kind]
        self.density: dict[tuple[int, bool], float] = {}  # candidates of an item, when last seen
        names = ("candidates", "possible", "clusters", *SHARES, "impacts")
        self.queues = PairQueues(device, **dict.fromkeys(names, LEAST_ROOM[kind]))
        self._noted = wp.empty((KINDS, len(names)), wp.int64, "cpu", pinned=device.is_cuda)
        self._notes = [self._noted[kind] for kind in range(KINDS)]
        self._all_but_impacts = self.queues.counts[:-1]
        self.best = wp.empty(1, dtype=wp.int64, device=device)
        self._make_times()

    def forget(self) -> None:
        """Forget the earliest time."""
        self.best.fill_(NO_TIME)

    def earliest(self) -> float:
        """The earliest time, infinity for none. Waits for the device."""
        return float(self.best.numpy().view(np.float64)[0])

    def restart(self, impact_count: int) -> None:
        """Forget candidates, and impacts beyond the first so many."""
        self.queues.clear()
        if impact_count:
            self.queues["impacts"].count.fill_(impact_count)

    def go_on(self) -> None:
        """Forget candidates; impacts stay, however many the device has counted."""
        self._all_but_impacts.zero_()

    def note(self, kind: int) -> None:
        """Begin to copy the counts of a kind of pair, which ``notes`` tells."""
        wp.copy(self._notes[kind], self.queues.counts)

    def notes(self, kinds: int) -> list[dict[str, int]]:
        """The counts of so many kinds. Waits for the device."""
        if self.device.is_cuda:
            wp.synchronize_stream(self.device)
        rows = self._noted.numpy()[:kinds].tolist()
        return [dict(zip(self.queues.queues, row, strict=True)) for row in rows]

    def had_room(self, counts: dict[str, int]) -> bool:
        """Whether so much fits."""
        return all(c <= self.queues[n].keys.shape[0] for n, c in counts.items())

    def make_room(self, counts: dict[str, int], impact_count: int) -> bool:
        """Grow to these counts, keeping the first impacts; False when there was room."""
        grown = self.keep_impacts(counts["impacts"], impact_count)
        short = {n: c for n, c in counts.items() if c > self.queues[n].keys.shape[0]}
        return self.queues.make_room({n: c + c // 4 for n, c in short.items()}) or grown

    def keep_impacts(self, wanted: int, kept: int) -> bool:
        """Room for so many impacts, keeping the first; False when there was room."""
        if wanted <= self.times.shape[0]:
            return False
        old = self.queues["impacts"].keys, self.times, self.converged
        self.queues.make_room({"impacts": max(wanted, 2 * self.times.shape[0])})
        self._make_times()
        new = self.queues["impacts"].keys, self.times, self.converged
        for target, source in zip(new, old, strict=True):
            if kept:
                wp.copy(target, source, count=kept)
        return True

    def _make_times(self) -> None:
        room = self.queues["impacts"].keys.shape[0]
        self.times = wp.empty(room, dtype=wp.float64, device=self.device)
        self.converged = wp.empty(room, dtype=wp.bool, device=self.device)


def shared_buffers(device: wp.Device) -> SweepBuffers:
    """The buffers of this thread on a device."""
    return _buffers.on(device, lambda: SweepBuffers(device))


def swept_tree(
    mesh: Mesh,
    feature: str,
    points: tuple[wp.array, wp.array],
    where: tuple[np.ndarray, Any],
    frame: tuple[np.ndarray, np.ndarray],
    pad: float,
    side: int = 0,
) -> Bvh:
    """The tree of moving vertices, edges or faces: refitted where this thread has one.

    ``where`` is the bounds of the points and what tells their way from others: a tree that was
    fitted to it is good as it is. ``frame`` is the origin of boxes and the bounds of all that
    moves; ``side`` tells two motions of one mesh apart.
    """
    corners = corners_of(mesh, feature)
    trees = _trees_of(mesh)
    (bounds, way), (origin, whole) = where, frame
    known = trees.get((feature, side))
    if known is not None and not np.array_equal(known.tree.origin, origin):
        known = None
    if known is not None and (known.way, known.pad) == (way, pad):
        return known.tree

    def build() -> Bvh:
        return measure_built_cost(build_swept(*points, corners, bounds, origin, pad))

    def refit() -> None:
        refit_swept(tree, *points, corners, pad)

    if known is None:
        tree = build()
    else:
        tree = known.tree
        tree = refit_or_rebuild(tree, whole, build, refit)
    trees[feature, side] = SweptTree(tree, way, pad)
    return tree


@dataclass(frozen=True)
class SweptTree:
    """A tree, what it was last fitted to, and by how much its boxes were widened."""

    tree: Bvh
    way: Any
    pad: float


def kept_origin(meshes: tuple[Mesh, ...], bounds: np.ndarray) -> np.ndarray:
    """Where boxes are centred: where they were, unless that is far away now for these bounds."""
    for mesh in meshes:
        for known in _trees_of(mesh).values():
            if in_frame(known.tree.origin, bounds):
                return known.tree.origin
    return frame_origin(bounds)


def _trees_of(mesh: Mesh) -> dict[tuple[str, int], SweptTree]:
    return _trees.get((mesh,), dict)


def corners_of(mesh: Mesh, feature: str) -> wp.array:
    """Vertices of all vertices, edges or faces of a mesh, three a row, some of them repeated."""
    if feature == "face":
        return mesh.faces

    def make() -> wp.array:
        rows = np.arange(mesh.vertex_count, dtype=np.int32)[:, None]
        rows = rows if feature == "vertex" else mesh.edges.numpy()
        rows = np.ascontiguousarray(rows[:, [0, -1, -1]])
        return wp.array(rows, dtype=wp.vec3i, device=mesh.device)

    return _held(mesh, ("corners", feature), make)


def _held(mesh: Mesh, name: tuple[str, str], make: Callable[[], wp.array]) -> wp.array:
    with mesh.lock:
        if name not in mesh.cache:
            mesh.cache[name] = make()
        return mesh.cache[name]
