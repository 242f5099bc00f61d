"""Pick, from all pairs that meet, the pair that ``first_kernel`` would find first.

One thread that descends is slow on CUDA, and to list everything is fast. The path from the roots
to a pair, written as the order in which each step visits its children, sorts pairs as a descent
comes upon them; so the pair with the lowest path is the answer.
"""

import warp as wp

from abut.bounds.relative_frame import RelativeFrame
from abut.bvh.layout import BvhView, is_leaf, link_of, load_node, root_of
from abut.core.atomics import atomic_min_int64
from abut.core.pair_queue import PairQueue, queue_stop, unpack_pair
from abut.traversal.overlap.node_pairs import farthest_first, open_pair

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

LONGEST_PATH = wp.constant(31)  # steps, two bits each
TOO_LONG = wp.constant(wp.int64(-1))


@wp.func
def side_of(split: wp.int32, position: wp.int32):
    """Index (0 or 1) of the child of an inner node that holds a position on the curve."""
    return wp.int32(position > split)


@wp.func
def path_of(
    frame: RelativeFrame,
    tree_a: BvhView,
    position_a: wp.int32,
    tree_b: BvhView,
    position_b: wp.int32,
):
    """Path of a pair of leaves from the roots, left-aligned; TOO_LONG beyond LONGEST_PATH."""
    i = root_of(tree_a)
    a = load_node(tree_a.nodes, i)
    j = root_of(tree_b)
    b = load_node(tree_b.nodes, j)
    path = wp.int64(0)
    steps = wp.int32(0)
    while steps < LONGEST_PATH and not (is_leaf(a) and is_leaf(b)):
        pairs = open_pair(frame, tree_a, i, a, tree_b, j, b)
        side_a = wp.where(pairs.i == i, 0, side_of(link_of(a), position_a))
        side_b = wp.where(pairs.j == j, 0, side_of(link_of(b), position_b))
        gaps = farthest_first(pairs.gaps)
        rank = wp.int32(0)
        for k in range(4):
            if (wp.cast(gaps[k], wp.int32) & 3) == 2 * side_a + side_b:
                rank = 3 - k
        path = (path << wp.int64(2)) | wp.int64(rank)
        steps += 1
        i = pairs.i + side_a
        j = pairs.j + side_b
        a = load_node(tree_a.nodes, i)
        b = load_node(tree_b.nodes, j)
    if not (is_leaf(a) and is_leaf(b)):
        return TOO_LONG
    return path << wp.int64(2 * (LONGEST_PATH - steps))


@wp.kernel
def path_kernel(
    # in
    span: wp.vec3i,
    tree_a: BvhView,
    tree_b: BvhView,
    positions_a: wp.array[wp.int32],
    positions_b: wp.array[wp.int32],
    frames: wp.array[RelativeFrame],
    bits: wp.vec2i,
    certain: PairQueue,
    # out
    paths_out: wp.array[wp.int64],
    lowest_out: wp.array[wp.int64],
):
    """Write the path of every pair and the lowest of each row, TOO_LONG if any is."""
    for n in range(span[0] + wp.tid(), queue_stop(certain, span[1]), span[2]):
        row = unpack_pair(certain.keys[n], bits)
        position_a = positions_a[row[1]]
        position_b = positions_b[row[2]]
        path = path_of(frames[row[0]], tree_a, position_a, tree_b, position_b)
        paths_out[n] = path
        atomic_min_int64(lowest_out, row[0], path)


@wp.kernel
def pick_kernel(
    # in
    span: wp.vec3i,
    bits: wp.vec2i,
    certain: PairQueue,
    paths: wp.array[wp.int64],
    lowest: wp.array[wp.int64],
    # out
    best_out: wp.array[wp.int64],
):
    """Write the pair with the lowest path of each row; TOO_LONG where a path was."""
    for n in range(span[0] + wp.tid(), queue_stop(certain, span[1]), span[2]):
        key = certain.keys[n]
        pose = unpack_pair(key, bits)[0]
        if lowest[pose] == TOO_LONG:
            best_out[pose] = TOO_LONG
        elif paths[n] == lowest[pose]:
            best_out[pose] = key
