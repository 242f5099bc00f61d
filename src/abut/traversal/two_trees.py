"""Pairs of faces of two meshes whose boxes overlap.

Two ways, chosen by measurement (design/traversal.md): descend walks both trees at once and tests
faces on the spot, the least work, for the CPU and for batches of poses; list walks b's tree for
every leaf of a and leaves the tests to a later launch, the most parallel, for one query on CUDA.
"""

from functools import cache
from typing import NamedTuple

import warp as wp

from abut.atomics import reserve
from abut.bounds.obb import overlap_obb, unpack_obb
from abut.bounds.relative import (
    Relative,
    boundless_frame,
    shifted_frame,
    turned_frame,
)
from abut.bounds.rss import distance_rss, unpack_rss
from abut.bounds.separation_across import overlap_across, separations_across
from abut.faces import Faces, pose_of
from abut.hierarchy.tree import (
    Node,
    TreeView,
    escape_of,
    face_of,
    half_area,
    is_leaf,
    link_of,
    load_node,
    reach_of,
    root_of,
    subtree,
)
from abut.loads import load_wide
from abut.pairs import PairQueue, pack_pair, store_pair
from abut.search import Search, test_faces
from abut.traversal.dop_frames import DopFrames, overlap_dops

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

STACK = wp.constant(192)  # a tree is at most 61 levels deep, and each leaves three pairs behind
LARGER = wp.constant(wp.float32(4.0))  # times the surface, for one node to be opened alone
APART = wp.constant(wp.float32(3.0e38))
SMALLEST = wp.constant(wp.float32(1.0e-38))  # a gap, whatever its lowest bits
NO_KEY = wp.constant(wp.int64(2**63 - 1))
LISTED = wp.constant(16)  # leaves gathered before room is asked for


@wp.kernel
def relative_kernel(
    # in
    span: wp.vec3i,
    a: Faces,
    b: Faces,
    tree_a: TreeView,
    tree_b: TreeView,
    # out
    relative_out: wp.array[Relative],
):
    """How b's frame sits in a's, for each pose."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        reach_a = reach_of(load_node(tree_a.nodes, root_of(tree_a)))
        reach_b = reach_of(load_node(tree_b.nodes, root_of(tree_b)))
        if a.pose_count == 0 and b.pose_count == 0:
            relative_out[i] = shifted_frame(tree_a.origin, tree_b.origin, reach_b)
        else:
            relative_out[i] = turned_frame(
                pose_of(a, i), pose_of(b, i), tree_a.origin, tree_b.origin, reach_a, reach_b
            )


@wp.kernel
def boundless_kernel(
    # in
    span: wp.vec3i,
    # out
    relative_out: wp.array[Relative],
):
    """Frames in which boxes decide nothing."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        relative_out[i] = boundless_frame()


@wp.func
def load_obb(tree: TreeView, slot: wp.int32):
    """Read an oriented box, 48 bytes."""
    return unpack_obb(
        load_wide(tree.obbs, 3 * slot),
        load_wide(tree.obbs, 3 * slot + 1),
        load_wide(tree.obbs, 3 * slot + 2),
    )


@wp.func
def load_rss(tree: TreeView, slot: wp.int32):
    """Read a swept sphere, 48 bytes."""
    return unpack_rss(
        load_wide(tree.swept, 3 * slot),
        load_wide(tree.swept, 3 * slot + 1),
        load_wide(tree.swept, 3 * slot + 2),
    )


@wp.func
def finer_overlap(
    frame: Relative,
    dops: DopFrames,
    pose: wp.int32,
    tree_a: TreeView,
    i: wp.int32,
    tree_b: TreeView,
    j: wp.int32,
):
    """May the tighter volumes of two slots overlap? True where the trees have boxes alone."""
    if tree_a.obbs.shape[0] > 0:
        return overlap_obb(frame, load_obb(tree_a, i), load_obb(tree_b, j))
    if tree_a.swept.shape[0] > 0:
        gap = distance_rss(frame, load_rss(tree_a, i), load_rss(tree_b, j))
        return not (gap > wp.float32(0.0))
    return overlap_dops(dops, pose, i, j)


@wp.func
def overlap(frame: Relative, a: Node, b: Node):
    """1 when the boxes of two nodes may overlap, else 0."""
    return wp.int32(overlap_across(frame, a.low, a.high, b.low, b.high))


@wp.func
def opens_first(a: Node, b: Node):
    """Whether of two nodes, not both leaves, the first is to be opened: the larger inner one."""
    return is_leaf(b) or (not is_leaf(a) and half_area(a) > half_area(b))


@wp.struct
class Opened:
    """Four pairs (i, j), (i, j + 1), (i + 1, j), (i + 1, j + 1) of nodes, and how far apart."""

    i: wp.int32
    j: wp.int32
    gaps: wp.vec4f  # APART for pairs that are not there


@wp.func
def open_pair(
    frame: Relative,
    tree_a: TreeView,
    i: wp.int32,
    a: Node,
    tree_b: TreeView,
    j: wp.int32,
    b: Node,
):
    """Open two nodes, not both leaves: the much larger one, or both; also if sizes are NaN."""
    size_a = half_area(a)
    size_b = half_area(b)
    open_a = wp.int32(not is_leaf(a) and (is_leaf(b) or not (LARGER * size_a < size_b)))
    open_b = wp.int32(not is_leaf(b) and (is_leaf(a) or not (LARGER * size_b < size_a)))
    out = Opened()
    out.i = wp.where(open_a == 1, 2 * link_of(a), i)
    out.j = wp.where(open_b == 1, 2 * link_of(b), j)
    a0 = load_node(tree_a.nodes, out.i)
    a1 = load_node(tree_a.nodes, out.i + open_a)
    b0 = load_node(tree_b.nodes, out.j)
    b1 = load_node(tree_b.nodes, out.j + open_b)
    gaps = separations_across(
        frame, a0.low, a0.high, a1.low, a1.high, b0.low, b0.high, b1.low, b1.high
    )
    out.gaps = wp.vec4f(
        gaps[0],
        wp.where(open_b == 1, gaps[1], APART),
        wp.where(open_a == 1, gaps[2], APART),
        wp.where(open_a + open_b == 2, gaps[3], APART),
    )
    return out


@wp.func_native("""
    float key[4];
    for (int k = 0; k < 4; ++k) {
        const float gap = gaps.c[k] > -3.0e38f ? (gaps.c[k] < 3.0e38f ? gaps.c[k] : 3.0e38f)
                                               : -3.0e38f;  // also where it is not a number
        int bits;
        memcpy(&bits, &gap, 4);
        bits = (bits & ~3) | k;
        memcpy(&key[k], &bits, 4);
    }
    const int steps[5][2] = {{0, 1}, {2, 3}, {0, 2}, {1, 3}, {1, 2}};
    for (int k = 0; k < 5; ++k) {
        const float x = key[steps[k][0]], y = key[steps[k][1]];
        key[steps[k][0]] = x > y ? x : y;
        key[steps[k][1]] = x > y ? y : x;
    }
    return wp::vec_t<4, wp::float32>(key[0], key[1], key[2], key[3]);
""")
def farthest_first(gaps: wp.vec4f) -> wp.vec4f:
    """Gaps in descending order, each with its place in its two lowest bits."""
    ...


@wp.func
def start_of(frame: Relative, tree_a: TreeView, tree_b: TreeView, item: wp.int32, depth: wp.int32):
    """Slot of a's subtree ``item``; -1 where there is none or b is apart from it."""
    slot = subtree(tree_a, item, depth)
    if slot >= 0:
        root = load_node(tree_b.nodes, root_of(tree_b))
        if overlap(frame, load_node(tree_a.nodes, slot), root) == 0:
            slot = -1
    return slot


@wp.kernel
def forget_kernel(
    # in
    span: wp.vec3i,
    # out
    counts_out: wp.array[wp.int64],
    bests_out: wp.array[wp.int64],
):
    """Empty the queues of a search for first pairs, which then knows of none."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        bests_out[i] = NO_KEY
        if i == 0:
            for k in range(counts_out.shape[0]):
                counts_out[k] = wp.int64(0)


@wp.func
def list_found(
    pose: wp.int32,
    face: wp.int32,
    found: wp.array[wp.int32],
    count: wp.int32,
    bits: wp.vec2i,
    swapped: wp.bool,
    queue: PairQueue,
):
    """Put the pairs of a face of one mesh and those found of the other into a queue."""
    place = reserve(queue.count, count)
    for i in range(count):
        key = pack_pair(pose, face, found[i], bits)
        if swapped:
            key = pack_pair(pose, found[i], face, bits)
        store_pair(queue, place + wp.int64(i), key)


class Walks(NamedTuple):
    """Kernels that walk two trees."""

    descend: wp.Kernel
    first: wp.Kernel
    list: wp.Kernel


@cache
def walks(finer: bool) -> Walks:
    """The kernels for boxes alone, which have nothing else in registers, or for finer volumes."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def descend_kernel(
        # in
        span: wp.vec3i,
        search: Search,
        tree_a: TreeView,
        tree_b: TreeView,
        frames: wp.array[Relative],
        dops: DopFrames,
        depth: wp.int32,
    ):
        """Walk both trees for each (pose, subtree of a) and test all faces whose boxes overlap."""
        stack = wp.zeros(shape=(STACK,), dtype=wp.vec2i)
        for work in range(span[0] + wp.tid(), span[1], span[2]):
            pose = work >> depth
            frame = frames[pose]
            start = start_of(frame, tree_a, tree_b, work & ((1 << depth) - 1), depth)
            stack[0] = wp.vec2i(start, root_of(tree_b))
            held = wp.int32(start >= 0)
            while held > 0:
                held -= 1
                i = stack[held][0]
                j = stack[held][1]
                a = load_node(tree_a.nodes, i)
                b = load_node(tree_b.nodes, j)
                if wp.static(finer):
                    if not finer_overlap(frame, dops, pose, tree_a, i, tree_b, j):
                        continue
                if is_leaf(a) and is_leaf(b):
                    test_faces(search, pose, face_of(a), face_of(b))
                else:  # pairs go on the stack, and stay if they overlap
                    pairs = open_pair(frame, tree_a, i, a, tree_b, j, b)
                    for k in range(4):
                        stack[held] = wp.vec2i(pairs.i + (k >> 1), pairs.j + (k & 1))
                        held += wp.int32(not (pairs.gaps[k] > wp.float32(0.0)))

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def first_kernel(
        # in
        span: wp.vec3i,
        search: Search,
        tree_a: TreeView,
        tree_b: TreeView,
        frames: wp.array[Relative],
        dops: DopFrames,
    ):
        """Walk both trees for each pose until two faces meet.

        Of the pairs of children the one that overlaps most goes first.
        """
        stack = wp.zeros(shape=(STACK,), dtype=wp.vec2i)
        for pose in range(span[0] + wp.tid(), span[1], span[2]):
            frame = frames[pose]
            start = start_of(frame, tree_a, tree_b, 0, 0)
            stack[0] = wp.vec2i(start, root_of(tree_b))
            held = wp.int32(start >= 0)
            while held > 0:
                held -= 1
                i = stack[held][0]
                j = stack[held][1]
                a = load_node(tree_a.nodes, i)
                b = load_node(tree_b.nodes, j)
                if wp.static(finer):
                    if not finer_overlap(frame, dops, pose, tree_a, i, tree_b, j):
                        continue
                if is_leaf(a) and is_leaf(b):
                    if test_faces(search, pose, face_of(a), face_of(b)):
                        held = 0
                else:
                    pairs = open_pair(frame, tree_a, i, a, tree_b, j, b)
                    gaps = farthest_first(pairs.gaps)
                    for k in range(4):
                        place = wp.cast(gaps[k], wp.int32) & 3
                        stack[held] = wp.vec2i(pairs.i + (place >> 1), pairs.j + (place & 1))
                        held += wp.int32(not (gaps[k] > SMALLEST))

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def list_kernel(
        # in
        span: wp.vec3i,
        tree_a: TreeView,
        tree_b: TreeView,
        frames: wp.array[Relative],
        dops: DopFrames,
        leaf_count: wp.int32,
        bits: wp.vec2i,
        swapped: wp.bool,
        # out
        candidates_out: PairQueue,
    ):
        """Walk b's tree, without a stack, for each (pose, leaf of a); ``swapped``: keys (b, a)."""
        for work in range(span[0] + wp.tid(), span[1], span[2]):
            pose = work / leaf_count
            leaf_slot = tree_a.leaf_slots[work - pose * leaf_count]
            leaf = load_node(tree_a.nodes, leaf_slot)
            frame = frames[pose]
            found = wp.zeros(shape=(LISTED,), dtype=wp.int32)
            count = wp.int32(0)
            slot = root_of(tree_b)
            while slot >= 0:
                node = load_node(tree_b.nodes, slot)
                hit = overlap(frame, leaf, node)
                if wp.static(finer):
                    if hit == 1:
                        near = finer_overlap(frame, dops, pose, tree_a, leaf_slot, tree_b, slot)
                        hit = wp.int32(near)
                link = link_of(node)
                slot = wp.where(hit == 1 and link >= 0, 2 * link, escape_of(node))
                if hit == 1 and link < 0:
                    found[count] = -1 - link
                    count += 1
                    if count == LISTED:
                        list_found(pose, face_of(leaf), found, count, bits, swapped, candidates_out)
                        count = 0
            list_found(pose, face_of(leaf), found, count, bits, swapped, candidates_out)

    return Walks(descend_kernel, first_kernel, list_kernel)
