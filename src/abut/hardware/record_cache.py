"""Record cache: a model of records kept on the chip, and of records relative to their parents.

Siblings are adjacent in memory, and along every normal at least one of two siblings reaches as far
as their parent. Relative to the parent a pair of siblings therefore needs, for each normal, one
flag (which sibling has the parent's value) and one delta (how far the other is below it), in a unit
of its own.
"""

import numpy as np

from abut.hardware.config import CACHE_WAYS, Machine

LOOKUP = 2  # cycles: tag, then data


class RecordCache:
    """Set-associative, least recently used.

    Args:
        machine: Parameters.
        parents: Slot of the parent of every slot of a and of b; -1 for a root.
    """

    def __init__(self, machine: Machine, parents: tuple[np.ndarray, np.ndarray]) -> None:
        self.machine, self.parents = machine, parents
        self.sets: list[list[int]] = [[] for _ in range(machine.cache // CACHE_WAYS)]

    def request(self, side: int, slot: int) -> tuple[int, int, int]:
        """Look up a record, and load it where it is absent.

        Returns:
            Beats until it is in the pipelines, cycles until a request leaves, bursts of memory.
        """
        machine = self.machine
        if not self.sets:
            return machine.beats, 0, machine.bursts
        on_chip = -(-machine.sides // machine.row_values)
        if self._holds(side, slot):
            return on_chip, LOOKUP, 0
        if not machine.delta_bits or self.parents[side][slot] < 0:
            self._keep(side, slot)
            return machine.beats, LOOKUP, machine.bursts
        return self._load_chain(side, slot, on_chip)

    def _load_chain(self, side: int, slot: int, on_chip: int) -> tuple[int, int, int]:
        """Load a record relative to its parent, and the parent first where that is absent."""
        machine, beats, bursts = self.machine, 0, 0
        missing = [slot]
        while (parent := int(self.parents[side][missing[-1]])) >= 0:
            if self._holds(side, parent):
                break
            missing.append(parent)
        for node in reversed(missing):
            siblings = self.parents[side][node] >= 0
            beats += machine.sibling_beats if siblings else machine.beats
            bursts += 1 if siblings else machine.bursts
            for one in (node ^ 1, node) if siblings else (node,):
                self._keep(side, one)
        beats += (len(missing) - 1) * machine.latency + on_chip  # decoded rows go on from there
        return beats, LOOKUP, bursts

    def _holds(self, side: int, slot: int) -> bool:
        key, tags = self._set(side, slot)
        if key not in tags:
            return False
        tags.remove(key)
        tags.append(key)
        return True

    def _keep(self, side: int, slot: int) -> None:
        key, tags = self._set(side, slot)
        if key in tags:
            tags.remove(key)
        elif len(tags) == CACHE_WAYS:
            tags.pop(0)
        tags.append(key)

    def _set(self, side: int, slot: int) -> tuple[int, list[int]]:
        key = 2 * slot + side
        return key, self.sets[key % len(self.sets)]


def parents_of(links: np.ndarray, leaves: np.ndarray) -> np.ndarray:
    """Slot of the parent of every slot, -1 for the root."""
    parents = np.full(len(links), -1)
    inner = np.flatnonzero(~leaves)
    for child in range(2):
        parents[links[inner] + child] = inner
    return parents


def relative_reaches(
    reaches: np.ndarray, links: np.ndarray, leaves: np.ndarray, bits: int
) -> np.ndarray:
    """Reaches as decoded from deltas of ``bits`` bits: never below the true ones.

    A sibling whose reach equals the parent's true one takes the parent's decoded one.
    """
    out = reaches.copy()
    level = np.array([len(links) - 1])
    while len(level := level[~leaves[level]]):
        children = links[level][:, None] + np.arange(2)
        above = out[level]
        deltas = above[:, None] - reaches[children]  # not negative: decoded are never below
        inherits = deltas.argmin(axis=1)  # (nodes, k): the sibling that reaches as far
        other = np.take_along_axis(deltas, 1 - inherits[:, None], axis=1)[:, 0]
        most = np.maximum(other.max(axis=1), 1)
        shift = np.maximum(np.ceil(np.log2((most + 1) / (1 << bits))), 0).astype(np.int64)[:, None]
        kept = np.minimum(other >> shift, (1 << bits) - 1) << shift
        for child in range(2):
            out[children[:, child]] = above - np.where(inherits == child, 0, kept)
        level = children.ravel()
    return out
