"""Patches in groups, and the draw batches in which the lanes of a warp draw them, a pixel each.

Most patches are small, so the patches of one pair that the lanes of a warp push together form a
group, whose pixels are numbered through. A draw batch is 32 pixels of a group; all warps draw
equally many batches. On the CPU a thread is alone, and a draw batch is a patch. DrawQueues are the
queues between the drawing stages.
"""

from collections.abc import Callable
from typing import Any

import warp as wp

from abut.core.atomics import warp_atomic_add
from abut.core.lanes import lane_count, warp_all, warp_count, warp_max, warp_rank, warp_scan
from abut.core.launch import UNKNOWN_COUNT
from abut.core.pair_queue import PairQueue, PairQueues, store_pair
from abut.core.plan import QueueLaunch
from abut.errors import CapacityError
from abut.sdf.footprint import BLOCK_TILES
from abut.sdf.orthographic_raster import Footprint
from abut.sdf.pixel_patch import Patch, load_patch, patch_from, patch_pixel_count, store_patch

QUEUES = ("faces", "large", "blocks", "patches", "batches")
MOST_KEYS = UNKNOWN_COUNT // int(BLOCK_TILES)  # tiles of blocks are numbered in 32 bits
GRAIN = 1024  # items of a CPU slice, at least
THREADS = 1 << 16  # of a CUDA launch
DRAWING_THREADS = 512  # per multiprocessor: as many as run at once

PATCH_BITS = wp.constant(wp.int64(26))  # of a batch's key, after the pair; see MOST_KEYS
SIZE_BITS = wp.constant(wp.int64(5))
START_BITS = wp.constant(wp.int64(10))


@wp.struct
class Patches:
    """Patches in groups, and the draw batches of all groups."""

    starts: PairQueue  # for each patch the pixels of its group before it
    drawn: wp.array[Patch]
    batches: PairQueue


@wp.struct
class DrawBatch:
    """32 pixels of a group of patches."""

    pair: wp.int32
    first: wp.int32  # patch of the group
    count: wp.int32  # patches of the group
    start: wp.int32  # pixel of the group


@wp.struct
class LanePixels:
    """Pixels of a patch that one lane draws in a draw batch."""

    pair: wp.int32
    patch: Patch
    first: wp.int32  # pixel of the patch
    steps: wp.int32  # pixels, equally many for all lanes
    is_valid: wp.bool  # whether the patch has these pixels
    is_last: wp.bool  # whether the next batch belongs to another pair


@wp.func
def batch_key(batch: DrawBatch):
    """Return the key of a draw batch."""
    key = wp.int64(batch.pair) << PATCH_BITS | wp.int64(batch.first)
    key = key << SIZE_BITS | wp.int64(batch.count - 1)
    return key << START_BITS | wp.int64(batch.start / lane_count())


@wp.func
def low_bits(key: wp.int64, bits: wp.int64):
    """Return the lowest bits of a key."""
    return wp.int32(key & ((wp.int64(1) << bits) - wp.int64(1)))


@wp.func
def batch_at(patches: Patches, i: wp.int32):
    """Return a queued draw batch."""
    key = patches.batches.keys[i]
    out = DrawBatch()
    out.start = low_bits(key, START_BITS) * lane_count()
    out.count = low_bits(key >> START_BITS, SIZE_BITS) + 1
    out.first = low_bits(key >> (START_BITS + SIZE_BITS), PATCH_BITS)
    out.pair = wp.int32(key >> (START_BITS + SIZE_BITS + PATCH_BITS))
    return out


@wp.func
def push_patch_group(patches: Patches, pair: wp.int32, patch: Patch, lane: wp.int32):
    """Push the patches of all lanes that have one, as a group of one pair; all lanes must call it.

    Patches without room are counted, so that the host retries.
    """
    count = patch_pixel_count(patch)
    before = warp_scan(count)
    if before[1] == 0:
        return
    lanes = lane_count()
    batch = DrawBatch()
    batch.pair = pair
    batch.count = warp_count(count > 0)
    first = warp_atomic_add(patches.starts.count, batch.count)
    batches = wp.where(lanes == 1, 1, (before[1] + lanes - 1) / lanes)
    slot = warp_atomic_add(patches.batches.count, batches)
    rank = warp_rank(count > 0)
    if first + wp.int64(batch.count) > wp.int64(patches.drawn.shape[0]):
        return
    batch.first = wp.int32(first)
    if count > 0:
        patches.starts.keys[batch.first + rank] = wp.int64(before[0])
        store_patch(patches.drawn, batch.first + rank, patch)
    for k in range(lane, batches, lanes):
        batch.start = k * lanes
        store_pair(patches.batches, slot + wp.int64(k), batch_key(batch))


@wp.func
def push_patches(patches: Patches, pair: wp.int32, patch: Patch, lane: wp.int32):
    """Push the patches of all lanes that have one, of any pairs; all lanes must call it."""
    waiting = wp.where(patch_pixel_count(patch) > 0, pair, -1)
    now = warp_max(waiting)
    while now >= 0:
        ours = Patch()
        if waiting == now:
            ours = patch
            waiting = wp.int32(-1)
        push_patch_group(patches, now, ours, lane)
        now = warp_max(waiting)


@wp.func
def push_footprint(
    patches: Patches,
    pair: wp.int32,
    cells_per_pixel: wp.float64,
    face: wp.int32,
    footprint: Footprint,
    lane: wp.int32,
):
    """Push the footprints of all lanes patch by patch; all lanes must call it."""
    at = wp.vec2i(0, 0)
    while not warp_all(at[0] >= footprint.size[0]):
        patch = Patch()
        if at[0] < footprint.size[0]:
            piece = patch_from(footprint, at, face, cells_per_pixel)
            patch = piece.patch
            at = piece.next
        push_patches(patches, pair, patch, lane)


@wp.func
def batch_range(patches: Patches, span: wp.vec3i, thread: wp.int32):
    """Return the first and last draw batch of a thread and its lanes; none where room was short."""
    total = patches.batches.count[0]
    short = patches.starts.count[0] > wp.int64(patches.drawn.shape[0])
    if short or total > wp.int64(patches.batches.keys.shape[0]):
        total = wp.int64(0)
    lanes = lane_count()
    if lanes == 1:
        return wp.vec2i(span[0], wp.min(span[1], wp.int32(total)))
    teams = wp.int64(span[2] / lanes)
    team = wp.int64(thread / lanes)
    return wp.vec2i(wp.int32(team * total / teams), wp.int32((team + wp.int64(1)) * total / teams))


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const unsigned full = 0xffffffffu;
    const unsigned lane = threadIdx.x & 31u;
    const bool early = start >= 0 && start < at;
    const bool now = start >= at && start < at + 32;
    unsigned begins = now ? 1u << (start - at) : 0u;
    #if __CUDA_ARCH__ >= 800
    begins = __reduce_or_sync(full, begins);
    #else
    for (int step = 16; step > 0; step /= 2) begins |= __shfl_xor_sync(full, begins, step);
    #endif
    return __popc(__ballot_sync(full, early)) + __popc(begins & (full >> (31u - lane))) - 1;
#else
    return 0;
#endif
""")
def patch_in_group(start: wp.int32, at: wp.int32) -> wp.int32:
    """Return the patch of a group to which this lane's pixel belongs; pixels begin at ``at``.

    ``start``: the first pixel of the patch whose index is the lane's; -1 where there is none.
    """
    ...


@wp.func
def lane_pixels(patches: Patches, i: wp.int32, stop: wp.int32, lane: wp.int32):
    """Return the pixels that a lane draws in draw batch i of those up to ``stop``."""
    batch = batch_at(patches, i)
    start = wp.int32(-1)
    if lane < batch.count:
        start = wp.int32(patches.starts.keys[batch.first + lane])
    at = batch.first + patch_in_group(start, batch.start)
    out = LanePixels()
    out.pair = batch.pair
    out.patch = load_patch(patches.drawn, at)
    out.first = batch.start + lane - wp.int32(patches.starts.keys[at])
    out.steps = wp.where(lane_count() == 1, patch_pixel_count(out.patch), 1)
    out.is_valid = out.first < patch_pixel_count(out.patch)
    out.is_last = i + 1 == stop
    if not out.is_last:
        out.is_last = batch_at(patches, i + 1).pair != batch.pair
    return out


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
