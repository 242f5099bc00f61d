"""What of a mesh may matter to a field: bounds of its faces, and blocks of the large ones."""

import warp as wp

from abut.atomics import reserve
from abut.field.grid import FieldGrid
from abut.field.lookup import least_within, look
from abut.field.meeting import FACES, Encounters, Meeting, box_in_pixels
from abut.field.parts import BLOCK, block_count, part_ball, part_of
from abut.field.picture import (
    PER_FACE,
    THIRD,
    Cover,
    area_vector,
    corners_in_pixels,
    cover_of,
    dominant_axis,
    pixel_count,
)
from abut.pairs import PairQueue, queue_stop, store_pair

BOUND, DEPTH, NOTHING = wp.constant(0), wp.constant(1), wp.constant(2)  # early out, see EarlyOut
BLOCK_BITS = wp.constant(wp.int64(24))  # of a key
MOST_BLOCKS = wp.constant(wp.int32((1 << 25) - 1))  # whose parts can be counted
LATTICE = wp.constant(wp.int32(16384))  # pixels of the lattice along an axis where it has no end


@wp.func
def look_at_pixels(grid: FieldGrid, p: wp.vec3d, meeting: Meeting):
    """The field at a point in pixels."""
    c = meeting.share * p
    at = wp.vec3f(wp.float32(c[0]), wp.float32(c[1]), wp.float32(c[2]))
    return look(grid, at, meeting.margin)


@wp.func
def middle_of(corners: wp.mat33d):
    """The centroid of a face."""
    return (corners[0] + corners[1] + corners[2]) * THIRD


@wp.func
def radius_about(corners: wp.mat33d, middle: wp.vec3d, meeting: Meeting):
    """How far a face reaches from a point [length]."""
    a = corners[0] - middle
    b = corners[1] - middle
    c = corners[2] - middle
    far = wp.max(wp.dot(a, a), wp.max(wp.dot(b, b), wp.dot(c, c)))
    return wp.float32(meeting.pixel) * wp.sqrt(wp.float32(far))


@wp.func
def box_pixels(sides: wp.vec3d):
    """The last pixel of a box along each axis."""
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
    return corners_in_pixels(encounters.meshes[meeting.mesh], face, meeting.to_pixels)


@wp.func
def cover_anywhere(encounters: Encounters, meeting: Meeting, face: wp.int32, axis: wp.int32):
    """How a face covers the pixels of the lattice, which goes on far beyond the field's box."""
    corners = load_corners(encounters, meeting, face)
    last = box_pixels(box_in_pixels(encounters.fields[meeting.field], meeting.share))
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
def push_blocks(blocks: PairQueue, item: wp.int32, cover: Cover):
    """List the blocks of a large cover. What finds no room is counted, so that the host retries."""
    count = block_count(cover)
    first = reserve(blocks.count, count)
    for block in range(count):
        key = wp.int64(block * 4 + cover.axis)
        store_pair(blocks, first + wp.int64(block), (wp.int64(item) << BLOCK_BITS) | key)


@wp.func
def part_count(blocks: PairQueue, stop: wp.int32):
    """Parts of all listed blocks; at most ``stop``."""
    return wp.min(queue_stop(blocks, MOST_BLOCKS) * BLOCK, stop)


@wp.func
def block_of(blocks: PairQueue, part: wp.int32):
    """(item, block, axis) of a part of a listed block."""
    key = blocks.keys[part / BLOCK]
    low = wp.int32(key & ((wp.int64(1) << BLOCK_BITS) - wp.int64(1)))
    return wp.vec3i(wp.int32(key >> BLOCK_BITS), low / 4, low % 4)


@wp.func
def least_of_part(grid: FieldGrid, meeting: Meeting, part: Cover):
    """A lower bound of the distances of a part of a large cover."""
    ball = part_ball(part)
    seen = look_at_pixels(grid, wp.vec3d(ball[0], ball[1], ball[2]), meeting)
    return least_within(grid, seen, wp.float32(meeting.pixel * ball[3]), meeting.margin)


@wp.func
def sampling_axis(encounters: Encounters, corners: wp.mat33d):
    """The axis that a face is drawn along, or PER_FACE."""
    if encounters.sampling == FACES:
        return PER_FACE
    return dominant_axis(area_vector(corners))


@wp.func
def cover_inside(encounters: Encounters, meeting: Meeting, face: wp.int32, early: wp.int32):
    """How a face covers the pixels of the field's box; none where it cannot reach inside."""
    grid = encounters.fields[meeting.field]
    corners = load_corners(encounters, meeting, face)
    out = Cover()
    sides = box_in_pixels(grid, meeting.share)
    if misses_box(corners, sides):
        return out
    if early == BOUND:
        middle = middle_of(corners)
        radius = radius_about(corners, middle, meeting)
        seen = look_at_pixels(grid, middle, meeting)
        if least_within(grid, seen, radius, meeting.margin) >= wp.float32(0.0):
            return out
    last = box_pixels(sides)
    return cover_of(corners, sampling_axis(encounters, corners), wp.vec3i(0, 0, 0), last)


@wp.func
def part_inside(
    encounters: Encounters,
    meeting: Meeting,
    face: wp.int32,
    early: wp.int32,
    at: wp.vec3i,
    place: wp.int32,
):
    """A part of a block, see block_of; without pixels where it cannot reach inside."""
    grid = encounters.fields[meeting.field]
    corners = load_corners(encounters, meeting, face)
    last = box_pixels(box_in_pixels(grid, meeting.share))
    part = part_of(cover_of(corners, at[2], wp.vec3i(0, 0, 0), last), at[1], place)
    if early == BOUND and pixel_count(part) > 0:
        if least_of_part(grid, meeting, part) >= wp.float32(0.0):
            part.size = wp.vec2i(0, 0)
    return part
