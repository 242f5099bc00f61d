"""Coincident points of a soup, kept up to date as points move apart or come together."""

import numpy as np
import warp as wp

from abut.core.atomics import atomic_cas
from abut.core.launch import Task
from abut.geometry.topology import weld_vertices
from abut.operands.soup import Soup

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MIX = wp.constant(wp.uint64(0x9E3779B97F4A7C15))  # odd: multiplying by it loses no bit
HALF = wp.constant(wp.uint64(32))


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

    The hash table inside_edge one point per position, its index plus one; 0 is a free slot.
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
