"""Faces that matter, made into patches: picked first, then cut.

Most faces are left out early, by a look at the field; so those that are not stand close together
when the work begins.
"""

import warp as wp

from abut.core.lanes import lane_count
from abut.core.pair_queue import PairQueue, push_pair, queue_stop, team_stop, warp_push_pair
from abut.sdf.blocks import block_of, key_of_block
from abut.sdf.draw_batches import Patches, push_cover
from abut.sdf.footprint import (
    BOUND,
    cover_within,
    least_in_ball,
    load_corners,
    look_at_pixels,
    middle_of,
    misses_box,
    radius_about,
    sampling_axis,
)
from abut.sdf.footprint_tiles import BLOCK, is_large, part_ball, slice_of_item
from abut.sdf.lookup import least_within
from abut.sdf.orthographic_raster import Cover, pixel_count
from abut.sdf.posed_in_field import VIEWS, Encounters, Meeting, meeting_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.func
def may_reach_inside(encounters: Encounters, meeting: Meeting, face: wp.int32, early: wp.int32):
    """Whether a face may have a fragment inside the field's object."""
    grid = encounters.fields[meeting.field]
    corners = load_corners(encounters, meeting, face)
    if misses_box(corners, meeting.sides):
        return False
    if early != BOUND:
        return True
    middle = middle_of(corners)
    radius = radius_about(corners, middle, meeting)
    seen = look_at_pixels(grid, middle, meeting)
    return least_within(grid, seen, radius, meeting.margin) < wp.float32(0.0)


@wp.kernel
def pick_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    early: wp.int32,
    # out
    faces_out: PairQueue,
):
    """List the faces that may reach inside."""
    stop = wp.min(span[1], encounters.firsts[encounters.firsts.shape[0] - 1])
    for item in range(span[0] + wp.tid(), stop, span[2]):
        m = meeting_of(encounters, item)
        meeting = encounters.meetings[m]
        face = item - encounters.firsts[m]
        picked = face < encounters.meshes[meeting.mesh].faces.shape[0]
        if picked:
            picked = may_reach_inside(encounters, meeting, face, early)
        warp_push_pair(faces_out, picked, face_key(m, face))


@wp.func
def face_key(meeting: wp.int32, face: wp.int32):
    """A face of a meeting in one word."""
    return (wp.int64(meeting) << wp.int64(32)) | wp.int64(face)


@wp.kernel
def cut_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    inside: wp.int32,
    faces: PairQueue,
    # out
    large_out: PairQueue,
    patches_out: Patches,
):
    """Make patches of the listed faces, ``inside`` the field's box or anywhere; list large ones."""
    lanes = lane_count()
    stop = queue_stop(faces, span[1])
    views = wp.where(encounters.sampling == VIEWS and inside == 0, 3, 1)
    for i in range(span[0] + wp.tid(), (stop + lanes - 1) / lanes * lanes, span[2]):
        key = faces.keys[wp.min(i, stop - 1)]
        m = wp.int32(key >> wp.int64(32))
        face = wp.int32(key)
        meeting = encounters.meetings[m]
        corners = load_corners(encounters, meeting, face)
        axis = sampling_axis(encounters, corners)
        for view in range(views):
            cover = Cover()
            if i < stop:
                cover = cover_within(meeting, corners, wp.where(views == 3, view, axis), inside)
                if is_large(cover):
                    push_pair(large_out, key_of_block(encounters.firsts[m] + face, 0, cover.axis))
                    cover.size = wp.vec2i(0, 0)
            push_cover(patches_out, m, meeting.share, face, cover, i % lanes)


@wp.kernel
def cut_parts_kernel(
    # in
    span: wp.vec3i,
    encounters: Encounters,
    early: wp.int32,
    blocks: PairQueue,
    # out
    patches_out: Patches,
):
    """Make patches of the parts of large faces that may reach inside."""
    for i in range(span[0] + wp.tid(), team_stop(blocks, BLOCK, span[1]), span[2]):
        at = block_of(blocks, i)
        m = meeting_of(encounters, at[0])
        meeting = encounters.meetings[m]
        face = at[0] - encounters.firsts[m]
        corners = load_corners(encounters, meeting, face)
        part = slice_of_item(cover_within(meeting, corners, at[2], 1), at[1], i % BLOCK)
        if early == BOUND and pixel_count(part) > 0:
            grid = encounters.fields[meeting.field]
            if least_in_ball(grid, meeting, part_ball(part)) >= wp.float32(0.0):
                part.size = wp.vec2i(0, 0)
        push_cover(patches_out, m, meeting.share, face, part, i % lane_count())
