"""The corners of faces side by side, in the order of the leaves of a tree, for cheap tests.

Three rows a leaf, of four float32: a corner relative to the tree's origin, and its vertex; the
complement of the vertex where float32 does not hold the corner exactly.
"""

import warp as wp

from abut.atomics import load_wide
from abut.geometry.planes_apart import INEXACT, LEAST_SLACK, Corners
from abut.hierarchy.tree import Tree, with_integer

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

CORNER_ROWS = wp.constant(3)


@wp.func
def corner_row(p: wp.vec3d, vertex: wp.int32, origin: wp.vec3d):
    """A corner and its vertex in a row."""
    away = p - origin
    single = wp.vec3f(wp.float32(away[0]), wp.float32(away[1]), wp.float32(away[2]))
    exact = origin == wp.vec3d() and wp.vec3d(single) == p
    return with_integer(single, wp.where(exact, vertex, -1 - vertex))


@wp.kernel
def corners_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    origin: wp.vec3d,
    nodes: wp.array[wp.vec4f],
    leaf_slots: wp.array[wp.int32],
    # out
    rows_out: wp.array[wp.vec4f],
):
    """Gather the corners of each leaf."""
    for k in range(span[0] + wp.tid(), span[1], span[2]):
        face = faces[-1 - wp.cast(nodes[2 * leaf_slots[k]][3], wp.int32)]
        for i in range(3):
            rows_out[CORNER_ROWS * k + i] = corner_row(points[face[i]], face[i], origin)


@wp.func
def slack_of(row: wp.vec4f):
    """By how much the coordinates of a corner may be off."""
    off = wp.float32(0.0)
    if wp.cast(row[3], wp.int32) < 0:
        far = wp.max(wp.abs(row[0]), wp.max(wp.abs(row[1]), wp.abs(row[2])))
        off = INEXACT * far + LEAST_SLACK
    return off


@wp.func
def vertex_of(row: wp.vec4f):
    """The vertex of a corner."""
    vertex = wp.cast(row[3], wp.int32)
    return wp.where(vertex < 0, -1 - vertex, vertex)


@wp.func
def load_corners(rows: wp.array[wp.vec4f], leaf: wp.int32):
    """The corners of a leaf."""
    p = load_wide(rows, CORNER_ROWS * leaf)
    q = load_wide(rows, CORNER_ROWS * leaf + 1)
    r = load_wide(rows, CORNER_ROWS * leaf + 2)
    out = Corners()
    out.points = wp.mat33f(p[0], p[1], p[2], q[0], q[1], q[2], r[0], r[1], r[2])
    out.index = wp.vec3i(vertex_of(p), vertex_of(q), vertex_of(r))
    out.slack = wp.max(slack_of(p), wp.max(slack_of(q), slack_of(r)))
    return out


def corner_rows(tree: Tree) -> wp.array:
    """Room for the corners of a tree's leaves."""
    if tree.corners is None:
        count = CORNER_ROWS * tree.face_count
        tree.corners = wp.empty(count, dtype=wp.vec4f, device=tree.nodes.device)
    return tree.corners
