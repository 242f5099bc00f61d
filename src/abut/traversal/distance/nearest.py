"""The nearest faces of posed pairs, by walking both trees depth first.

A walk starts with a good guess (see seed), which bounds the distance. After that the order of the
walk hardly matters, and a pair of nodes is opened only where the answer may lie. Faces are compared
last. Most pairs of them are separated by their extent along the line between their centres, or
along the line of the best pair so far, which takes a tenth of the time.

The answer does not depend on the order: of all pairs at the smallest distance, as computed, it is
the one with the lowest key. Measured in design/distance.md.
"""

from functools import cache

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import BvhView, Node, face_of, is_leaf, load_node, root_of, subtree_slot
from abut.core.atomics import atomic_min_int64
from abut.core.memory_access import load_relaxed_int64
from abut.core.pair_queue import MAX_COUNT, NO_KEY, pack_pair
from abut.operands.contact_queues import ContactQueues
from abut.operands.distance_queues import (
    FACE_MARGIN,
    DistanceQueues,
    box_limit,
    certainly_meet,
    clear_of,
    from_bits,
    gap_of,
    slack_of,
    to_bits,
)
from abut.operands.posed_mesh import load_face
from abut.operands.posed_pairs import WorkItems, pair_at, pair_stop, row_and_item, subtree_depth
from abut.traversal.distance.node_gaps import Slab, gap_along_slab, slab_along, slab_padding
from abut.traversal.overlap.node_pairs import pair_below

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(192)  # a tree is at most 30 + 31 deep, and each level of both leaves a pair


@wp.struct
class NearestPair:
    """The nearest faces of a walk so far."""

    bits: wp.int64  # of their distance
    key: wp.int64  # without a row; NO_KEY where there are none, or where faces meet
    direction: wp.vec3d  # from a to b


@wp.func
def nearest_limit(distance: wp.float64, tolerance: wp.float64):
    """The distance at which faces may still be the answer, or improve on it by the tolerance."""
    return wp.max(distance - tolerance, wp.float64(0.0))


@wp.func
def compare_faces(
    queues: ContactQueues,
    rank: wp.int32,
    face_a: wp.int32,
    face_b: wp.int32,
    a: wp.mat33d,
    b: wp.mat33d,
    gap: wp.float32,
    found: NearestPair,
):
    """The nearer of the pair found and two faces whose boxes are ``gap`` apart, squared.

    Faces that meet have bits of 0 and no key.
    """
    out = NearestPair()
    out.bits = found.bits
    out.key = found.key
    out.direction = found.direction
    met = wp.bool(False)
    if not (gap > wp.float32(0.0)):
        met = certainly_meet(queues, rank, face_a, face_b, a, b)
    if met:
        out.bits = wp.int64(0)
    else:
        near = gap_of(a, b)
        best = from_bits(found.bits)
        if near.distance <= best:
            key = pack_pair(0, face_a, face_b, queues.bits)
            out.bits = to_bits(near.distance)
            out.key = wp.where(near.distance < best, key, wp.min(found.key, key))
            out.direction = near.q - near.p
    return out


@wp.func
def push_sorted(stack: wp.array[wp.vec3i], low: wp.int32, held: wp.int32, pair: wp.vec3i):
    """Put a pair on the stack, below the nearer ones from ``low`` up."""
    gap = wp.cast(pair[2], wp.float32)
    at = wp.int32(held)
    while at > low and wp.cast(stack[wp.max(at, 1) - 1][2], wp.float32) < gap:
        stack[at] = stack[at - 1]
        at -= 1
    stack[at] = pair


@wp.func
def push_below(
    stack: wp.array[wp.vec3i],
    held: wp.int32,
    frame: RelativeFrame,
    slab: Slab,
    limit: wp.float32,
    tree_a: BvhView,
    i: wp.int32,
    a: Node,
    tree_b: BvhView,
    j: wp.int32,
    b: Node,
):
    """Open the larger of two nodes; pairs within a limit go on the stack, the nearest on top.

    Returns how many the stack holds then.
    """
    top = wp.int32(held)
    for side in range(2):
        at = pair_below(i, a, j, b, side)
        below_a = load_node(tree_a.nodes, at[0])
        below_b = load_node(tree_b.nodes, at[1])
        squared = gap_along_slab(frame, slab, limit, below_a, below_b)
        if not (squared > limit):
            push_sorted(stack, held, top, wp.vec3i(at[0], at[1], wp.cast(squared, wp.int32)))
            top += 1
    return top


@cache
def nearest_kernel_for(pairs_type: type) -> wp.Kernel:
    """The walk of a type of posed pairs."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def nearest_kernel(
        # in
        span: wp.vec3i,
        pairs: pairs_type,
        frames: wp.array[RelativeFrame],
        items: WorkItems,
        directions: wp.array[wp.vec3d],
        fields: wp.array[wp.int32],
        # out
        queues_out: DistanceQueues,
        distance_out: wp.array[wp.int64],
        key_out: wp.array[wp.int64],
    ):
        """Find the nearest faces of each (row, subtree of a), where they are as near as any.

        Walks of one row share a bound. Distances are written as bits; the key is NO_KEY where
        other walks have found nearer faces. Faces that meet end the walk. Rows of the far field
        are left out.
        """
        stack = wp.zeros(shape=(STACK,), dtype=wp.vec3i)
        stop = wp.min(pair_stop(pairs, MAX_COUNT / items.each) * items.each, span[1])
        for work in range(span[0] + wp.tid(), stop, span[2]):
            at = row_and_item(items, work)
            rank = at[0]
            if fields.shape[0] > 0:
                if fields[rank] != 0:
                    if items.each > 1:
                        key_out[work] = NO_KEY
                    continue
            pair = pair_at(pairs, rank)
            frame = frames[rank]
            slack = slack_of(pair)
            tolerance = queues_out.tolerance
            padding = slab_padding(frame, pair.tree_a, pair.tree_b)
            found = NearestPair()
            found.bits = load_relaxed_int64(queues_out.bound, rank)
            found.key = NO_KEY
            found.direction = directions[rank]
            wanted = nearest_limit(from_bits(found.bits), tolerance)
            limit = box_limit(wanted, slack, frame.stretch)
            slab = slab_along(frame, pair, found.direction, padding)
            depth = subtree_depth(items, pair.a.faces.shape[0])
            start = wp.int32(-1)
            if at[1] < 1 << depth:
                start = subtree_slot(pair.tree_a, at[1], depth)
            stack[0] = wp.vec3i(start, root_of(pair.tree_b), 0)
            held = wp.int32(start >= 0)
            while held > 0:
                held -= 1
                i = stack[held][0]
                j = stack[held][1]
                gap = wp.cast(stack[held][2], wp.float32)
                known = load_relaxed_int64(queues_out.bound, rank)
                if known < found.bits:  # another walk has found nearer faces
                    found.bits = known
                    found.key = NO_KEY
                    wanted = nearest_limit(from_bits(known), tolerance)
                    limit = box_limit(wanted, slack, frame.stretch)
                if gap > limit:
                    continue
                a = load_node(pair.tree_a.nodes, i)
                b = load_node(pair.tree_b.nodes, j)
                if is_leaf(a) and is_leaf(b):
                    p = load_face(pair.a, face_of(a), pair.pose)
                    q = load_face(pair.b, face_of(b), pair.pose)
                    reach = from_bits(found.bits) * FACE_MARGIN + slack
                    if clear_of(p, q, found.direction, reach):
                        continue
                    found = compare_faces(
                        queues_out.contacts, rank, face_of(a), face_of(b), p, q, gap, found
                    )
                    if found.bits < known:
                        atomic_min_int64(queues_out.bound, rank, found.bits)
                        wanted = nearest_limit(from_bits(found.bits), tolerance)
                        limit = box_limit(wanted, slack, frame.stretch)
                        slab = slab_along(frame, pair, found.direction, padding)
                else:
                    held = push_below(
                        stack, held, frame, slab, limit, pair.tree_a, i, a, pair.tree_b, j, b
                    )
                if found.bits == wp.int64(0):  # they meet
                    held = 0
            distance_out[work] = found.bits
            key_out[work] = found.key

    return nearest_kernel


@wp.kernel
def choose_kernel(
    # in
    span: wp.vec3i,
    bound: wp.array[wp.int64],
    distances: wp.array[wp.int64],
    keys: wp.array[wp.int64],
    each: wp.int32,
    # out
    key_out: wp.array[wp.int64],
):
    """The lowest key of each row among the pairs at its bound, of ``each`` walks a row."""
    for work in range(span[0] + wp.tid(), wp.min(span[1], keys.shape[0]), span[2]):
        row = work / each
        if keys[work] != NO_KEY and distances[work] == bound[row]:
            atomic_min_int64(key_out, row, keys[work])
