"""The sampled point of a mesh that is closest to an object, or deepest inside it.

A face is sampled at its centroid, its corners and its fragments, in this order. All centroids are
looked at first; then only the faces that can do better. The order of distances, faces and samples
decides, so that the answer does not depend on who comes first.
"""

import warp as wp

from abut.atomics import lower_together
from abut.field.blocks import block_in, block_of, part_count
from abut.field.cover import (
    cover_within,
    least_in_ball,
    load_corners,
    look_at_pixels,
    middle_of,
    radius_about,
    sampling_axis,
)
from abut.field.cutting import face_key
from abut.field.grid import FieldGrid, sample_cells
from abut.field.keys import NO_BEST, distance_in, face_in, key_of, no_best
from abut.field.lookup import least_within, look
from abut.field.meeting import VIEWS, Encounters, Meeting, meeting_of
from abut.field.parts import BLOCK, SIDE, is_large, part_ball, part_of, point_above
from abut.field.patch import (
    Patch,
    fragment,
    patch_pixels,
    piece_of,
    pixel_of,
)
from abut.field.patch import face_in as face_of_patch
from abut.field.picture import HALF, PER_FACE, Cover, part_middle, pixel_count, turned
from abut.field.spans import pixel_at
from abut.field.turns import Patches, push_cover, stroke_of, turns_of
from abut.geometry.closest_point_tri import closest_point_tri
from abut.geometry.closest_point_tri import point_at as foot_point
from abut.lanes import lane_count, least_of_lanes, wait_for_lanes
from abut.loads import load_fresh_integer
from abut.pairs import PairQueue, push_together, queue_stop

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
            lower_together(best_out, m, key_of(seen.distance, face))


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
        picked = face >= 0 and least[item] <= distance_in(load_fresh_integer(best_out, m))
        if picked:
            meeting = encounters.meetings[m]
            corners = load_corners(encounters, meeting, face)
            grid = encounters.fields[meeting.field]
            lower_together(best_out, m, corner_key(grid, meeting, corners, face))
        push_together(faces_out, picked, face_key(m, face))


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
                    lower_together(best_out, m, key_of(found, face))
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
    for i in range(span[0] + wp.tid(), part_count(blocks, span[1]), span[2]):
        at = block_of(blocks, i)
        m = meeting_of(encounters, at[0])
        meeting = encounters.meetings[m]
        face = at[0] - encounters.firsts[m]
        part = part_of(cover_anywhere(encounters, meeting, face, at[2]), at[1], i % BLOCK)
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
    least = no_best()
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
            if least < load_fresh_integer(best_out, stroke.meeting):
                lower_together(best_out, stroke.meeting, least)
            least = no_best()


@wp.func
def place_of(cover: Cover, at: wp.vec2i):
    """The number of a pixel in the order of its cover's pixels, with its axis."""
    number = at[1] * cover.size[0] + at[0]
    return wp.int64(number) * wp.int64(4) + wp.int64(cover.axis)


@wp.func
def first_place(
    encounters: Encounters,
    meeting: Meeting,
    cover: Cover,
    part: Cover,
    wanted: wp.float32,
    first: wp.int32,
    step: wp.int32,
):
    """The first place at the distance wanted, of each ``step``-th fragment of a part of a cover."""
    grid = encounters.fields[meeting.field]
    out = NO_BEST
    at = wp.vec2i(0, 0)
    while at[0] < part.size[0]:
        piece = piece_of(part, at, 0, meeting.share)
        pixel = wp.vec2i(0, 0)
        for index in range(first, patch_pixels(piece.patch), step):
            pixel = pixel_of(piece.patch, index, pixel)
            if distance_of(grid, meeting, piece.patch, pixel) == wanted:
                out = wp.min(out, place_of(cover, part.low - cover.low + at + pixel))
        at = piece.next
    return out


@wp.kernel
def locate_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    blocks: PairQueue,
    best: wp.array[wp.int64],
    # out
    place_out: wp.array[wp.int64],
):
    """Where the nearest face is large, its first fragment at that distance."""
    for i in range(span[0] + wp.tid(), part_count(blocks, span[1]), span[2]):
        at = block_of(blocks, i)
        m = meeting_of(encounters, at[0])
        if at[0] - encounters.firsts[m] == face_in(best[m]):
            meeting = encounters.meetings[m]
            cover = cover_anywhere(encounters, meeting, face_in(best[m]), at[2])
            part = part_of(cover, at[1], i % BLOCK)
            place = first_place(encounters, meeting, cover, part, distance_in(best[m]), 0, 1)
            if place < NO_BEST:
                lower_together(place_out, m, place)


@wp.func
def corner_or_middle(corners: wp.mat33d, k: wp.int32):
    """The centroid of a face for 0, else a corner."""
    p = middle_of(corners)
    if k > 0:
        p = corners[k - 1]
    return p


@wp.func
def first_sample(
    encounters: Encounters, meeting: Meeting, best: wp.int64, place: wp.int64, lane: wp.int32
):
    """The place of the nearest face's first sample at the least distance.

    Of its centroid and corners (below 0), of its pixels where they are few, and of what was located
    where they are many; the lanes of a warp look together.
    """
    grid = encounters.fields[meeting.field]
    face = face_in(best)
    wanted = distance_in(best)
    corners = load_corners(encounters, meeting, face)
    out = place
    for k in range(lane, 4, lane_count()):
        seen = look_at_pixels(grid, corner_or_middle(corners, k), meeting)
        if seen.distance + wp.float32(0.0) == wanted:
            out = wp.min(out, wp.int64(k - 4))
    views = wp.where(encounters.sampling == VIEWS, 3, 1)
    own = sampling_axis(encounters, corners)
    for view in range(views):
        cover = cover_anywhere(encounters, meeting, face, wp.where(views == 3, view, own))
        if not is_large(cover):
            out = wp.min(
                out, first_place(encounters, meeting, cover, cover, wanted, lane, lane_count())
            )
    return wp.int64(least_of_lanes(wp.float64(out)))


@wp.func
def point_at(encounters: Encounters, meeting: Meeting, face: wp.int32, place: wp.int64):
    """The sample at a place of a face, in pixels."""
    if place < wp.int64(0):
        corners = load_corners(encounters, meeting, face)
        return corner_or_middle(corners, wp.int32(place) + 4)
    cover = cover_anywhere(encounters, meeting, face, wp.int32(place % wp.int64(4)))
    index = wp.int32(place / wp.int64(4))
    if cover.axis == PER_FACE:
        return part_middle(cover, index)
    line = index / wp.max(cover.size[0], 1)
    x = wp.float64(cover.low[0] + index - line * cover.size[0]) + HALF
    return point_above(cover, x, wp.float64(cover.low[1] + line) + HALF)


@wp.kernel
def closest_rows_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    # out
    best_out: wp.array[wp.int64],
    place_out: wp.array[wp.int64],
    count_out: wp.array[wp.int64],
    rows_out: wp.array2d[wp.float64],
):
    """Distance, both points and the face of each meeting; then forget, for the next run."""
    lanes = lane_count()
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        m = i / lanes
        lane = i % lanes
        meeting = encounters.meetings[m]
        grid = encounters.fields[meeting.field]
        best = best_out[m]
        place = first_sample(encounters, meeting, best, place_out[m], lane)
        at = point_at(encounters, meeting, face_in(best), place)
        point = grid.lower + meeting.pixel * at
        c = meeting.share * at
        found = sample_cells(grid, wp.vec3f(wp.float32(c[0]), wp.float32(c[1]), wp.float32(c[2])))
        wait_for_lanes()  # all have read
        if lane == 0:
            rows_out[m, 0] = wp.float64(distance_in(best))
            rows_out[m, 1] = wp.float64(face_in(best))
            for x in range(3):
                rows_out[m, 2 + x] = point[x] - wp.float64(found[0]) * wp.float64(found[1 + x])
                rows_out[m, 5 + x] = point[x]
            best_out[m] = NO_BEST
            place_out[m] = NO_BEST
            if m == 0:
                for k in range(count_out.shape[0]):
                    rows_out[0, 8 + k] = wp.float64(count_out[k])
                    count_out[k] = wp.int64(0)
