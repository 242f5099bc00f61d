"""How faces lie in a field: their corners, their covers, and how low distances can be there."""

import warp as wp

from abut.bounds.rows import single_of
from abut.sdf.grid import FieldGrid
from abut.sdf.lookup import least_within, look
from abut.sdf.orthographic_raster import (
    PER_FACE,
    THIRD,
    area_vector,
    corners_in_pixels,
    cover_of,
    dominant_axis,
    span_along,
)
from abut.sdf.posed_in_field import FACES, Encounters, Meeting

BOUND, DEPTH, NOTHING = wp.constant(0), wp.constant(1), wp.constant(2)  # early out, see EarlyOut
OFF = wp.constant(wp.float32(0.01))  # pixels; more than float32 is at the sides of a box
LATTICE = wp.constant(wp.int32(16384))  # pixels of the lattice along an axis where it has no end


@wp.func
def look_at_pixels(grid: FieldGrid, p: wp.vec3d, meeting: Meeting):
    """The field at a point in pixels."""
    return look(grid, single_of(meeting.share * p), meeting.margin)


@wp.func
def middle_of(corners: wp.mat33d):
    """The centroid of a face."""
    return (corners[0] + corners[1] + corners[2]) * THIRD


@wp.func
def square_of(v: wp.vec3d):
    """The squared length, in float32."""
    w = single_of(v)
    return wp.dot(w, w)


@wp.func
def radius_about(corners: wp.mat33d, middle: wp.vec3d, meeting: Meeting):
    """How far a face reaches from a point [length]."""
    a = square_of(corners[0] - middle)
    b = square_of(corners[1] - middle)
    c = square_of(corners[2] - middle)
    return wp.float32(meeting.pixel) * wp.sqrt(wp.max(a, wp.max(b, c)))


@wp.func
def box_pixels(sides: wp.vec3d):
    """The last pixel of a box along each axis."""
    x = wp.int32(wp.ceil(sides[0])) - 1
    y = wp.int32(wp.ceil(sides[1])) - 1
    z = wp.int32(wp.ceil(sides[2])) - 1
    return wp.max(wp.vec3i(x, y, z), wp.vec3i(0, 0, 0))


@wp.func
def around_box(last: wp.vec3i, side: wp.int32):
    """How many pixels a lattice of at least ``side`` goes on beyond the box along each axis."""
    return wp.max((wp.vec3i(side, side, side) - last) / 2, wp.vec3i(0, 0, 0))


@wp.func
def load_corners(encounters: Encounters, meeting: Meeting, face: wp.int32):
    """Corners of a face in pixels of its meeting."""
    return corners_in_pixels(encounters.meshes[meeting.mesh], face, meeting.to_pixels)


@wp.func
def cover_within(meeting: Meeting, corners: wp.mat33d, axis: wp.int32, inside: wp.int32):
    """How a face covers the pixels ``inside`` the field's box, or of a lattice far beyond (0)."""
    last = box_pixels(meeting.sides)
    more = around_box(last, wp.where(inside == 1, 0, LATTICE))
    return cover_of(corners, axis, -more, last + more)


@wp.func
def misses_box(corners: wp.mat33d, sides: wp.vec3d):
    """Whether a face's own box lies outside the field's, by more than float32 is off."""
    for x in range(3):
        own = span_along(corners, x)
        if own[1] < -OFF or own[0] > wp.float32(sides[x]) + OFF:
            return True
    return False


@wp.func
def least_in_ball(grid: FieldGrid, meeting: Meeting, ball: wp.vec4d):
    """A lower bound of the distances in a ball, in pixels."""
    seen = look_at_pixels(grid, wp.vec3d(ball[0], ball[1], ball[2]), meeting)
    return least_within(grid, seen, wp.float32(meeting.pixel * ball[3]), meeting.margin)


@wp.func
def sampling_axis(encounters: Encounters, corners: wp.mat33d):
    """The axis that a face is drawn along, or PER_FACE."""
    if encounters.sampling == FACES:
        return PER_FACE
    return dominant_axis(area_vector(corners))
