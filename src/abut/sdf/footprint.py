"""Footprints of the faces of a pair, their tiles, and lower bounds of the distance on them.

Large footprints are divided into tiles, so that many threads share them. A tile is a footprint of
4 x 4 pixels, or of a run of 16 subtriangles. 64 tiles are a block.
"""

import warp as wp

from abut.bounds.float32 import to_vec3f
from abut.geometry.poses import move_point
from abut.sdf.field_pairs import FACES, FieldOperands, FieldPair
from abut.sdf.field_probe import lower_bound_within, probe_field
from abut.sdf.grid import FieldGrid
from abut.sdf.orthographic_raster import (
    HALF,
    SUBDIVIDED,
    THIRD,
    Footprint,
    area_vector,
    depth_plane,
    dominant_axis,
    extent_along,
    footprint_of,
    from_raster,
    pixel_count,
    subtriangle_centroid,
    subtriangle_row,
    to_raster,
)

BOUND, DEPTH, NOTHING = wp.constant(0), wp.constant(1), wp.constant(2)  # EarlyOut
OFF = wp.constant(wp.float32(0.01))  # pixels; exceeds the rounding of float32
LATTICE = wp.constant(wp.int32(16384))  # pixels along an axis
TILE_SIDE = wp.constant(wp.int32(4))  # pixels
BLOCK_SIDE = wp.constant(wp.int32(8))  # tiles
TILE_RUN = wp.constant(wp.int32(16))  # subtriangles
BLOCK_TILES = wp.constant(wp.int32(64))
LARGE_PIXELS = wp.constant(wp.int32(1024))  # of a footprint without tiles, at most
LONG_EDGE = wp.constant(wp.float32(8192.0))  # pixels; see edge_in_pixels
ROOT_2 = wp.constant(wp.float64(1.415))


@wp.func
def probe_pixels(grid: FieldGrid, p: wp.vec3d, pair: FieldPair):
    """Probe the field at a point in pixels."""
    return probe_field(grid, to_vec3f(pair.cells_per_pixel * p), pair.margin)


@wp.func
def centroid_of(corners: wp.mat33d):
    """Return the centroid of a face."""
    return (corners[0] + corners[1] + corners[2]) * THIRD


@wp.func
def radius_from(corners: wp.mat33d, middle: wp.vec3d, pair: FieldPair):
    """Return the radius of a face about a point [length]."""
    most = wp.float32(0.0)
    for k in range(3):
        way = to_vec3f(corners[k] - middle)
        most = wp.max(most, wp.dot(way, way))
    return wp.float32(pair.pixel) * wp.sqrt(most)


@wp.func
def pixel_corners(operands: FieldOperands, pair: FieldPair, face: wp.int32):
    """Return the corners of a face, one a row, in pixels from the lower corner of the box."""
    mesh = operands.meshes[pair.mesh]
    v = mesh.faces[face]
    p0 = move_point(pair.to_pixels, mesh.points[v[0]])
    p1 = move_point(pair.to_pixels, mesh.points[v[1]])
    p2 = move_point(pair.to_pixels, mesh.points[v[2]])
    return wp.matrix_from_rows(p0, p1, p2)


@wp.func
def clipped_footprint(pair: FieldPair, corners: wp.mat33d, axis: wp.int32, inside: wp.int32):
    """Return a face's footprint ``inside`` the field's box (1), or on a far larger lattice (0)."""
    last = wp.vec3i()
    more = wp.vec3i()
    for x in range(3):
        last[x] = wp.max(wp.int32(wp.ceil(pair.box_size[x])) - 1, 0)
        if inside == 0:
            more[x] = wp.max((LATTICE - last[x]) / 2, 0)
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


@wp.func
def is_large(footprint: Footprint):
    """Return whether a footprint is divided into tiles: many pixels, or long edges."""
    large = pixel_count(footprint) > LARGE_PIXELS
    for x in range(3):
        own = extent_along(footprint.corners, x)
        large = large or own[1] - own[0] > LONG_EDGE
    return large


@wp.func
def blocks_along(footprint: Footprint, k: wp.int32):
    """Return the blocks along an axis of the footprint's rectangle."""
    return (footprint.size[k] + TILE_SIDE * BLOCK_SIDE - 1) / (TILE_SIDE * BLOCK_SIDE)


@wp.func
def tile_of(footprint: Footprint, block: wp.int32, place: wp.int32):
    """Return a tile of a block; it has no pixels where it lies outside the rectangle."""
    first = wp.vec2i((block * BLOCK_TILES + place) * TILE_RUN, 0)
    size = wp.vec2i(TILE_RUN, 1)
    if footprint.axis != SUBDIVIDED:
        wide = blocks_along(footprint, 0)
        x = (block % wide) * BLOCK_SIDE + place % BLOCK_SIDE
        y = (block / wide) * BLOCK_SIDE + place / BLOCK_SIDE
        first = wp.vec2i(x * TILE_SIDE, y * TILE_SIDE)
        size = wp.vec2i(TILE_SIDE, TILE_SIDE)
    out = footprint
    out.low = footprint.low + first
    left = footprint.size - first
    out.size = wp.vec2i(wp.clamp(left[0], 0, size[0]), wp.clamp(left[1], 0, size[1]))
    return out


@wp.func
def point_above(footprint: Footprint, x: wp.float64, y: wp.float64):
    """Return the point of a face above a point of the raster."""
    plane = depth_plane(footprint)
    depth = plane[0] + plane[1] * x + plane[2] * y
    a = to_raster(footprint.corners[0], footprint.axis)[0]
    b = to_raster(footprint.corners[1], footprint.axis)[0]
    c = to_raster(footprint.corners[2], footprint.axis)[0]
    depth = wp.clamp(depth, wp.min(a, wp.min(b, c)), wp.max(a, wp.max(b, c)))
    return from_raster(wp.vec3d(depth, x, y), footprint.axis)


@wp.func
def subtriangle_run_ball(tile: Footprint):
    """Return a ball (centre, radius) around a run of subtriangles."""
    first = tile.low[0]
    last = first + wp.max(tile.size[0], 1) - 1
    p = subtriangle_centroid(tile, first)
    q = subtriangle_centroid(tile, last)
    down = tile.corners[1] - tile.corners[0]
    aside = tile.corners[2] - tile.corners[1]
    wide = (wp.length(down) + wp.length(aside)) / wp.float64(tile.low[1])
    radius = wide + HALF * wp.length(q - p)
    if subtriangle_row(first) != subtriangle_row(last):  # the run goes on in the next row
        radius = wide + wp.length(down) + wp.length(aside)
    middle = HALF * (p + q)
    return wp.vec4d(middle[0], middle[1], middle[2], radius)


@wp.func
def square_ball(footprint: Footprint, at: wp.vec2i, side: wp.int32):
    """Return a ball (centre, radius) around the part of a face above a square of pixels."""
    half = HALF * wp.float64(side)
    x = wp.float64(footprint.low[0] + at[0]) + half
    p = point_above(footprint, x, wp.float64(footprint.low[1] + at[1]) + half)
    plane = depth_plane(footprint)
    slopes = wp.vec3d(wp.float64(1.0), plane[1], plane[2])
    return wp.vec4d(p[0], p[1], p[2], ROOT_2 * half * wp.length(slopes))


@wp.func
def tile_ball(tile: Footprint):
    """Return a ball (centre, radius) around a tile."""
    if tile.axis == SUBDIVIDED:
        return subtriangle_run_ball(tile)
    return square_ball(tile, wp.vec2i(0, 0), TILE_SIDE)
