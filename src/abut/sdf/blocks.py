"""Blocks of large faces, listed where they matter: found from squares of many blocks on down."""

import warp as wp

from abut.core.pair_queue import PairQueue, push_pair, team_stop
from abut.sdf.footprint import BOUND, cover_within, least_in_ball, load_corners
from abut.sdf.footprint_tiles import (
    BLOCK,
    SIDE,
    SIDES,
    blocks_along,
    runs_of_blocks,
    square_ball,
)
from abut.sdf.grid import FieldGrid
from abut.sdf.keys import distance_in
from abut.sdf.lookup import FAR_OFF
from abut.sdf.orthographic_raster import PER_FACE, Cover, lines_of, misses_square
from abut.sdf.posed_in_field import Encounters, Meeting, meeting_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

TEAM_SIZE = 64  # threads of a large face
TEAM = wp.constant(wp.int32(TEAM_SIZE))
TEAM_LEVELS = wp.constant(wp.int32(3))  # 4^3 squares
BLOCK_BITS = wp.constant(wp.int64(24))  # of a key
SLACK = wp.constant(wp.float32(0.01))  # of a cell


@wp.func
def key_of_block(item: wp.int32, block: wp.int32, axis: wp.int32):
    """A block of a face drawn along an axis; a large face is written as its block 0."""
    return (wp.int64(item) << BLOCK_BITS) | wp.int64(block * 4 + axis)


@wp.func
def block_in(key: wp.int64):
    """(item, block, axis) of a key."""
    low = wp.int32(key & ((wp.int64(1) << BLOCK_BITS) - wp.int64(1)))
    return wp.vec3i(wp.int32(key >> BLOCK_BITS), low / 4, low % 4)


@wp.func
def block_of(blocks: PairQueue, part: wp.int32):
    """(item, block, axis) of a part of a listed block."""
    return block_in(blocks.keys[part / BLOCK])


@wp.func
def every_other_bit(code: wp.int32):
    """The even bits of a number, close together."""
    x = code & 0x55555555
    x = (x | (x >> 1)) & 0x33333333
    x = (x | (x >> 2)) & 0x0F0F0F0F
    x = (x | (x >> 4)) & 0x00FF00FF
    return (x | (x >> 8)) & 0x0000FFFF


@wp.func
def push_below(
    blocks: PairQueue,
    item: wp.int32,
    cover: Cover,
    grid: FieldGrid,
    meeting: Meeting,
    limit: wp.float32,
    member: wp.int32,
):
    """List the blocks of a cover that may have distances below ``limit``, of one of TEAM squares.

    Squares of 2^level x 2^level blocks are numbered along a curve of Morton's: the next one after a
    square, or the first within it, needs no stack.
    """
    lines = lines_of(cover)
    top = wp.int32(0)
    while (1 << (top + TEAM_LEVELS)) < wp.max(blocks_along(cover, 0), blocks_along(cover, 1)):
        top += 1
    level = top + 0
    code = member << (2 * top)
    stop = (member + 1) << (2 * top)
    while code < stop:
        x = every_other_bit(code)
        y = every_other_bit(code >> 1)
        at = SIDE * SIDES * wp.vec2i(x, y)
        side = (SIDE * SIDES) << level
        skipped = at[0] >= cover.size[0] or at[1] >= cover.size[1]
        if not skipped:
            skipped = misses_square(lines, cover.low + at, side)
        if not skipped:
            ball = square_ball(cover, at, side)
            skipped = least_in_ball(grid, meeting, ball) >= limit
        if level > 0 and not skipped:
            level -= 1
        else:
            if not skipped:
                block = y * blocks_along(cover, 0) + x
                push_pair(blocks, key_of_block(item, block, cover.axis))
            code += 1 << (2 * level)
            while level < top and (code >> (2 * level)) & 3 == 0:
                level += 1


@wp.kernel
def block_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    inside: wp.int32,
    early: wp.int32,
    best: wp.array[wp.int64],
    large: PairQueue,
    # out
    blocks_out: PairQueue,
):
    """List the blocks of large faces that may reach inside, or be as close as any."""
    for i in range(span[0] + wp.tid(), team_stop(large, TEAM, span[1]), span[2]):
        at = block_in(large.keys[i / TEAM])
        m = meeting_of(encounters, at[0])
        meeting = encounters.meetings[m]
        grid = encounters.fields[meeting.field]
        corners = load_corners(encounters, meeting, at[0] - encounters.firsts[m])
        cover = cover_within(meeting, corners, at[2], inside)
        if cover.axis == PER_FACE:
            for block in range(i % TEAM, runs_of_blocks(cover), TEAM):
                push_pair(blocks_out, key_of_block(at[0], block, at[2]))
        else:
            limit = wp.where(early == BOUND, wp.float32(0.0), FAR_OFF)
            if inside == 0:
                limit = distance_in(best[m]) + SLACK * wp.float32(grid.spacing)
            push_below(blocks_out, at[0], cover, grid, meeting, limit, i % TEAM)
