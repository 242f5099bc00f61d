"""Tiles: large footprints divided so that many threads share them.

A tile is a footprint of 4 x 4 pixels, or of a run of 16 subtriangles. 64 tiles are a block.
"""

import warp as wp

from abut.sdf.orthographic_raster import (
    HALF,
    SUBDIVIDED,
    Footprint,
    depth_plane,
    longest_extent,
    pixel_count,
    subtriangle_centroid,
    to_raster,
)

TILE_SIDE = wp.constant(wp.int32(4))  # pixels
BLOCK_SIDE = wp.constant(wp.int32(8))  # tiles
TILE_RUN = wp.constant(wp.int32(16))  # subtriangles
BLOCK_TILES = wp.constant(wp.int32(64))
LARGE_PIXELS = wp.constant(wp.int32(1024))  # of a footprint without tiles, at most
LONG_EDGE = wp.constant(wp.float32(8192.0))  # pixels; see edge_in_pixels
ROOT_2 = wp.constant(wp.float64(1.415))


@wp.func
def is_large(footprint: Footprint):
    """Return whether a footprint is divided into tiles: many pixels, or long edges."""
    return pixel_count(footprint) > LARGE_PIXELS or longest_extent(footprint.corners) > LONG_EDGE


@wp.func
def blocks_along(footprint: Footprint, k: wp.int32):
    """Return the blocks along an axis of the footprint's rectangle."""
    return (footprint.size[k] + TILE_SIDE * BLOCK_SIDE - 1) / (TILE_SIDE * BLOCK_SIDE)


@wp.func
def subdivided_block_count(footprint: Footprint):
    """Return the blocks of a subdivided face."""
    return (footprint.size[0] + TILE_RUN * BLOCK_TILES - 1) / (TILE_RUN * BLOCK_TILES)


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
    p = wp.vec3d(depth, x, y)
    if footprint.axis == 1:
        p = wp.vec3d(y, depth, x)
    if footprint.axis == 2:
        p = wp.vec3d(x, y, depth)
    return p


@wp.func
def subtriangle_row(index: wp.int32):
    """Return the row of a subtriangle."""
    return wp.int32(wp.sqrt(wp.float64(index) + HALF))


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
