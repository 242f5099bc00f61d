"""Refit the boxes of a BVH to moved vertices, and measure its traversal cost."""

import warp as wp

from abut.bounds.aabb import fit_aabb
from abut.bounds.float32 import row_xyz
from abut.bvh.layout import (
    Bvh,
    BvhView,
    half_area,
    leaf_face,
    link_at,
    load_node,
    parent_if_second,
    vec4_with_int,
)
from abut.core.lanes import WARP_SIZE, lane_count, warp_sum
from abut.core.launch import Task
from abut.core.memory_access import load_l2_vec4f

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

COST_UNIT = wp.constant(wp.float32(2.0**20))  # summed as integers: the same sum in any order
CUDA_LANES = 16384
SMALLEST_AREA = wp.constant(wp.float32(1e-30))
LARGEST_AREA = wp.constant(wp.float32(1e30))
COST_LIMIT = wp.constant(wp.float32(2.0**40))


@wp.func
def refit_upwards(
    leaf_slot: wp.int32,
    leaf_lower: wp.vec3f,
    leaf_upper: wp.vec3f,
    arrivals: wp.array[wp.int32],
    tree: BvhView,
):
    """Store the box of a leaf and merge upwards; the second of two siblings to arrive continues."""
    slot = wp.int32(leaf_slot)
    lower = leaf_lower
    upper = leaf_upper
    link = link_at(tree.nodes, slot)
    escape = wp.cast(tree.nodes[2 * slot + 1][3], wp.int32)
    while slot >= 0:
        tree.nodes[2 * slot] = vec4_with_int(lower, link)
        tree.nodes[2 * slot + 1] = vec4_with_int(upper, escape)
        parent = parent_if_second(tree, slot, arrivals)
        if parent >= 0:
            low = load_l2_vec4f(tree.nodes, 2 * (slot ^ 1))
            high = load_l2_vec4f(tree.nodes, 2 * (slot ^ 1) + 1)
            lower = wp.min(lower, row_xyz(low))
            upper = wp.max(upper, row_xyz(high))
            if slot % 2 == 0:  # a right child's escape is its parent's
                escape = wp.cast(high[3], wp.int32)
            link = slot >> 1
        slot = parent


@wp.kernel
def refit_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    arrivals: wp.array[wp.int32],
    # out
    tree_out: BvhView,
):
    """Refit the box of every leaf and merge upwards."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        slot = tree_out.leaf_slots[k]
        face = faces[leaf_face(tree_out.nodes, slot)]
        lower, upper = fit_aabb(points[face[0]], points[face[1]], points[face[2]], tree_out.origin)
        refit_upwards(slot, lower, upper, arrivals, tree_out)


def refit(tree: Bvh, points: wp.array, faces: wp.array) -> None:
    """Refit all boxes to ``points``, keeping the topology."""

    def make() -> Task:
        args = [points, faces, tree.arrivals, tree.view()]
        return Task(refit_kernel, tree.face_count, args, tree.nodes.device)

    tree.refit_tasks.get((points,), make).run()


@wp.kernel
def traversal_cost_kernel(
    # in
    span: wp.vec3i,
    nodes: wp.array[wp.vec4f],
    # out
    cost_out: wp.array[wp.int64],
):
    """Sum the areas of nodes over that of the root, in integers, one sum per warp."""
    node_count = nodes.shape[0] / 2
    whole = half_area(load_node(nodes, node_count - 1))
    unit = wp.float32(0.0)
    if whole > SMALLEST_AREA and whole < LARGEST_AREA:
        unit = COST_UNIT / whole
    for lane in range(span[0] + wp.tid(), span[1], span[2]):
        total = wp.int64(0)
        for slot in range(lane, node_count, cost_out.shape[0] * lane_count()):
            total += wp.int64(wp.min(half_area(load_node(nodes, slot)) * unit, COST_LIMIT))
        cost_out[lane / lane_count()] = warp_sum(total)


class TraversalCost:
    """Expected nodes visited by a random query: the area of all boxes over that of the root."""

    def __init__(self, nodes: wp.array) -> None:
        device = nodes.device
        lanes = CUDA_LANES if device.is_cuda else 1
        parts = lanes // WARP_SIZE if device.is_cuda else lanes
        self.parts = wp.zeros(parts, dtype=wp.int64, device=device)
        self.host = wp.zeros_like(self.parts, device="cpu", pinned=True) if device.is_cuda else None
        self.task = Task(traversal_cost_kernel, lanes, [nodes, self.parts], device)
        self.done = wp.Event(device) if device.is_cuda else None

    def start(self) -> None:
        """Start to sum on the device."""
        self.task.run()
        if self.host is not None:
            wp.copy(self.host, self.parts)
            wp.record_event(self.done)

    def read(self) -> float:
        """Return the sum last started; 0 where areas are outside the range of float32."""
        if self.host is None:
            return float(self.parts.numpy().sum()) / float(COST_UNIT)
        wp.synchronize_event(self.done)
        return float(self.host.numpy().sum()) / float(COST_UNIT)
