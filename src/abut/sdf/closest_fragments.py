"""The least (distance, face) of the samples of a mesh in a field, and the sample that has it.

A face is sampled at its centroid, its corners and its fragments. All centroids come first; then
only faces with a lower bound at most the least distance so far. Keys order distances, then faces,
so that the answer does not depend on the order of threads. Samples of a face are numbered: centroid
and corners -4 to -1, then fragments 4 * pixel + axis. Of samples at the same distance the least
number wins.
"""

import warp as wp

from abut.bounds.float32 import to_vec3f
from abut.core.atomics import warp_atomic_min_int64
from abut.core.lanes import lane_count, warp_min, warp_sync
from abut.core.memory_access import load_relaxed_int64
from abut.core.pair_queue import NO_KEY, PairQueue, no_key, queue_stop, team_stop, warp_push_pair
from abut.geometry.closest_point_tri import closest_point_tri
from abut.geometry.closest_point_tri import point_at as foot_point
from abut.sdf.draw_batches import Patches, batch_range, lane_pixels
from abut.sdf.face_setup import block_of_tile, decode_block, face_key
from abut.sdf.field_pairs import VIEWS, FieldOperands, FieldPair, pair_of_item
from abut.sdf.field_probe import (
    distance_key,
    key_distance,
    key_face,
    lower_bound_within,
    probe_field,
)
from abut.sdf.footprint import (
    BLOCK_TILES,
    TILE_SIDE,
    centroid_of,
    clipped_footprint,
    is_large,
    pixel_corners,
    point_above,
    probe_pixels,
    radius_from,
    sampling_axis,
    tile_of,
)
from abut.sdf.grid import FieldGrid, sample_at_cells
from abut.sdf.orthographic_raster import (
    HALF,
    SUBDIVIDED,
    Footprint,
    subtriangle_centroid,
    to_raster,
)
from abut.sdf.pixel_patch import (
    Patch,
    fragment_at,
    patch_face,
    patch_from,
    patch_pixel,
    patch_pixel_count,
)
from abut.sdf.spans import covered_pixel_at

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

FARTHEST = wp.constant(wp.float32(3.0e38))


@wp.func
def item_face(operands: FieldOperands, pair_index: wp.int32, item: wp.int32):
    """Return the face of an item, -1 for padding."""
    face = item - operands.first_item[pair_index]
    count = operands.meshes[operands.pairs[pair_index].mesh].faces.shape[0]
    return wp.where(face < count, face, -1)


@wp.kernel
def centroids_kernel(
    # in
    span: wp.vec3i,
    operands: FieldOperands,
    # out
    bound_out: wp.array[wp.float32],
    best_out: wp.array[wp.int64],
):
    """Probe each face's centroid; no sample of the face is below ``bound_out``."""
    for item in range(span[0] + wp.tid(), span[1], span[2]):
        pair_index = pair_of_item(operands, item)
        pair = operands.pairs[pair_index]
        face = item_face(operands, pair_index, item)
        bound_out[item] = FARTHEST
        if face >= 0:
            grid = operands.fields[pair.field]
            corners = pixel_corners(operands, pair, face)
            middle = centroid_of(corners)
            probe = probe_pixels(grid, middle, pair)
            radius = radius_from(corners, middle, pair)
            bound = lower_bound_within(grid, probe, radius, pair.margin)
            bound_out[item] = wp.min(bound, probe.distance)
            warp_atomic_min_int64(best_out, pair_index, distance_key(probe.distance, face))


@wp.func
def fragment_distance(grid: FieldGrid, pair: FieldPair, patch: Patch, pixel: wp.vec2i):
    """Return the distance of a fragment."""
    c = fragment_at(patch, pixel, wp.float32(pair.cells_per_pixel))
    return probe_field(grid, c, pair.margin).distance + wp.float32(0.0)  # no negative zero


@wp.kernel
def cull_far_faces_kernel(
    # in
    span: wp.vec3i,
    operands: FieldOperands,
    bound: wp.array[wp.float32],
    # out
    best_out: wp.array[wp.int64],
    faces_out: PairQueue,
):
    """List the faces that may be closer than all centroids, and probe their corners."""
    for item in range(span[0] + wp.tid(), span[1], span[2]):
        pair_index = pair_of_item(operands, item)
        face = item_face(operands, pair_index, item)
        picked = face >= 0 and bound[item] <= key_distance(load_relaxed_int64(best_out, pair_index))
        if picked:
            pair = operands.pairs[pair_index]
            corners = pixel_corners(operands, pair, face)
            nearest = FARTHEST
            for k in range(3):
                probe = probe_pixels(operands.fields[pair.field], corners[k], pair)
                nearest = wp.min(nearest, probe.distance)
            warp_atomic_min_int64(best_out, pair_index, distance_key(nearest, face))
        warp_push_pair(faces_out, picked, face_key(pair_index, face))


@wp.func
def unclipped_footprint(operands: FieldOperands, pair: FieldPair, face: wp.int32, axis: wp.int32):
    """Return the footprint of a face on the whole lattice."""
    return clipped_footprint(pair, pixel_corners(operands, pair, face), axis, 0)


@wp.func
def pixel_distance(grid: FieldGrid, pair: FieldPair, footprint: Footprint, at: wp.vec2i):
    """Return the distance at a pixel of a large footprint, to the bit as its tile has it."""
    first = at / TILE_SIDE * TILE_SIDE
    tile = footprint
    tile.low = footprint.low + first
    tile.size = wp.min(footprint.size - first, wp.vec2i(TILE_SIDE, TILE_SIDE))
    piece = patch_from(tile, wp.vec2i(0, 0), 0, pair.cells_per_pixel)
    return fragment_distance(grid, pair, piece.patch, at - first)


@wp.kernel
def sample_large_faces_kernel(
    # in
    span: wp.vec3i,
    operands: FieldOperands,
    large: PairQueue,
    # out
    best_out: wp.array[wp.int64],
):
    """Probe each large face at a pixel near the middle of the field's box.

    The pixel is at the foot of the middle or up to two pixels towards the centroid. Its distance
    culls most tiles.
    """
    for i in range(span[0] + wp.tid(), queue_stop(large, span[1]), span[2]):
        item = decode_block(large.keys[i])
        pair_index = pair_of_item(operands, item[0])
        pair = operands.pairs[pair_index]
        face = item[0] - operands.first_item[pair_index]
        footprint = unclipped_footprint(operands, pair, face, item[2])
        if footprint.axis != SUBDIVIDED:
            foot = closest_point_tri(HALF * pair.box_size, footprint.corners)
            p = foot_point(footprint.corners, foot.weights)
            way = wp.normalize(centroid_of(footprint.corners) - p)
            steps = wp.float64(0.0)
            while steps < wp.float64(3.0):
                q = to_raster(p + steps * way, footprint.axis)
                at = covered_pixel_at(footprint, q[1], q[2])
                if at[0] >= 0:
                    grid = operands.fields[pair.field]
                    found = pixel_distance(grid, pair, footprint, at)
                    warp_atomic_min_int64(best_out, pair_index, distance_key(found, face))
                steps += wp.float64(1.0)


@wp.kernel(launch_bounds=(256, 2))  # at most 128 registers
def draw_distances_kernel(
    # in
    span: wp.vec3i,
    operands: FieldOperands,
    patches: Patches,
    # out
    best_out: wp.array[wp.int64],
):
    """Lower the best key of each pair to the least (distance, face) of its fragments."""
    thread = span[0] + wp.tid()
    lane = thread % lane_count()
    least = no_key()
    mine = batch_range(patches, span, thread)
    for i in range(mine[0], mine[1]):
        work = lane_pixels(patches, i, mine[1], lane)
        pair = operands.pairs[work.pair]
        grid = operands.fields[pair.field]
        pixel = wp.vec2i(0, 0)
        for k in range(work.steps):
            if work.is_valid:
                pixel = patch_pixel(work.patch, work.first + k, pixel)
                found = fragment_distance(grid, pair, work.patch, pixel)
                least = wp.min(least, distance_key(found, patch_face(work.patch)))
        if work.is_last:
            if least < load_relaxed_int64(best_out, work.pair):
                warp_atomic_min_int64(best_out, work.pair, least)
            least = no_key()


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
