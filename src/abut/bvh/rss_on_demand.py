"""Swept spheres that a search on the CPU fits when it comes to them.

A search visits few of all nodes: the first questions about a new mesh do not pay for the others. A
row of zeros stands for a volume that is not there yet. Nodes of at most EXACT leaves are fitted to
the corners below them, larger ones to their boxes. Threads that fit a node at the same time write
the same bytes.
"""

import warp as wp

from abut.bounds.float32 import row_xyz, to_vec3f
from abut.bounds.obb import Obb, axes_of_tri, fit_obb
from abut.bvh.deferred_subtrees import build_if_deferred
from abut.bvh.layout import BvhView, leaf_face, link_of, load_node, max_abs_coordinate
from abut.bvh.leaf_clusters import leaf_begin, leaf_end
from abut.bvh.node_obbs import Extents, FaceShape, as_read, axes_of_shape

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

EXACT = wp.constant(32)
LARGEST = wp.constant(wp.float64(1e18))  # coordinate whose square float32 holds

Sums = wp.types.vector(length=13, dtype=wp.float32)

CORNERS = """
    typedef float v4 __attribute__((vector_size(16)));
    auto corner = [&](int k, int i) {
        int link;
        __builtin_memcpy(&link, &nodes.data[2 * leaf_slots.data[k]].c[3], 4);
        const double* p = points.data[faces.data[-1 - link].c[i]].c;
        return v4{(float)(p[0] - origin.c[0]), (float)(p[1] - origin.c[1]),
                  (float)(p[2] - origin.c[2]), 0.0f};
    };
"""


@wp.func_native(f"""
    wp::vec_t<13, wp::float32> out;
#if !defined(__CUDA_ARCH__)
    {CORNERS}
    #define TURN(x) __builtin_shufflevector(x, x, 1, 2, 0, 3)
    const v4 about = corner(first, 0);
    v4 sum = {{}}, squares = {{}}, mixed = {{}}, area = {{}};
    for (int k = first; k < end; ++k) {{
        const v4 p = corner(k, 0) - about, q = corner(k, 1) - about, r = corner(k, 2) - about;
        sum += p + q + r;
        squares += p * p + q * q + r * r;
        mixed += p * TURN(p) + q * TURN(q) + r * TURN(r);
        const v4 e = q - p, f = r - p, across = TURN(e * TURN(f) - TURN(e) * f);
        const v4 square = across * across;
        area += across;
        out.c[12] += __builtin_sqrtf(square[0] + square[1] + square[2]);
    }}
    for (int i = 0; i < 3; ++i) {{
        out.c[i] = sum[i];
        out.c[3 + i] = squares[i];
        out.c[6 + i] = mixed[i];
        out.c[9 + i] = area[i];
    }}
    #undef TURN
#endif
    return out;
""")
def sum_leaves(
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    nodes: wp.array[wp.vec4f],
    leaf_slots: wp.array[wp.int32],
    origin: wp.vec3d,
    first: wp.int32,
    end: wp.int32,
) -> Sums:
    """Return sums over leaves: corners relative to the first one, products, area vectors, lengths.

    Products are xx, yy, zz, xy, yz, zx.
    """
    ...


@wp.func_native(f"""
    wp::vec_t<6, wp::float32> out;
#if !defined(__CUDA_ARCH__)
    {CORNERS}
    v4 column[3], low = v4{{}} + __builtin_inff(), high = v4{{}} - __builtin_inff();
    for (int i = 0; i < 3; ++i)
        column[i] = v4{{axes.data[0][i], axes.data[1][i], axes.data[2][i], 0.0f}};
    for (int k = first; k < end; ++k)
        for (int i = 0; i < 3; ++i) {{
            const v4 p = corner(k, i);
            const v4 q = column[0] * p[0] + column[1] * p[1] + column[2] * p[2];
            low = q < low ? q : low;
            high = q > high ? q : high;
        }}
    for (int i = 0; i < 3; ++i) {{ out.c[i] = low[i]; out.c[3 + i] = high[i]; }}
#endif
    return out;
""")
def extents_of_leaves(
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    nodes: wp.array[wp.vec4f],
    leaf_slots: wp.array[wp.int32],
    origin: wp.vec3d,
    first: wp.int32,
    end: wp.int32,
    axes: wp.mat33f,
) -> Extents:
    """Return the lower and upper extents of the corners of leaves along axes."""
    ...


@wp.func
def axes_of_leaves(
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    tree: BvhView,
    first: wp.int32,
    end: wp.int32,
):
    """Return axes of large, medium and small extent of some leaves."""
    if end == first + 1:
        face = faces[leaf_face(tree.nodes, tree.leaf_slots[first])]
        return axes_of_tri(
            to_vec3f(points[face[0]] - tree.origin),
            to_vec3f(points[face[1]] - tree.origin),
            to_vec3f(points[face[2]] - tree.origin),
        )
    s = sum_leaves(points, faces, tree.nodes, tree.leaf_slots, tree.origin, first, end)
    total = wp.vec3f(s[0], s[1], s[2])
    corner_count = wp.float32(3 * (end - first))
    shape = FaceShape()
    shape.scatter = wp.mat33f(s[3], s[6], s[8], s[6], s[4], s[7], s[8], s[7], s[5])
    shape.scatter -= wp.outer(total, total) / corner_count
    shape.area = wp.vec3f(s[9], s[10], s[11])
    shape.size = s[12]
    return axes_of_shape(shape)


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return true;
#else
    return __atomic_load_n((const int32_t*)&rows.data[4 * slot].c[3], __ATOMIC_ACQUIRE) != 0;
#endif
""")
def is_fitted(rows: wp.array[wp.vec4f], slot: wp.int32) -> wp.bool:
    """Return whether the volume of a slot is there; its rows may be read then."""
    ...


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    auto* at = rows.data + 4 * slot;
    for (int i = 0; i < 3; ++i) {
        at[0].c[i] = box.centre.c[i];
        at[1].c[i] = box.axes.data[0][i];
        at[2].c[i] = box.axes.data[1][i];
    }
    const bool finite = box.half.c[0] < INFINITY;  // products of 0 and infinity are not numbers
    at[1].c[3] = finite ? box.half.c[0] : 0.0f;
    at[2].c[3] = finite ? box.half.c[1] : 0.0f;
    __builtin_memcpy(&at[3].c[3], &link, 4);
    __atomic_store((float*)&at[0].c[3], &box.half.c[2], __ATOMIC_RELEASE);
#endif
""")
def publish_rss(rows: wp.array[wp.vec4f], slot: wp.int32, box: Obb, link: wp.int32):
    """Write the rows of a swept sphere (see node_obbs), its radius last."""
    ...


@wp.func
def fit_slot(points: wp.array[wp.vec3d], faces: wp.array[wp.vec3i], tree: BvhView, slot: wp.int32):
    """Fit the swept sphere of a slot unless it is there."""
    if not is_fitted(tree.rss, slot):
        build_if_deferred(points, faces, tree, slot)
        node = load_node(tree.nodes, slot)
        first = leaf_begin(tree, slot)
        end = leaf_end(tree, node)
        box = Obb()
        if end - first > EXACT or not (max_abs_coordinate(node) < LARGEST):
            unit = wp.identity(n=3, dtype=wp.float32)
            box = fit_obb(unit, row_xyz(node.low), row_xyz(node.high))
        else:
            axes = as_read(axes_of_leaves(points, faces, tree, first, end))
            e = extents_of_leaves(
                points, faces, tree.nodes, tree.leaf_slots, tree.origin, first, end, axes
            )
            box = fit_obb(axes, wp.vec3f(e[0], e[1], e[2]), wp.vec3f(e[3], e[4], e[5]))
        publish_rss(tree.rss, slot, box, link_of(node))


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return true;
#else
    auto there = [&](int slot) {
        return __atomic_load_n((const int32_t*)&rows.data[4 * slot].c[3], __ATOMIC_ACQUIRE) != 0;
    };
    return end >= 0 ? there(2 * end) && there(2 * end + 1) : there(~end);
#endif
""")
def are_fitted(rows: wp.array[wp.vec4f], end: wp.int32) -> wp.bool:
    """Return whether all volumes that an end stands for are there; see ``fit_ends``."""
    ...


@wp.func
def fit_ends(points: wp.array[wp.vec3d], faces: wp.array[wp.vec3i], tree: BvhView, end: wp.int32):
    """Fit the swept spheres that an end stands for: the children of a split, or a leaf's slot."""
    if end >= 0:
        fit_slot(points, faces, tree, 2 * end)
        fit_slot(points, faces, tree, 2 * end + 1)
    else:
        fit_slot(points, faces, tree, -1 - end)
