"""The nearest faces of two meshes, by walking both trees depth first.

A walk starts with a good guess (beam), which bounds the distance. After that the order of the walk
hardly matters, and a pair of nodes is opened only where the answer may lie. Faces are
compared last, and most pairs of them are told apart by their extent along the line between
their centres, or along the line of the best pair so far, which takes a tenth of the time.

What is found does not depend on the order: of all pairs at the smallest distance, as computed, the
one with the lowest key. Measured in design/distance.md.
"""

from functools import cache

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import (
    BvhView,
    descendant,
    face_of,
    is_leaf,
    load_node,
    root_of,
    subtree_slot,
)
from abut.core.atomics import atomic_min_int64
from abut.core.memory_access import load_relaxed_int64
from abut.core.pair_queue import NO_KEY, pack_pair, push_pair
from abut.geometry.common_corners import SHARED_NONE
from abut.geometry.intersect_tri_tri import HIT, MISS, classify_tri_tri
from abut.operands.contact_operands import Search
from abut.operands.distance_operands import (
    FACE_MARGIN,
    Approach,
    between_centres,
    box_limit,
    clear_along,
    from_bits,
    gap_of,
    to_bits,
)
from abut.operands.posed_mesh import load_face, pose_of
from abut.traversal.node_gaps import Slab, apart_within, pad_of, slab_along
from abut.traversal.overlap.node_pairs import opens_first

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(192)  # a tree is at most 30 + 31 deep, and two levels leave three pairs behind


@wp.func
def clear_of(a: wp.mat33d, b: wp.mat33d, way: wp.vec3d, reach: wp.float64):
    """Are two faces more than ``reach`` apart along ``way``, or between their centres?"""
    return clear_along(a, b, between_centres(a, b), reach) or clear_along(a, b, way, reach)


@wp.func
def meets(
    search: Search,
    pose: wp.int32,
    face_a: wp.int32,
    face_b: wp.int32,
    a: wp.mat33d,
    b: wp.mat33d,
):
    """Do two faces meet for certain? Undecided pairs go to their queue."""
    verdict = classify_tri_tri(a, b, SHARED_NONE, wp.vec3i(), wp.vec3i())
    if verdict != HIT and verdict != MISS:
        push_pair(search.undecided, pack_pair(pose, face_a, face_b, search.bits))
    return verdict == HIT


@wp.struct
class Found:
    """The nearest faces of a walk: bits of their distance, their key, the way between them."""

    bits: wp.int64
    key: wp.int64
    way: wp.vec3d


@wp.func
def limit_of(query: Approach, frame: RelativeFrame, bits: wp.int64):
    """The largest squared bound of two nodes that may hold the answer."""
    wanted = wp.max(from_bits(bits) - query.tolerance, wp.float64(0.0))
    return box_limit(wanted, query.slack, frame.stretch)


@wp.func
def compare_faces(
    search: Search,
    pose: wp.int32,
    face_a: wp.int32,
    face_b: wp.int32,
    a: wp.mat33d,
    b: wp.mat33d,
    gap: wp.float32,
    found: Found,
):
    """The nearest of those found and two faces whose boxes are ``gap`` apart, squared.

    Faces that meet have no key: bits of 0 say all.
    """
    out = Found()
    out.bits = found.bits
    out.key = found.key
    out.way = found.way
    met = wp.bool(False)
    if not (gap > wp.float32(0.0)):
        met = meets(search, pose, face_a, face_b, a, b)
    if met:
        out.bits = wp.int64(0)
    else:
        near = gap_of(a, b)
        best = from_bits(found.bits)
        if near.distance <= best:
            key = pack_pair(0, face_a, face_b, search.bits)
            out.bits = to_bits(near.distance)
            out.key = wp.where(near.distance < best, key, wp.min(found.key, key))
            out.way = near.q - near.p
    return out


@wp.func
def push_sorted(stack: wp.array[wp.vec3i], low: wp.int32, held: wp.int32, pair: wp.vec3i):
    """Put a pair on the stack, below those from ``low`` up that are nearer."""
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
    tree_b: BvhView,
    j: wp.int32,
    in_a: wp.bool,
    levels: wp.int32,
):
    """Open one of two nodes so many levels down; pairs within a limit go on the stack.

    The nearest comes to lie on top. Returns how many the stack holds then.
    """
    top = wp.int32(held)
    k = wp.int32(0)
    while k < 1 << levels:  # a loop that stays one
        below = wp.int32(-1)
        if in_a:
            below = descendant(tree_a.nodes, i, k, levels)
        else:
            below = descendant(tree_b.nodes, j, k, levels)
        if below >= 0:
            m = wp.where(in_a, below, i)
            n = wp.where(in_a, j, below)
            squared = apart_within(frame, slab, limit, tree_a, m, tree_b, n)
            if not (squared > limit):
                push_sorted(stack, held, top, wp.vec3i(m, n, wp.cast(squared, wp.int32)))
                top += 1
        k += 1
    return top


@cache
def nearest_walk(levels: int) -> wp.Kernel:
    """The walk that opens a node ``levels`` levels down at once, two at most: trees as wide."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def nearest_kernel(
        # in
        span: wp.vec3i,
        query: Approach,
        tree_a: BvhView,
        tree_b: BvhView,
        frames: wp.array[RelativeFrame],
        ways: wp.array[wp.vec3d],
        depth: wp.int32,
        # out
        distance_out: wp.array[wp.int64],
        key_out: wp.array[wp.int64],
    ):
        """Find the nearest faces of each (pose, subtree of a), where they are as near as any.

        Threads of one pose share a bound. Distances are written as bits; the key is NO_KEY where
        other threads have found nearer faces. Faces that meet end the walk.
        """
        stack = wp.zeros(shape=(STACK,), dtype=wp.vec3i)
        for work in range(span[0] + wp.tid(), span[1], span[2]):
            pose = work >> depth
            frame = frames[pose]
            pad = pad_of(frame, tree_a, tree_b)
            found = Found()
            found.bits = load_relaxed_int64(query.bound, pose)
            found.key = NO_KEY
            found.way = ways[pose]
            limit = limit_of(query, frame, found.bits)
            slab = slab_along(frame, found.way, pose_of(query.search.a, pose), pad)
            start = subtree_slot(tree_a, work & ((1 << depth) - 1), depth)
            stack[0] = wp.vec3i(start, root_of(tree_b), 0)
            held = wp.int32(start >= 0)
            while held > 0:
                held -= 1
                i = stack[held][0]
                j = stack[held][1]
                gap = wp.cast(stack[held][2], wp.float32)
                known = load_relaxed_int64(query.bound, pose)
                if known < found.bits:  # another thread has found nearer faces
                    found.bits = known
                    found.key = NO_KEY
                    limit = limit_of(query, frame, known)
                if gap > limit:
                    continue
                a = load_node(tree_a.nodes, i)
                b = load_node(tree_b.nodes, j)
                if is_leaf(a) and is_leaf(b):
                    p = load_face(query.search.a, face_of(a), pose)
                    q = load_face(query.search.b, face_of(b), pose)
                    if clear_of(p, q, found.way, from_bits(found.bits) * FACE_MARGIN + query.slack):
                        continue
                    found = compare_faces(
                        query.search, pose, face_of(a), face_of(b), p, q, gap, found
                    )
                    if found.bits < known:
                        atomic_min_int64(query.bound, pose, found.bits)
                        limit = limit_of(query, frame, found.bits)
                        slab = slab_along(frame, found.way, pose_of(query.search.a, pose), pad)
                else:
                    in_a = opens_first(a, b)
                    down = wp.static(levels)
                    held = push_below(
                        stack, held, frame, slab, limit, tree_a, i, tree_b, j, in_a, down
                    )
                if found.bits == wp.int64(0):  # they meet
                    held = 0
            distance_out[work] = found.bits
            key_out[work] = found.key

    return nearest_kernel


@wp.kernel
def elect_kernel(
    # in
    span: wp.vec3i,
    bound: wp.array[wp.int64],
    distances: wp.array[wp.int64],
    keys: wp.array[wp.int64],
    per_pose: wp.int32,
    # out
    key_out: wp.array[wp.int64],
):
    """The lowest key of each pose among those at its smallest distance."""
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / per_pose
        if keys[work] != NO_KEY and distances[work] == bound[pose]:
            atomic_min_int64(key_out, pose, keys[work])
