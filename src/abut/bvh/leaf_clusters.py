"""Twigs: the largest subtrees of at most TWIG leaves, which walk and are met as one.

A walk in depth-first order knows how many leaves lie below a node: escapes always lead to right
children, which begin after their parent's split, and the escape of a node tells where it ends.
"""

import warp as wp

from abut.bvh.layout import Bvh, BvhView, Node, escape_of, load_node, root_of
from abut.core.launch import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CLUSTER_SIZE = wp.constant(4)


@wp.func
def first_after(slot: wp.int32):
    """First leaf, along the curve, of a right child."""
    return (slot >> 1) + 1


@wp.func
def end_of(tree: BvhView, node: Node):
    """Where the leaves below a node end."""
    escape = escape_of(node)
    return wp.where(escape < 0, tree.leaf_slots.shape[0], (escape + 1) >> 1)


@wp.func
def begin_of(tree: BvhView, slot: wp.int32):
    """First leaf of any node: that of the nearest right child above."""
    above = wp.int32(slot)
    while above != root_of(tree) and above % 2 == 0:
        above = tree.split_slots[above >> 1]
    return wp.where(above == root_of(tree), 0, first_after(above))


@wp.func
def cluster_code(first: wp.int32, size: wp.int32):
    """First leaf and number of leaves of a twig in one integer."""
    return first * CLUSTER_SIZE + size - 1


@wp.func
def first_of(code: wp.int32):
    """First leaf of a twig."""
    return code / CLUSTER_SIZE


@wp.func
def size_of(code: wp.int32):
    """Number of leaves of a twig."""
    return code % CLUSTER_SIZE + 1


@wp.func
def code_of(tree: BvhView, slot: wp.int32, node: Node):
    """The code of a twig's node."""
    first = begin_of(tree, slot)
    return cluster_code(first, end_of(tree, node) - first)


@wp.func
def leaves_below(tree: BvhView, slot: wp.int32):
    """Number of leaves below a slot."""
    return end_of(tree, load_node(tree.nodes, slot)) - begin_of(tree, slot)


@wp.kernel
def mark_kernel(
    # in
    span: wp.vec3i,
    tree: BvhView,
    # out
    slot_out: wp.array[wp.int32],
    marks_out: wp.array[wp.int32],
):
    """At its first leaf, mark every subtree that is a twig while its parent is none."""
    for slot in range(span[0] + wp.tid(), span[1], span[2]):
        if leaves_below(tree, slot) <= CLUSTER_SIZE:
            large = slot == root_of(tree)
            if not large:
                large = leaves_below(tree, tree.split_slots[slot >> 1]) > CLUSTER_SIZE
            if large:
                slot_out[begin_of(tree, slot)] = slot
                marks_out[begin_of(tree, slot)] = 1


@wp.kernel
def gather_kernel(
    # in
    span: wp.vec3i,
    slots: wp.array[wp.int32],
    marks: wp.array[wp.int32],
    places: wp.array[wp.int32],
    # out
    twigs_out: wp.array[wp.int32],
):
    """Slots of twigs, along the curve."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        if marks[k] == 1:
            twigs_out[places[k] - 1] = slots[k]


def leaf_clusters_of(tree: Bvh) -> wp.array:
    """Slots of all twigs, in the order of the curve. Refits leave them as they are."""
    if tree.twigs is None:
        device, count = tree.nodes.device, tree.face_count
        slots, places = (wp.empty(count, dtype=wp.int32, device=device) for _ in range(2))
        marks = wp.zeros(count, dtype=wp.int32, device=device)
        launch(mark_kernel, 2 * count - 1, [tree.view(), slots, marks], device)
        wp.utils.array_scan(marks, places, inclusive=True)
        tree.twigs = wp.empty(int(places[count - 1 :].numpy()[0]), dtype=wp.int32, device=device)
        launch(gather_kernel, count, [slots, marks, places, tree.twigs], device)
    return tree.twigs
