"""Oriented boxes for the nodes of a BVH, and rectangle swept spheres, which are stored alike.

One pass upwards sums the shape of the faces below each node: their mean, their scatter and their
area vectors. The axes are the normal of the sum of area vectors and the direction of most scatter
across it, or the principal axes where the faces turn against each other. Boxes are fitted to the
corners below: merged from those of the children they would be one and a half times as thick.
"""

from typing import Any

import warp as wp

from abut.bounds.float32 import row_xyz, to_vec3f, to_vec4f
from abut.bounds.obb import Obb, axes_of_tri, fit_obb, orthonormal_axes, to_unit_size
from abut.bvh.layout import Bvh, BvhView, leaf_face, link_at, parent_if_second, vec4_with_int
from abut.core.lanes import WARP_SIZE, lane_count, lane_index, warp_min_float32
from abut.core.launch import Task
from abut.core.memory_access import load_l2_vec4f, store_vec4f

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 1})

OBB_ROWS = wp.constant(4)  # a line of the cache: three rows of a volume, and the link of its node
SHAPE_ROWS = wp.constant(4)
THREAD_LEAVES = 64  # of a node that a CUDA thread fits; a team fits larger ones
ONE_SIDED = wp.constant(wp.float32(0.5))  # share of the area that the sum of area vectors keeps

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
def length_in_range(v: wp.vec3f):
    """Return the length of a vector whose square may be beyond float32; NaN of an infinite one."""
    return wp.max(wp.abs(v)) * wp.length(to_unit_size(v))


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
    out.size = length_in_range(out.area)
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
    if length_in_range(shape.area) > ONE_SIDED * shape.size:
        return axes_across(wp.normalize(to_unit_size(shape.area)), shape.scatter)
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
    for (int k = first; k < stop; k += step) {
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
    for (int k = first; k < stop; k += step) {
        const v4 p = *(const v4*)(corners.data + k);
        const v4 q = column[0] * p[0] + column[1] * p[1] + column[2] * p[2];
        low = q < low ? q : low;
        high = q > high ? q : high;
    }
#endif
    for (int i = 0; i < 3; ++i) { out.c[i] = low[i]; out.c[3 + i] = high[i]; }
    return out;
""")
def extents_of_corners(
    corners: wp.array[wp.vec4f], first: wp.int32, stop: wp.int32, step: wp.int32, axes: wp.mat33f
) -> Extents:
    """Return the lower and upper extents along axes of the corners first, first + step, ….

    They may have been written in this launch, by threads that this one has waited for.
    """
    ...


@wp.func
def store_shape(rows: wp.array[wp.vec4f], slot: wp.int32, a: FaceShape, first: wp.int32):
    """Write the four rows of a shape and its first leaf; the scatter is symmetric."""
    at = SHAPE_ROWS * slot
    s = a.scatter
    store_vec4f(rows, at, wp.vec4f(a.mean[0], a.mean[1], a.mean[2], a.count))
    store_vec4f(rows, at + 1, wp.vec4f(s[0, 0], s[0, 1], s[0, 2], s[1, 1]))
    store_vec4f(rows, at + 2, wp.vec4f(s[1, 2], s[2, 2], a.size, wp.cast(first, wp.float32)))
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
def store_volume(
    rows: wp.array[wp.vec4f], slot: wp.int32, box: Obb, swept: wp.bool, link: wp.int32
):
    """Write the rows of a box, or of the swept sphere that its thickness is the radius of."""
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
    store_vec4f(rows, at + 3, vec4_with_int(wp.vec3f(), link))


@wp.func
def box_along(axes: wp.mat33f, extents: Extents, shape: FaceShape):
    """Return the box of a shape with given extents along axes."""
    low = wp.vec3f(extents[0], extents[1], extents[2])
    high = wp.vec3f(extents[3], extents[4], extents[5])
    if not wp.isfinite(shape.mean):  # a corner is beyond float32
        high = wp.vec3f(wp.inf)
    return fit_obb(axes, low, high)


@wp.func
def as_read(axes: wp.mat33f):
    """Return axes as readers have them: the third is the product of the others."""
    return wp.matrix_from_rows(axes[0], axes[1], wp.cross(axes[0], axes[1]))


@wp.struct
class VolumeFit:
    """Arrays of a fit upwards: scratch, and the volumes that it writes."""

    corners: wp.array[wp.vec4f]  # of all leaves, ``each`` of a leaf
    shapes: wp.array[wp.vec4f]
    arrivals: wp.array[wp.int32]
    volumes: wp.array[wp.vec4f]
    each: wp.int32
    largest: wp.int32  # nodes with more leaves only get their shape
    swept: wp.bool  # write swept spheres
    pad: wp.float32  # margin around the corners


@wp.func
def fit_leaves(fit: VolumeFit, first: wp.int32, last: wp.int32, axes: wp.mat33f, shape: FaceShape):
    """Fit a box along axes to the corners of some leaves of a shape, and widen it."""
    own = as_read(axes)
    stop = fit.each * (last + 1)
    box = box_along(own, extents_of_corners(fit.corners, fit.each * first, stop, 1, own), shape)
    box.half += wp.vec3f(fit.pad)
    return box


@wp.func
def fit_upwards(tree: BvhView, k: wp.int32, axes: wp.mat33f, face: FaceShape, fit: VolumeFit):
    """Fit leaf k, whose corners are written, and nodes above.

    The second of two siblings to arrive continues.
    """
    slot = tree.leaf_slots[k]
    shape = face
    box = fit_leaves(fit, k, k, axes, shape)
    first = wp.int32(k)
    last = wp.int32(k)
    while slot >= 0:
        store_shape(fit.shapes, slot, shape, first)
        if last - first < fit.largest:
            store_volume(fit.volumes, slot, box, fit.swept, link_at(tree.nodes, slot))
        parent = parent_if_second(tree, slot, fit.arrivals)
        if parent >= 0:
            other = load_shape(fit.shapes, slot ^ 1)
            if slot % 2 == 0:  # left and right, whichever arrived last
                last += wp.int32(other.count)
                shape = add_shapes(shape, other)
            else:
                first -= wp.int32(other.count)
                shape = add_shapes(other, shape)
            if last - first < fit.largest:
                box = fit_leaves(fit, first, last, axes_of_shape(shape), shape)
        slot = parent


@wp.kernel
def fit_volumes_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    tree: BvhView,
    # out
    fit_out: VolumeFit,
):
    """Fit the volumes of all faces and of the nodes above."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        face = faces[leaf_face(tree.nodes, tree.leaf_slots[k])]
        p0 = to_vec3f(points[face[0]] - tree.origin)
        p1 = to_vec3f(points[face[1]] - tree.origin)
        p2 = to_vec3f(points[face[2]] - tree.origin)
        store_vec4f(fit_out.corners, 3 * k, to_vec4f(p0))
        store_vec4f(fit_out.corners, 3 * k + 1, to_vec4f(p1))
        store_vec4f(fit_out.corners, 3 * k + 2, to_vec4f(p2))
        shape = shape_of_face(p0, p1, p2)
        fit_upwards(tree, k, axes_of_tri(p0, p1, p2), shape, fit_out)


@wp.kernel
def fit_large_kernel(
    # in
    span: wp.vec3i,
    nodes: wp.array[wp.vec4f],
    # out
    fit_out: VolumeFit,
):
    """Fit the nodes that ``fit_upwards`` leaves out, a team for each slot."""
    for item in range(span[0] + wp.tid(), span[1], span[2]):
        slot = item / lane_count()
        shape = load_shape(fit_out.shapes, slot)
        if shape.count > wp.float32(fit_out.largest):
            leaf = wp.cast(load_l2_vec4f(fit_out.shapes, SHAPE_ROWS * slot + 2)[3], wp.int32)
            first = fit_out.each * leaf
            stop = first + fit_out.each * wp.int32(shape.count)
            axes = as_read(axes_of_shape(shape))
            at = first + lane_index()
            extents = extents_of_corners(fit_out.corners, at, stop, lane_count(), axes)
            for i in range(3):
                extents[i] = warp_min_float32(extents[i])
                extents[3 + i] = -warp_min_float32(-extents[3 + i])
            if lane_index() == 0:
                box = box_along(axes, extents, shape)
                box.half += wp.vec3f(fit_out.pad)
                link = link_at(nodes, slot)
                store_volume(fit_out.volumes, slot, box, fit_out.swept, link)


def fit_node_obbs(tree: Bvh, points: wp.array, faces: wp.array) -> None:
    """Fit oriented boxes to all nodes of an up-to-date BVH."""
    volumes = volume_rows(tree) if tree.obbs is None else tree.obbs
    _fit(tree, points, faces, volumes, swept=False)
    tree.obbs = volumes  # other threads read it at any time


def fit_node_rss(tree: Bvh, points: wp.array, faces: wp.array, afresh: bool = False) -> None:
    """Fit rectangle swept spheres to all nodes of an up-to-date BVH; ``afresh`` in a new array."""
    volumes = volume_rows(tree) if afresh or tree.rss is None else tree.rss
    _fit(tree, points, faces, volumes, swept=True)
    tree.rss = volumes  # other threads read it at any time


def _fit(tree: Bvh, points: wp.array, faces: wp.array, volumes: wp.array, swept: bool) -> None:
    def make() -> list[Task]:
        fit = volume_fit(tree, 3, volumes, swept)
        return fit_tasks(tree, fit_volumes_kernel, [points, faces], fit)

    for task in tree.volume_tasks.get((points, volumes), make):
        task.run()


def volume_fit(tree: Bvh, each: int, volumes: wp.array, swept: bool, pad: float = 0.0) -> Any:
    """VolumeFit of a BVH with ``each`` corners a leaf, with scratch of its own."""
    device, fit = tree.nodes.device, VolumeFit()
    fit.corners = wp.empty(each * tree.face_count, dtype=wp.vec4f, device=device)
    fit.shapes, fit.arrivals = volume_rows(tree, SHAPE_ROWS), tree.arrivals
    fit.volumes, fit.each, fit.swept = volumes, each, swept
    fit.largest = THREAD_LEAVES if device.is_cuda else tree.face_count
    fit.pad = pad
    return fit


def fit_tasks(tree: Bvh, kernel: wp.Kernel, arrays: list[Any], fit: Any) -> list[Task]:
    """Launches of a kernel over all leaves, and of the one for large nodes."""
    device, slots = tree.nodes.device, 2 * tree.face_count - 1
    tasks = [Task(kernel, tree.face_count, [*arrays, tree.view(), fit], device, grain=1024)]
    if fit.largest < tree.face_count:
        tasks.append(Task(fit_large_kernel, WARP_SIZE * slots, [tree.nodes, fit], device))
    return tasks


def volume_rows(tree: Bvh, rows: int = OBB_ROWS) -> wp.array:
    """A new array with so many rows for each slot."""
    count = rows * (2 * tree.face_count - 1)
    return wp.empty(count, dtype=wp.vec4f, device=tree.nodes.device)
