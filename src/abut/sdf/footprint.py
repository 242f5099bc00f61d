"""How faces lie in a field: their corners, their covers, and how low distances can be there."""

import warp as wp

from abut.bounds.rows import single_of
from abut.sdf.field_pairs import FACES, FieldOperands, FieldPair
from abut.sdf.grid import FieldGrid
from abut.sdf.orthographic_raster import (
    SUBDIVIDED,
    THIRD,
    area_vector,
    corners_in_pixels,
    dominant_axis,
    extent_along,
    footprint_of,
)
from abut.sdf.probe import lower_bound_within, probe_field

BOUND, DEPTH, NOTHING = wp.constant(0), wp.constant(1), wp.constant(2)  # early out, see EarlyOut
OFF = wp.constant(wp.float32(0.01))  # pixels; more than float32 is at the sides of a box
LATTICE = wp.constant(wp.int32(16384))  # pixels of the lattice along an axis where it has no end


@wp.func
def probe_pixels(grid: FieldGrid, p: wp.vec3d, pair: FieldPair):
    """The field at a point in pixels."""
    return probe_field(grid, single_of(pair.cells_per_pixel * p), pair.margin)


@wp.func
def centroid_of(corners: wp.mat33d):
    """The centroid of a face."""
    return (corners[0] + corners[1] + corners[2]) * THIRD


@wp.func
def length_squared(v: wp.vec3d):
    """The squared length, in float32."""
    w = single_of(v)
    return wp.dot(w, w)


@wp.func
def radius_from(corners: wp.mat33d, middle: wp.vec3d, pair: FieldPair):
    """How far a face reaches from a point [length]."""
    a = length_squared(corners[0] - middle)
    b = length_squared(corners[1] - middle)
    c = length_squared(corners[2] - middle)
    return wp.float32(pair.pixel) * wp.sqrt(wp.max(a, wp.max(b, c)))


@wp.func
def last_box_pixel(box_size: wp.vec3d):
    """The last pixel of a box along each axis."""
    x = wp.int32(wp.ceil(box_size[0])) - 1
    y = wp.int32(wp.ceil(box_size[1])) - 1
    z = wp.int32(wp.ceil(box_size[2])) - 1
    return wp.max(wp.vec3i(x, y, z), wp.vec3i(0, 0, 0))


@wp.func
def lattice_margin(last: wp.vec3i, side: wp.int32):
    """How many pixels a lattice of at least ``side`` goes on beyond the box along each axis."""
    return wp.max((wp.vec3i(side, side, side) - last) / 2, wp.vec3i(0, 0, 0))


@wp.func
def corners_of(operands: FieldOperands, pair: FieldPair, face: wp.int32):
    """Corners of a face in pixels of its meeting."""
    return corners_in_pixels(operands.meshes[pair.mesh], face, pair.to_pixels)


@wp.func
def clipped_footprint(pair: FieldPair, corners: wp.mat33d, axis: wp.int32, inside: wp.int32):
    """How a face covers the pixels ``inside`` the field's box, or of a lattice far beyond (0)."""
    last = last_box_pixel(pair.box_size)
    more = lattice_margin(last, wp.where(inside == 1, 0, LATTICE))
    return footprint_of(corners, axis, -more, last + more)


@wp.func
def is_outside_box(corners: wp.mat33d, box_size: wp.vec3d):
    """Whether a face's own box lies outside the field's, by more than float32 is off."""
    for x in range(3):
        own = extent_along(corners, x)
        if own[1] < -OFF or own[0] > wp.float32(box_size[x]) + OFF:
            return True
    return False


@wp.func
def lower_bound_in_ball(grid: FieldGrid, pair: FieldPair, ball: wp.vec4d):
    """A lower bound of the distances in a ball, in pixels."""
    probe = probe_pixels(grid, wp.vec3d(ball[0], ball[1], ball[2]), pair)
    return lower_bound_within(grid, probe, wp.float32(pair.pixel * ball[3]), pair.margin)


@wp.func
def sampling_axis(operands: FieldOperands, corners: wp.mat33d):
    """The axis that a face is drawn along, or PER_FACE."""
    if operands.sampling == FACES:
        return SUBDIVIDED
    return dominant_axis(area_vector(corners))
