"""CcdOperands: operands, options and queues of a continuous query, as kernels receive them."""

from typing import Any

import warp as wp

from abut.core.pair_queue import PairQueue
from abut.geometry.approach import mat43d
from abut.geometry.common_corners import SHARED_BY_POSITION, SHARED_NONE
from abut.mesh import Mesh

VERTEX_FACE = wp.constant(0)  # vertex of a, face of b
EDGE_EDGE = wp.constant(1)
FACE_VERTEX = wp.constant(2)  # face of a, vertex of b; the operands are swapped


@wp.struct
class MovingMesh:
    """A mesh whose vertices move in straight lines over a step."""

    points_t0: wp.array[wp.vec3d]
    points_t1: wp.array[wp.vec3d]
    faces: wp.array[wp.vec3i]
    edges: wp.array[wp.vec2i]
    used: wp.array[wp.bool]  # whether a face has the vertex; empty: all are used


@wp.struct
class CcdOperands:
    """Operands, options and queues of one kind of feature pair."""

    a: MovingMesh
    b: MovingMesh
    kind: wp.int32
    sharing: wp.int32  # vertices that the operands share, see common_corners
    bits: wp.vec2i  # layout of keys
    min_distance: wp.float64
    tolerance: wp.float64
    candidates: PairQueue
    possible: PairQueue
    impacts: PairQueue
    times: wp.array[wp.float64]  # of impacts
    converged: wp.array[wp.bool]
    best: wp.array[wp.int64]  # bits of the earliest time
    first: wp.bool  # only the earliest impact is wanted
    labels_a: wp.array[wp.int32]  # of vertices; empty: no pair is ignored
    labels_b: wp.array[wp.int32]
    ignored: wp.array2d[wp.bool]  # pairs of labels that do not collide; empty: equal ones


@wp.func
def vertices_ignored(operands: CcdOperands, v: wp.int32, w: wp.int32):
    """True when the labels of two vertices do not collide."""
    a = operands.labels_a[v]
    b = operands.labels_b[w]
    count = operands.ignored.shape[0]
    if count == 0:
        return a == b
    if a < 0 or b < 0 or a >= count or b >= count:
        return False
    return operands.ignored[a, b]


@wp.func
def vertex_face_ignored(operands: CcdOperands, v: wp.int32, f: wp.vec3i):
    """True when a vertex does not collide with any corner of a face."""
    ignored = operands.labels_a.shape[0] > 0
    for k in range(3):
        ignored = ignored and vertices_ignored(operands, v, f[k])
    return ignored


@wp.func
def edges_ignored(operands: CcdOperands, e: wp.vec2i, f: wp.vec2i):
    """True when no ends of two edges collide."""
    ignored = operands.labels_a.shape[0] > 0
    for k in range(4):
        ignored = ignored and vertices_ignored(operands, e[k / 2], f[k % 2])
    return ignored


@wp.func
def vertex_face_at(a: wp.array[wp.vec3d], b: wp.array[wp.vec3d], v: wp.int32, f: wp.vec3i):
    """Matrix of a vertex and the corners of a face, one a row."""
    return wp.matrix_from_rows(a[v], b[f[0]], b[f[1]], b[f[2]])


@wp.func
def edge_edge_at(a: wp.array[wp.vec3d], b: wp.array[wp.vec3d], e: wp.vec2i, f: wp.vec2i):
    """Matrix of the endpoints of two edges, one a row."""
    return wp.matrix_from_rows(a[e[0]], a[e[1]], b[f[0]], b[f[1]])


@wp.func
def same_path(p: mat43d, q: mat43d, i: wp.int32, j: wp.int32):
    """True when two points coincide both at the start and at the end."""
    return p[i] == p[j] and q[i] == q[j]


@wp.func
def in_no_face(side: MovingMesh, v: wp.int32):
    """True when no face has the vertex, so that it cannot touch anything."""
    return side.used.shape[0] > 0 and not side.used[v]


@wp.func
def vertex_of_face(sharing: wp.int32, v: wp.int32, f: wp.vec3i):
    """True when the face has the vertex, within one mesh."""
    return sharing != SHARED_NONE and (v == f[0] or v == f[1] or v == f[2])


@wp.func
def vertex_at_face(sharing: wp.int32, p: mat43d, q: mat43d):
    """True when the vertex moves with a corner of the face and counts as that corner."""
    return sharing == SHARED_BY_POSITION and (
        same_path(p, q, 0, 1) or same_path(p, q, 0, 2) or same_path(p, q, 0, 3)
    )


@wp.func
def edges_join(sharing: wp.int32, e: wp.vec2i, f: wp.vec2i):
    """True when two edges have a vertex in common, within one mesh."""
    named = e[0] == f[0] or e[0] == f[1] or e[1] == f[0] or e[1] == f[1]
    return sharing != SHARED_NONE and named


@wp.func
def edges_touch(sharing: wp.int32, p: mat43d, q: mat43d):
    """True when endpoints of two edges move together and count as one vertex."""
    return sharing == SHARED_BY_POSITION and (
        same_path(p, q, 0, 2)
        or same_path(p, q, 0, 3)
        or same_path(p, q, 1, 2)
        or same_path(p, q, 1, 3)
    )


def moving_mesh(mesh: Mesh, points_t0: wp.array, points_t1: wp.array) -> Any:
    """MovingMesh of a mesh with the given points."""
    view = MovingMesh()
    view.points_t0, view.points_t1 = points_t0, points_t1
    view.faces, view.edges, view.used = mesh.faces, mesh.edges, mesh.used
    return view
