"""Walk two (sub)trees at once and test faces where leaves meet."""

import warp as wp

from abut.bounds.relative import Relative, overlap_across
from abut.hierarchy.tree import Node, first_of, is_leaf, load_node, rope_of
from abut.search import Search, test_faces

STACK = wp.constant(128)  # a tree is at most 30 + 31 deep, and each level leaves one pair behind


@wp.func
def overlap_nodes(frame: Relative, a: Node, b: Node):
    """May two nodes overlap?"""
    return overlap_across(frame, a.low, a.high, b.low, b.high)


@wp.func
def longest_side(node: Node):
    """Length of the longest side of a box."""
    side = node.high - node.low
    return wp.max(wp.max(side[0], side[1]), side[2])


@wp.func
def descend(
    search: Search,
    frame: Relative,
    nodes_a: wp.array[wp.vec4f],
    nodes_b: wp.array[wp.vec4f],
    start_a: wp.int32,
    start_b: wp.int32,
    pose: wp.int32,
    item: wp.int32,
):
    """Report the pairs of faces below two nodes, depth first, the longer node opened first.

    Guarantee:
        Conservative. Every pair of leaves whose boxes overlap is tested.
    """
    stack = wp.zeros(shape=(STACK,), dtype=wp.vec2i)
    stack[0] = wp.vec2i(start_a, start_b)
    held = wp.int32(1)
    item_shift = wp.int64(search.bits[0] + search.bits[1])
    while held > 0:
        if search.best.shape[0] > 0:
            if (search.best[pose] >> item_shift) < wp.int64(item):
                break  # an earlier item has an answer
        held -= 1
        i = stack[held][0]
        j = stack[held][1]
        node_a = load_node(nodes_a, i)
        node_b = load_node(nodes_b, j)
        overlap = overlap_nodes(frame, node_a, node_b)
        while overlap:
            if is_leaf(i) and is_leaf(j):
                overlap = False
                if test_faces(search, pose, item, first_of(node_a), first_of(node_b)):
                    held = 0
            elif is_leaf(j) or (not is_leaf(i) and longest_side(node_a) > longest_side(node_b)):
                left = load_node(nodes_a, first_of(node_a))
                right = load_node(nodes_a, rope_of(left))
                go_left = overlap_nodes(frame, left, node_b)
                go_right = overlap_nodes(frame, right, node_b)
                if go_left and go_right:
                    stack[held] = wp.vec2i(rope_of(left), j)
                    held += 1
                if go_left:
                    i = first_of(node_a)
                    node_a = left
                elif go_right:
                    i = rope_of(left)
                    node_a = right
                overlap = go_left or go_right
            else:
                left = load_node(nodes_b, first_of(node_b))
                right = load_node(nodes_b, rope_of(left))
                go_left = overlap_nodes(frame, node_a, left)
                go_right = overlap_nodes(frame, node_a, right)
                if go_left and go_right:
                    stack[held] = wp.vec2i(i, rope_of(left))
                    held += 1
                if go_left:
                    j = first_of(node_b)
                    node_b = left
                elif go_right:
                    j = rope_of(left)
                    node_b = right
                overlap = go_left or go_right
