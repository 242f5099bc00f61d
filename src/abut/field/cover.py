"""From faces to turns of fragments: those that may matter go into a queue, the others end here."""

import warp as wp

from abut.atomics import reserve
from abut.field.fragments import (
    BLOCK,
    MOST_BLOCKS,
    PER_FACE,
    THIRD,
    Cover,
    area_vector,
    block_count,
    corners_in_pixels,
    cover_of,
    dominant_axis,
    is_large,
    turn_ball,
    turn_count,
)
from abut.field.grid import FieldGrid
from abut.field.lookup import least_within, look
from abut.field.meeting import FACES, Encounters, Meeting, box_in_pixels, meeting_of
from abut.pairs import PairQueue, queue_stop, store_pair

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

BOUND, DEPTH, NOTHING = wp.constant(0), wp.constant(1), wp.constant(2)  # early out, see EarlyOut
TURN_BITS = wp.constant(wp.int64(24))  # of a key
MOST_ITEMS = wp.constant(wp.int32(2**31 - 1))
LATTICE = wp.constant(wp.int32(16384))  # pixels of the lattice along an axis where it has no end


@wp.func
def look_at_pixels(grid: FieldGrid, p: wp.vec3d, meeting: Meeting):
    """The field at a point in pixels."""
    share = meeting.pixel / grid.spacing
    at = wp.vec3f(wp.float32(p[0] * share), wp.float32(p[1] * share), wp.float32(p[2] * share))
    return look(grid, at, meeting.margin)


@wp.func
def middle_of(corners: wp.mat33d):
    """The centroid of a face."""
    return (corners[0] + corners[1] + corners[2]) * THIRD


@wp.func
def radius_about(corners: wp.mat33d, middle: wp.vec3d):
    """How far a face reaches from a point."""
    far = wp.max(wp.length(corners[0] - middle), wp.length(corners[1] - middle))
    return wp.max(far, wp.length(corners[2] - middle))


@wp.func
def box_pixels(grid: FieldGrid, pixel: wp.float64):
    """The last pixel of the box along each axis."""
    sides = box_in_pixels(grid, pixel)
    x = wp.int32(wp.ceil(sides[0])) - 1
    y = wp.int32(wp.ceil(sides[1])) - 1
    z = wp.int32(wp.ceil(sides[2])) - 1
    return wp.max(wp.vec3i(x, y, z), wp.vec3i(0, 0, 0))


@wp.func
def around_box(last: wp.vec3i, side: wp.int32):
    """How many pixels the lattice goes on beyond the box along each axis."""
    return wp.vec3i((side - last[0]) / 2, (side - last[1]) / 2, (side - last[2]) / 2)


@wp.func
def load_corners(encounters: Encounters, meeting: Meeting, face: wp.int32):
    """Corners of a face in pixels of its meeting."""
    lower = encounters.fields[meeting.field].lower
    mesh = encounters.meshes[meeting.mesh]
    return corners_in_pixels(mesh, face, meeting.pose, lower, meeting.pixel)


@wp.func
def cover_anywhere(encounters: Encounters, meeting: Meeting, face: wp.int32, axis: wp.int32):
    """How a face covers the pixels of the lattice, which goes on far beyond the field's box."""
    corners = load_corners(encounters, meeting, face)
    last = box_pixels(encounters.fields[meeting.field], meeting.pixel)
    more = around_box(last, LATTICE)
    return cover_of(corners, axis, -more, last + more - wp.vec3i(1, 1, 1))


@wp.func
def misses_box(corners: wp.mat33d, sides: wp.vec3d):
    """Whether a face's own box lies outside the field's."""
    low = wp.min(corners[0], wp.min(corners[1], corners[2]))
    high = wp.max(corners[0], wp.max(corners[1], corners[2]))
    zero = wp.float64(0.0)
    apart = high[0] < zero or high[1] < zero or high[2] < zero
    return apart or low[0] > sides[0] or low[1] > sides[1] or low[2] > sides[2]


@wp.func
def turn_key(slot: wp.int64, turn: wp.int32):
    """The key of a turn, or a block, of a cover."""
    return (slot << TURN_BITS) | wp.int64(turn)


@wp.func
def push_turns(encounters: Encounters, turns: PairQueue, blocks: PairQueue, cover: Cover):
    """Keep a cover, and append all its turns, or all blocks of turns of a large one.

    What finds no room is counted only, so that the host can retry.
    """
    if cover.size[0] * cover.size[1] == 0:
        return
    slot = reserve(encounters.cover_count, 1)
    if slot >= wp.int64(encounters.covers.shape[0]):
        return
    encounters.covers[wp.int32(slot)] = cover
    if is_large(cover):
        count = block_count(cover)
        first = reserve(blocks.count, count)
        for block in range(count):
            store_pair(blocks, first + wp.int64(block), turn_key(slot, block))
    else:
        count = turn_count(cover)
        first = reserve(turns.count, count)
        for turn in range(count):
            store_pair(turns, first + wp.int64(turn), turn_key(slot, turn))


@wp.func
def item_count(turns: PairQueue, blocks: PairQueue, stop: wp.int32):
    """Turns listed one by one, and those of listed blocks; at most ``stop``."""
    return wp.min(queue_stop(turns, stop) + queue_stop(blocks, MOST_BLOCKS) * BLOCK, stop)


@wp.func
def listed_turn(turns: PairQueue, blocks: PairQueue, item: wp.int32):
    """(slot of the cover, turn) of an item. Those of blocks come last."""
    single = queue_stop(turns, MOST_ITEMS)
    low = (wp.int64(1) << TURN_BITS) - wp.int64(1)
    if item < single:
        key = turns.keys[item]
        return wp.vec2i(wp.int32(key >> TURN_BITS), wp.int32(key & low))
    opened = item - single
    key = blocks.keys[opened / BLOCK]
    turn = wp.int32(key & low) * BLOCK + opened % BLOCK
    return wp.vec2i(wp.int32(key >> TURN_BITS), turn)


@wp.func
def least_of_turn(grid: FieldGrid, meeting: Meeting, cover: Cover, turn: wp.int32):
    """A lower bound of the distances of a turn of a large face; none of a small one."""
    if not is_large(cover):
        return wp.float32(-1.0e30)
    ball = turn_ball(cover, turn)
    seen = look_at_pixels(grid, wp.vec3d(ball[0], ball[1], ball[2]), meeting)
    return least_within(grid, seen, wp.float32(meeting.pixel * ball[3]), meeting.margin)


@wp.kernel
def penetrating_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    early: wp.int32,
    # out
    turns_out: PairQueue,
    blocks_out: PairQueue,
):
    """Turns, or blocks, of the faces that may reach inside an object."""
    stop = wp.min(span[1], encounters.firsts[encounters.firsts.shape[0] - 1])
    for item in range(span[0] + wp.tid(), stop, span[2]):
        m = meeting_of(encounters, item)
        meeting = encounters.meetings[m]
        face = item - encounters.firsts[m]
        grid = encounters.fields[meeting.field]
        corners = load_corners(encounters, meeting, face)
        if not misses_box(corners, box_in_pixels(grid, meeting.pixel)):
            least = wp.float32(-1.0)
            if early == BOUND:
                middle = middle_of(corners)
                radius = wp.float32(meeting.pixel * radius_about(corners, middle))
                seen = look_at_pixels(grid, middle, meeting)
                least = least_within(grid, seen, radius, meeting.margin)
            if least < wp.float32(0.0):
                axis = dominant_axis(area_vector(corners))
                if encounters.sampling == FACES:
                    axis = PER_FACE
                last = box_pixels(grid, meeting.pixel)
                cover = cover_of(corners, axis, wp.vec3i(0, 0, 0), last)
                cover.meeting = m
                cover.face = face
                push_turns(encounters, turns_out, blocks_out, cover)
