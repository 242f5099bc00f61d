"""Lists of patches, and the turns in which lanes draw them: a pixel a lane.

Most patches are small. So those of one meeting that lanes list together make a group, whose pixels
are drawn one after the other, 32 a turn; and all warps take as many turns. On the CPU a thread is
alone, and a turn is a patch.
"""

from typing import Any

import warp as wp

from abut.core.atomics import warp_reserve
from abut.core.lanes import (
    lane_count,
    warp_all,
    warp_count,
    warp_max,
    warp_rank,
    warp_scan,
)
from abut.core.launch import UNKNOWN_COUNT
from abut.core.pair_queue import PairQueue, PairQueues, store_pair
from abut.errors import CapacityError
from abut.sdf.footprint_tiles import BLOCK
from abut.sdf.orthographic_raster import Cover
from abut.sdf.pixel_patch import Patch, load_patch, patch_pixels, piece_of, store_patch

FIRST_BITS = wp.constant(wp.int64(26))  # of a turn's key, after the meeting
SIZE_BITS = wp.constant(wp.int64(5))
TURN_BITS = wp.constant(wp.int64(10))
MOST_LISTED = UNKNOWN_COUNT // int(BLOCK)  # blocks whose parts can be counted; see FIRST_BITS
QUEUES = ("faces", "large", "blocks", "patches", "turns")  # of what is listed


@wp.struct
class Patches:
    """Patches in groups. ``starts``: of each, the pixels of its group before it."""

    starts: PairQueue
    drawn: wp.array[Patch]
    turns: PairQueue


@wp.struct
class Turn:
    """32 pixels of a group: patches from ``first`` on, pixels from ``start`` on."""

    meeting: wp.int32
    first: wp.int32
    count: wp.int32
    start: wp.int32


@wp.struct
class Stroke:
    """What a lane draws in a turn: so many pixels of a patch, from its ``first`` on."""

    meeting: wp.int32
    patch: Patch
    first: wp.int32
    steps: wp.int32  # the same for all lanes
    is_there: wp.bool  # whether the patch has these pixels
    is_last: wp.bool  # whether the next turn is of another meeting


def wanting(counts: dict[str, int], room: dict[str, int]) -> dict[str, int]:
    """The room that what is listed will need, of that which has too little."""
    if max(counts.values()) > MOST_LISTED:
        raise CapacityError("there are too many pixels for a call; ask for fewer, or fewer poses.")
    short = {name: count for name, count in counts.items() if count > room[name]}
    return {name: min(2 * count, MOST_LISTED) for name, count in short.items()}


def patches_in(queues: PairQueues) -> Any:
    """The list whose keys lie in these queues, with patches for all the room there is."""
    out = Patches()
    out.starts, out.turns = queues["patches"], queues["turns"]
    out.drawn = wp.empty(out.starts.keys.shape[0], dtype=Patch, device=queues.device)
    return out


@wp.func
def key_of_turn(turn: Turn):
    """A turn in one word."""
    key = wp.int64(turn.meeting) << FIRST_BITS | wp.int64(turn.first)
    key = key << SIZE_BITS | wp.int64(turn.count - 1)
    return key << TURN_BITS | wp.int64(turn.start / lane_count())


@wp.func
def low_bits(key: wp.int64, bits: wp.int64):
    """The lowest bits of a key."""
    return wp.int32(key & ((wp.int64(1) << bits) - wp.int64(1)))


@wp.func
def turn_at(patches: Patches, i: wp.int32):
    """A listed turn."""
    key = patches.turns.keys[i]
    out = Turn()
    out.start = low_bits(key, TURN_BITS) * lane_count()
    out.count = low_bits(key >> TURN_BITS, SIZE_BITS) + 1
    out.first = low_bits(key >> (TURN_BITS + SIZE_BITS), FIRST_BITS)
    out.meeting = wp.int32(key >> (TURN_BITS + SIZE_BITS + FIRST_BITS))
    return out


@wp.func
def push_group(patches: Patches, meeting: wp.int32, patch: Patch, lane: wp.int32):
    """List the patches of all lanes that have one, of one meeting; all lanes must come.

    What finds no room is counted, so that the host retries.
    """
    count = patch_pixels(patch)
    before = warp_scan(count)
    if before[1] == 0:
        return
    lanes = lane_count()
    turn = Turn()
    turn.meeting = meeting
    turn.count = warp_count(count > 0)
    first = warp_reserve(patches.starts.count, turn.count)
    turns = wp.where(lanes == 1, 1, (before[1] + lanes - 1) / lanes)
    slot = warp_reserve(patches.turns.count, turns)
    rank = warp_rank(count > 0)
    if first + wp.int64(turn.count) > wp.int64(patches.drawn.shape[0]):
        return
    turn.first = wp.int32(first)
    if count > 0:
        patches.starts.keys[turn.first + rank] = wp.int64(before[0])
        store_patch(patches.drawn, turn.first + rank, patch)
    for k in range(lane, turns, lanes):
        turn.start = k * lanes
        store_pair(patches.turns, slot + wp.int64(k), key_of_turn(turn))


@wp.func
def push_patches(patches: Patches, meeting: wp.int32, patch: Patch, lane: wp.int32):
    """List the patches of all lanes that have one, of any meetings; all lanes must come."""
    waiting = wp.where(patch_pixels(patch) > 0, meeting, -1)
    now = warp_max(waiting)
    while now >= 0:
        ours = Patch()
        if waiting == now:
            ours = patch
            waiting = wp.int32(-1)
        push_group(patches, now, ours, lane)
        now = warp_max(waiting)


@wp.func
def push_cover(
    patches: Patches,
    meeting: wp.int32,
    share: wp.float64,
    face: wp.int32,
    cover: Cover,
    lane: wp.int32,
):
    """List the covers of all lanes piece by piece; all lanes must come."""
    at = wp.vec2i(0, 0)
    while not warp_all(at[0] >= cover.size[0]):
        patch = Patch()
        if at[0] < cover.size[0]:
            piece = piece_of(cover, at, face, share)
            patch = piece.patch
            at = piece.next
        push_patches(patches, meeting, patch, lane)


@wp.func
def turns_of(patches: Patches, span: wp.vec3i, thread: wp.int32):
    """The turns from, to that a thread and its lanes have to draw: none where room was short."""
    total = patches.turns.count[0]
    short = patches.starts.count[0] > wp.int64(patches.drawn.shape[0])
    if short or total > wp.int64(patches.turns.keys.shape[0]):
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
def place_in_group(start: wp.int32, at: wp.int32) -> wp.int32:
    """The patch of a group that this lane's pixel, of those from ``at`` on, belongs to.

    ``start``: the first pixel of the patch whose number is the lane's; -1 where there is none.
    """
    ...


@wp.func
def stroke_of(patches: Patches, i: wp.int32, stop: wp.int32, lane: wp.int32):
    """What a lane draws in turn i of those up to ``stop``."""
    turn = turn_at(patches, i)
    start = wp.int32(-1)
    if lane < turn.count:
        start = wp.int32(patches.starts.keys[turn.first + lane])
    at = turn.first + place_in_group(start, turn.start)
    out = Stroke()
    out.meeting = turn.meeting
    out.patch = load_patch(patches.drawn, at)
    out.first = turn.start + lane - wp.int32(patches.starts.keys[at])
    out.steps = wp.where(lane_count() == 1, patch_pixels(out.patch), 1)
    out.is_there = out.first < patch_pixels(out.patch)
    out.is_last = i + 1 == stop
    if not out.is_last:
        out.is_last = turn_at(patches, i + 1).meeting != turn.meeting
    return out
