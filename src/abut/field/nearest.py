"""The sampled point of a mesh that is closest to an object, or deepest inside it.

A face is sampled at its centroid (sample 0), its corners (1 to 3) and its fragments (from 4). All
centroids are looked at first; then only the faces that can do better. The order of distances,
faces and samples decides, so that the answer does not depend on who comes first.
"""

import warp as wp

from abut.atomics import load_fresh_integer, lower_together
from abut.field.cover import (
    cover_anywhere,
    least_of_turn,
    load_corners,
    look_at_pixels,
    middle_of,
    push_blocks,
    radius_about,
)
from abut.field.fragments import (
    PER_FACE,
    TURN,
    Cover,
    area_vector,
    dominant_axis,
    fragment,
    fragment_index,
    turn_count,
)
from abut.field.grid import FieldGrid, sample_cells
from abut.field.lookup import least_within
from abut.field.meeting import FACES, VIEWS, Encounters, Meeting, meeting_of
from abut.lanes import lane_count
from abut.pairs import PairQueue, queue_stop, unpack_pair

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

NO_KEY = 2**63 - 1
NO_BEST = wp.constant(wp.int64(NO_KEY))
NOWHERE = wp.constant(wp.float32(3.0e38))
CORNERS = wp.constant(wp.int32(4))  # samples of a face before its fragments


@wp.func
def key_of(distance: wp.float32, face: wp.int32):
    """Sorts by distance, then by face."""
    bits = wp.cast(distance + wp.float32(0.0), wp.int32)  # -0 is 0
    if bits < 0:
        bits = bits ^ wp.int32(2147483647)
    return (wp.int64(bits) << wp.int64(32)) | wp.int64(face)


@wp.func
def distance_in(key: wp.int64):
    """The distance of a key."""
    bits = wp.int32(key >> wp.int64(32))
    if bits < 0:
        bits = bits ^ wp.int32(2147483647)
    return wp.cast(bits, wp.float32)


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


@wp.kernel
def promising_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    least: wp.array[wp.float32],
    best: wp.array[wp.int64],
    # out
    blocks_out: PairQueue,
):
    """Blocks of the faces that can be closer than any centroid."""
    for item in range(span[0] + wp.tid(), span[1], span[2]):
        m = meeting_of(encounters, item)
        if least[item] <= distance_in(best[m]):
            meeting = encounters.meetings[m]
            face = item - encounters.firsts[m]
            first = wp.int32(0)
            stop = wp.int32(3)
            if encounters.sampling == FACES:
                first = PER_FACE
                stop = PER_FACE + 1
            elif encounters.sampling != VIEWS:
                first = dominant_axis(area_vector(load_corners(encounters, meeting, face)))
                stop = first + 1
            for axis in range(first, stop):
                cover = cover_anywhere(encounters, meeting, face, axis)
                if axis == first and cover.size[0] * cover.size[1] == 0:
                    cover.size = wp.vec2i(1, 1)  # its corners are looked at with its first block
                push_blocks(blocks_out, m, face, cover, encounters.bits)


@wp.func
def sample_of(cover: Cover, sample: wp.int32):
    """A sample of a face and 1, or 0 where there is none."""
    if sample >= CORNERS:
        return fragment(cover, sample - CORNERS)
    p = middle_of(cover.corners)
    if sample > 0:
        p = cover.corners[sample - 1]
    return wp.vec4d(p[0], p[1], p[2], wp.float64(1.0))


@wp.func
def first_slot(block: wp.int32, turn: wp.int32, lane: wp.int32):
    """Where a lane begins: before the fragments of a face come its corners."""
    if block == 0 and turn == 0:
        return lane + 1 - CORNERS
    return lane


@wp.func
def sample_in(cover: Cover, block: wp.int32, turn: wp.int32, slot: wp.int32):
    """The sample in a slot, -1 for none."""
    if slot < 0:
        return slot + CORNERS
    index = fragment_index(cover, block, turn, slot)
    if index < 0:
        return index
    return index + CORNERS


@wp.func
def distance_of(grid: FieldGrid, meeting: Meeting, cover: Cover, sample: wp.int32):
    """The distance of a sample, far off where there is none."""
    if sample < 0:
        return NOWHERE
    found = sample_of(cover, sample)
    if found[3] == wp.float64(0.0):
        return NOWHERE
    p = wp.vec3d(found[0], found[1], found[2])
    seen = look_at_pixels(grid, p, meeting)
    return seen.distance + wp.float32(0.0)  # -0 is 0


@wp.kernel
def nearest_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    blocks: PairQueue,
    # out
    best_out: wp.array[wp.int64],
):
    """The lowest (distance, face) of all samples; the lanes of a warp share a block."""
    lanes = lane_count()
    thread = span[0] + wp.tid()
    for item in range(thread / lanes, queue_stop(blocks, span[1]), wp.max(span[2] / lanes, 1)):
        row = unpack_pair(blocks.keys[item], encounters.bits)
        meeting = encounters.meetings[row[0]]
        grid = encounters.fields[meeting.field]
        block = row[2] / 4
        cover = cover_anywhere(encounters, meeting, row[1], row[2] % 4)
        nearest = NOWHERE
        for turn in range(turn_count(cover)):
            least = least_of_turn(grid, meeting, cover, block, turn)
            if least <= distance_in(load_fresh_integer(best_out, row[0])):
                for slot in range(first_slot(block, turn, thread % lanes), TURN, lanes):
                    sample = sample_in(cover, block, turn, slot)
                    nearest = wp.min(nearest, distance_of(grid, meeting, cover, sample))
        key = key_of(nearest, row[1])
        if key < load_fresh_integer(best_out, row[0]):
            lower_together(best_out, row[0], key)


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
    """Of the nearest face the first sample at that distance."""
    lanes = lane_count()
    thread = span[0] + wp.tid()
    for item in range(thread / lanes, queue_stop(blocks, span[1]), wp.max(span[2] / lanes, 1)):
        row = unpack_pair(blocks.keys[item], encounters.bits)
        if row[1] == face_in(best[row[0]]):
            meeting = encounters.meetings[row[0]]
            grid = encounters.fields[meeting.field]
            block = row[2] / 4
            wanted = distance_in(best[row[0]])
            cover = cover_anywhere(encounters, meeting, row[1], row[2] % 4)
            for turn in range(turn_count(cover)):
                if least_of_turn(grid, meeting, cover, block, turn) <= wanted:
                    for slot in range(first_slot(block, turn, thread % lanes), TURN, lanes):
                        sample = sample_in(cover, block, turn, slot)
                        if distance_of(grid, meeting, cover, sample) == wanted:
                            place = wp.int64(sample) * wp.int64(4) + wp.int64(cover.axis)
                            lower_together(place_out, row[0], place)


@wp.func
def place_of(encounters: Encounters, meeting: Meeting, best: wp.int64, place: wp.int64):
    """The nearest sample of a meeting, in pixels."""
    grid = encounters.fields[meeting.field]
    face = face_in(best)
    middle = middle_of(load_corners(encounters, meeting, face))
    seen = look_at_pixels(grid, middle, meeting)
    if place == NO_BEST or seen.distance + wp.float32(0.0) == distance_in(best):
        return middle
    axis = wp.int32(place % wp.int64(4))
    cover = cover_anywhere(encounters, meeting, face, axis)
    found = sample_of(cover, wp.int32(place / wp.int64(4)))
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
        at = place_of(encounters, meeting, best, place_out[m])
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
            rows_out[0, 8] = wp.float64(count_out[0])
            count_out[0] = wp.int64(0)
