"""The nearest sample of the nearest face, and the rows of ``DistanceField.closest``.

Samples of a face are numbered: centroid and corners -4 to -1, then fragments 4 * pixel + axis. Of
samples at the same distance the least number wins.
"""

import warp as wp

from abut.bounds.float32 import to_vec3f
from abut.core.atomics import warp_atomic_min_int64
from abut.core.lanes import lane_count, warp_min, warp_sync
from abut.core.pair_queue import NO_KEY, PairQueue, team_stop
from abut.sdf.blocks import block_of_tile
from abut.sdf.closest_fragments import fragment_distance, unclipped_footprint
from abut.sdf.field_pairs import VIEWS, FieldOperands, FieldPair, pair_of_item
from abut.sdf.field_probe import key_distance, key_face
from abut.sdf.footprint import (
    BLOCK_TILES,
    centroid_of,
    is_large,
    pixel_corners,
    point_above,
    probe_pixels,
    sampling_axis,
    tile_of,
)
from abut.sdf.grid import sample_at_cells
from abut.sdf.orthographic_raster import HALF, SUBDIVIDED, Footprint, subtriangle_centroid
from abut.sdf.pixel_patch import patch_from, patch_pixel, patch_pixel_count

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.func
def first_index_at(
    operands: FieldOperands,
    pair: FieldPair,
    footprint: Footprint,
    tile: Footprint,
    wanted: wp.float32,
    first: wp.int32,
    step: wp.int32,
):
    """Return the least sample number at a distance, of every ``step``-th fragment of a tile."""
    grid = operands.fields[pair.field]
    out = NO_KEY
    at = wp.vec2i(0, 0)
    while at[0] < tile.size[0]:
        piece = patch_from(tile, at, 0, pair.cells_per_pixel)
        pixel = wp.vec2i(0, 0)
        for index in range(first, patch_pixel_count(piece.patch), step):
            pixel = patch_pixel(piece.patch, index, pixel)
            if fragment_distance(grid, pair, piece.patch, pixel) == wanted:
                there = tile.low - footprint.low + at + pixel
                number = wp.int64(there[1] * footprint.size[0] + there[0])
                out = wp.min(out, number * wp.int64(4) + wp.int64(footprint.axis))
        at = piece.next
    return out


@wp.kernel
def locate_kernel(
    # in
    span: wp.vec3i,
    operands: FieldOperands,
    blocks: PairQueue,
    best: wp.array[wp.int64],
    # out
    sample_out: wp.array[wp.int64],
):
    """Find the first fragment at the least distance where the nearest face is large."""
    for i in range(span[0] + wp.tid(), team_stop(blocks, BLOCK_TILES, span[1]), span[2]):
        at = block_of_tile(blocks, i)
        pair_index = pair_of_item(operands, at[0])
        if at[0] - operands.first_item[pair_index] == key_face(best[pair_index]):
            pair = operands.pairs[pair_index]
            footprint = unclipped_footprint(operands, pair, key_face(best[pair_index]), at[2])
            tile = tile_of(footprint, at[1], i % BLOCK_TILES)
            wanted = key_distance(best[pair_index])
            sample = first_index_at(operands, pair, footprint, tile, wanted, 0, 1)
            if sample < NO_KEY:
                warp_atomic_min_int64(sample_out, pair_index, sample)


@wp.func
def centroid_or_corner(corners: wp.mat33d, k: wp.int32):
    """Return the centroid of a face for 0, else corner k - 1."""
    p = centroid_of(corners)
    if k > 0:
        p = corners[k - 1]
    return p


@wp.func
def nearest_sample_index(
    operands: FieldOperands, pair: FieldPair, best: wp.int64, located: wp.int64, lane: wp.int32
):
    """Return the number of the nearest face's first sample at the least distance.

    The lanes of a warp share the samples. ``located``: the first fragment found by locate_kernel,
    which searches large footprints.
    """
    grid = operands.fields[pair.field]
    face = key_face(best)
    wanted = key_distance(best)
    corners = pixel_corners(operands, pair, face)
    out = located
    for k in range(lane, 4, lane_count()):
        probe = probe_pixels(grid, centroid_or_corner(corners, k), pair)
        if probe.distance + wp.float32(0.0) == wanted:
            out = wp.min(out, wp.int64(k - 4))
    views = wp.where(operands.sampling == VIEWS, 3, 1)
    own = sampling_axis(operands, corners)
    for view in range(views):
        footprint = unclipped_footprint(operands, pair, face, wp.where(views == 3, view, own))
        if not is_large(footprint):
            out = wp.min(
                out,
                first_index_at(operands, pair, footprint, footprint, wanted, lane, lane_count()),
            )
    return wp.int64(warp_min(wp.float64(out)))


@wp.func
def sample_point(operands: FieldOperands, pair: FieldPair, face: wp.int32, sample: wp.int64):
    """Return the position of a numbered sample of a face [pixels]."""
    if sample < wp.int64(0):
        corners = pixel_corners(operands, pair, face)
        return centroid_or_corner(corners, wp.int32(sample) + 4)
    footprint = unclipped_footprint(operands, pair, face, wp.int32(sample % wp.int64(4)))
    index = wp.int32(sample / wp.int64(4))
    if footprint.axis == SUBDIVIDED:
        return subtriangle_centroid(footprint, index)
    line = index / wp.max(footprint.size[0], 1)
    x = wp.float64(footprint.low[0] + index - line * footprint.size[0]) + HALF
    return point_above(footprint, x, wp.float64(footprint.low[1] + line) + HALF)


@wp.kernel
def closest_rows_kernel(
    # in
    span: wp.vec3i,
    operands: FieldOperands,
    # out
    best_out: wp.array[wp.int64],
    sample_out: wp.array[wp.int64],
    count_out: wp.array[wp.int64],
    rows_out: wp.array2d[wp.float64],
):
    """Write distance, face and both points of each pair; reset keys and counts for the next run."""
    lanes = lane_count()
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        pair_index = i / lanes
        lane = i % lanes
        pair = operands.pairs[pair_index]
        grid = operands.fields[pair.field]
        best = best_out[pair_index]
        sample = nearest_sample_index(operands, pair, best, sample_out[pair_index], lane)
        at = sample_point(operands, pair, key_face(best), sample)
        point = grid.lower + pair.pixel * at
        found = sample_at_cells(grid, to_vec3f(pair.cells_per_pixel * at))
        warp_sync()  # all have read
        if lane == 0:
            rows_out[pair_index, 0] = wp.float64(key_distance(best))
            rows_out[pair_index, 1] = wp.float64(key_face(best))
            for x in range(3):
                way = wp.float64(found[0]) * wp.float64(found[1 + x])
                rows_out[pair_index, 2 + x] = point[x] - way
                rows_out[pair_index, 5 + x] = point[x]
            best_out[pair_index] = NO_KEY
            sample_out[pair_index] = NO_KEY
            if pair_index == 0:
                for k in range(count_out.shape[0]):
                    rows_out[0, 8 + k] = wp.float64(count_out[k])
                    count_out[k] = wp.int64(0)
