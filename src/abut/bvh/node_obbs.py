"""Oriented boxes for the nodes of a BVH: principal axes of the points below, merged bottom-up."""

import warp as wp

from abut.bounds.float32 import row_xyz, to_vec3f
from abut.bounds.obb import Obb, fit_obb, merge_obb, orthonormal_axes, unpack_obb
from abut.bvh.layout import Bvh, BvhView, leaf_face, parent_if_second
from abut.core.launch import launch
from abut.core.memory_access import load_l2_vec4f, store_vec4f

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 1})

OBB_ROWS = wp.constant(3)
MOMENT_ROWS = wp.constant(3)


@wp.struct
class Moments:
    """Sums over points: their number, the points, their outer products."""

    count: wp.float32
    sum: wp.vec3f
    squares: wp.mat33f


@wp.func
def moments_of(p: wp.vec3f):
    """Return the moments of one point."""
    out = Moments()
    out.count = wp.float32(1.0)
    out.sum = p
    out.squares = wp.outer(p, p)
    return out


@wp.func
def add_moments(a: Moments, b: Moments):
    """Return the moments of the union of two sets."""
    out = Moments()
    out.count = a.count + b.count
    out.sum = a.sum + b.sum
    out.squares = a.squares + b.squares
    return out


@wp.func
def principal_axes(m: Moments):
    """Return the axes of largest and second largest variance, and the third."""
    mean = m.sum / m.count
    spread = m.squares / m.count - wp.outer(mean, mean)
    vectors, values = wp.eig3(spread)
    first = wp.int32(wp.argmax(values))
    last = wp.int32(wp.argmin(values))
    second = 3 - first - last
    if first == last:
        first = 0
        second = 1
    u = wp.vec3f(vectors[0, first], vectors[1, first], vectors[2, first])
    v = wp.vec3f(vectors[0, second], vectors[1, second], vectors[2, second])
    return orthonormal_axes(u, v)


@wp.func
def store_obb(rows: wp.array[wp.vec4f], slot: wp.int32, box: Obb):
    """Write the three rows of a box."""
    at = OBB_ROWS * slot
    u = box.axes[0]
    v = box.axes[1]
    store_vec4f(rows, at, wp.vec4f(box.centre[0], box.centre[1], box.centre[2], box.half[0]))
    store_vec4f(rows, at + 1, wp.vec4f(u[0], u[1], u[2], box.half[1]))
    store_vec4f(rows, at + 2, wp.vec4f(v[0], v[1], v[2], box.half[2]))


@wp.func
def store_moments(rows: wp.array[wp.vec4f], slot: wp.int32, m: Moments):
    """Write the three rows of moments; the products are symmetric."""
    at = MOMENT_ROWS * slot
    s = m.squares
    store_vec4f(rows, at, wp.vec4f(m.sum[0], m.sum[1], m.sum[2], m.count))
    store_vec4f(rows, at + 1, wp.vec4f(s[0, 0], s[0, 1], s[0, 2], s[1, 1]))
    store_vec4f(rows, at + 2, wp.vec4f(s[1, 2], s[2, 2], wp.float32(0.0), wp.float32(0.0)))


@wp.func
def load_moments(rows: wp.array[wp.vec4f], slot: wp.int32):
    """Read the moments another thread wrote in this launch."""
    r0 = load_l2_vec4f(rows, MOMENT_ROWS * slot)
    r1 = load_l2_vec4f(rows, MOMENT_ROWS * slot + 1)
    r2 = load_l2_vec4f(rows, MOMENT_ROWS * slot + 2)
    out = Moments()
    out.count = r0[3]
    out.sum = row_xyz(r0)
    out.squares = wp.mat33f(r1[0], r1[1], r1[2], r1[1], r1[3], r2[0], r1[2], r2[0], r2[1])
    return out


@wp.func
def load_l2_obb(rows: wp.array[wp.vec4f], slot: wp.int32):
    """Read the box another thread wrote in this launch."""
    at = OBB_ROWS * slot
    return unpack_obb(
        load_l2_vec4f(rows, at), load_l2_vec4f(rows, at + 1), load_l2_vec4f(rows, at + 2)
    )


@wp.kernel
def fit_node_obbs_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    tree: BvhView,
    arrivals: wp.array[wp.int32],
    # out
    moments_out: wp.array[wp.vec4f],
    obbs_out: wp.array[wp.vec4f],
):
    """Fit the leaves and merge upwards; the second of two siblings to arrive continues."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        slot = tree.leaf_slots[k]
        face = faces[leaf_face(tree.nodes, slot)]
        p0 = to_vec3f(points[face[0]] - tree.origin)
        p1 = to_vec3f(points[face[1]] - tree.origin)
        p2 = to_vec3f(points[face[2]] - tree.origin)
        box = fit_obb(p0, p1, p2)
        moments = add_moments(add_moments(moments_of(p0), moments_of(p1)), moments_of(p2))
        while slot >= 0:
            store_obb(obbs_out, slot, box)
            store_moments(moments_out, slot, moments)
            parent = parent_if_second(tree, slot, arrivals)
            if parent >= 0:
                moments = add_moments(moments, load_moments(moments_out, slot ^ 1))
                axes = principal_axes(moments)
                box = merge_obb(box, load_l2_obb(obbs_out, slot ^ 1), axes)
            slot = parent


def fit_node_obbs(tree: Bvh, points: wp.array, faces: wp.array) -> None:
    """Fit oriented boxes to all nodes of an up-to-date BVH."""
    device = tree.nodes.device
    slots = 2 * tree.face_count - 1
    moments = wp.empty(MOMENT_ROWS * slots, dtype=wp.vec4f, device=device)
    if tree.obbs is None:
        tree.obbs = wp.empty(OBB_ROWS * slots, dtype=wp.vec4f, device=device)
    args = [points, faces, tree.view(), tree.arrivals, moments, tree.obbs]
    launch(fit_node_obbs_kernel, tree.face_count, args, device, grain=512)
