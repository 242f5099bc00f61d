"""Pairs of faces whose boxes come as near as a limit, without a stack or with one.

As for contact (two_trees, self_tree): walking both trees at once is the least work, for the CPU and
for batches of poses; listing what is near each leaf gives the most threads, for CUDA.
"""

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import (
    BvhView,
    Node,
    escape_of,
    face_of,
    is_leaf,
    link_of,
    load_node,
    next_slot,
    root_of,
    subtree_slot,
)
from abut.core.atomics import atomic_min_int64
from abut.core.memory_access import load_relaxed_int64
from abut.core.pair_queue import PairQueue, pack_pair, queue_stop, unpack_pair
from abut.operands.contact_operands import Search
from abut.operands.distance_operands import (
    FACE_MARGIN,
    Approach,
    box_limit,
    from_bits,
    gap_of,
    test_near,
    to_bits,
)
from abut.operands.posed_mesh import load_face
from abut.traversal.nearest import clear_of, meets
from abut.traversal.node_gaps import apart, centre_of
from abut.traversal.overlap.found_faces import LISTED, list_found, note_found
from abut.traversal.overlap.node_pairs import pair_below

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(128)


@wp.func
def push_near(
    stack: wp.array[wp.vec2i],
    held: wp.int32,
    frame: RelativeFrame,
    limit: wp.float32,
    tree_a: BvhView,
    i: wp.int32,
    a: Node,
    tree_b: BvhView,
    j: wp.int32,
    b: Node,
):
    """Open the larger of two nodes; what is within a limit goes on the stack. Returns its size."""
    top = held
    for side in range(2):
        stack[top] = pair_below(i, a, j, b, side)
        lower_a = load_node(tree_a.nodes, stack[top][0])
        lower_b = load_node(tree_b.nodes, stack[top][1])
        top += wp.int32(not (apart(frame, lower_a, lower_b) > limit))
    return top


@wp.kernel
def near_kernel(
    # in
    span: wp.vec3i,
    search: Search,
    tree_a: BvhView,
    tree_b: BvhView,
    frames: wp.array[RelativeFrame],
    depth: wp.int32,
    distance: wp.float64,
    slack: wp.float64,
    # out
    near_out: PairQueue,
):
    """Walk both trees for each (pose, subtree of a) and test all faces whose boxes are near."""
    stack = wp.zeros(shape=(STACK,), dtype=wp.vec2i)
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work >> depth
        frame = frames[pose]
        limit = box_limit(distance, slack, frame.stretch)
        start = subtree_slot(tree_a, work & ((1 << depth) - 1), depth)
        stack[0] = wp.vec2i(start, root_of(tree_b))
        held = wp.int32(start >= 0)
        while held > 0:
            held -= 1
            i = stack[held][0]
            j = stack[held][1]
            a = load_node(tree_a.nodes, i)
            b = load_node(tree_b.nodes, j)
            if is_leaf(a) and is_leaf(b):
                test_near(search, pose, face_of(a), face_of(b), distance, near_out)
            else:
                held = push_near(stack, held, frame, limit, tree_a, i, a, tree_b, j, b)


@wp.kernel
def list_near_kernel(
    # in
    span: wp.vec3i,
    query: Approach,
    tree_a: BvhView,
    tree_b: BvhView,
    frames: wp.array[RelativeFrame],
    leaf_count: wp.int32,
    # out
    candidates_out: PairQueue,
):
    """List the leaves of b near each (pose, leaf of a), without a stack."""
    bits = query.search.bits
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / leaf_count
        leaf = load_node(tree_a.nodes, tree_a.leaf_slots[work - pose * leaf_count])
        face = face_of(leaf)
        frame = frames[pose]
        limit = box_limit(from_bits(query.bound[pose]), query.slack, frame.stretch)
        found = wp.zeros(shape=(LISTED,), dtype=wp.int32)
        count = wp.int32(0)
        slot = root_of(tree_b)
        while slot >= 0:
            node = load_node(tree_b.nodes, slot)
            near = not (apart(frame, leaf, node) > limit)
            slot = next_slot(node, near)
            if near and is_leaf(node):
                count = note_found(
                    face_of(node), pose, face, found, count, bits, False, candidates_out
                )
        list_found(pose, face, found, count, bits, False, candidates_out)


@wp.kernel
def list_self_near_kernel(
    # in
    span: wp.vec3i,
    query: Approach,
    tree: BvhView,
    frames: wp.array[RelativeFrame],
    # out
    candidates_out: PairQueue,
):
    """List the later leaves near each leaf of one tree, without a stack."""
    bits = query.search.bits
    limit = box_limit(from_bits(query.bound[0]), query.slack, frames[0].stretch)
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        leaf = load_node(tree.nodes, tree.leaf_slots[k])
        face = face_of(leaf)
        found = wp.zeros(shape=(LISTED,), dtype=wp.int32)
        count = wp.int32(0)
        slot = escape_of(leaf)
        while slot >= 0:
            node = load_node(tree.nodes, slot)
            near = not (apart(frames[0], leaf, node) > limit)
            slot = next_slot(node, near)
            if near and is_leaf(node):
                count = note_found(
                    face_of(node), 0, face, found, count, bits, False, candidates_out
                )
        list_found(0, face, found, count, bits, False, candidates_out)


@wp.kernel
def self_near_kernel(
    # in
    span: wp.vec3i,
    search: Search,
    tree: BvhView,
    frames: wp.array[RelativeFrame],
    distance: wp.float64,
    slack: wp.float64,
    # out
    near_out: PairQueue,
):
    """Test each leaf against the later ones near it on the spot."""
    limit = box_limit(distance, slack, frames[0].stretch)
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        leaf = load_node(tree.nodes, tree.leaf_slots[k])
        slot = escape_of(leaf)
        while slot >= 0:
            node = load_node(tree.nodes, slot)
            near = not (apart(frames[0], leaf, node) > limit)
            slot = next_slot(node, near)
            if near and is_leaf(node):
                test_near(search, 0, face_of(leaf), face_of(node), distance, near_out)


@wp.func
def apart_centres(frame: RelativeFrame, a: Node, b: Node):
    """Square of the distance of the centres of two boxes."""
    way = frame.rows * centre_of(b) + frame.shift - centre_of(a)
    return wp.dot(way, way)


@wp.kernel
def sample_kernel(
    # in
    span: wp.vec3i,
    query: Approach,
    tree_a: BvhView,
    tree_b: BvhView,
    frames: wp.array[RelativeFrame],
    sample_count: wp.int32,
):
    """Bound the distance by leaves of a and whatever leaf of b each comes to, always downwards."""
    for work in range(span[0] + wp.tid(), span[1], span[2]):
        pose = work / sample_count
        sample = wp.int64(work - pose * sample_count)
        leaves = wp.int64(tree_a.leaf_slots.shape[0])
        leaf = load_node(
            tree_a.nodes, tree_a.leaf_slots[wp.int32(sample * leaves / wp.int64(sample_count))]
        )
        frame = frames[pose]
        node = load_node(tree_b.nodes, root_of(tree_b))
        while not is_leaf(node):
            left = load_node(tree_b.nodes, 2 * link_of(node))
            right = load_node(tree_b.nodes, 2 * link_of(node) + 1)
            gap_left = apart(frame, leaf, left)
            gap_right = apart(frame, leaf, right)
            if gap_left == gap_right:  # most often 0: the leaf is inside both
                gap_left = apart_centres(frame, leaf, left)
                gap_right = apart_centres(frame, leaf, right)
            node = right
            if gap_left <= gap_right:
                node = left
        gap = apart(frame, leaf, node)
        known = from_bits(load_relaxed_int64(query.bound, pose))
        if not (gap > box_limit(known, query.slack, frame.stretch)):
            corners_a = load_face(query.search.a, face_of(leaf), pose)
            near = gap_of(corners_a, load_face(query.search.b, face_of(node), pose))
            atomic_min_int64(query.bound, pose, to_bits(near.distance))


@wp.kernel
def compare_kernel(
    # in
    span: wp.vec3i,
    query: Approach,
    candidates: PairQueue,
):
    """Lower the bound of each pose to the smallest distance of the candidates; 0 if any meet."""
    search = query.search
    for i in range(span[0] + wp.tid(), queue_stop(candidates, span[1]), span[2]):
        row = unpack_pair(candidates.keys[i], search.bits)
        a = load_face(search.a, row[1], row[0])
        b = load_face(search.b, row[2], row[0])
        best = from_bits(load_relaxed_int64(query.bound, row[0]))
        if not clear_of(a, b, wp.vec3d(), best * FACE_MARGIN + query.slack):
            if meets(search, row[0], row[1], row[2], a, b):
                atomic_min_int64(query.bound, row[0], wp.int64(0))
            else:
                near = gap_of(a, b)
                if near.distance < best:
                    atomic_min_int64(query.bound, row[0], to_bits(near.distance))


@wp.kernel
def choose_kernel(
    # in
    span: wp.vec3i,
    query: Approach,
    candidates: PairQueue,
    # out
    key_out: wp.array[wp.int64],
):
    """The lowest key of each pose among the candidates at its smallest distance."""
    search = query.search
    for i in range(span[0] + wp.tid(), queue_stop(candidates, span[1]), span[2]):
        row = unpack_pair(candidates.keys[i], search.bits)
        a = load_face(search.a, row[1], row[0])
        b = load_face(search.b, row[2], row[0])
        least = query.bound[row[0]]
        if not clear_of(a, b, wp.vec3d(), from_bits(least) * FACE_MARGIN + query.slack):
            near = gap_of(a, b)
            if to_bits(near.distance) == least:
                atomic_min_int64(key_out, row[0], pack_pair(0, row[1], row[2], search.bits))
