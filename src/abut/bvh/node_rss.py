"""Rectangle swept spheres for the nodes of a BVH, fitted to the points below them.

A first pass upwards sums moments, which give principal axes. In a second pass every face widens
the extents of all nodes above it along their axes; the lanes of a warp do so together above their
common ancestor. Volumes merged from those of the children would need no second pass, but are one
and a half times as thick (design/distance.md).
"""

import warp as wp

from abut.bounds.float32 import from_sortable, row_xyz, to_sortable, to_vec3f
from abut.bounds.rss import Rss, axes_of_tri, fit_rss
from abut.bvh.layout import Bvh, BvhView, leaf_face, link_at, parent_if_second, root_of
from abut.bvh.leaf_ranges import leaf_ranges
from abut.bvh.node_obbs import (
    MOMENT_ROWS,
    Moments,
    add_moments,
    load_moments,
    moments_of,
    principal_axes,
    store_moments,
)
from abut.core.atomics import atomic_max_int32
from abut.core.lanes import WARP_SIZE, lane_count, warp_max
from abut.core.launch import Task
from abut.core.memory_access import load_readonly_vec4f, load_readonly_vec4i, store_vec4f

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 1})

RSS_ROWS = wp.constant(3)
EXTENTS = wp.constant(6)  # of a slot: maxima along each axis, then negated minima
STRIDE = wp.constant(8)  # two are unused
FLOAT32_RANGE = wp.constant(wp.float32(1e36))  # beyond, products may overflow
NO_EXTENT = wp.constant(wp.int32(-(2**31)))

Extents = wp.types.vector(length=6, dtype=wp.int32)


@wp.func
def store_axes(rows: wp.array[wp.vec4f], slot: wp.int32, axes: wp.mat33f):
    """Write the first two axes of a volume."""
    zero = wp.float32(0.0)
    store_vec4f(rows, RSS_ROWS * slot + 1, wp.vec4f(axes[0, 0], axes[0, 1], axes[0, 2], zero))
    store_vec4f(rows, RSS_ROWS * slot + 2, wp.vec4f(axes[1, 0], axes[1, 1], axes[1, 2], zero))


@wp.func
def axes_with(u: wp.vec3f, v: wp.vec3f):
    """Return three axes from two, as a reader of the volume computes them."""
    return wp.matrix_from_rows(u, v, wp.cross(u, v))


@wp.func
def load_axes(rows: wp.array[wp.vec4f], slot: wp.int32):
    """Read the three axes of a volume."""
    r1 = load_readonly_vec4f(rows, RSS_ROWS * slot + 1)
    r2 = load_readonly_vec4f(rows, RSS_ROWS * slot + 2)
    return axes_with(row_xyz(r1), row_xyz(r2))


@wp.func
def store_rss(rows: wp.array[wp.vec4f], slot: wp.int32, a: Rss):
    """Write the three rows of a volume."""
    at = RSS_ROWS * slot
    u = a.axes[0]
    v = a.axes[1]
    store_vec4f(rows, at, wp.vec4f(a.centre[0], a.centre[1], a.centre[2], a.radius))
    store_vec4f(rows, at + 1, wp.vec4f(u[0], u[1], u[2], a.half[0]))
    store_vec4f(rows, at + 2, wp.vec4f(v[0], v[1], v[2], a.half[1]))


@wp.func
def leaf_triangle(
    points: wp.array[wp.vec3d], faces: wp.array[wp.vec3i], tree: BvhView, slot: wp.int32
):
    """Return the corners of a leaf's face in the frame of the BVH, one a row."""
    face = faces[leaf_face(tree.nodes, slot)]
    return wp.matrix_from_rows(
        to_vec3f(points[face[0]] - tree.origin),
        to_vec3f(points[face[1]] - tree.origin),
        to_vec3f(points[face[2]] - tree.origin),
    )


@wp.func
def extents_along(axes: wp.mat33f, p: wp.mat33f):
    """Return the extents of three points, one a row, along three axes, as sortable integers."""
    at = axes * wp.transpose(p)  # one axis a row, one corner a column
    largest = wp.max(wp.abs(p[0])) + wp.max(wp.abs(p[1])) + wp.max(wp.abs(p[2]))
    out = Extents()
    for axis in range(3):
        high = wp.max(at[axis, 0], wp.max(at[axis, 1], at[axis, 2]))
        low = wp.min(at[axis, 0], wp.min(at[axis, 1], at[axis, 2]))
        if not (largest < FLOAT32_RANGE):
            high = wp.float32(wp.inf)
            low = -wp.float32(wp.inf)
        out[axis] = to_sortable(high)
        out[3 + axis] = to_sortable(-low)
    return out


@wp.func
def rss_from_extents(axes: wp.mat33f, e: Extents):
    """Return the volume with the given axes and extents."""
    high = wp.vec3f(from_sortable(e[0]), from_sortable(e[1]), from_sortable(e[2]))
    low = -wp.vec3f(from_sortable(e[3]), from_sortable(e[4]), from_sortable(e[5]))
    return fit_rss(axes, low, high)


@wp.kernel
def sum_moments_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    tree: BvhView,
    arrivals: wp.array[wp.int32],
    # out
    moments_out: wp.array[wp.vec4f],
    rss_out: wp.array[wp.vec4f],
):
    """Fit the leaves and sum moments upwards; the second of two siblings to arrive continues."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        slot = tree.leaf_slots[k]
        p = leaf_triangle(points, faces, tree, slot)
        own = axes_of_tri(p[0], p[1], p[2])
        axes = axes_with(own[0], own[1])
        store_rss(rss_out, slot, rss_from_extents(axes, extents_along(axes, p)))
        moments = Moments()
        for i in range(3):
            moments = add_moments(moments, moments_of(p[i]))
        while slot >= 0:
            store_moments(moments_out, slot, moments)
            parent = parent_if_second(tree, slot, arrivals)
            if parent >= 0:
                moments = add_moments(moments, load_moments(moments_out, slot ^ 1))
            slot = parent


@wp.kernel
def rss_axes_kernel(
    # in
    span: wp.vec3i,
    nodes: wp.array[wp.vec4f],
    moments: wp.array[wp.vec4f],
    # out
    rss_out: wp.array[wp.vec4f],
    extents_out: wp.array[wp.int32],
):
    """Write the principal axes of every inner slot and clear its extents."""
    for slot in range(span[0] + wp.tid(), span[1], span[2]):
        if link_at(nodes, slot) >= 0:
            store_axes(rss_out, slot, principal_axes(load_moments(moments, slot)))
            for i in range(EXTENTS):
                extents_out[STRIDE * slot + i] = NO_EXTENT


@wp.func
def parent_slot(tree: BvhView, slot: wp.int32):
    """Return the slot of the parent, -1 above the root."""
    parent = wp.int32(-1)
    if slot != root_of(tree):
        parent = tree.split_slots[slot >> 1]
    return parent


@wp.kernel
def widen_extents_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    tree: BvhView,
    ranges: wp.array[wp.vec2i],
    rss: wp.array[wp.vec4f],
    # out
    extents_out: wp.array[wp.int32],
):
    """Widen the extents of all inner nodes above every leaf.

    Lanes act alone below the lowest common ancestor of their leaves, from there on together.
    """
    leaf_count = tree.leaf_slots.shape[0]
    for item in range(span[0] + wp.tid(), span[1], span[2]):
        lane = item % lane_count()
        first = item - lane
        last = wp.min(first + lane_count(), leaf_count) - 1
        slot = tree.leaf_slots[wp.min(item, last)]
        p = leaf_triangle(points, faces, tree, slot)
        slot = parent_slot(tree, slot)
        while slot >= 0 and (ranges[slot][0] > first or ranges[slot][1] < last):
            mine = extents_along(load_axes(rss, slot), p)
            for i in range(EXTENTS):
                atomic_max_int32(extents_out, STRIDE * slot + i, mine[i])
            slot = parent_slot(tree, slot)
        while slot >= 0:
            ours = extents_along(load_axes(rss, slot), p)
            for i in range(EXTENTS):
                most = warp_max(ours[i])
                if lane == i % lane_count():
                    atomic_max_int32(extents_out, STRIDE * slot + i, most)
            slot = parent_slot(tree, slot)


@wp.kernel
def store_rss_kernel(
    # in
    span: wp.vec3i,
    nodes: wp.array[wp.vec4f],
    extents: wp.array[wp.vec4i],
    # out
    rss_out: wp.array[wp.vec4f],
):
    """Write the volume of every inner slot from its axes and extents."""
    for slot in range(span[0] + wp.tid(), span[1], span[2]):
        if link_at(nodes, slot) >= 0:
            e = load_readonly_vec4i(extents, 2 * slot)
            f = load_readonly_vec4i(extents, 2 * slot + 1)
            reach = Extents(e[0], e[1], e[2], e[3], f[0], f[1])
            store_rss(rss_out, slot, rss_from_extents(load_axes(rss_out, slot), reach))


def fit_node_rss(tree: Bvh, points: wp.array, faces: wp.array) -> None:
    """Fit rectangle swept spheres to all nodes of an up-to-date BVH."""
    slots = 2 * tree.face_count - 1
    device = tree.nodes.device
    if tree.rss is None:
        tree.rss = wp.empty(RSS_ROWS * slots, dtype=wp.vec4f, device=device)

    def make() -> list[Task]:
        moments = wp.empty(MOMENT_ROWS * slots, dtype=wp.vec4f, device=device)
        extents = wp.empty(STRIDE * slots, dtype=wp.int32, device=device)
        fours = wp.array(ptr=extents.ptr, shape=2 * slots, dtype=wp.vec4i, device=device)
        operands = [points, faces, tree.view()]
        sums = [*operands, tree.arrivals, moments, tree.rss]
        widths = [*operands, leaf_ranges(tree), tree.rss, extents]
        items = -(-tree.face_count // WARP_SIZE) * WARP_SIZE if device.is_cuda else tree.face_count
        return [
            Task(sum_moments_kernel, tree.face_count, sums, device, grain=512),
            Task(rss_axes_kernel, slots, [tree.nodes, moments, tree.rss, extents], device),
            Task(widen_extents_kernel, items, widths, device, grain=512),
            Task(store_rss_kernel, slots, [tree.nodes, fours, tree.rss], device),
        ]

    for task in tree.rss_tasks.get((points,), make):
        task.run()
