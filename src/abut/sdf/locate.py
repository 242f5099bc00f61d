"""Where on the nearest face its nearest sample is: the first of those at that distance."""

import warp as wp

from abut.bounds.rows import single_of
from abut.core.atomics import warp_atomic_min_int64
from abut.core.lanes import lane_count, warp_min, warp_sync
from abut.core.pair_queue import NO_KEY, PairQueue, team_stop
from abut.sdf.blocks import block_of
from abut.sdf.footprint import load_corners, look_at_pixels, middle_of, sampling_axis
from abut.sdf.footprint_tiles import BLOCK, is_large, point_above, slice_of_item
from abut.sdf.grid import sample_cells
from abut.sdf.keys import distance_in, face_in
from abut.sdf.nearest import cover_anywhere, distance_of
from abut.sdf.orthographic_raster import HALF, PER_FACE, Cover, part_middle
from abut.sdf.pixel_patch import patch_pixels, piece_of, pixel_of
from abut.sdf.posed_in_field import VIEWS, Encounters, Meeting, meeting_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


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
    out = NO_KEY
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
    for i in range(span[0] + wp.tid(), team_stop(blocks, BLOCK, span[1]), span[2]):
        at = block_of(blocks, i)
        m = meeting_of(encounters, at[0])
        if at[0] - encounters.firsts[m] == face_in(best[m]):
            meeting = encounters.meetings[m]
            cover = cover_anywhere(encounters, meeting, face_in(best[m]), at[2])
            part = slice_of_item(cover, at[1], i % BLOCK)
            place = first_place(encounters, meeting, cover, part, distance_in(best[m]), 0, 1)
            if place < NO_KEY:
                warp_atomic_min_int64(place_out, m, place)


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
    return wp.int64(warp_min(wp.float64(out)))


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
        found = sample_cells(grid, single_of(meeting.share * at))
        warp_sync()  # all have read
        if lane == 0:
            rows_out[m, 0] = wp.float64(distance_in(best))
            rows_out[m, 1] = wp.float64(face_in(best))
            for x in range(3):
                rows_out[m, 2 + x] = point[x] - wp.float64(found[0]) * wp.float64(found[1 + x])
                rows_out[m, 5 + x] = point[x]
            best_out[m] = NO_KEY
            place_out[m] = NO_KEY
            if m == 0:
                for k in range(count_out.shape[0]):
                    rows_out[0, 8 + k] = wp.float64(count_out[k])
                    count_out[k] = wp.int64(0)
