"""Motions of jointed bodies that are certainly free of contact, and first times of contact.

A team takes a motion and halves its time, earlier half first. An interval takes over the pairs of
nodes that its parent could not certify. A pair is certified where its gap in the middle exceeds
how far its points may travel from there; else the larger node is opened, or, where both nodes are
small for the travel, the pair is left to the halves of the interval. An interval without pairs
left is free of contact. The first one that is too short to be halved gives the time of contact.
"""

import warp as wp

from abut.bvh.batched import BatchedBvh
from abut.core.lanes import lane_count, lane_index, warp_count, warp_rank, warp_scan, warp_sync
from abut.core.team import next_item
from abut.operands.jointed_bodies import (
    BodyStates,
    JointedBodies,
    JointedObjects,
    JointMotions,
)
from abut.traversal.motion.body_states import bound_bends, place_bodies, rest_objects
from abut.traversal.motion.moving_gaps import motion_of_pair
from abut.traversal.motion.pair_steps import (
    CERTIFIED,
    LEFT,
    OPEN_A,
    OPEN_B,
    face_in_slot,
    first_contact_entry,
    open_entry,
    step_of_pair,
)

# Loops stay loops: unrolled, the tests of faces take minutes to compile for CUDA.
wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

FREE = wp.constant(0)
CONTACT = wp.constant(1)  # and the time is within the tolerance
CLOSE = wp.constant(2)  # neither certainly free nor in contact
FULL = wp.constant(3)  # more pairs than there was room for
MOST_LEVELS = 48
LISTS = wp.constant(MOST_LEVELS + 1)


@wp.struct
class Pending:
    """Entries (pair, node of a, node of b) of teams: a stack, and lists by level behind it."""

    entries: wp.array[wp.vec3i]
    stack_size: wp.int32
    size: wp.int32  # of stack and lists of a team
    teams: wp.int32


@wp.struct
class MotionRows:
    """Answers, one a row."""

    outcome: wp.array[wp.int32]
    time: wp.array[wp.float64]
    objects: wp.array[wp.vec2i]
    faces: wp.array[wp.vec2i]


@wp.struct
class TeamScratch:
    """Memory of teams."""

    states: BodyStates
    pending: Pending


@wp.func
def examine_interval(
    bvhs: BatchedBvh,
    bodies: JointedBodies,
    objects: JointedObjects,
    motions: JointMotions,
    scratch: TeamScratch,
    team: wp.int32,
    half: wp.float64,
    last: wp.bool,
    begin: wp.int32,
    end: wp.int32,
):
    """Certify pairs of nodes in an interval; return where the list of those left ends.

    They are listed from ``end`` on. The result is -1 where there is no room.
    """
    lane = lane_index()
    lanes = lane_count()
    entries = scratch.pending.entries
    stack = team * scratch.pending.size
    limit = stack + scratch.pending.size
    top = wp.int32(end)
    next = wp.int32(begin)
    depth = wp.int32(0)
    while depth > 0 or next < end:
        if depth < lanes:
            more = wp.min(lanes - depth, end - next)
            if lane < more:
                entries[stack + depth + lane] = entries[next + lane]
            next += more
            depth += more
            warp_sync()
        taken = wp.min(lanes, depth)
        depth -= taken
        code = wp.int32(CERTIFIED)
        entry = wp.vec3i()
        if lane < taken:
            entry = entries[stack + depth + taken - 1 - lane]
            motion = motion_of_pair(
                bodies,
                objects,
                scratch.states,
                team * bodies.parents.shape[0],
                team * objects.bodies.shape[0],
                objects.pairs[entry[0]],
            )
            code = step_of_pair(bvhs, objects, motions, motion, entry, half, last)
        warp_sync()
        opened = code == OPEN_A or code == OPEN_B
        if depth + 2 * lanes > scratch.pending.stack_size:
            if opened:
                code = wp.int32(LEFT)
            opened = False
        slot = warp_scan(wp.where(opened, 2, 0))
        if opened:
            open_entry(bvhs, objects, entry, code == OPEN_A, entries, stack + depth + slot[0])
        depth += slot[1]
        left = code == LEFT
        count = warp_count(left)
        place = top + warp_rank(left)
        if top + count > limit:
            return -1
        if left:
            entries[place] = entry
        top += count
        warp_sync()
    return top


@wp.func
def list_roots(
    bvhs: BatchedBvh,
    objects: JointedObjects,
    item: wp.vec3i,
    entries: wp.array[wp.vec3i],
    begin: wp.int32,
):
    """List the roots of the pairs of objects of an item."""
    for k in range(item[1] + lane_index(), item[2], lane_count()):
        pair = objects.pairs[k]
        root_a = 2 * bvhs.slices[objects.shapes[pair[0]]].face_count - 2
        root_b = 2 * bvhs.slices[objects.shapes[pair[1]]].face_count - 2
        entries[begin + k - item[1]] = wp.vec3i(k, root_a, root_b)


@wp.struct
class FoundTime:
    """The answer for one motion."""

    outcome: wp.int32
    time: wp.float64
    entry: wp.vec3i
    intervals: wp.int32


@wp.func
def contact_at(
    bvhs: BatchedBvh,
    bodies: JointedBodies,
    objects: JointedObjects,
    motions: JointMotions,
    scratch: TeamScratch,
    team: wp.int32,
    row: wp.int32,
    time: wp.float64,
    begin: wp.int32,
    end: wp.int32,
):
    """Return the lowest of some pairs of leaves that are in contact at a time, or one of -1."""
    first_body = team * bodies.parents.shape[0]
    first_object = team * objects.bodies.shape[0]
    if lane_index() == 0:
        place_bodies(bodies, objects, motions, row, time, first_body, first_object, scratch.states)
    warp_sync()
    found = first_contact_entry(
        bvhs, objects, motions, scratch.states, first_object, scratch.pending.entries, begin, end
    )
    warp_sync()
    return found


@wp.func
def search_time(
    bvhs: BatchedBvh,
    bodies: JointedBodies,
    objects: JointedObjects,
    motions: JointMotions,
    scratch: TeamScratch,
    team: wp.int32,
    item: wp.vec3i,
    levels: wp.vec3i,
    list_begin: wp.array[wp.int32],
    list_end: wp.array[wp.int32],
):
    """Search a motion for its first contact; an item is a motion, and a range of pairs."""
    row = item[0]
    out = FoundTime()
    out.outcome = wp.int32(FREE)
    out.time = wp.float64(wp.inf)
    out.entry = wp.vec3i(-1, -1, -1)
    first_body = team * bodies.parents.shape[0]
    first_object = team * objects.bodies.shape[0]
    first_list = team * scratch.pending.size + scratch.pending.stack_size
    list_roots(bvhs, objects, item, scratch.pending.entries, first_list)
    warp_sync()
    list_begin[0] = first_list
    list_end[0] = first_list + item[2] - item[1]
    level = wp.int32(0)
    index = wp.int64(0)
    length = wp.float64(1.0)
    searching = wp.bool(True)
    while searching:
        out.intervals += 1
        half = wp.float64(0.5) * length
        middle = wp.float64(index) * length + half
        if lane_index() == 0:
            place_bodies(
                bodies, objects, motions, row, middle, first_body, first_object, scratch.states
            )
            bound_bends(bodies, motions, row, half, first_body, scratch.states)
        warp_sync()
        end = list_end[level]
        last = level >= levels[0]
        top = examine_interval(
            bvhs,
            bodies,
            objects,
            motions,
            scratch,
            team,
            half,
            last,
            list_begin[level],
            end,
        )
        if top == end:  # free of contact: go on with the next interval
            while level > 0 and index % wp.int64(2) == wp.int64(1):
                index = index / wp.int64(2)
                level -= 1
                length = length + length
            searching = level > 0
            index += wp.int64(1)
        else:
            tries = wp.where(last and top > end, wp.where(index == wp.int64(0), 2, 1), 0)
            time = middle  # then the start of the motion
            while tries > 0 and out.entry[0] < 0:
                out.entry = contact_at(
                    bvhs, bodies, objects, motions, scratch, team, row, time, end, top
                )
                time = wp.float64(0.0)
                tries -= 1
            if out.entry[0] >= 0:
                out.outcome = wp.int32(CONTACT)
            elif top < 0:
                out.outcome = wp.int32(FULL)
            elif level == levels[1] or out.intervals >= levels[2]:
                out.outcome = wp.int32(CLOSE)
                out.entry = scratch.pending.entries[end]
            if out.outcome != FREE:
                out.time = wp.float64(index) * length
                searching = False
            else:
                level += 1
                index = index * wp.int64(2)
                length = half
                list_begin[level] = end
                list_end[level] = top
    return out


@wp.func
def write_motion_row(
    bvhs: BatchedBvh,
    objects: JointedObjects,
    found: FoundTime,
    rows: MotionRows,
    row: wp.int32,
):
    """Write an answer."""
    pair = wp.vec3i(-1, -1, -1)
    faces = wp.vec2i(-1, -1)
    if found.entry[0] >= 0:
        pair = objects.pairs[found.entry[0]]
        faces = wp.vec2i(
            face_in_slot(bvhs, objects.shapes[pair[0]], found.entry[1]),
            face_in_slot(bvhs, objects.shapes[pair[1]], found.entry[2]),
        )
    rows.outcome[row] = found.outcome
    rows.time[row] = found.time
    rows.objects[row] = wp.vec2i(pair[0], pair[1])
    rows.faces[row] = faces


@wp.kernel
def certify_motions_kernel(
    # in
    span: wp.vec3i,
    bvhs: BatchedBvh,
    bodies: JointedBodies,
    objects: JointedObjects,
    motions: JointMotions,
    items: wp.array[wp.vec3i],
    levels: wp.vec3i,
    counter: wp.array[wp.int32],
    # out
    scratch_out: TeamScratch,
    rows_out: MotionRows,
):
    """Find whether motions are free of contact, or a time before their first contact.

    Items are a motion and a range of pairs of objects each. ``levels`` are the number of halvings
    that the tolerance needs, the most there may be, and the most intervals of an item.
    """
    list_begin = wp.zeros(shape=(LISTS,), dtype=wp.int32)
    list_end = wp.zeros(shape=(LISTS,), dtype=wp.int32)
    lanes = lane_count()
    for thread in range(span[0] + wp.tid(), span[1], span[2]):
        team = thread / lanes
        if lane_index() == 0:
            rest_objects(objects, team * objects.bodies.shape[0], scratch_out.states)
        warp_sync()
        work = wp.int32(team)
        if lanes > 1:
            work = next_item(counter, 0)
        while work < items.shape[0]:
            found = search_time(
                bvhs,
                bodies,
                objects,
                motions,
                scratch_out,
                team,
                items[work],
                levels,
                list_begin,
                list_end,
            )
            if lane_index() == 0:
                write_motion_row(bvhs, objects, found, rows_out, work)
            warp_sync()
            if lanes > 1:
                work = next_item(counter, 0)
            else:
                work += scratch_out.pending.teams
