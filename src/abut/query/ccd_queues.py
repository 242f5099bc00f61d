"""CcdQueues: candidates, possible pairs and impacts of continuous queries."""

from typing import Any

import numpy as np
import warp as wp

from abut.core.cache import ThreadCache
from abut.core.pair_queue import KeyLayout, PairQueues
from abut.core.plan import Counts
from abut.errors import CapacityError
from abut.traversal.overlap.leaf_cluster_pairs import REST_QUEUES

KINDS = 3  # of feature pairs in a query, at most
NO_TIME = 0x7FF0000000000000  # bits of infinity
LEAST_ROOM = {"cpu": 1 << 14, "cuda": 1 << 20}
MOST_CANDIDATES = {"cpu": 1 << 23, "cuda": 1 << 25}  # held at once
NAMES = ("candidates", "possible", "clusters", *REST_QUEUES, "impacts")

_shared = ThreadCache()


class CcdQueues(PairQueues):
    """The queues of continuous queries on a device, with the times of impacts; they only grow.

    Args:
        device: Where they lie.
        room: Keys that each holds at first.
        most_candidates: Candidates to hold at once.

    Attributes:
        times, converged: Of impacts.
        best: Bits of the earliest time.
        density: Candidates of an item when last seen, by kind of pair and strategy.
    """

    times: Any = None
    converged: Any = None

    def __init__(
        self, device: wp.Device, room: int | None = None, most_candidates: int | None = None
    ) -> None:
        kind = "cuda" if device.is_cuda else "cpu"
        super().__init__(device, **dict.fromkeys(NAMES, room or LEAST_ROOM[kind]))
        self.most_candidates = most_candidates or MOST_CANDIDATES[kind]
        self.density: dict[tuple[Any, ...], float] = {}
        self.best = wp.empty(1, dtype=wp.int64, device=device)
        self._saved = wp.empty((KINDS, len(NAMES)), wp.int64, "cpu", pinned=device.is_cuda)
        self._saved_rows = [self._saved[kind] for kind in range(KINDS)]
        self._all_but_impacts = self.counts[:-1]

    def begin(self) -> None:
        """Forget all impacts and the earliest time."""
        self.keep("impacts", 0)
        self.best.fill_(NO_TIME)

    def earliest(self) -> float:
        """The earliest time, infinity for none. Waits for the device."""
        return float(self.best.numpy().view(np.float64)[0])

    def save_counts(self, kind: int) -> None:
        """Begin to copy the counts of the kind-th kind of pair; then empty all queues but impacts.

        The host need not know the counts, so that the next kind follows without a wait.
        """
        wp.copy(self._saved_rows[kind], self.counts)
        self._all_but_impacts.zero_()

    def saved_counts(self, kinds: int) -> list[Counts]:
        """The counts saved for the first ``kinds`` kinds. Waits for the device."""
        if self.device.is_cuda:
            wp.synchronize_stream(self.device)
        return [dict(zip(NAMES, row, strict=True)) for row in self._saved.numpy()[:kinds].tolist()]

    def _allocate(self, name: str, capacity: int) -> None:
        super()._allocate(name, capacity)
        if name == "impacts":
            old = self.times, self.converged
            self.times = wp.empty(capacity, dtype=wp.float64, device=self.device)
            self.converged = wp.empty(capacity, dtype=wp.bool, device=self.device)
            if self.kept(name):
                for new, before in zip((self.times, self.converged), old, strict=True):
                    wp.copy(new, before, count=self.kept(name))


def shared_ccd_queues(device: wp.Device) -> CcdQueues:
    """The queues of this thread on a device."""
    return _shared.on(device, lambda: CcdQueues(device))


def require_feature_bits(layout: KeyLayout) -> None:
    """Refuse meshes whose keys would not fit 63 bits."""
    if layout.width > 61:
        raise CapacityError("these meshes have too many features for one query; split them.")
