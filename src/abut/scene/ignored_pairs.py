"""IgnoredPairs: pairs of objects that are never tested, whose changes do not cost their number."""

from collections.abc import Iterable

import numpy as np

LEAST_KEYS = 16
NO_PAIR = np.iinfo(np.int64).max


class IgnoredPairs:
    """Unordered pairs of rows of objects, as sets of partners and as sorted keys."""

    def __init__(self) -> None:
        self._partners: dict[int, set[int]] = {}
        self._keys = self._padded = np.empty(0, np.int64)  # as they were when last read
        self._changed: dict[int, bool] = {}  # keys since then: whether they are ignored now

    @property
    def keys(self) -> np.ndarray:
        """(k,) int64, low << 32 | high, ascending."""
        if self._changed:
            changed = np.fromiter(self._changed, np.int64, len(self._changed))
            ignored = np.fromiter(self._changed.values(), bool, len(changed))
            kept = np.setdiff1d(self._keys, changed, assume_unique=True)
            self._keys = np.sort(np.concatenate([kept, changed[ignored]]))
            capacity = max(LEAST_KEYS, 1 << (len(self._keys) - 1).bit_length())
            self._padded = np.append(self._keys, np.full(capacity - len(self._keys), NO_PAIR))
            self._changed = {}
        return self._keys

    @property
    def padded_keys(self) -> np.ndarray:
        """The keys for kernels, followed by NO_PAIR up to a power of two; empty without keys."""
        return self._padded if len(self.keys) else self._keys

    @property
    def pairs(self) -> np.ndarray:
        """(k, 2) int64 rows, the lower first, sorted."""
        return np.stack([self.keys >> 32, self.keys & 0xFFFFFFFF], axis=1)

    def partners(self, row: int) -> list[int]:
        """Rows of objects that are never tested against this one, ascending."""
        return sorted(self._partners.get(row, ()))

    def set(self, rows: np.ndarray, others: np.ndarray, ignored: bool) -> None:
        """Ignore pairs, row by row, or test them again; an object and itself are no pair."""
        for a, b in zip(*(x.tolist() for x in np.broadcast_arrays(rows, others)), strict=True):
            if a != b and (b in self._partners.get(a, ())) != ignored:
                self._link(a, b, ignored)

    def matrix(self, rows: np.ndarray) -> np.ndarray:
        """(k, k) bool: which two of these objects are ignored. ``rows`` ascend."""
        pairs = self.pairs
        low, high = np.searchsorted(rows, pairs[np.isin(pairs, rows).all(axis=1)]).T
        out = np.zeros((len(rows), len(rows)), bool)
        out[low, high] = out[high, low] = True
        return out

    def set_matrix(self, rows: np.ndarray, matrix: np.ndarray) -> None:
        """Ignore two of these objects, or test them, as ``matrix`` says; ``rows`` ascend."""
        for changed, ignored in ((matrix, True), (~matrix, False)):
            low, high = np.nonzero(np.triu(changed & (self.matrix(rows) != ignored), 1))
            self.set(rows[low], rows[high], ignored)

    def forget(self, rows: Iterable[int]) -> None:
        """Test all pairs of these objects."""
        for row in rows:
            for other in self.partners(row):
                self._link(row, other, False)

    def _link(self, a: int, b: int, ignored: bool) -> None:
        for row, other in ((a, b), (b, a)):
            if ignored:
                self._partners.setdefault(row, set()).add(other)
            else:
                self._partners[row].remove(other)
                if not self._partners[row]:
                    del self._partners[row]
        self._changed[min(a, b) << 32 | max(a, b)] = ignored
