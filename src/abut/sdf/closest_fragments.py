"""The least (distance, face) of the samples of a mesh in a field.

A face is sampled at its centroid, its corners and its fragments. All centroids come first; then
only faces with a lower bound at most the least distance so far. Keys order distances, then faces,
so that the answer does not depend on the order of threads.
"""

import warp as wp

from abut.core.atomics import warp_atomic_min_int64
from abut.core.lanes import lane_count
from abut.core.memory_access import load_relaxed_int64
from abut.core.pair_queue import PairQueue, no_key, queue_stop, warp_push_pair
from abut.geometry.closest_point_tri import closest_point_tri
from abut.geometry.closest_point_tri import point_at as foot_point
from abut.sdf.blocks import decode_block
from abut.sdf.draw_batches import Patches, batch_range, lane_pixels
from abut.sdf.face_setup import face_key
from abut.sdf.field_pairs import FieldOperands, FieldPair, pair_of_item
from abut.sdf.field_probe import distance_key, key_distance, lower_bound_within, probe_field
from abut.sdf.footprint import (
    TILE_SIDE,
    centroid_of,
    clipped_footprint,
    pixel_corners,
    probe_pixels,
    radius_from,
)
from abut.sdf.grid import FieldGrid
from abut.sdf.orthographic_raster import HALF, SUBDIVIDED, Footprint, to_raster
from abut.sdf.pixel_patch import Patch, fragment_at, patch_face, patch_from, patch_pixel
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
