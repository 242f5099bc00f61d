"""What a face covers of a view: which pixels, and which blocks of 8 by 8 pixels."""

import warp as wp

from abut.visibility.fragment import FaceView, sample, touches
from abut.visibility.view import ViewMap

BLOCK = wp.constant(8)  # pixels along each side
AREA = wp.constant(64)
HALF_BLOCK = wp.constant(wp.float32(3.5))  # from the centre of a block to those of its corners
BLOCK_ERROR = wp.constant(wp.float32(2.0**-19))  # of the viewport's width, see the design note


@wp.func
def centre_of(column: wp.int32, row: wp.int32):
    """Centre of a pixel."""
    return wp.vec2f(wp.float32(column) + wp.float32(0.5), wp.float32(row) + wp.float32(0.5))


@wp.func
def touches_block(f: FaceView, column: wp.int32, row: wp.int32, view: ViewMap):
    """May a face have a fragment in the block that begins at this pixel?"""
    half = HALF_BLOCK + wp.float32(view.pixels + BLOCK) * BLOCK_ERROR
    middle = wp.vec2f(wp.float32(column) + wp.float32(4.0), wp.float32(row) + wp.float32(4.0))
    return touches(f, middle, wp.vec2f(half + view.reach[0], half + view.reach[1]))


@wp.func
def covers(f: FaceView, centre: wp.vec2f, view: ViewMap):
    """Has the face a fragment at this pixel of its box?"""
    found = wp.bool(False)
    if view.reach[0] > wp.float32(0.0):
        found = touches(f, centre, view.reach)
    else:
        found, _depth = sample(f, centre)
    return found
