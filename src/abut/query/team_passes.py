"""The passes of a search for the nearest faces by teams; see traversal.distance.spill."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import warp as wp

from abut.core.cache import ThreadCache
from abut.traversal.distance.spill import CHUNK_SIZE, NO_LIMIT, SpillQueue

CUDA_TEAMS = 1 << 10  # of all rows together
DIVIDED_ROWS = 64  # at most; more rows have one team each in the first pass
ROUNDS_OF_FEW = 8, 8, 8, 16
ROUNDS_OF_MANY = (256,)
ROUNDS_OF_MOST = (1024,)
MANY_ROWS = 1 << 12  # at most; more rows keep all teams busy for longer
CHUNKS = 1 << 14  # that a pass may spill

_arrays = ThreadCache()


@dataclass
class TeamPass:
    """One launch of a search.

    Attributes:
        counter: Of items taken.
        given: SpillQueue of the pass before; without room in the first pass.
        rounds: How long a team works on an item.
        spilled: SpillQueue for the next pass.
    """

    counter: wp.array
    given: Any
    rounds: int
    spilled: Any


def rounds_of(device: wp.Device, row_count: int) -> tuple[int, ...]:
    """Rounds that a team works on an item in each pass before the last, as measured."""
    if device.is_cpu:
        return ()
    if row_count <= DIVIDED_ROWS:
        return ROUNDS_OF_FEW
    return ROUNDS_OF_MANY if row_count <= MANY_ROWS else ROUNDS_OF_MOST


def team_passes(device: wp.Device, limits: Sequence[int]) -> tuple[wp.array, list[TeamPass]]:
    """(counts to clear before a search, its passes); the last has no limit of rounds."""
    counts = wp.zeros(2 * len(limits) + 2, dtype=wp.int32, device=device)
    passes, given = [], SpillQueue()
    for k, rounds in enumerate((*limits, NO_LIMIT)):
        spilled = SpillQueue()
        if rounds != NO_LIMIT:
            spilled.heads, spilled.pairs = _arrays.on(device, lambda: _make_arrays(device))[k % 2]
        spilled.count = counts[2 * k + 1 : 2 * k + 2]
        passes.append(TeamPass(counts[2 * k : 2 * k + 1], given, rounds, spilled))
        given = spilled
    return counts, passes


def _make_arrays(device: wp.Device) -> list[tuple[wp.array, wp.array]]:
    """Heads and pairs of chunks, of every other pass."""
    return [
        (
            wp.empty(CHUNKS, dtype=wp.vec2i, device=device),
            wp.empty(CHUNKS * CHUNK_SIZE, dtype=wp.vec3i, device=device),
        )
        for _ in range(2)
    ]
