"""Oriented boxes for the nodes of a BVH, and rectangle swept spheres, which are stored alike.

One pass upwards sums the shape of the faces below each node: their mean, their scatter and their
area vectors. The axes are the normal of the sum of area vectors and the direction of most scatter
across it, or the principal axes where the faces turn against each other. Boxes of at most EXACT
leaves are fitted to the corners below, larger ones to the boxes of their children: a search spends
its time among small nodes (design/distance.md).
"""

import warp as wp

from abut.bounds.float32 import row_xyz, to_vec3f, to_vec4f
from abut.bounds.obb import (
    Obb,
    axes_of_tri,
    fit_obb,
    merge_obb,
    obb_area,
    orthonormal_axes,
    unpack_obb,
)
from abut.bvh.layout import Bvh, BvhView, Node, leaf_face, load_node, parent_if_second
from abut.core.launch import Task
from abut.core.memory_access import load_l2_vec4f, store_vec4f

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 1})

OBB_ROWS = wp.constant(3)
SHAPE_ROWS = wp.constant(4)
EXACT = wp.constant(64)  # leaves
ONE_SIDED = wp.constant(wp.float32(0.5))  # share of the area that the sum of area vectors keeps

SMALLEST = wp.constant(wp.float32(1e-18))  # length whose square is a normal number
ROUND = wp.constant(wp.float32(0.01))  # relative difference of scatters

Extents = wp.types.vector(length=6, dtype=wp.float32)


@wp.struct
class FaceShape:
    """The shape of some faces: sums over their corners and their areas."""

    count: wp.float32  # of faces
    mean: wp.vec3f
    scatter: wp.mat33f  # about the mean
    area: wp.vec3f  # sum of area vectors, doubled
    size: wp.float32  # sum of their lengths


@wp.func
def shape_of_face(p0: wp.vec3f, p1: wp.vec3f, p2: wp.vec3f):
    """Return the shape of one face."""
    out = FaceShape()
    out.count = wp.float32(1.0)
    e1 = p1 - p0
    e2 = p2 - p0
    middle = (e1 + e2) / wp.float32(3.0)
    out.mean = p0 + middle
    out.scatter = wp.outer(e1, e1) + wp.outer(e2, e2) - wp.float32(3.0) * wp.outer(middle, middle)
    out.area = wp.cross(e1, e2)
    out.size = wp.length(out.area)
    return out


@wp.func
def add_shapes(a: FaceShape, b: FaceShape):
    """Return the shape of the faces of both, without cancellation (Chan, Golub, LeVeque 1979)."""
    out = FaceShape()
    out.count = a.count + b.count
    between = b.mean - a.mean
    share = b.count / out.count
    out.mean = a.mean + between * share
    apart = wp.outer(between, between) * (wp.float32(3.0) * a.count * share)  # symmetric to the bit
    out.scatter = a.scatter + b.scatter + apart
    out.area = a.area + b.area
    out.size = a.size + b.size
    return out


@wp.func
def axes_across(normal: wp.vec3f, scatter: wp.mat33f):
    """Return the direction of most scatter across a unit normal, one across both, the normal."""
    side = wp.where(normal[2] < wp.float32(0.0), wp.float32(-1.0), wp.float32(1.0))
    a = wp.float32(-1.0) / (side + normal[2])  # two directions across (Duff et al. 2017)
    b = normal[0] * normal[1] * a
    x = wp.vec3f(wp.float32(1.0) + side * normal[0] * normal[0] * a, side * b, -side * normal[0])
    y = wp.vec3f(b, side + normal[1] * normal[1] * a, -normal[1])
    along_x = scatter * x
    scatter_x = wp.dot(x, along_x)
    scatter_y = wp.dot(y, scatter * y)
    half = wp.float32(0.5) * (scatter_x - scatter_y) / (scatter_x + scatter_y)
    mixed = wp.dot(y, along_x) / (scatter_x + scatter_y)
    root = wp.sqrt(half * half + mixed * mixed)
    most = x * (root + half) + y * mixed
    if half < wp.float32(0.0):
        most = x * mixed + y * (root - half)
    u = wp.normalize(most)
    if not (root > ROUND):  # the scatter is about the same in all directions, or unknown
        u = x
    return wp.matrix_from_rows(u, wp.cross(normal, u), normal)


@wp.func
def axes_of_shape(shape: FaceShape):
    """Return axes of large, medium and small extent of some faces."""
    length = wp.length(shape.area)
    if length > ONE_SIDED * shape.size and length > SMALLEST:
        return axes_across(shape.area / length, shape.scatter)
    vectors, values = wp.eig3(shape.scatter)
    first = wp.int32(wp.argmax(values))
    last = wp.int32(wp.argmin(values))
    second = 3 - first - last
    if first == last:
        first = 0
        second = 1
    u = wp.vec3f(vectors[0, first], vectors[1, first], vectors[2, first])
    v = wp.vec3f(vectors[0, second], vectors[1, second], vectors[2, second])
    return orthonormal_axes(u, v)


@wp.func_native("""
    wp::vec_t<6, wp::float32> out;
#if defined(__CUDA_ARCH__)
    float low[3], high[3];
    for (int i = 0; i < 3; ++i) { low[i] = INFINITY; high[i] = -INFINITY; }
    for (int k = 3 * first; k < 3 * last + 3; ++k) {
        const float4 p = __ldcg((const float4*)corners.data + k);
        for (int i = 0; i < 3; ++i) {
            const float at = axes.data[i][0] * p.x + axes.data[i][1] * p.y + axes.data[i][2] * p.z;
            low[i] = fminf(low[i], at);
            high[i] = fmaxf(high[i], at);
        }
    }
#else
    typedef float v4 __attribute__((vector_size(16)));
    v4 column[3], low = v4{} + __builtin_inff(), high = v4{} - __builtin_inff();
    for (int i = 0; i < 3; ++i)
        column[i] = v4{axes.data[0][i], axes.data[1][i], axes.data[2][i], 0.0f};
    const v4* at = (const v4*)(corners.data + 3 * first);
    const v4* end = (const v4*)(corners.data + 3 * last + 3);
    for (; at < end; ++at) {
        const v4 p = *at;
        const v4 q = column[0] * p[0] + column[1] * p[1] + column[2] * p[2];
        low = q < low ? q : low;
        high = q > high ? q : high;
    }
#endif
    for (int i = 0; i < 3; ++i) { out.c[i] = low[i]; out.c[3 + i] = high[i]; }
    return out;
""")
def extents_of_leaves(
    corners: wp.array[wp.vec4f], first: wp.int32, last: wp.int32, axes: wp.mat33f
) -> Extents:
    """Return the lower and upper extents along axes of the corners of some leaves.

    The corners may have been written in this launch, by threads that this one has waited for.
    """
    ...


@wp.func
def store_shape(rows: wp.array[wp.vec4f], slot: wp.int32, a: FaceShape):
    """Write the four rows of a shape; the scatter is symmetric."""
    at = SHAPE_ROWS * slot
    s = a.scatter
    store_vec4f(rows, at, wp.vec4f(a.mean[0], a.mean[1], a.mean[2], a.count))
    store_vec4f(rows, at + 1, wp.vec4f(s[0, 0], s[0, 1], s[0, 2], s[1, 1]))
    store_vec4f(rows, at + 2, wp.vec4f(s[1, 2], s[2, 2], a.size, wp.float32(0.0)))
    store_vec4f(rows, at + 3, to_vec4f(a.area))


@wp.func
def load_shape(rows: wp.array[wp.vec4f], slot: wp.int32):
    """Read a shape that another thread wrote in this launch."""
    at = SHAPE_ROWS * slot
    r0 = load_l2_vec4f(rows, at)
    r1 = load_l2_vec4f(rows, at + 1)
    r2 = load_l2_vec4f(rows, at + 2)
    out = FaceShape()
    out.mean = row_xyz(r0)
    out.count = r0[3]
    out.scatter = wp.mat33f(r1[0], r1[1], r1[2], r1[1], r1[3], r2[0], r1[2], r2[0], r2[1])
    out.size = r2[2]
    out.area = row_xyz(load_l2_vec4f(rows, at + 3))
    return out


@wp.func
def store_volume(rows: wp.array[wp.vec4f], slot: wp.int32, box: Obb, swept: wp.bool):
    """Write the three rows of a box, or of the swept sphere that its thickness is the radius of."""
    at = OBB_ROWS * slot
    c = box.centre
    u = box.axes[0]
    v = box.axes[1]
    h = box.half
    if swept:
        h = wp.vec3f(h[2], h[0], h[1])
        if not wp.isfinite(h):  # products of 0 and infinity are not numbers
            h = wp.vec3f(wp.inf, 0.0, 0.0)
    store_vec4f(rows, at, wp.vec4f(c[0], c[1], c[2], h[0]))
    store_vec4f(rows, at + 1, wp.vec4f(u[0], u[1], u[2], h[1]))
    store_vec4f(rows, at + 2, wp.vec4f(v[0], v[1], v[2], h[2]))


@wp.func
def load_l2_box(rows: wp.array[wp.vec4f], slot: wp.int32, swept: wp.bool):
    """Read a box that another thread wrote in this launch."""
    at = OBB_ROWS * slot
    box = unpack_obb(
        load_l2_vec4f(rows, at), load_l2_vec4f(rows, at + 1), load_l2_vec4f(rows, at + 2)
    )
    if swept:
        box.half = wp.vec3f(box.half[1], box.half[2], box.half[0])
    return box


@wp.func
def fit_leaves(
    corners: wp.array[wp.vec4f],
    first: wp.int32,
    last: wp.int32,
    axes: wp.mat33f,
    shape: FaceShape,
):
    """Fit a box along axes to the corners of some leaves of a shape."""
    own = wp.matrix_from_rows(axes[0], axes[1], wp.cross(axes[0], axes[1]))  # as readers have it
    extents = extents_of_leaves(corners, first, last, own)
    low = wp.vec3f(extents[0], extents[1], extents[2])
    high = wp.vec3f(extents[3], extents[4], extents[5])
    if not wp.isfinite(shape.mean):  # a corner is beyond float32
        high = wp.vec3f(wp.inf)
    return fit_obb(own, low, high)


@wp.func
def fit_aligned(node: Node):
    """Return the box of a node as an oriented one."""
    unit = wp.identity(n=3, dtype=wp.float32)
    return fit_obb(unit, row_xyz(node.low), row_xyz(node.high))


@wp.kernel
def fit_volumes_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    tree: BvhView,
    swept: wp.bool,
    arrivals: wp.array[wp.int32],
    # out
    corners_out: wp.array[wp.vec4f],
    shapes_out: wp.array[wp.vec4f],
    volumes_out: wp.array[wp.vec4f],
):
    """Fit the leaves and all nodes above; the second of two siblings to arrive continues."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        slot = tree.leaf_slots[k]
        face = faces[leaf_face(tree.nodes, slot)]
        p0 = to_vec3f(points[face[0]] - tree.origin)
        p1 = to_vec3f(points[face[1]] - tree.origin)
        p2 = to_vec3f(points[face[2]] - tree.origin)
        store_vec4f(corners_out, 3 * k, to_vec4f(p0))
        store_vec4f(corners_out, 3 * k + 1, to_vec4f(p1))
        store_vec4f(corners_out, 3 * k + 2, to_vec4f(p2))
        shape = shape_of_face(p0, p1, p2)
        box = fit_leaves(corners_out, k, k, axes_of_tri(p0, p1, p2), shape)
        first = wp.int32(k)
        last = wp.int32(k)
        while slot >= 0:
            store_shape(shapes_out, slot, shape)
            store_volume(volumes_out, slot, box, swept)
            parent = parent_if_second(tree, slot, arrivals)
            if parent >= 0:
                other = load_shape(shapes_out, slot ^ 1)
                if slot % 2 == 0:  # left and right, whichever arrived last
                    last += wp.int32(other.count)
                    shape = add_shapes(shape, other)
                else:
                    first -= wp.int32(other.count)
                    shape = add_shapes(other, shape)
                axes = axes_of_shape(shape)
                if last - first < EXACT:
                    box = fit_leaves(corners_out, first, last, axes, shape)
                else:
                    left = load_l2_box(volumes_out, slot & ~1, swept)
                    right = load_l2_box(volumes_out, slot | 1, swept)
                    box = merge_obb(left, right, axes)
                    aligned = fit_aligned(load_node(tree.nodes, parent))
                    if obb_area(aligned) < obb_area(box):
                        box = aligned
            slot = parent


def fit_node_obbs(tree: Bvh, points: wp.array, faces: wp.array) -> None:
    """Fit oriented boxes to all nodes of an up-to-date BVH."""
    if tree.obbs is None:
        tree.obbs = _rows(tree, OBB_ROWS)
    _fit(tree, points, faces, tree.obbs, swept=False)


def fit_node_rss(tree: Bvh, points: wp.array, faces: wp.array) -> None:
    """Fit rectangle swept spheres to all nodes of an up-to-date BVH."""
    if tree.rss is None:
        tree.rss = _rows(tree, OBB_ROWS)
    _fit(tree, points, faces, tree.rss, swept=True)


def _fit(tree: Bvh, points: wp.array, faces: wp.array, volumes: wp.array, swept: bool) -> None:
    def make() -> Task:
        corners = wp.empty(3 * tree.face_count, dtype=wp.vec4f, device=tree.nodes.device)
        scratch = [tree.arrivals, corners, _rows(tree, SHAPE_ROWS)]
        args = [points, faces, tree.view(), swept, *scratch, volumes]
        return Task(fit_volumes_kernel, tree.face_count, args, tree.nodes.device, grain=1024)

    tree.volume_tasks.get((points, volumes), make).run()


def _rows(tree: Bvh, rows: int) -> wp.array:
    count = rows * (2 * tree.face_count - 1)
    return wp.empty(count, dtype=wp.vec4f, device=tree.nodes.device)
