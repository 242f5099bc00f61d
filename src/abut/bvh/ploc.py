"""Build a BVH by parallel locally-ordered clustering (PLOC; Meister and Bittner 2018).

In each round every cluster finds its nearest neighbour: the cluster within ``RADIUS`` positions
along the Morton curve with which it makes the smallest box. Mutual nearest neighbours are merged.
Slower to build than an LBVH and faster to search.
"""

from itertools import pairwise

import numpy as np
import warp as wp

from abut.bounds.float32 import row_xyz
from abut.bvh.layout import MAX_DEPTH, Bvh, vec4_with_int
from abut.bvh.lbvh import allocate_bvh, build_lbvh, frame_origin
from abut.bvh.morton import morton_order
from abut.core.atomics import atomic_add_aggregated, atomic_max_int32
from abut.core.launch import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

RADIUS = wp.constant(8)  # positions on either side; four times as many gain 4 %
ROUND_GRAIN = 1 << 15  # rounds are many and short


@wp.struct
class Clusters:
    """Nodes under construction: n leaves in Morton order, then inner nodes in order of creation."""

    lower: wp.array[wp.vec4f]
    upper: wp.array[wp.vec4f]
    children: wp.array[wp.vec2i]  # of inner nodes
    parents: wp.array[wp.int32]
    sizes: wp.array[wp.int32]  # leaves below
    places: wp.array[wp.vec2i]  # leaves before, and levels above
    inner_count: wp.array[wp.int64]  # inner nodes so far


@wp.kernel
def ploc_leaf_kernel(
    # in
    span: wp.vec3i,
    boxes: wp.array[wp.vec4f],
    order: wp.array[wp.int32],
    # out
    clusters_out: Clusters,
    active_out: wp.array[wp.int32],
):
    """Make every face a cluster."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        clusters_out.lower[k] = boxes[2 * order[k]]
        clusters_out.upper[k] = boxes[2 * order[k] + 1]
        clusters_out.sizes[k] = 1
        active_out[k] = k


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    const float x = max(upper_a.c[0], upper_b.c[0]) - min(lower_a.c[0], lower_b.c[0]);
    const float y = max(upper_a.c[1], upper_b.c[1]) - min(lower_a.c[1], lower_b.c[1]);
    const float z = max(upper_a.c[2], upper_b.c[2]) - min(lower_a.c[2], lower_b.c[2]);
    return x * y + y * z + z * x;
#else
    typedef float v4 __attribute__((vector_size(16)));
    v4 la, ua, lb, ub;
    __builtin_memcpy(&la, &lower_a, 16);
    __builtin_memcpy(&ua, &upper_a, 16);
    __builtin_memcpy(&lb, &lower_b, 16);
    __builtin_memcpy(&ub, &upper_b, 16);
    const v4 size = (ua > ub ? ua : ub) - (la < lb ? la : lb);
    return size[0] * size[1] + size[1] * size[2] + size[2] * size[0];
#endif
""")
def joint_half_area(
    lower_a: wp.vec4f, upper_a: wp.vec4f, lower_b: wp.vec4f, upper_b: wp.vec4f
) -> wp.float32:
    """Return half the surface area of the box around two boxes; fourth components are ignored."""
    ...


@wp.kernel
def nearest_neighbour_kernel(
    # in
    span: wp.vec3i,
    clusters: Clusters,
    active: wp.array[wp.int32],
    count: wp.int32,
    # out
    choice_out: wp.array[wp.int32],
):
    """Find the nearest neighbour of each position.

    Ties go to the position that differs least in its bits. That order is symmetric, so the best
    pair always merges, and a run of equal boxes merges two by two.
    """
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        node = active[i]
        lower = clusters.lower[node]
        upper = clusters.upper[node]
        best = wp.float32(wp.inf)
        choice = i ^ 1
        for j in range(wp.max(i - RADIUS, 0), wp.min(i + RADIUS + 1, count)):
            other = active[j]
            area = joint_half_area(lower, upper, clusters.lower[other], clusters.upper[other])
            nearer = area < best or (area == best and (i ^ j) < (i ^ choice))
            if nearer and i != j:
                best = area
                choice = j
        choice_out[i] = choice


@wp.kernel
def merge_clusters_kernel(
    # in
    span: wp.vec3i,
    choice: wp.array[wp.int32],
    count: wp.int32,
    # out
    clusters_out: Clusters,
    active_out: wp.array[wp.int32],
    survives_out: wp.array[wp.int32],
):
    """Merge mutual nearest neighbours; the first of the two positions holds the new cluster."""
    leaf_count = (clusters_out.parents.shape[0] + 1) / 2
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        j = choice[i]
        joined = j < count
        if joined:
            joined = choice[j] == i
        survives_out[i] = wp.where(joined and j < i, 0, 1)
        if joined and i < j:
            left = active_out[i]
            right = active_out[j]
            inner = wp.int32(atomic_add_aggregated(clusters_out.inner_count, 1))
            node = leaf_count + inner
            clusters_out.children[inner] = wp.vec2i(left, right)
            clusters_out.parents[left] = node
            clusters_out.parents[right] = node
            clusters_out.sizes[node] = clusters_out.sizes[left] + clusters_out.sizes[right]
            clusters_out.lower[node] = wp.min(clusters_out.lower[left], clusters_out.lower[right])
            clusters_out.upper[node] = wp.max(clusters_out.upper[left], clusters_out.upper[right])
            active_out[i] = node


@wp.kernel
def compact_active_kernel(
    # in
    span: wp.vec3i,
    active: wp.array[wp.int32],
    survives: wp.array[wp.int32],
    places: wp.array[wp.int32],
    # out
    active_out: wp.array[wp.int32],
):
    """Compact the active clusters, keeping their order."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        if survives[i] == 1:
            active_out[places[i] - 1] = active[i]


@wp.kernel
def place_children_kernel(
    # in
    span: wp.vec3i,
    start: wp.int32,
    # out
    clusters_out: Clusters,
):
    """Write the places of the children of the inner nodes from ``start`` on."""
    leaf_count = (clusters_out.parents.shape[0] + 1) / 2
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        inner = start + i
        at = clusters_out.places[leaf_count + inner]
        pair = clusters_out.children[inner]
        left_size = clusters_out.sizes[pair[0]]
        clusters_out.places[pair[0]] = wp.vec2i(at[0], at[1] + 1)
        clusters_out.places[pair[1]] = wp.vec2i(at[0] + left_size, at[1] + 1)


@wp.kernel
def write_nodes_kernel(
    # in
    span: wp.vec3i,
    clusters: Clusters,
    order: wp.array[wp.int32],
    # out
    nodes_out: wp.array[wp.vec4f],
    leaf_slots_out: wp.array[wp.int32],
    split_slots_out: wp.array[wp.int32],
    deepest_out: wp.array[wp.int32],
):
    """Write every node into its slot."""
    leaf_count = leaf_slots_out.shape[0]
    root = 2 * leaf_count - 2
    for node in range(span[0] + wp.tid(), span[1], span[2]):
        first = clusters.places[node][0]
        end = first + clusters.sizes[node]
        slot = wp.int32(root)
        if node != root:  # a left child ends at its parent's split, a right one begins after it
            parent = clusters.parents[node] - leaf_count
            slot = wp.where(clusters.children[parent][0] == node, 2 * end - 2, 2 * first - 1)
        link = wp.int32(0)
        if node < leaf_count:
            link = -1 - order[node]
            leaf_slots_out[first] = slot
            atomic_max_int32(deepest_out, 0, clusters.places[node][1])
        else:
            link = first + clusters.sizes[clusters.children[node - leaf_count][0]] - 1
            split_slots_out[link] = slot
        escape = wp.where(end == leaf_count, -1, 2 * end - 1)  # right of the split at the end
        low = clusters.lower[node]
        high = clusters.upper[node]
        nodes_out[2 * slot] = vec4_with_int(row_xyz(low), link)
        nodes_out[2 * slot + 1] = vec4_with_int(row_xyz(high), escape)


def build_ploc(points: wp.array, faces: wp.array, bounds: np.ndarray) -> Bvh:
    """Build the PLOC BVH of faces whose vertices lie within ``bounds`` (2, 3)."""
    device, count = faces.device, faces.shape[0]
    tree = allocate_bvh(count, frame_origin(bounds), device)
    _, order, boxes = morton_order(points, faces, bounds, tree.origin)
    clusters = _allocate_clusters(count, device)
    active = wp.empty(count, dtype=wp.int32, device=device)
    launch(ploc_leaf_kernel, count, [boxes, order, clusters, active], device)
    inner_counts = _merge_all(clusters, active)
    clusters.places[2 * count - 2 :].zero_()  # the root
    for stop, start in pairwise(reversed(inner_counts)):
        launch(place_children_kernel, stop - start, [start, clusters], device, grain=ROUND_GRAIN)
    deepest = wp.zeros(1, dtype=wp.int32, device=device)
    outputs = [tree.nodes, tree.leaf_slots, tree.split_slots, deepest]
    launch(write_nodes_kernel, 2 * count - 1, [clusters, order, *outputs], device)
    if deepest.numpy()[0] > MAX_DEPTH:  # traversal stacks have room for no more
        return build_lbvh(points, faces, bounds)
    return tree


def _allocate_clusters(leaf_count: int, device: wp.Device) -> Clusters:
    clusters = Clusters()
    nodes, inner = 2 * leaf_count - 1, max(leaf_count - 1, 1)
    clusters.lower = wp.empty(nodes, dtype=wp.vec4f, device=device)
    clusters.upper = wp.empty(nodes, dtype=wp.vec4f, device=device)
    clusters.children = wp.empty(inner, dtype=wp.vec2i, device=device)
    clusters.parents = wp.empty(nodes, dtype=wp.int32, device=device)
    clusters.sizes = wp.empty(nodes, dtype=wp.int32, device=device)
    clusters.places = wp.empty(nodes, dtype=wp.vec2i, device=device)
    clusters.inner_count = wp.zeros(1, dtype=wp.int64, device=device)
    return clusters


def _merge_all(clusters: Clusters, active: wp.array) -> list[int]:
    """Merge until one cluster is left; returns the inner nodes after each round."""
    device, count = active.device, active.shape[0]
    leaf_count, inner_counts = count, [0]
    spare, choice, survives, places = (wp.empty_like(active) for _ in range(4))
    while count > 1:
        args = [clusters, active, count, choice]
        launch(nearest_neighbour_kernel, count, args, device, grain=ROUND_GRAIN // 4)
        args = [choice, count, clusters, active, survives]
        launch(merge_clusters_kernel, count, args, device, grain=ROUND_GRAIN)
        wp.utils.array_scan(survives[:count], places[:count], inclusive=True)
        args = [active, survives, places, spare]
        launch(compact_active_kernel, count, args, device, grain=ROUND_GRAIN)
        active, spare = spare, active
        count = int(places[count - 1 : count].numpy()[0])
        inner_counts.append(leaf_count - count)
    return inner_counts
