"""Walk two (sub)trees at once and test faces where leaves meet."""

import warp as wp

from abut.bounds.relative import Relative, overlap_across
from abut.hierarchy.tree import Node, face_of, is_leaf, link_of, load_node
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
    """Test the pairs of faces below two slots, depth first, the longer node opened first.

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
        a = load_node(nodes_a, i)
        b = load_node(nodes_b, j)
        overlap = overlap_nodes(frame, a, b)
        while overlap:
            if is_leaf(a) and is_leaf(b):
                overlap = False
                if test_faces(search, pose, item, face_of(a), face_of(b)):
                    held = 0
            elif is_leaf(b) or (not is_leaf(a) and longest_side(a) > longest_side(b)):
                i = 2 * link_of(a)
                left = load_node(nodes_a, i)
                right = load_node(nodes_a, i + 1)
                go_left = overlap_nodes(frame, left, b)
                go_right = overlap_nodes(frame, right, b)
                if go_left and go_right:
                    stack[held] = wp.vec2i(i + 1, j)
                    held += 1
                a = left
                if not go_left:
                    i = i + 1
                    a = right
                overlap = go_left or go_right
            else:
                j = 2 * link_of(b)
                left = load_node(nodes_b, j)
                right = load_node(nodes_b, j + 1)
                go_left = overlap_nodes(frame, a, left)
                go_right = overlap_nodes(frame, a, right)
                if go_left and go_right:
                    stack[held] = wp.vec2i(i, j + 1)
                    held += 1
                b = left
                if not go_left:
                    j = j + 1
                    b = right
                overlap = go_left or go_right
