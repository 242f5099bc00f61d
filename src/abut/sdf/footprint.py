"""Faces of a pair: corners in pixels, footprints, and lower bounds of the distance on them."""

import warp as wp

from abut.bounds.float32 import to_vec3f
from abut.sdf.field_pairs import FACES, FieldOperands, FieldPair
from abut.sdf.field_probe import lower_bound_within, probe_field
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

BOUND, DEPTH, NOTHING = wp.constant(0), wp.constant(1), wp.constant(2)  # EarlyOut
OFF = wp.constant(wp.float32(0.01))  # pixels; exceeds the rounding of float32
LATTICE = wp.constant(wp.int32(16384))  # pixels along an axis


@wp.func
def probe_pixels(grid: FieldGrid, p: wp.vec3d, pair: FieldPair):
    """Probe the field at a point in pixels."""
    return probe_field(grid, to_vec3f(pair.cells_per_pixel * p), pair.margin)


@wp.func
def centroid_of(corners: wp.mat33d):
    """Return the centroid of a face."""
    return (corners[0] + corners[1] + corners[2]) * THIRD


@wp.func
def length_squared(v: wp.vec3d):
    """Return the squared length in float32."""
    w = to_vec3f(v)
    return wp.dot(w, w)


@wp.func
def radius_from(corners: wp.mat33d, middle: wp.vec3d, pair: FieldPair):
    """Return the radius of a face about a point [length]."""
    a = length_squared(corners[0] - middle)
    b = length_squared(corners[1] - middle)
    c = length_squared(corners[2] - middle)
    return wp.float32(pair.pixel) * wp.sqrt(wp.max(a, wp.max(b, c)))


@wp.func
def last_box_pixel(box_size: wp.vec3d):
    """Return the last pixel of a box along each axis."""
    x = wp.int32(wp.ceil(box_size[0])) - 1
    y = wp.int32(wp.ceil(box_size[1])) - 1
    z = wp.int32(wp.ceil(box_size[2])) - 1
    return wp.max(wp.vec3i(x, y, z), wp.vec3i(0, 0, 0))


@wp.func
def lattice_margin(last: wp.vec3i, side: wp.int32):
    """Return the pixels that a lattice of at least ``side`` extends beyond the box, per axis."""
    return wp.max((wp.vec3i(side, side, side) - last) / 2, wp.vec3i(0, 0, 0))


@wp.func
def pixel_corners(operands: FieldOperands, pair: FieldPair, face: wp.int32):
    """Return the corners of a face in pixels of its pair."""
    return corners_in_pixels(operands.meshes[pair.mesh], face, pair.to_pixels)


@wp.func
def clipped_footprint(pair: FieldPair, corners: wp.mat33d, axis: wp.int32, inside: wp.int32):
    """Return a face's footprint ``inside`` the field's box (1), or on a far larger lattice (0)."""
    last = last_box_pixel(pair.box_size)
    more = lattice_margin(last, wp.where(inside == 1, 0, LATTICE))
    return footprint_of(corners, axis, -more, last + more)


@wp.func
def is_outside_box(corners: wp.mat33d, box_size: wp.vec3d):
    """Return whether a face's bounds miss the field's box, rounding of float32 allowed for."""
    for x in range(3):
        own = extent_along(corners, x)
        if own[1] < -OFF or own[0] > wp.float32(box_size[x]) + OFF:
            return True
    return False


@wp.func
def lower_bound_in_ball(grid: FieldGrid, pair: FieldPair, ball: wp.vec4d):
    """Return a lower bound of the distance in a ball (centre, radius) in pixels."""
    probe = probe_pixels(grid, wp.vec3d(ball[0], ball[1], ball[2]), pair)
    return lower_bound_within(grid, probe, wp.float32(pair.pixel * ball[3]), pair.margin)


@wp.func
def sampling_axis(operands: FieldOperands, corners: wp.mat33d):
    """Return the axis that a face is drawn along, or SUBDIVIDED."""
    if operands.sampling == FACES:
        return SUBDIVIDED
    return dominant_axis(area_vector(corners))
