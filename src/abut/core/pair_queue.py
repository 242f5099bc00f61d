"""PairQueue: the queue of keys between stages.

A pair is one 64-bit key, ``pose | face a | face b`` from high bits to low, so that sorting keys
sorts rows.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from abut.core.atomics import atomic_add_aggregated, warp_atomic_add
from abut.core.lanes import warp_count, warp_rank
from abut.core.launch import UNKNOWN_COUNT, launch
from abut.errors import CapacityError

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

MAX_COUNT = wp.constant(UNKNOWN_COUNT)
NO_KEY_INT = 2**63 - 1  # for NumPy, which compares a Warp scalar element by element in Python
NO_KEY = wp.constant(wp.int64(NO_KEY_INT))  # above all keys


@wp.struct
class PairQueue:
    """Keys of pairs; ``count`` may exceed the capacity of ``keys``."""

    keys: wp.array[wp.int64]
    count: wp.array[wp.int64]


@wp.func
def no_key():
    """Return NO_KEY as a variable; Warp treats constants as immutable."""
    return NO_KEY


@wp.func
def store_pair(queue: PairQueue, slot: wp.int64, key: wp.int64):
    """Write a key into a reserved slot, unless it is beyond the capacity."""
    if slot < wp.int64(queue.keys.shape[0]):
        queue.keys[wp.int32(slot)] = key


@wp.func
def push_pair(queue: PairQueue, key: wp.int64):
    """Append a key. When full, only the count grows, so that the host can retry."""
    store_pair(queue, atomic_add_aggregated(queue.count, 1), key)


@wp.func
def queue_size(queue: PairQueue):
    """Return the number of keys in a queue."""
    return wp.int32(wp.min(queue.count[0], wp.int64(queue.keys.shape[0])))


@wp.func
def warp_push_pair(queue: PairQueue, wanted: wp.bool, key: wp.int64):
    """Append the keys of all lanes with ``wanted``; all lanes must call it."""
    count = warp_count(wanted)
    rank = warp_rank(wanted)
    if count > 0:
        first = warp_atomic_add(queue.count, count)
        if wanted:
            store_pair(queue, first + wp.int64(rank), key)


@wp.func
def queue_stop(queue: PairQueue, stop: wp.int32):
    """Return the end of the filled part of a queue, at most ``stop``."""
    return wp.min(queue_size(queue), stop)


@wp.func
def team_stop(queue: PairQueue, team: wp.int32, stop: wp.int32):
    """Return the end of the items of a queue with ``team`` items per key, at most ``stop``."""
    return wp.min(queue_stop(queue, MAX_COUNT / team) * team, stop)


@wp.func
def push_all_pairs(queue: PairQueue, keys: wp.array[wp.int64], first: wp.int32, stop: wp.int32):
    """Append the keys from ``first`` to ``stop`` with one reservation."""
    place = atomic_add_aggregated(queue.count, stop - first)
    for i in range(first, stop):
        store_pair(queue, place + wp.int64(i - first), keys[i])


@wp.func
def lower_bound_index(keys: wp.array[wp.int64], count: wp.int32, key: wp.int64):
    """Return the index of the first of ascending keys that is not less than ``key``."""
    low = wp.int32(0)
    high = wp.int32(count)
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@wp.func
def find_key(keys: wp.array[wp.int64], count: wp.int32, key: wp.int64):
    """Return the index of a key among ascending keys, or -1."""
    place = lower_bound_index(keys, count, key)
    if place < count:
        if keys[place] == key:
            return place
    return -1


class PairQueues:
    """Several queues, whose counts lie together and are read at once."""

    def __init__(self, device: wp.Device, **capacities: int) -> None:
        self.device = device
        self.generation = 0  # grows when a queue is reallocated, which outdates recorded launches
        self.counts = wp.zeros(len(capacities), dtype=wp.int64, device=device)
        self.queues: dict[str, Any] = {}
        self._capacities: dict[str, int] = {}
        self._kept: dict[str, int] = {}
        self._unused: wp.array | None = None  # values that the radix sort moves along with keys
        for slot, (name, capacity) in enumerate(capacities.items()):
            self.queues[name] = PairQueue()
            self.queues[name].count = self.counts[slot : slot + 1]
            self._allocate(name, capacity)
        pinned = device.is_cuda
        self._host = wp.zeros_like(self.counts, device="cpu", pinned=pinned) if pinned else None
        self._view = (self._host if self._host is not None else self.counts).numpy()
        self._cleared = wp.zeros_like(self.counts, device="cpu", pinned=pinned)
        self._cleared_view = self._cleared.numpy()

    def __getitem__(self, name: str) -> Any:
        """Return the queue to pass to kernels."""
        return self.queues[name]

    def keep(self, name: str, count: int) -> None:
        """Let the first ``count`` keys of a queue survive ``clear`` and ``grow``."""
        self._kept[name] = count
        self._cleared_view[list(self.queues).index(name)] = count

    def kept(self, name: str) -> int:
        """Return the number of keys of a queue that survive ``clear``."""
        return self._kept.get(name, 0)

    def clear(self) -> None:
        """Empty all queues except for the kept keys."""
        if self._host is None:
            self._view[:] = self._cleared_view
        elif any(self._kept.values()):
            wp.copy(self.counts, self._cleared)
        else:
            self.counts.zero_()

    def read(self) -> dict[str, int]:
        """Return the keys pushed to each queue, beyond its capacity too. Waits for the device."""
        self.start_read()
        if self._host is not None:
            wp.synchronize_stream(self.device)
        return self.last_read()

    def start_read(self) -> None:
        """Begin to copy the counts to the host."""
        if self._host is not None:
            wp.copy(self._host, self.counts)

    def last_read(self) -> dict[str, int]:
        """The counts that the host has."""
        return dict(zip(self.queues, self._view.tolist(), strict=True))

    def capacities(self) -> dict[str, int]:
        """Return the capacity of each queue."""
        return {name: queue.keys.shape[0] for name, queue in self.queues.items()}

    def make_room(self, counts: dict[str, int]) -> bool:
        """Grow queues to at least these counts; returns whether any grew."""
        grown = False
        for name, count in counts.items():
            if count > self._capacities[name]:
                self._allocate(name, count)
                grown = True
        return grown

    def grow(self, counts: dict[str, int]) -> bool:
        """Grow queues for counts that did not fit, and a quarter more; returns whether any grew."""
        short = {n: c + c // 4 for n, c in counts.items() if c > self._capacities[n]}
        return bool(short) and self.make_room(short)

    def sorted_keys(self, name: str, count: int, width: int) -> Any:
        """Return the first ``count`` keys of a queue, of ``width`` bits, ascending.

        They are a NumPy array on the CPU; on CUDA a slice of the queue, valid until its next use.
        """
        keys = self.queues[name].keys
        if self.device.is_cpu:
            return np.sort(keys.numpy()[:count])
        if count > 0:
            if keys.shape[0] < 2 * count:
                larger = wp.empty(2 * count, dtype=wp.int64, device=self.device)
                wp.copy(larger, keys, count=count)
                keys = larger
            if self._unused is None or self._unused.shape[0] < 2 * count:
                self._unused = wp.empty(3 * count, dtype=wp.int32, device=self.device)
            wp.utils.radix_sort_pairs(keys, self._unused, count, 0, width)
        return keys[:count]

    def _allocate(self, name: str, capacity: int) -> None:
        if capacity > UNKNOWN_COUNT:
            raise CapacityError(f"{capacity} pairs are more than one query can hold.")
        try:
            keys = wp.empty(capacity, dtype=wp.int64, device=self.device)
        except Exception as error:
            size = 8 * capacity
            raise CapacityError(f"{capacity} pairs need {size} bytes on {self.device}.") from error
        if self.kept(name):
            wp.copy(keys, self.queues[name].keys, count=self.kept(name))
        self.queues[name].keys = keys
        self._capacities[name] = capacity
        self.generation += 1


class JoinedQueues:
    """Several PairQueues that one plan fills, read with one wait. Names must differ."""

    def __init__(self, *parts: PairQueues) -> None:
        self.parts, self.device = parts, parts[0].device

    @property
    def generation(self) -> int:
        """Grows when any queue has moved."""
        return sum(part.generation for part in self.parts)

    def clear(self) -> None:
        """Empty all queues except for the kept keys."""
        for part in self.parts:
            part.clear()

    def read(self) -> dict[str, int]:
        """Return the keys pushed to each queue, beyond its capacity too. Waits for the device."""
        for part in self.parts:
            part.start_read()
        if self.device.is_cuda:
            wp.synchronize_stream(self.device)
        return {name: n for part in self.parts for name, n in part.last_read().items()}

    def grow(self, counts: dict[str, int]) -> bool:
        """Make room for counts that did not fit; False when all fitted."""
        grown = [
            part.grow({name: n for name, n in counts.items() if name in part.queues})
            for part in self.parts
        ]
        return any(grown)


@dataclass(frozen=True)
class KeyLayout:
    """The bits of a key that hold the two face indices."""

    bits_a: int
    bits_b: int

    @staticmethod
    @cache
    def of(face_count_a: int, face_count_b: int) -> "KeyLayout":
        """Return the narrowest layout for two face counts."""
        return KeyLayout(
            max(face_count_a - 1, 1).bit_length(), max(face_count_b - 1, 1).bit_length()
        )

    @property
    def width(self) -> int:
        """Bits below the pose."""
        return self.bits_a + self.bits_b

    @property
    def bits(self) -> wp.vec2i:
        """The layout as kernels receive it."""
        return wp.vec2i(self.bits_a, self.bits_b)

    def split(self, keys: Any) -> tuple[Any, Any]:
        """Return the two indices of a key, or of an array of keys."""
        return (keys >> self.bits_b) & ((1 << self.bits_a) - 1), keys & ((1 << self.bits_b) - 1)


def pose_room(layout: KeyLayout, items: int, *, key_bits: int = 63) -> int:
    """Return how many poses one query can have: keys have ``key_bits``, all work items 31 bits."""
    return min(1 << max(key_bits - layout.width, 0), UNKNOWN_COUNT // max(items, 256))


def require_key_bits(
    layout: KeyLayout, pose_count: int, faces_at_once: int, *, key_bits: int = 63
) -> None:
    """Refuse batches whose keys exceed ``key_bits`` or whose items exceed 31 bits."""
    room = pose_room(layout, faces_at_once, key_bits=key_bits)
    if pose_count > room:
        raise CapacityError(
            f"{pose_count} poses of these meshes at once are too many; pass at most {room} a call."
        )


@wp.func
def pack_pair(pose: wp.int32, a: wp.int32, b: wp.int32, bits: wp.vec2i):
    """Return the key of (pose, a, b); ``bits`` as in KeyLayout."""
    high = (wp.int64(pose) << wp.int64(bits[0])) | wp.int64(a)
    return (high << wp.int64(bits[1])) | wp.int64(b)


@wp.func
def unpack_pair(key: wp.int64, bits: wp.vec2i):
    """Return (pose, a, b) of a key."""
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
    colliding_out: wp.array[wp.bool],
):
    """Unpack keys into rows; poses and their flags only where those arrays are not empty."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        row = unpack_pair(keys[i], bits)
        pairs_out[i, 0] = row[1]
        pairs_out[i, 1] = row[2]
        if pose_out.shape[0] > 0:
            pose_out[i] = row[0]
        if colliding_out.shape[0] > 0:
            colliding_out[row[0]] = True


@wp.kernel
def unpack_queue_kernel(
    # in
    span: wp.vec3i,
    queue: PairQueue,
    bits: wp.vec2i,
    # out
    pairs_out: wp.array2d[wp.int32],
):
    """Unpack the keys of a queue into rows, up to the capacity of the rows."""
    stop = queue_stop(queue, pairs_out.shape[0])
    for i in range(span[0] + wp.tid(), stop, span[2]):
        row = unpack_pair(queue.keys[i], bits)
        pairs_out[i, 0] = row[1]
        pairs_out[i, 1] = row[2]


def unpack_keys(
    keys: Any, layout: KeyLayout, posed: bool, device: wp.Device
) -> tuple[wp.array, wp.array | None]:
    """Return ((n, 2) pairs, (n,) poses if ``posed``) int32 of a NumPy or Warp array of keys."""
    if isinstance(keys, np.ndarray):
        pairs = np.empty((len(keys), 2), dtype=np.int32)
        pairs[:, 0], pairs[:, 1] = layout.split(keys)
        pose = wp.array((keys >> layout.width).astype(np.int32), device=device) if posed else None
        return wp.array(pairs, device=device, copy=device.is_cuda), pose
    count, colliding = keys.shape[0], wp.empty(0, dtype=wp.bool, device=device)
    pairs = wp.empty((count, 2), dtype=wp.int32, device=device)
    pose = wp.empty(count if posed else 0, dtype=wp.int32, device=device)
    launch(unpack_kernel, count, [keys, layout.bits, pose, pairs, colliding], device)
    return pairs, pose if posed else None


def unpack_rows(
    keys: Any, layout: KeyLayout, pose_count: int, device: wp.Device
) -> tuple[wp.array, wp.array, wp.array]:
    """Return (pairs, poses, (B,) whether each pose has a pair) of a NumPy or Warp array of keys."""
    if isinstance(keys, np.ndarray):
        pairs, pose = unpack_keys(keys, layout, True, device)
        met = np.zeros(pose_count, dtype=bool)
        met[keys >> layout.width] = True
        return pairs, pose, wp.array(met, device=device, copy=device.is_cuda)
    colliding = wp.zeros(pose_count, dtype=wp.bool, device=device)
    pairs = wp.empty((keys.shape[0], 2), dtype=wp.int32, device=device)
    pose = wp.empty(keys.shape[0], dtype=wp.int32, device=device)
    args = [keys, layout.bits, pose, pairs, colliding]
    launch(unpack_kernel, keys.shape[0], args, device)
    return pairs, pose, colliding


def lowest_of_each_pose(keys: Any, layout: KeyLayout) -> np.ndarray:
    """Return the first key of every pose, of sorted keys."""
    host = keys if isinstance(keys, np.ndarray) else keys.numpy()
    return host[np.flatnonzero(np.diff(host >> layout.width, prepend=-1))]
