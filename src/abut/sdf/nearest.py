"""The sampled point of a mesh that is closest to an object, or deepest inside it.

A face is sampled at its centroid, its corners and its fragments, in this order. All centroids are
looked at first; then only the faces that can do better. The order of distances, faces and samples
decides, so that the answer does not depend on who comes first.
"""

import warp as wp

from abut.core.atomics import warp_atomic_min_int64
from abut.core.lanes import lane_count
from abut.core.loads import load_uncached_int64
from abut.core.pair_queue import PairQueue, no_key, queue_stop, team_stop, warp_push_pair
from abut.geometry.closest_point_tri import closest_point_tri
from abut.geometry.closest_point_tri import point_at as foot_point
from abut.sdf.blocks import block_in, block_of
from abut.sdf.draw_batches import Patches, push_cover, stroke_of, turns_of
from abut.sdf.face_setup import face_key
from abut.sdf.footprint import (
    cover_within,
    least_in_ball,
    load_corners,
    look_at_pixels,
    middle_of,
    radius_about,
)
from abut.sdf.footprint_tiles import BLOCK, SIDE, part_ball, slice_of_item
from abut.sdf.grid import FieldGrid
from abut.sdf.keys import distance_in, key_of
from abut.sdf.lookup import least_within, look
from abut.sdf.orthographic_raster import HALF, PER_FACE, Cover, pixel_count, turned
from abut.sdf.pixel_patch import (
    Patch,
    fragment,
    piece_of,
    pixel_of,
)
from abut.sdf.pixel_patch import face_in as face_of_patch
from abut.sdf.posed_in_field import Encounters, Meeting, meeting_of
from abut.sdf.spans import pixel_at

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

FAR_OFF = wp.constant(wp.float32(3.0e38))


@wp.func
def face_of(encounters: Encounters, m: wp.int32, item: wp.int32):
    """The face of an item, -1 where it has none."""
    face = item - encounters.firsts[m]
    count = encounters.meshes[encounters.meetings[m].mesh].faces.shape[0]
    return wp.where(face < count, face, -1)


@wp.kernel
def centroids_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    # out
    least_out: wp.array[wp.float32],
    best_out: wp.array[wp.int64],
):
    """Look at each face's centroid: no sample of the face is closer than ``least_out``."""
    for item in range(span[0] + wp.tid(), span[1], span[2]):
        m = meeting_of(encounters, item)
        meeting = encounters.meetings[m]
        face = face_of(encounters, m, item)
        least_out[item] = FAR_OFF
        if face >= 0:
            grid = encounters.fields[meeting.field]
            corners = load_corners(encounters, meeting, face)
            middle = middle_of(corners)
            seen = look_at_pixels(grid, middle, meeting)
            radius = radius_about(corners, middle, meeting)
            least = least_within(grid, seen, radius, meeting.margin)
            least_out[item] = wp.min(least, seen.distance)
            warp_atomic_min_int64(best_out, m, key_of(seen.distance, face))


@wp.func
def corner_key(grid: FieldGrid, meeting: Meeting, corners: wp.mat33d, face: wp.int32):
    """The key of the nearest corner."""
    nearest = FAR_OFF
    for k in range(3):
        nearest = wp.min(nearest, look_at_pixels(grid, corners[k], meeting).distance)
    return key_of(nearest, face)


@wp.func
def distance_of(grid: FieldGrid, meeting: Meeting, patch: Patch, pixel: wp.vec2i):
    """The distance of a fragment."""
    c = fragment(patch, pixel, wp.float32(meeting.share))
    return look(grid, c, meeting.margin).distance + wp.float32(0.0)  # -0 is 0


@wp.kernel
def promising_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    least: wp.array[wp.float32],
    # out
    best_out: wp.array[wp.int64],
    faces_out: PairQueue,
):
    """Of the faces that can be closer than any centroid look at the corners, and list them."""
    for item in range(span[0] + wp.tid(), span[1], span[2]):
        m = meeting_of(encounters, item)
        face = face_of(encounters, m, item)
        picked = face >= 0 and least[item] <= distance_in(load_uncached_int64(best_out, m))
        if picked:
            meeting = encounters.meetings[m]
            corners = load_corners(encounters, meeting, face)
            grid = encounters.fields[meeting.field]
            warp_atomic_min_int64(best_out, m, corner_key(grid, meeting, corners, face))
        warp_push_pair(faces_out, picked, face_key(m, face))


@wp.func
def cover_anywhere(encounters: Encounters, meeting: Meeting, face: wp.int32, axis: wp.int32):
    """How a face covers the pixels of the lattice."""
    return cover_within(meeting, load_corners(encounters, meeting, face), axis, 0)


@wp.func
def sample_at(grid: FieldGrid, meeting: Meeting, cover: Cover, at: wp.vec2i):
    """The distance at a pixel of a large cover, as its part will have it."""
    first = at / SIDE * SIDE
    part = cover
    part.low = cover.low + first
    part.size = wp.min(cover.size - first, wp.vec2i(SIDE, SIDE))
    piece = piece_of(part, wp.vec2i(0, 0), 0, meeting.share)
    return distance_of(grid, meeting, piece.patch, at - first)


@wp.kernel
def near_samples_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    large: PairQueue,
    # out
    best_out: wp.array[wp.int64],
):
    """Look at a pixel of each large face where it is near the middle of the field's box.

    At the foot of that point, or beside it, towards the centroid; the rest can then be left out.
    """
    for i in range(span[0] + wp.tid(), queue_stop(large, span[1]), span[2]):
        item = block_in(large.keys[i])
        m = meeting_of(encounters, item[0])
        meeting = encounters.meetings[m]
        face = item[0] - encounters.firsts[m]
        cover = cover_anywhere(encounters, meeting, face, item[2])
        if cover.axis != PER_FACE:
            foot = closest_point_tri(HALF * meeting.sides, cover.corners)
            p = foot_point(cover.corners, foot.weights)
            way = wp.normalize(middle_of(cover.corners) - p)
            steps = wp.float64(0.0)
            while steps < wp.float64(3.0):
                q = turned(p + steps * way, cover.axis)
                at = pixel_at(cover, q[1], q[2])
                if at[0] >= 0:
                    grid = encounters.fields[meeting.field]
                    found = sample_at(grid, meeting, cover, at)
                    warp_atomic_min_int64(best_out, m, key_of(found, face))
                steps += wp.float64(1.0)


@wp.kernel
def promising_parts_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    blocks: PairQueue,
    best: wp.array[wp.int64],
    # out
    patches_out: Patches,
):
    """List the parts of large faces that can be closer than what was found."""
    for i in range(span[0] + wp.tid(), team_stop(blocks, BLOCK, span[1]), span[2]):
        at = block_of(blocks, i)
        m = meeting_of(encounters, at[0])
        meeting = encounters.meetings[m]
        face = at[0] - encounters.firsts[m]
        part = slice_of_item(cover_anywhere(encounters, meeting, face, at[2]), at[1], i % BLOCK)
        if pixel_count(part) > 0:
            ball = part_ball(part)
            least = least_in_ball(encounters.fields[meeting.field], meeting, ball)
            if least > distance_in(best[m]):
                part.size = wp.vec2i(0, 0)
        push_cover(patches_out, m, meeting.share, face, part, i % lane_count())


@wp.kernel(launch_bounds=(256, 2))  # at most 128 registers
def draw_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    patches: Patches,
    # out
    best_out: wp.array[wp.int64],
):
    """Lower the best of each meeting to the least (distance, face) of its fragments."""
    thread = span[0] + wp.tid()
    lane = thread % lane_count()
    least = no_key()
    mine = turns_of(patches, span, thread)
    for i in range(mine[0], mine[1]):
        stroke = stroke_of(patches, i, mine[1], lane)
        meeting = encounters.meetings[stroke.meeting]
        grid = encounters.fields[meeting.field]
        pixel = wp.vec2i(0, 0)
        for k in range(stroke.steps):
            if stroke.is_there:
                pixel = pixel_of(stroke.patch, stroke.first + k, pixel)
                found = distance_of(grid, meeting, stroke.patch, pixel)
                least = wp.min(least, key_of(found, face_of_patch(stroke.patch)))
        if stroke.is_last:
            if least < load_uncached_int64(best_out, stroke.meeting):
                warp_atomic_min_int64(best_out, stroke.meeting, least)
            least = no_key()
