"""The sampled point of a mesh that is closest to an object, or deepest inside it.

A face is sampled at its centroid, its corners and its fragments, in this order. All centroids are
looked at first; then only the faces that can do better. The order of distances, faces and samples
decides, so that the answer does not depend on who comes first.
"""

import warp as wp

from abut.atomics import lower_together
from abut.bounds.ordered import from_ordered, to_ordered
from abut.field.cover import (
    cover_anywhere,
    item_count,
    least_of_turn,
    listed_turn,
    load_corners,
    look_at_pixels,
    middle_of,
    push_turns,
    radius_about,
)
from abut.field.fragments import (
    PER_FACE,
    Cover,
    area_vector,
    dominant_axis,
    first_pixel,
    fragment,
    next_pixel,
    slot_count,
)
from abut.field.grid import FieldGrid, sample_cells
from abut.field.lookup import least_within
from abut.field.meeting import FACES, VIEWS, Encounters, Meeting, meeting_of
from abut.loads import load_fresh_integer
from abut.pairs import PairQueue

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

NO_KEY = 2**63 - 1
NO_BEST = wp.constant(wp.int64(NO_KEY))
NOWHERE = wp.constant(wp.float32(3.0e38))


@wp.func
def key_of(distance: wp.float32, face: wp.int32):
    """Sorts by distance, then by face."""
    bits = to_ordered(distance + wp.float32(0.0))  # -0 is 0
    return (wp.int64(bits) << wp.int64(32)) | wp.int64(face)


@wp.func
def distance_in(key: wp.int64):
    """The distance of a key."""
    return from_ordered(wp.int32(key >> wp.int64(32)))


@wp.func
def face_in(key: wp.int64):
    """The face of a key."""
    return wp.int32(key & wp.int64(4294967295))


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
        face = item - encounters.firsts[m]
        grid = encounters.fields[meeting.field]
        corners = load_corners(encounters, meeting, face)
        middle = middle_of(corners)
        seen = look_at_pixels(grid, middle, meeting)
        radius = wp.float32(meeting.pixel * radius_about(corners, middle))
        least_out[item] = wp.min(least_within(grid, seen, radius, meeting.margin), seen.distance)
        lower_together(best_out, m, key_of(seen.distance, face))


@wp.func
def corner_key(grid: FieldGrid, meeting: Meeting, corners: wp.mat33d, face: wp.int32):
    """The key of the nearest corner."""
    nearest = NOWHERE
    for k in range(3):
        nearest = wp.min(nearest, look_at_pixels(grid, corners[k], meeting).distance)
    return key_of(nearest, face)


@wp.kernel
def promising_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    least: wp.array[wp.float32],
    # out
    best_out: wp.array[wp.int64],
    turns_out: PairQueue,
    blocks_out: PairQueue,
):
    """Look at the corners of the faces that can be closer than any centroid; list their turns."""
    for item in range(span[0] + wp.tid(), span[1], span[2]):
        m = meeting_of(encounters, item)
        if least[item] <= distance_in(load_fresh_integer(best_out, m)):
            meeting = encounters.meetings[m]
            face = item - encounters.firsts[m]
            corners = load_corners(encounters, meeting, face)
            grid = encounters.fields[meeting.field]
            lower_together(best_out, m, corner_key(grid, meeting, corners, face))
            first = wp.int32(0)
            stop = wp.int32(3)
            if encounters.sampling == FACES:
                first = PER_FACE
                stop = PER_FACE + 1
            elif encounters.sampling != VIEWS:
                first = dominant_axis(area_vector(corners))
                stop = first + 1
            for axis in range(first, stop):
                cover = cover_anywhere(encounters, meeting, face, axis)
                cover.meeting = m
                cover.face = face
                push_turns(encounters, turns_out, blocks_out, cover)


@wp.func
def distance_of(grid: FieldGrid, meeting: Meeting, cover: Cover, at: wp.vec2i):
    """The distance of a fragment, far off where there is none."""
    found = fragment(cover, at)
    if found[3] == wp.float64(0.0):
        return NOWHERE
    seen = look_at_pixels(grid, wp.vec3d(found[0], found[1], found[2]), meeting)
    return seen.distance + wp.float32(0.0)  # -0 is 0


@wp.kernel
def nearest_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    turns: PairQueue,
    blocks: PairQueue,
    # out
    best_out: wp.array[wp.int64],
):
    """The lowest (distance, face) of all fragments."""
    for item in range(span[0] + wp.tid(), item_count(turns, blocks, span[1]), span[2]):
        row = listed_turn(turns, blocks, item)
        cover = encounters.covers[row[0]]
        meeting = encounters.meetings[cover.meeting]
        grid = encounters.fields[meeting.field]
        nearest = NOWHERE
        limit = distance_in(load_fresh_integer(best_out, cover.meeting))
        if least_of_turn(grid, meeting, cover, row[1]) <= limit:
            at = first_pixel(cover, row[1])
            for slot in range(slot_count(cover, row[1])):
                nearest = wp.min(nearest, distance_of(grid, meeting, cover, at))
                at = next_pixel(cover, at, slot)
        key = key_of(nearest, cover.face)
        if key < load_fresh_integer(best_out, cover.meeting):
            lower_together(best_out, cover.meeting, key)


@wp.kernel
def locate_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    turns: PairQueue,
    blocks: PairQueue,
    best: wp.array[wp.int64],
    # out
    place_out: wp.array[wp.int64],
):
    """Of the nearest face the first fragment at that distance."""
    for item in range(span[0] + wp.tid(), item_count(turns, blocks, span[1]), span[2]):
        row = listed_turn(turns, blocks, item)
        m = encounters.covers[row[0]].meeting
        if encounters.covers[row[0]].face == face_in(best[m]):
            cover = encounters.covers[row[0]]
            meeting = encounters.meetings[m]
            grid = encounters.fields[meeting.field]
            wanted = distance_in(best[m])
            if least_of_turn(grid, meeting, cover, row[1]) <= wanted:
                at = first_pixel(cover, row[1])
                for slot in range(slot_count(cover, row[1])):
                    if distance_of(grid, meeting, cover, at) == wanted:
                        index = at[1] * cover.size[0] + at[0]
                        place = wp.int64(index) * wp.int64(4) + wp.int64(cover.axis)
                        lower_together(place_out, m, place)
                    at = next_pixel(cover, at, slot)


@wp.func
def is_at(grid: FieldGrid, meeting: Meeting, p: wp.vec3d, wanted: wp.float32):
    """Whether a point has just that distance."""
    seen = look_at_pixels(grid, p, meeting)
    return seen.distance + wp.float32(0.0) == wanted


@wp.func
def nearest_sample(encounters: Encounters, meeting: Meeting, best: wp.int64, place: wp.int64):
    """The first sample of the nearest face at the least distance, in pixels."""
    grid = encounters.fields[meeting.field]
    face = face_in(best)
    wanted = distance_in(best)
    corners = load_corners(encounters, meeting, face)
    middle = middle_of(corners)
    if is_at(grid, meeting, middle, wanted):
        return middle
    for k in range(3):
        if is_at(grid, meeting, corners[k], wanted):
            return corners[k]
    cover = cover_anywhere(encounters, meeting, face, wp.int32(place % wp.int64(4)))
    index = wp.int32(place / wp.int64(4))
    line = index / wp.max(cover.size[0], 1)
    found = fragment(cover, wp.vec2i(index - line * cover.size[0], line))
    return wp.vec3d(found[0], found[1], found[2])


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
    for m in range(span[0] + wp.tid(), span[1], span[2]):
        meeting = encounters.meetings[m]
        grid = encounters.fields[meeting.field]
        best = best_out[m]
        at = nearest_sample(encounters, meeting, best, place_out[m])
        point = grid.lower + meeting.pixel * at
        share = meeting.pixel / grid.spacing
        cells = wp.vec3f(
            wp.float32(at[0] * share), wp.float32(at[1] * share), wp.float32(at[2] * share)
        )
        found = sample_cells(grid, cells)
        rows_out[m, 0] = wp.float64(distance_in(best))
        rows_out[m, 1] = wp.float64(face_in(best))
        for x in range(3):
            rows_out[m, 2 + x] = point[x] - wp.float64(found[0]) * wp.float64(found[1 + x])
            rows_out[m, 5 + x] = point[x]
        best_out[m] = NO_BEST
        place_out[m] = NO_BEST
        if m == 0:
            for k in range(3):
                rows_out[0, 8 + k] = wp.float64(count_out[k])
                count_out[k] = wp.int64(0)
