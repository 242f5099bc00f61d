"""Adjacent faces: faces with a common corner, which no view can separate.

Their depths are equal at the corner. They are few per face and are tested pair by pair, by the
filter of the exact test. Corners are common by index or by position; points may move apart and come
together.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.core.atomics import atomic_cas
from abut.core.launch import Task
from abut.core.pair_queue import PairQueue, pack_pair, push_pair
from abut.geometry.common_corners import SHARED_NONE, common_corners
from abut.geometry.intersect_tri_tri import MISS, classify_tri_tri
from abut.geometry.topology import weld_vertices
from abut.operands.posed_mesh import PosedMesh, load_face
from abut.operands.soup import Soup

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MIX = wp.constant(wp.uint64(0x9E3779B97F4A7C15))  # odd: multiplying by it loses no bit
HALF = wp.constant(wp.uint64(32))

MOST_VALENCE = 64  # faces at a vertex; beyond, it makes no neighbours


@wp.kernel
def folded_neighbours_kernel(
    # in
    span: wp.vec3i,
    soup: PosedMesh,
    local: PosedMesh,
    object_of: wp.array[wp.int32],
    pairs: wp.array[wp.vec2i],
    sharing: wp.int32,
    keep_near: wp.bool,
    bits: wp.vec2i,
    # out
    folded_out: wp.array[wp.int32],
    pairs_out: PairQueue,
):
    """Mark and list neighbours that may intersect beyond the corners they share.

    Faces of one object are tested in its frame, as in Scene.collide. Corners that only rounding has
    brought together are not shared there: where faces near each other are kept, so are theirs.
    """
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        a = pairs[i][0]
        b = pairs[i][1]
        shared = SHARED_NONE
        corners_a = load_face(soup, a, 0)
        corners_b = load_face(soup, b, 0)
        keep = wp.bool(False)
        if object_of[a] == object_of[b]:
            shared = wp.int32(sharing)
            corners_a = load_face(local, a, 0)
            corners_b = load_face(local, b, 0)
            common = common_corners(shared, corners_a, corners_b, soup.faces[a], soup.faces[b])
            keep = keep_near and common == 0
        if not keep:
            verdict = classify_tri_tri(corners_a, corners_b, shared, soup.faces[a], soup.faces[b])
            keep = verdict != MISS
        if keep:
            folded_out[a] = 1
            folded_out[b] = 1
            push_pair(pairs_out, pack_pair(0, a, b, bits))


@wp.func
def hash_coordinate(bits: wp.uint64, x: wp.float64):
    """Mix a coordinate into a hash; -0 counts as 0."""
    both = (bits ^ wp.cast(x + wp.float64(0.0), wp.uint64)) * MIX
    return both ^ (both >> HALF)


@wp.func
def hash_slot(p: wp.vec3d, slots: wp.int32):
    """First slot to probe for a position; the number of slots is a power of two."""
    bits = hash_coordinate(hash_coordinate(hash_coordinate(wp.uint64(0), p[0]), p[1]), p[2])
    return wp.int32(bits & wp.uint64(slots - 1))


@wp.kernel
def check_joined_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    joined: wp.array[wp.int32],
    # out
    table_out: wp.array[wp.int32],
    changed_out: wp.array[wp.int32],
):
    """Set a flag where coincident points have moved apart, or other points now coincide.

    The hash table holds one point per position, its index plus one; 0 is a free slot.
    """
    slots = table_out.shape[0]
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        p = points[i]
        if joined[i] != i:
            if not points[joined[i]] == p:  # vectors have no !=
                changed_out[0] = 1
        elif not wp.isnan(p):  # NaN equals nothing
            slot = hash_slot(p, slots)
            other = atomic_cas(table_out, slot, 0, i + 1)
            while other != 0:
                if points[other - 1] == p:
                    changed_out[0] = 1
                    other = 0
                else:
                    slot = (slot + 1) & (slots - 1)
                    other = atomic_cas(table_out, slot, 0, i + 1)


class Coincidence:
    """Coincident points of a soup.

    Attributes:
        joined: (n,) index of the first point at the position of each, on the host.
    """

    def __init__(self, soup: Soup) -> None:
        device, count = soup.device, soup.points.shape[0]
        self.joined = weld_vertices(soup.points.numpy())
        self._moves = soup.moves
        self._joined = wp.array(self.joined, dtype=wp.int32, device=device)
        self._table = wp.empty(1 << min(count.bit_length() + 1, 30), dtype=wp.int32, device=device)
        self._changed = wp.zeros(1, dtype=wp.int32, device=device)
        args = [soup.points, self._joined, self._table, self._changed]
        self._check = Task(check_joined_kernel, count, args, device)

    def update(self, soup: Soup) -> bool:
        """Update ``joined`` where points have moved; True when it has changed."""
        if soup.moves == self._moves:
            return False
        self._table.zero_()
        self._changed.zero_()
        self._check.run()
        changed = bool(self._changed.numpy()[0])
        if changed:
            self.joined = weld_vertices(soup.points.numpy())
            self._joined.assign(self.joined.astype(np.int32))
        self._moves = soup.moves
        return changed


@dataclass(frozen=True)
class Neighbours:
    """Pairs of faces of a soup that have a corner in common, by index or by position."""

    corner_ids: wp.array  # (m,) vertices of each face; vertices at one position have one id
    pairs: wp.array  # (n,) pairs (low, high) of faces that have an id in common


def neighbours_of(soup: Soup) -> Neighbours:
    """The neighbours in a soup, cached with it.

    Returns the same object until points move apart or come together.
    """
    held: dict[str, Any] = soup.__dict__
    if "coincidence" not in held:
        held["coincidence"] = Coincidence(soup)
    elif held["coincidence"].update(soup):
        held.pop("neighbours", None)
    if "neighbours" not in held:
        held["neighbours"] = _neighbours_by(soup, held["coincidence"].joined)
    return held["neighbours"]


def _neighbours_by(soup: Soup, joined: np.ndarray) -> Neighbours:
    """Find the neighbours, given the first point at the position of each point."""
    ids = split_busy_vertices(joined[soup.faces.numpy().reshape(-1, 3)])
    return Neighbours(
        wp.array(ids.astype(np.int32), dtype=wp.vec3i, device=soup.device),
        wp.array(neighbour_pairs(ids), dtype=wp.vec2i, device=soup.device),
    )


def split_busy_vertices(ids: np.ndarray) -> np.ndarray:
    """Replace vertices of many faces by one vertex per face, in ids (m, 3).

    The number of neighbours stays proportional to the number of faces.
    """
    ids = ids.astype(np.int64)
    used = np.bincount(ids.ravel(), minlength=1)
    busy = used[ids] > MOST_VALENCE
    return np.where(busy, ids.max(initial=0) + 1 + np.arange(ids.size).reshape(ids.shape), ids)


def neighbour_pairs(ids: np.ndarray) -> np.ndarray:
    """(n, 2) int32 pairs (low, high) of faces that have a vertex of ``ids`` (m, 3) in common."""
    corners = ids.ravel()
    order = np.argsort(corners, kind="stable")
    faces, corners = order // 3, corners[order]
    found = [np.zeros(0, dtype=np.int64)]
    step = 1
    while step < len(corners):
        same = np.flatnonzero(corners[step:] == corners[:-step])
        if not len(same):
            break
        low, high = faces[same], faces[same + step]  # the sort is stable: low <= high
        found.append((low * len(ids) + high)[low < high])
        step += 1
    keys = np.sort(np.concatenate(found))
    pairs = np.divmod(keys[np.diff(keys, prepend=-1) != 0], max(len(ids), 1))
    return np.stack(pairs, axis=1).astype(np.int32)
