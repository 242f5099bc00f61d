"""Fit the boxes of a tree to moved vertices, and say how good the tree still is."""

import numpy as np
import warp as wp

from abut.atomics import arrive, load_fresh
from abut.bounds.aabb import fit_aabb
from abut.hierarchy.tree import Tree, with_integer
from abut.runtime import Task

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

COST_UNIT = 2.0**20  # costs are summed as integers: the same sum in any order
COST_THREADS = 1024
COST_LIMIT = wp.constant(wp.float32(2.0**40))


@wp.func
def fit_upwards(
    leaf_slot: wp.int32,
    leaf_lower: wp.vec3f,
    leaf_upper: wp.vec3f,
    split_slots: wp.array[wp.int32],
    arrivals: wp.array[wp.int32],
    nodes: wp.array[wp.vec4f],
):
    """Give a leaf its box and climb; the second of two siblings to arrive goes on."""
    root = nodes.shape[0] / 2 - 1
    slot = wp.int32(leaf_slot)
    lower = leaf_lower
    upper = leaf_upper
    link = wp.cast(nodes[2 * slot][3], wp.int32)
    escape = wp.cast(nodes[2 * slot + 1][3], wp.int32)
    climbing = wp.bool(True)
    while climbing:
        nodes[2 * slot] = with_integer(lower, link)
        nodes[2 * slot + 1] = with_integer(upper, escape)
        climbing = False
        if slot != root:
            if arrive(arrivals, slot >> 1) % 2 == 1:
                climbing = True
                low = load_fresh(nodes, 2 * (slot ^ 1))
                high = load_fresh(nodes, 2 * (slot ^ 1) + 1)
                lower = wp.min(lower, wp.vec3f(low[0], low[1], low[2]))
                upper = wp.max(upper, wp.vec3f(high[0], high[1], high[2]))
                if slot % 2 == 0:  # a right child escapes to where its parent does
                    escape = wp.cast(high[3], wp.int32)
                link = slot >> 1
                slot = split_slots[link]


@wp.kernel
def refit_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    origin: wp.vec3d,
    leaf_slots: wp.array[wp.int32],
    split_slots: wp.array[wp.int32],
    arrivals: wp.array[wp.int32],
    # out
    nodes_out: wp.array[wp.vec4f],
):
    """Fit the box of every leaf and climb."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        slot = leaf_slots[k]
        face = faces[-1 - wp.cast(nodes_out[2 * slot][3], wp.int32)]
        lower, upper = fit_aabb(points[face[0]], points[face[1]], points[face[2]], origin)
        fit_upwards(slot, lower, upper, split_slots, arrivals, nodes_out)


def refit(tree: Tree, points: wp.array, faces: wp.array) -> None:
    """Fit all boxes to ``points``, keeping the topology."""

    def make() -> Task:
        slots = [tree.leaf_slots, tree.split_slots, tree.arrivals]
        args = [points, faces, wp.vec3d(*tree.origin), *slots, tree.nodes]
        return Task(refit_kernel, tree.face_count, args, tree.nodes.device)

    tree.refitting.get((points,), make).run()


@wp.kernel
def cost_kernel(
    # in
    span: wp.vec3i,
    nodes: wp.array[wp.vec4f],
    unit: wp.float32,
    # out
    cost_out: wp.array[wp.int64],
):
    """Each thread's sum of half areas of all nodes, in integers."""
    total = wp.int64(0)
    for slot in range(span[0] + wp.tid(), span[1], span[2]):
        size = nodes[2 * slot + 1] - nodes[2 * slot]
        area = size[0] * size[1] + size[1] * size[2] + size[2] * size[0]
        total = total + wp.int64(wp.min(area * unit, COST_LIMIT))
    cost_out[wp.tid()] = total


def start_cost(tree: Tree, bounds: np.ndarray) -> None:
    """Begin to sum the areas of nodes over the area of ``bounds``; ``finished_cost`` reads it."""
    with np.errstate(over="ignore", invalid="ignore"):
        size = bounds[1] - bounds[0]
        area = float(size @ np.roll(size, 1))
    tree.cost = None
    if 1e-30 < area < 1e30:
        device = tree.nodes.device
        tree.cost = wp.zeros(COST_THREADS if device.is_cuda else 1, dtype=wp.int64, device=device)
        threads = tree.cost.shape[0]
        span = wp.vec3i(0, 2 * tree.face_count - 1, threads)
        args = [span, tree.nodes, wp.float32(COST_UNIT / area), tree.cost]
        wp.launch(cost_kernel, threads, args, device=device)


def finished_cost(tree: Tree) -> float:
    """What the tree cost when ``start_cost`` was last called: the nodes a random query visits."""
    return 0.0 if tree.cost is None else float(tree.cost.numpy().sum()) / COST_UNIT
