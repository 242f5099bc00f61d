"""Cull faces by the field, then set up patches of the footprints of the others.

Culling leaves few faces; listing them first lets all lanes of a warp set up a face. Blocks of large
faces are listed from squares of many blocks down.
"""

from collections.abc import Iterable
from typing import Any

import warp as wp

from abut.core.lanes import lane_count
from abut.core.pair_queue import PairQueue, push_pair, queue_stop, team_stop, warp_push_pair
from abut.core.plan import Stage
from abut.sdf.draw_batches import DrawQueues, Patches, push_footprint
from abut.sdf.field_pairs import VIEWS, FieldOperands, FieldPair, pair_of_item
from abut.sdf.field_probe import FAR, key_distance, lower_bound_within
from abut.sdf.footprint import (
    BLOCK_SIDE,
    BLOCK_TILES,
    BOUND,
    TILE_RUN,
    TILE_SIDE,
    blocks_along,
    centroid_of,
    clipped_footprint,
    is_large,
    is_outside_box,
    lower_bound_in_ball,
    pixel_corners,
    probe_pixels,
    radius_from,
    sampling_axis,
    square_ball,
    tile_ball,
    tile_of,
)
from abut.sdf.grid import FieldGrid
from abut.sdf.orthographic_raster import (
    SUBDIVIDED,
    Footprint,
    edge_functions,
    is_square_outside,
    pixel_count,
)

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

TEAM_SIZE = 64  # threads per large face
TEAM = wp.constant(wp.int32(TEAM_SIZE))
TEAM_LEVELS = wp.constant(wp.int32(3))  # 4^3 squares
BLOCK_BITS = wp.constant(wp.int64(24))  # block and axis in a key
SLACK = wp.constant(wp.float32(0.01))  # cells


@wp.func
def block_key(item: wp.int32, block: wp.int32, axis: wp.int32):
    """Return the key of a block of a face drawn along an axis; block 0 stands for a large face."""
    return (wp.int64(item) << BLOCK_BITS) | wp.int64(block * 4 + axis)


@wp.func
def decode_block(key: wp.int64):
    """Return (item, block, axis) of a key."""
    low = wp.int32(key & ((wp.int64(1) << BLOCK_BITS) - wp.int64(1)))
    return wp.vec3i(wp.int32(key >> BLOCK_BITS), low / 4, low % 4)


@wp.func
def block_of_tile(blocks: PairQueue, tile: wp.int32):
    """Return (item, block, axis) of a tile of the listed blocks."""
    return decode_block(blocks.keys[tile / BLOCK_TILES])


@wp.func
def compact_bits(code: wp.int32):
    """Return the even bits of a Morton code, moved together."""
    x = code & 0x55555555
    x = (x | (x >> 1)) & 0x33333333
    x = (x | (x >> 2)) & 0x0F0F0F0F
    x = (x | (x >> 4)) & 0x00FF00FF
    return (x | (x >> 8)) & 0x0000FFFF


@wp.func
def push_blocks_below(
    blocks: PairQueue,
    item: wp.int32,
    footprint: Footprint,
    grid: FieldGrid,
    pair: FieldPair,
    limit: wp.float32,
    member: wp.int32,
):
    """List the blocks that may have distances below ``limit``, in one of TEAM squares.

    Squares of 2^level x 2^level blocks are numbered in Morton order, so that the next square, or
    the first one within a square, needs no stack.
    """
    lines = edge_functions(footprint)
    top = wp.int32(0)
    while (1 << (top + TEAM_LEVELS)) < wp.max(
        blocks_along(footprint, 0), blocks_along(footprint, 1)
    ):
        top += 1
    level = top + 0
    code = member << (2 * top)
    stop = (member + 1) << (2 * top)
    while code < stop:
        x = compact_bits(code)
        y = compact_bits(code >> 1)
        at = TILE_SIDE * BLOCK_SIDE * wp.vec2i(x, y)
        side = (TILE_SIDE * BLOCK_SIDE) << level
        skipped = at[0] >= footprint.size[0] or at[1] >= footprint.size[1]
        if not skipped:
            skipped = is_square_outside(lines, footprint.low + at, side)
        if not skipped:
            ball = square_ball(footprint, at, side)
            skipped = lower_bound_in_ball(grid, pair, ball) >= limit
        if level > 0 and not skipped:
            level -= 1
        else:
            if not skipped:
                block = y * blocks_along(footprint, 0) + x
                push_pair(blocks, block_key(item, block, footprint.axis))
            code += 1 << (2 * level)
            while level < top and (code >> (2 * level)) & 3 == 0:
                level += 1


@wp.kernel
def list_blocks_kernel(
    # in
    span: wp.vec3i,
    operands: FieldOperands,
    inside: wp.int32,
    early: wp.int32,
    best: wp.array[wp.int64],
    large: PairQueue,
    # out
    blocks_out: PairQueue,
):
    """List the blocks of large faces that may reach inside, or be the closest."""
    for i in range(span[0] + wp.tid(), team_stop(large, TEAM, span[1]), span[2]):
        at = decode_block(large.keys[i / TEAM])
        pair_index = pair_of_item(operands, at[0])
        pair = operands.pairs[pair_index]
        grid = operands.fields[pair.field]
        corners = pixel_corners(operands, pair, at[0] - operands.first_item[pair_index])
        footprint = clipped_footprint(pair, corners, at[2], inside)
        if footprint.axis == SUBDIVIDED:
            run = TILE_RUN * BLOCK_TILES
            for block in range(i % TEAM, (footprint.size[0] + run - 1) / run, TEAM):
                push_pair(blocks_out, block_key(at[0], block, at[2]))
        else:
            limit = wp.where(early == BOUND, wp.float32(0.0), FAR)
            if inside == 0:
                limit = key_distance(best[pair_index]) + SLACK * wp.float32(grid.spacing)
            push_blocks_below(blocks_out, at[0], footprint, grid, pair, limit, i % TEAM)


@wp.func
def may_reach_inside(operands: FieldOperands, pair: FieldPair, face: wp.int32, early: wp.int32):
    """Return whether a face may have a fragment inside the field's object."""
    grid = operands.fields[pair.field]
    corners = pixel_corners(operands, pair, face)
    if is_outside_box(corners, pair.box_size):
        return False
    if early != BOUND:
        return True
    middle = centroid_of(corners)
    radius = radius_from(corners, middle, pair)
    probe = probe_pixels(grid, middle, pair)
    return lower_bound_within(grid, probe, radius, pair.margin) < wp.float32(0.0)


@wp.kernel
def cull_faces_kernel(
    # in
    span: wp.vec3i,
    operands: FieldOperands,
    early: wp.int32,
    # out
    faces_out: PairQueue,
):
    """List the faces that may reach inside."""
    stop = wp.min(span[1], operands.first_item[operands.first_item.shape[0] - 1])
    for item in range(span[0] + wp.tid(), stop, span[2]):
        pair_index = pair_of_item(operands, item)
        pair = operands.pairs[pair_index]
        face = item - operands.first_item[pair_index]
        picked = face < operands.meshes[pair.mesh].faces.shape[0]
        if picked:
            picked = may_reach_inside(operands, pair, face, early)
        warp_push_pair(faces_out, picked, face_key(pair_index, face))


@wp.func
def face_key(pair: wp.int32, face: wp.int32):
    """Return the key of a face of a pair."""
    return (wp.int64(pair) << wp.int64(32)) | wp.int64(face)


@wp.kernel
def setup_faces_kernel(
    # in
    span: wp.vec3i,
    operands: FieldOperands,
    inside: wp.int32,
    faces: PairQueue,
    # out
    large_out: PairQueue,
    patches_out: Patches,
):
    """Make patches of the listed faces, ``inside`` the box or anywhere; list large faces."""
    lanes = lane_count()
    stop = queue_stop(faces, span[1])
    views = wp.where(operands.sampling == VIEWS and inside == 0, 3, 1)
    for i in range(span[0] + wp.tid(), (stop + lanes - 1) / lanes * lanes, span[2]):
        key = faces.keys[wp.min(i, stop - 1)]
        pair_index = wp.int32(key >> wp.int64(32))
        face = wp.int32(key)
        pair = operands.pairs[pair_index]
        corners = pixel_corners(operands, pair, face)
        axis = sampling_axis(operands, corners)
        for view in range(views):
            footprint = Footprint()
            if i < stop:
                footprint = clipped_footprint(
                    pair, corners, wp.where(views == 3, view, axis), inside
                )
                if is_large(footprint):
                    push_pair(
                        large_out,
                        block_key(operands.first_item[pair_index] + face, 0, footprint.axis),
                    )
                    footprint.size = wp.vec2i(0, 0)
            push_footprint(
                patches_out, pair_index, pair.cells_per_pixel, face, footprint, i % lanes
            )


@wp.kernel
def setup_tiles_kernel(
    # in
    span: wp.vec3i,
    operands: FieldOperands,
    inside: wp.int32,
    early: wp.int32,
    best: wp.array[wp.int64],
    blocks: PairQueue,
    # out
    patches_out: Patches,
):
    """Make patches of the tiles of large faces that may reach inside, or be the closest."""
    for i in range(span[0] + wp.tid(), team_stop(blocks, BLOCK_TILES, span[1]), span[2]):
        at = block_of_tile(blocks, i)
        pair_index = pair_of_item(operands, at[0])
        pair = operands.pairs[pair_index]
        face = at[0] - operands.first_item[pair_index]
        corners = pixel_corners(operands, pair, face)
        tile = tile_of(clipped_footprint(pair, corners, at[2], inside), at[1], i % BLOCK_TILES)
        if pixel_count(tile) > 0 and (inside == 0 or early == BOUND):
            bound = lower_bound_in_ball(operands.fields[pair.field], pair, tile_ball(tile))
            skipped = bound >= wp.float32(0.0)
            if inside == 0:
                skipped = bound > key_distance(best[pair_index])
            if skipped:
                tile.size = wp.vec2i(0, 0)
        push_footprint(patches_out, pair_index, pair.cells_per_pixel, face, tile, i % lane_count())


def tile_stages(
    operands: Any, queues: DrawQueues, inside: int, early: int, best: wp.array
) -> Iterable[Stage]:
    """Yield the stages from large faces to patches of their tiles.

    Args:
        operands: FieldOperands.
        queues: Whose large faces have been listed.
        inside: 1 for faces in the box that may reach inside, 0 for faces that may be the closest.
        early: BOUND, DEPTH or NOTHING.
        best: Keys of the least distances so far, for faces that may be the closest.
    """
    large, blocks, tiles = queues["large"], queues["blocks"], int(BLOCK_TILES)
    rule = [operands, inside, early, best]
    listed, made = [*rule, large, blocks], [*rule, blocks, queues.patches]
    yield "blocks", queues.over("large", list_blocks_kernel, listed, per_key=TEAM_SIZE)
    yield "tiles", queues.over("blocks", setup_tiles_kernel, made, per_key=tiles)
