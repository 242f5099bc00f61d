"""Walk two (sub)trees at once and test faces where leaves meet."""

import warp as wp

from abut.atomics import lower_to
from abut.bounds.relative import Relative, overlap_across
from abut.faces import Faces, load_face
from abut.geometry.common_corners import STRANGERS
from abut.geometry.intersect_tri_tri import HIT, MISS, classify_tri_tri
from abut.hierarchy.tree import Node, first_of, is_leaf, load_node, rope_of
from abut.pairs import PairQueue, pack_pair, push_pair

STACK = wp.constant(128)  # a tree is at most 30 + 31 deep, and each level leaves one pair behind


@wp.struct
class Search:
    """What a walk needs to know beside the two trees."""

    a: Faces
    b: Faces
    relation: wp.int32
    bits: wp.vec2i
    hits: PairQueue
    undecided: PairQueue
    best: wp.array[wp.int64]  # smallest (item, a, b) per pose; empty: report every pair


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
def test_faces(search: Search, pose: wp.int32, item: wp.int32, face_a: wp.int32, face_b: wp.int32):
    """Test two faces and put them where they belong; True ends the walk."""
    tri_a = load_face(search.a, face_a, pose)
    tri_b = load_face(search.b, face_b, pose)
    index_a = search.a.faces[face_a]
    index_b = search.b.faces[face_b]
    verdict = classify_tri_tri(tri_a, tri_b, search.relation, index_a, index_b)
    if verdict == MISS:
        return False
    low = face_a
    high = face_b
    if search.relation != STRANGERS:
        low = wp.min(face_a, face_b)
        high = wp.max(face_a, face_b)
    if verdict != HIT:
        push_pair(search.undecided, pack_pair(pose, low, high, search.bits))
        return False
    if search.best.shape[0] == 0:
        push_pair(search.hits, pack_pair(pose, low, high, search.bits))
        return False
    lower_to(search.best, pose, pack_pair(item, low, high, search.bits))
    return True


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
