"""Leaf clusters: maximal subtrees of at most CLUSTER_SIZE leaves, traversed and tested as a unit.

The range of leaves below a node follows from its slot and its escape: escapes always lead to right
children, which begin after their parent's split.
"""

import warp as wp

from abut.bvh.layout import Bvh, BvhView, Node, escape_of, load_node, root_of
from abut.core.launch import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CLUSTER_SIZE = wp.constant(4)


@wp.func
def first_leaf_of_right(slot: wp.int32):
    """Return the first leaf of a right child."""
    return (slot >> 1) + 1


@wp.func
def leaf_end(tree: BvhView, node: Node):
    """Return the end of the range of leaves below a node."""
    escape = escape_of(node)
    return wp.where(escape < 0, tree.leaf_slots.shape[0], (escape + 1) >> 1)


@wp.func
def leaf_begin(tree: BvhView, slot: wp.int32):
    """Return the first leaf of any node: that of the nearest right child above."""
    above = wp.int32(slot)
    while above != root_of(tree) and above % 2 == 0:
        above = tree.split_slots[above >> 1]
    return wp.where(above == root_of(tree), 0, first_leaf_of_right(above))


@wp.func
def cluster_code(first: wp.int32, size: wp.int32):
    """Pack the first leaf and the number of leaves of a cluster into one integer."""
    return first * CLUSTER_SIZE + size - 1


@wp.func
def cluster_first(code: wp.int32):
    """Return the first leaf of a cluster."""
    return code / CLUSTER_SIZE


@wp.func
def cluster_size(code: wp.int32):
    """Return the number of leaves of a cluster."""
    return code % CLUSTER_SIZE + 1


@wp.func
def cluster_code_of(tree: BvhView, slot: wp.int32, node: Node):
    """Return the code of the cluster in a slot."""
    first = leaf_begin(tree, slot)
    return cluster_code(first, leaf_end(tree, node) - first)


@wp.func
def leaf_count_below(tree: BvhView, slot: wp.int32):
    """Return the number of leaves below a slot."""
    return leaf_end(tree, load_node(tree.nodes, slot)) - leaf_begin(tree, slot)


@wp.kernel
def mark_clusters_kernel(
    # in
    span: wp.vec3i,
    tree: BvhView,
    # out
    slot_out: wp.array[wp.int32],
    marks_out: wp.array[wp.int32],
):
    """Mark every maximal subtree of at most CLUSTER_SIZE leaves at its first leaf."""
    for slot in range(span[0] + wp.tid(), span[1], span[2]):
        if leaf_count_below(tree, slot) <= CLUSTER_SIZE:
            maximal = slot == root_of(tree)
            if not maximal:
                maximal = leaf_count_below(tree, tree.split_slots[slot >> 1]) > CLUSTER_SIZE
            if maximal:
                slot_out[leaf_begin(tree, slot)] = slot
                marks_out[leaf_begin(tree, slot)] = 1


@wp.kernel
def compact_clusters_kernel(
    # in
    span: wp.vec3i,
    slots: wp.array[wp.int32],
    marks: wp.array[wp.int32],
    places: wp.array[wp.int32],
    # out
    clusters_out: wp.array[wp.int32],
):
    """Compact the marked slots, in leaf order."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        if marks[k] == 1:
            clusters_out[places[k] - 1] = slots[k]


def leaf_clusters_of(tree: Bvh) -> wp.array:
    """Return the slots of all clusters, in leaf order. They survive refits."""
    if tree.leaf_clusters is None:
        device, count = tree.nodes.device, tree.face_count
        slots, places = (wp.empty(count, dtype=wp.int32, device=device) for _ in range(2))
        marks = wp.zeros(count, dtype=wp.int32, device=device)
        launch(mark_clusters_kernel, 2 * count - 1, [tree.view(), slots, marks], device)
        wp.utils.array_scan(marks, places, inclusive=True)
        tree.leaf_clusters = wp.empty(
            int(places[count - 1 :].numpy()[0]), dtype=wp.int32, device=device
        )
        launch(compact_clusters_kernel, count, [slots, marks, places, tree.leaf_clusters], device)
    return tree.leaf_clusters
