"""Cull faces by the field, then set up patches of the footprints of the others.

Culling leaves few faces; listing them first lets all lanes of a warp set up a face.
"""

from collections.abc import Iterable
from typing import Any

import warp as wp

from abut.core.lanes import lane_count
from abut.core.pair_queue import PairQueue, push_pair, queue_stop, team_stop, warp_push_pair
from abut.core.plan import Stage
from abut.sdf.blocks import TEAM_SIZE, block_key, block_of_tile, list_blocks_kernel
from abut.sdf.draw_batches import DrawQueues, Patches, push_footprint
from abut.sdf.field_pairs import VIEWS, FieldOperands, FieldPair, pair_of_item
from abut.sdf.field_probe import key_distance, lower_bound_within
from abut.sdf.footprint import (
    BLOCK_TILES,
    BOUND,
    centroid_of,
    clipped_footprint,
    is_large,
    is_outside_box,
    lower_bound_in_ball,
    pixel_corners,
    probe_pixels,
    radius_from,
    sampling_axis,
    tile_ball,
    tile_of,
)
from abut.sdf.orthographic_raster import Footprint, pixel_count

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


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
