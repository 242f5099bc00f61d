"""Points of a soup at equal positions, found anew when points have parted or come together."""

import numpy as np
import warp as wp

from abut.core.atomics import atomic_cas
from abut.core.launch import Task
from abut.geometry.topology import join_equal
from abut.operands.soup import Soup

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MIX = wp.constant(wp.uint64(0x9E3779B97F4A7C15))  # odd: multiplying by it loses no bit
HALF = wp.constant(wp.uint64(32))


@wp.func
def mixed(bits: wp.uint64, x: wp.float64):
    """Hash of some bits and a number; -0 counts as 0."""
    both = (bits ^ wp.cast(x + wp.float64(0.0), wp.uint64)) * MIX
    return both ^ (both >> HALF)


@wp.func
def slot_of(p: wp.vec3d, slots: wp.int32):
    """Where the search for a position begins, in a table of a power of two of slots."""
    bits = mixed(mixed(mixed(wp.uint64(0), p[0]), p[1]), p[2])
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
    """Mark a change where a point has left the one it was joined to, or two others have met.

    The table is a hash table of the points that stand for a position, each plus one; 0 is free.
    """
    slots = table_out.shape[0]
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        p = points[i]
        if joined[i] != i:
            if not points[joined[i]] == p:  # vectors have no !=
                changed_out[0] = 1
        elif not wp.isnan(p):  # which is equal to nothing
            slot = slot_of(p, slots)
            other = atomic_cas(table_out, slot, 0, i + 1)
            while other != 0:
                if points[other - 1] == p:
                    changed_out[0] = 1
                    other = 0
                else:
                    slot = (slot + 1) & (slots - 1)
                    other = atomic_cas(table_out, slot, 0, i + 1)


class Coincidence:
    """Which points of a soup are at one position.

    Attributes:
        joined: (n,) On the host, for each point the first one at its position.
    """

    def __init__(self, soup: Soup) -> None:
        device, count = soup.device, soup.points.shape[0]
        self.joined = join_equal(soup.points.numpy())
        self._moves = soup.moves
        self._joined = wp.array(self.joined, dtype=wp.int32, device=device)
        self._table = wp.empty(1 << min(count.bit_length() + 1, 30), dtype=wp.int32, device=device)
        self._changed = wp.zeros(1, dtype=wp.int32, device=device)
        args = [soup.points, self._joined, self._table, self._changed]
        self._check = Task(check_joined_kernel, count, args, device)

    def update(self, soup: Soup) -> bool:
        """Follow the soup's points; True when others are at one position than before.

        A call costs nothing while the points stay, and a look at each where they have moved.
        """
        if soup.moves == self._moves:
            return False
        self._table.zero_()
        self._changed.zero_()
        self._check.run()
        changed = bool(self._changed.numpy()[0])
        if changed:
            self.joined = join_equal(soup.points.numpy())
            self._joined.assign(self.joined.astype(np.int32))
        self._moves = soup.moves
        return changed
