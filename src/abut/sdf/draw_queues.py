"""DrawQueues: the queues between the drawing stages, and launches over their keys."""

from collections.abc import Callable
from typing import Any

import warp as wp

from abut.core.launch import UNKNOWN_COUNT
from abut.core.pair_queue import PairQueues
from abut.core.plan import QueueLaunch
from abut.errors import CapacityError
from abut.sdf.draw_batches import Patches
from abut.sdf.footprint_tiles import BLOCK_TILES
from abut.sdf.pixel_patch import Patch

QUEUES = ("faces", "large", "blocks", "patches", "batches")
MOST_KEYS = UNKNOWN_COUNT // int(BLOCK_TILES)  # tiles of blocks are numbered in 32 bits
GRAIN = 1024  # items of a CPU slice, at least
THREADS = 1 << 16  # of a CUDA launch
DRAWING_THREADS = 512  # per multiprocessor: as many as run at once


class DrawQueues(PairQueues):
    """Queues of faces, large faces, blocks of tiles, patches and draw batches.

    Args:
        device: Where they live.
        capacity: Keys of each queue to begin with.
        others: Capacities of further queues, which come first.
    """

    def __init__(self, device: wp.Device, capacity: int, **others: int) -> None:
        super().__init__(device, **others, **dict.fromkeys(QUEUES, capacity))
        self._patches: tuple[int, Any] = (-1, None)  # generation, struct

    @property
    def patches(self) -> Any:
        """The Patches struct for kernels; it has room for all keys of the patch queue."""
        if self._patches[0] != self.generation:
            out = Patches()
            out.starts, out.batches = self["patches"], self["batches"]
            out.drawn = wp.empty(out.starts.keys.shape[0], dtype=Patch, device=self.device)
            self._patches = self.generation, out
        return self._patches[1]

    def grow(self, counts: dict[str, int]) -> bool:
        """Double the room for counts that did not fit; False when all fitted."""
        return self.make_room(missing_room(counts, self.capacities()))

    def over(
        self, name: str, kernel: wp.Kernel, args: list[Any], *, per_key: int = 1
    ) -> Callable[[], None]:
        """Return a launch over the keys that a queue will hold, ``per_key`` items each."""
        threads = THREADS
        if name == "batches":
            threads = DRAWING_THREADS * max(self.device.sm_count, 1)
        options = {"grain": GRAIN, "per_key": per_key, "threads": threads}
        return QueueLaunch(kernel, self[name], args, **options).run


def missing_room(counts: dict[str, int], room: dict[str, int]) -> dict[str, int]:
    """Return new capacities for the queues whose counts exceed their room.

    Raises:
        CapacityError: A count exceeds MOST_KEYS.
    """
    if max(counts.values()) > MOST_KEYS:
        raise CapacityError("there are too many pixels for a call; ask for fewer, or fewer poses.")
    short = {name: count for name, count in counts.items() if count > room[name]}
    return {name: min(2 * count, MOST_KEYS) for name, count in short.items()}
