"""PairQueue: the one wire between stages.

A pair is one 64-bit key, ``pose | face a | face b`` from high bits to low, so that sorting keys
sorts rows and one word travels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.atomics import next_slot
from abut.errors import CapacityError
from abut.runtime import EVERYTHING, launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class PairQueue:
    """Keys of pairs; ``count`` may exceed the capacity of ``keys``."""

    keys: wp.array[wp.int64]
    count: wp.array[wp.int64]


@wp.func
def push_pair(queue: PairQueue, key: wp.int64):
    """Append a key. When full, only the count grows, so that the host can retry."""
    slot = next_slot(queue.count)
    if slot < wp.int64(queue.keys.shape[0]):
        queue.keys[wp.int32(slot)] = key


@wp.func
def queue_stop(queue: PairQueue, stop: wp.int32):
    """End of the part of the queue that is filled, at most ``stop``."""
    held = wp.min(queue.count[0], wp.int64(queue.keys.shape[0]))
    return wp.min(wp.int32(held), stop)


class PairQueues:
    """The host's side of several queues, whose counts lie together and are read at once."""

    def __init__(self, device: wp.Device, **capacities: int) -> None:
        self.device = device
        self.counts = wp.zeros(len(capacities), dtype=wp.int64, device=device)
        self.queues: dict[str, Any] = {}
        for slot, (name, capacity) in enumerate(capacities.items()):
            self.queues[name] = PairQueue()
            self.queues[name].count = self.counts[slot : slot + 1]
            self._make_room(name, capacity)

    def __getitem__(self, name: str) -> Any:
        """The queue to pass to kernels."""
        return self.queues[name]

    def clear(self) -> None:
        """Forget all keys."""
        self.counts.zero_()

    def count(self, name: str) -> int:
        """Keys pushed, those that found no room included. Waits for the device."""
        return int(self.counts.numpy()[list(self.queues).index(name)])

    def all_fit(self) -> bool:
        """Whether every key found room; queues that were too small grow to the size needed."""
        fit = True
        for (name, queue), count in zip(self.queues.items(), self.counts.numpy(), strict=True):
            if count > queue.keys.shape[0]:
                self._make_room(name, int(count))
                fit = False
        return fit

    def _make_room(self, name: str, capacity: int) -> None:
        if capacity > EVERYTHING:
            raise CapacityError(f"{capacity} pairs are more than one query can hold.")
        try:
            keys = wp.empty(capacity, dtype=wp.int64, device=self.device)
        except Exception as error:
            size = 8 * capacity
            raise CapacityError(f"{capacity} pairs need {size} bytes on {self.device}.") from error
        self.queues[name].keys = keys


@dataclass(frozen=True)
class KeyLayout:
    """How many bits of a key the two face indices take."""

    bits_a: int
    bits_b: int

    @staticmethod
    def of(face_count_a: int, face_count_b: int) -> "KeyLayout":
        """The narrowest layout for two face counts."""
        return KeyLayout(
            max(face_count_a - 1, 1).bit_length(), max(face_count_b - 1, 1).bit_length()
        )

    @property
    def width(self) -> int:
        """Bits below the pose."""
        return self.bits_a + self.bits_b

    @property
    def bits(self) -> wp.vec2i:
        """The layout as kernels take it."""
        return wp.vec2i(self.bits_a, self.bits_b)


def require_room(layout: KeyLayout, pose_count: int, faces_at_once: int) -> None:
    """Refuse batches whose keys would not fit 63 bits or whose work items would not fit 31."""
    room = min(1 << max(63 - layout.width, 0), EVERYTHING // max(faces_at_once, 256))
    if pose_count > room:
        raise CapacityError(
            f"{pose_count} poses of these meshes at once are too many; pass at most {room} a call."
        )


@wp.func
def pack_pair(pose: wp.int32, a: wp.int32, b: wp.int32, bits: wp.vec2i):
    """The key of (pose, a, b); ``bits`` as in KeyLayout."""
    high = (wp.int64(pose) << wp.int64(bits[0])) | wp.int64(a)
    return (high << wp.int64(bits[1])) | wp.int64(b)


@wp.func
def unpack_pair(key: wp.int64, bits: wp.vec2i):
    """(pose, a, b) of a key."""
    b = key & ((wp.int64(1) << wp.int64(bits[1])) - wp.int64(1))
    high = key >> wp.int64(bits[1])
    a = high & ((wp.int64(1) << wp.int64(bits[0])) - wp.int64(1))
    return wp.vec3i(wp.int32(high >> wp.int64(bits[0])), wp.int32(a), wp.int32(b))


@wp.kernel
def unpack_kernel(
    # in
    span: wp.vec3i,
    keys: wp.array[wp.int64],
    bits: wp.vec2i,
    # out
    pose_out: wp.array[wp.int32],
    pairs_out: wp.array2d[wp.int32],
):
    """Keys to rows."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        row = unpack_pair(keys[i], bits)
        pose_out[i] = row[0]
        pairs_out[i, 0] = row[1]
        pairs_out[i, 1] = row[2]


def to_rows(keys: wp.array, layout: KeyLayout) -> tuple[wp.array, wp.array]:
    """(pose (n,), pairs (n, 2)) int32 of sorted keys, on their device."""
    count = keys.shape[0]
    pose = wp.empty(count, dtype=wp.int32, device=keys.device)
    pairs = wp.empty((count, 2), dtype=wp.int32, device=keys.device)
    launch(unpack_kernel, count, [keys, layout.bits, pose, pairs], keys.device)
    return pose, pairs


def sorted_keys(keys: wp.array, count: int) -> wp.array:
    """The first ``count`` keys in ascending order."""
    if keys.device.is_cpu:
        return wp.array(np.sort(keys.numpy()[:count]), dtype=wp.int64, device="cpu", copy=False)
    room = wp.empty(2 * count, dtype=wp.int64, device=keys.device)
    wp.copy(room, keys, count=count)
    idle = wp.empty(2 * count, dtype=wp.int32, device=keys.device)
    wp.utils.radix_sort_pairs(room, idle, count)
    return room[:count]
