"""Rectangle swept spheres for the nodes of a tree, merged bottom-up along principal axes."""

import warp as wp

from abut.atomics import arrive, load_fresh
from abut.bounds.rss import Rss, fit_rss, merge_rss, unpack_rss
from abut.hierarchy.oriented import (
    MOMENT_ROWS,
    add_moments,
    fresh_moments,
    moments_of,
    principal_axes,
    store_moments,
    to_single,
)
from abut.hierarchy.tree import Tree
from abut.runtime import Task

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 1})

RSS_ROWS = wp.constant(3)


@wp.func
def store_rss(rows: wp.array[wp.vec4f], slot: wp.int32, a: Rss):
    """Write a volume into its three rows."""
    at = RSS_ROWS * slot
    rows[at] = wp.vec4f(a.centre[0], a.centre[1], a.centre[2], a.radius)
    rows[at + 1] = wp.vec4f(a.axes[0, 0], a.axes[0, 1], a.axes[0, 2], a.half[0])
    rows[at + 2] = wp.vec4f(a.axes[1, 0], a.axes[1, 1], a.axes[1, 2], a.half[1])


@wp.func
def fresh_rss(rows: wp.array[wp.vec4f], slot: wp.int32):
    """Read the volume another thread wrote in this launch."""
    at = RSS_ROWS * slot
    return unpack_rss(load_fresh(rows, at), load_fresh(rows, at + 1), load_fresh(rows, at + 2))


@wp.kernel
def sweep_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    origin: wp.vec3d,
    nodes: wp.array[wp.vec4f],
    leaf_slots: wp.array[wp.int32],
    split_slots: wp.array[wp.int32],
    arrivals: wp.array[wp.int32],
    # out
    moments_out: wp.array[wp.vec4f],
    swept_out: wp.array[wp.vec4f],
):
    """Climb from every leaf; the second of two siblings to arrive goes on with the parent."""
    root = nodes.shape[0] / 2 - 1
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        slot = leaf_slots[k]
        face = faces[-1 - wp.cast(nodes[2 * slot][3], wp.int32)]
        p0 = to_single(points[face[0]] - origin)
        p1 = to_single(points[face[1]] - origin)
        p2 = to_single(points[face[2]] - origin)
        volume = fit_rss(p0, p1, p2)
        moments = add_moments(add_moments(moments_of(p0), moments_of(p1)), moments_of(p2))
        climbing = wp.bool(True)
        while climbing:
            store_rss(swept_out, slot, volume)
            store_moments(moments_out, slot, moments)
            climbing = False
            if slot != root:
                if arrive(arrivals, slot >> 1) % 2 == 1:
                    climbing = True
                    moments = add_moments(moments, fresh_moments(moments_out, slot ^ 1))
                    axes = principal_axes(moments)
                    volume = merge_rss(volume, fresh_rss(swept_out, slot ^ 1), axes)
                    slot = split_slots[slot >> 1]


def sweep(tree: Tree, points: wp.array, faces: wp.array) -> None:
    """Fit swept spheres to all nodes of a tree whose boxes are up to date."""
    device = tree.nodes.device
    slots = 2 * tree.face_count - 1
    if tree.swept is None:
        tree.swept = wp.empty(RSS_ROWS * slots, dtype=wp.vec4f, device=device)

    def make() -> Task:
        moments = wp.empty(MOMENT_ROWS * slots, dtype=wp.vec4f, device=device)
        links = [tree.nodes, tree.leaf_slots, tree.split_slots, tree.arrivals]
        args = [points, faces, wp.vec3d(*tree.origin), *links, moments, tree.swept]
        return Task(sweep_kernel, tree.face_count, args, device, grain=512)

    tree.sweeping.get((points,), make).run()
