"""The passes of a search for the nearest faces by teams; see traversal.distance.parcels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import warp as wp

from abut.core.cache import ThreadCache
from abut.traversal.distance.parcels import NO_LIMIT, SIZE, Parcels

CUDA_TEAMS = 1 << 10  # of all rows together
FEW = 64  # rows that many teams share from the first pass on
ROUNDS_OF_FEW = 8, 8, 8, 16
ROUNDS_OF_MANY = (256,)
ROUNDS_OF_MOST = (1024,)
MOST = 1 << 12  # rows that alone keep all teams busy
ROOM = 1 << 14  # parcels of a pass

_arrays = ThreadCache()


@dataclass
class TeamPass:
    """One launch of a search.

    Attributes:
        counter: Of items taken.
        given: Parcels of the pass before; without room in the first pass.
        rounds: How long a team works on an item.
        left: Parcels for the next pass.
    """

    counter: wp.array
    given: Any
    rounds: int
    left: Any


def rounds_of(device: wp.Device, row_count: int) -> tuple[int, ...]:
    """Rounds that a team works on an item in each pass before the last, as measured."""
    if device.is_cpu:
        return ()
    if row_count <= FEW:
        return ROUNDS_OF_FEW
    return ROUNDS_OF_MANY if row_count <= MOST else ROUNDS_OF_MOST


def team_passes(device: wp.Device, limits: Sequence[int]) -> tuple[wp.array, list[TeamPass]]:
    """(counts to clear before a search, its passes); the last has no limit of rounds."""
    counts = wp.zeros(2 * len(limits) + 2, dtype=wp.int32, device=device)
    passes, given = [], Parcels()
    for k, rounds in enumerate((*limits, NO_LIMIT)):
        left = Parcels()
        if rounds != NO_LIMIT:
            left.heads, left.pairs = _arrays.on(device, lambda: _make_arrays(device))[k % 2]
        left.count = counts[2 * k + 1 : 2 * k + 2]
        passes.append(TeamPass(counts[2 * k : 2 * k + 1], given, rounds, left))
        given = left
    return counts, passes


def _make_arrays(device: wp.Device) -> list[tuple[wp.array, wp.array]]:
    """Heads and pairs of parcels, of every other pass."""
    return [
        (
            wp.empty(ROOM, dtype=wp.vec2i, device=device),
            wp.empty(ROOM * SIZE, dtype=wp.vec3i, device=device),
        )
        for _ in range(2)
    ]
