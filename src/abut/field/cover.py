"""From faces to blocks of fragments: those that may matter go into a queue, the others end here."""

import warp as wp

from abut.atomics import reserve
from abut.field.fragments import (
    PER_FACE,
    THIRD,
    Cover,
    area_vector,
    block_count,
    corners_in_pixels,
    cover_of,
    dominant_axis,
    is_large,
    point_at,
    turn_corner,
)
from abut.field.grid import FieldGrid
from abut.field.lookup import least_within, look
from abut.field.meeting import FACES, Encounters, Meeting, box_in_pixels, meeting_of
from abut.pairs import PairQueue, pack_pair, store_pair

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

BOUND, DEPTH, NOTHING = wp.constant(0), wp.constant(1), wp.constant(2)  # early out, see EarlyOut
LATTICE = wp.constant(wp.int32(16384))  # pixels of the lattice along an axis where it has no end
ROUND_SIDE = wp.constant(wp.float64(5.66))  # from the middle of a square turn to its corners


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
def cover_in_box(encounters: Encounters, meeting: Meeting, face: wp.int32, axis: wp.int32):
    """How a face covers the pixels of the field's box."""
    corners = load_corners(encounters, meeting, face)
    last = box_pixels(encounters.fields[meeting.field], meeting.pixel)
    return cover_of(corners, axis, wp.vec3i(0, 0, 0), last)


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
def push_blocks(queue: PairQueue, meeting: wp.int32, face: wp.int32, cover: Cover, bits: wp.vec2i):
    """Append all blocks of a face."""
    count = block_count(cover)
    if count > 0:
        slot = reserve(queue.count, count)
        for block in range(count):
            key = pack_pair(meeting, face, block * 4 + cover.axis, bits)
            store_pair(queue, slot + wp.int64(block), key)


@wp.func
def least_of_turn(grid: FieldGrid, meeting: Meeting, cover: Cover, block: wp.int32, turn: wp.int32):
    """A lower bound of the distances of a turn of a large face; none for small or divided ones."""
    if cover.axis == PER_FACE or not is_large(cover):
        return wp.float32(-1.0e30)
    corner = cover.low + turn_corner(cover, block, turn)
    at = wp.vec2d(wp.float64(corner[0] + 4), wp.float64(corner[1] + 4))
    slopes = wp.vec3d(wp.float64(1.0), cover.plane[1], cover.plane[2])
    radius = wp.float32(meeting.pixel * ROUND_SIDE * wp.length(slopes))
    seen = look_at_pixels(grid, point_at(cover, at), meeting)
    return least_within(grid, seen, radius, meeting.margin)


@wp.kernel
def penetrating_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    early: wp.int32,
    # out
    blocks_out: PairQueue,
):
    """Blocks of the faces that may reach inside an object."""
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
                push_blocks(blocks_out, m, face, cover, encounters.bits)
