"""Deferred subtrees: parts of a linear BVH that are built when a search comes to them, on the CPU.

A deferred subtree has a box and a range of leaves, which are not in order yet; ``leaf_slots`` holds
the complements of their faces. A built subtree is that of ``build_lbvh``. A thread that comes to a
subtree that another one is building waits.
"""

import warp as wp

from abut.bounds.aabb import fit_aabb
from abut.bounds.float32 import row_xyz
from abut.bvh.layout import Bvh, BvhView, load_node, vec4_with_int
from abut.bvh.lbvh import NO_SIBLING, is_left_child
from abut.bvh.leaf_clusters import leaf_begin, leaf_end
from abut.core.launch import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

GRAIN = 64  # subtrees
DEFERRED = wp.constant(-(2**31))  # links: no face has this complement
BUILDING = wp.constant(-(2**31) + 1)


@wp.func
def slot_of(tree: BvhView, first: wp.int32, last: wp.int32, begin: wp.int32, end: wp.int32):
    """Return the slot of the node over leaves first..last, below the one over begin..end - 1."""
    if is_left_child(tree.codes, first, last, begin, end):
        return 2 * last
    return 2 * first - 1


@wp.func
def place_upwards(
    tree: BvhView,
    node_first: wp.int32,
    node_last: wp.int32,
    node_link: wp.int32,
    node_lower: wp.vec3f,
    node_upper: wp.vec3f,
    begin: wp.int32,
    end: wp.int32,
):
    """Place a node over some leaves, and its ancestors while both children are there.

    The node over begin..end - 1 is not placed. Returns the link of the last node.
    """
    first = wp.int32(node_first)
    last = wp.int32(node_last)
    link = wp.int32(node_link)
    lower = node_lower
    upper = node_upper
    climbing = first > begin or last < end - 1
    while climbing:
        slot = slot_of(tree, first, last, begin, end)
        split = slot >> 1
        left = slot == 2 * last
        escape = wp.where(last < tree.leaf_slots.shape[0] - 1, 2 * last + 1, -1)
        tree.nodes[2 * slot] = vec4_with_int(lower, link)
        tree.nodes[2 * slot + 1] = vec4_with_int(upper, escape)
        if link >= 0:
            tree.split_slots[link] = slot
        elif link != DEFERRED:
            tree.leaf_slots[first] = slot
        far_end = tree.split_slots[split]
        tree.split_slots[split] = wp.where(left, first, last)
        climbing = False
        if far_end >= 0:  # the sibling is there
            low = tree.nodes[2 * (slot ^ 1)]
            high = tree.nodes[2 * (slot ^ 1) + 1]
            lower = wp.min(lower, row_xyz(low))
            upper = wp.max(upper, row_xyz(high))
            first = wp.where(left, first, far_end)
            last = wp.where(left, far_end, last)
            link = split
            climbing = first > begin or last < end - 1
    return link


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    for (int k = first + 1; k < end; ++k) {
        const int code = codes.data[k], leaf = leaves.data[k];
        int at = k;
        for (; at > first && codes.data[at - 1] > code; --at) {
            codes.data[at] = codes.data[at - 1];
            leaves.data[at] = leaves.data[at - 1];
        }
        codes.data[at] = code;
        leaves.data[at] = leaf;
    }
#endif
""")
def sort_leaves(
    codes: wp.array[wp.int32], leaves: wp.array[wp.int32], first: wp.int32, end: wp.int32
):
    """Sort a few leaves by their codes; equal codes keep their order."""
    ...


@wp.func_native(f"""
#if defined(__CUDA_ARCH__)
    return false;
#else
    return __atomic_load_n((const int*)&nodes.data[2 * slot].c[3], __ATOMIC_ACQUIRE)
        <= {int(BUILDING)};
#endif
""")
def is_deferred(nodes: wp.array[wp.vec4f], slot: wp.int32) -> wp.bool:
    """Return whether the subtree of a slot is not built yet."""
    ...


@wp.func_native(f"""
#if defined(__CUDA_ARCH__)
    return false;
#else
    int* link = (int*)&nodes.data[2 * slot].c[3];
    int seen = __atomic_load_n(link, __ATOMIC_ACQUIRE);
    if (seen > {int(BUILDING)}) return false;
    if (seen == {int(DEFERRED)} && __atomic_compare_exchange_n(
            link, &seen, {int(BUILDING)}, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
        return true;
    while (__atomic_load_n(link, __ATOMIC_ACQUIRE) == {int(BUILDING)}) {{}}
    return false;
#endif
""")
def begin_subtree(nodes: wp.array[wp.vec4f], slot: wp.int32) -> wp.bool:
    """Return whether this thread must build the subtree of a slot; waits while another does."""
    ...


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    __atomic_store_n((int*)&nodes.data[2 * slot].c[3], link, __ATOMIC_RELEASE);
#endif
""")
def finish_subtree(nodes: wp.array[wp.vec4f], slot: wp.int32, link: wp.int32):
    """Let other threads see a subtree."""
    ...


@wp.func
def fit_leaf(points: wp.array[wp.vec3d], faces: wp.array[wp.vec3i], tree: BvhView, k: wp.int32):
    """Fit the box of a leaf that has no slot yet."""
    face = faces[-1 - tree.leaf_slots[k]]
    return fit_aabb(points[face[0]], points[face[1]], points[face[2]], tree.origin)


@wp.func
def build_if_deferred(
    points: wp.array[wp.vec3d], faces: wp.array[wp.vec3i], tree: BvhView, slot: wp.int32
):
    """Build the subtree of a slot unless it is there."""
    if begin_subtree(tree.nodes, slot):
        first = leaf_begin(tree, slot)
        end = leaf_end(tree, load_node(tree.nodes, slot))
        sort_leaves(tree.codes, tree.leaf_slots, first, end)
        for k in range(first, end - 1):
            tree.split_slots[k] = NO_SIBLING
        link = wp.int32(0)
        for k in range(first, end):
            low, high = fit_leaf(points, faces, tree, k)
            link = place_upwards(tree, k, k, tree.leaf_slots[k], low, high, first, end)
        tree.split_slots[link] = slot
        finish_subtree(tree.nodes, slot, link)


@wp.kernel
def build_subtrees_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    slots: wp.array[wp.int32],
    # out
    tree_out: BvhView,
):
    """Build the subtrees that are deferred still."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        build_if_deferred(points, faces, tree_out, slots[i])


def build_deferred(tree: Bvh, points: wp.array, faces: wp.array) -> None:
    """Build all subtrees that are deferred still."""
    if tree.deferred is not None:
        args = [points, faces, tree.deferred, tree.view()]
        launch(build_subtrees_kernel, len(tree.deferred), args, points.device, grain=GRAIN)
        tree.codes = tree.deferred = None
        tree.views.clear()
