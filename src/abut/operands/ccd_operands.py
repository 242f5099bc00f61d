"""Sweep: what every stage of a continuous query knows, and how stages read moving features."""

from typing import Any

import warp as wp

from abut.core.pair_queue import PairQueue
from abut.geometry.approach import mat43d
from abut.geometry.common_corners import SHARED_BY_POSITION, SHARED_NONE
from abut.mesh import Mesh

VERTEX_FACE = wp.constant(0)  # vertex of a, face of b
EDGE_EDGE = wp.constant(1)
FACE_VERTEX = wp.constant(2)  # face of a, vertex of b: operands change places


@wp.struct
class MovingMesh:
    """A mesh that moves straight over a step."""

    points_t0: wp.array[wp.vec3d]
    points_t1: wp.array[wp.vec3d]
    faces: wp.array[wp.vec3i]
    edges: wp.array[wp.vec2i]
    used: wp.array[wp.bool]  # by faces, of each vertex; empty: all are


@wp.struct
class CcdOperands:
    """Operands, options and queues of one kind of feature pair in a continuous query."""

    a: MovingMesh
    b: MovingMesh
    kind: wp.int32
    sharing: wp.int32  # what the operands share, see common_corners
    bits: wp.vec2i  # layout of keys
    min_distance: wp.float64
    tolerance: wp.float64
    candidates: PairQueue
    possible: PairQueue
    impacts: PairQueue
    times: wp.array[wp.float64]  # of impacts
    converged: wp.array[wp.bool]
    best: wp.array[wp.int64]  # bits of the earliest time
    first: wp.bool  # later impacts are of no interest


@wp.func
def vertex_face_at(a: wp.array[wp.vec3d], b: wp.array[wp.vec3d], v: wp.int32, f: wp.vec3i):
    """A vertex and the corners of a face, one a row."""
    return wp.matrix_from_rows(a[v], b[f[0]], b[f[1]], b[f[2]])


@wp.func
def edge_edge_at(a: wp.array[wp.vec3d], b: wp.array[wp.vec3d], e: wp.vec2i, f: wp.vec2i):
    """The ends of two edges, one a row."""
    return wp.matrix_from_rows(a[e[0]], a[e[1]], b[f[0]], b[f[1]])


@wp.func
def same_path(p: mat43d, q: mat43d, i: wp.int32, j: wp.int32):
    """Are two points at one position both at the start and at the end?"""
    return p[i] == p[j] and q[i] == q[j]


@wp.func
def in_no_face(side: MovingMesh, v: wp.int32):
    """Is a vertex of no face, and so nothing that could touch?"""
    return side.used.shape[0] > 0 and not side.used[v]


@wp.func
def vertex_of_face(sharing: wp.int32, v: wp.int32, f: wp.vec3i):
    """Does the face name the vertex? Of one mesh only."""
    return sharing != SHARED_NONE and (v == f[0] or v == f[1] or v == f[2])


@wp.func
def vertex_at_face(sharing: wp.int32, p: mat43d, q: mat43d):
    """Is the vertex where a corner of the face is, throughout, and counts as that corner?"""
    return sharing == SHARED_BY_POSITION and (
        same_path(p, q, 0, 1) or same_path(p, q, 0, 2) or same_path(p, q, 0, 3)
    )


@wp.func
def edges_join(sharing: wp.int32, e: wp.vec2i, f: wp.vec2i):
    """Do two edges name the same vertex? Of one mesh only."""
    named = e[0] == f[0] or e[0] == f[1] or e[1] == f[0] or e[1] == f[1]
    return sharing != SHARED_NONE and named


@wp.func
def edges_touch_ends(sharing: wp.int32, p: mat43d, q: mat43d):
    """Have two edges ends that are at one place throughout, and count as one vertex?"""
    return sharing == SHARED_BY_POSITION and (
        same_path(p, q, 0, 2)
        or same_path(p, q, 0, 3)
        or same_path(p, q, 1, 2)
        or same_path(p, q, 1, 3)
    )


def moving(mesh: Mesh, points_t0: wp.array, points_t1: wp.array) -> Any:
    """The struct to pass to kernels."""
    view = MovingMesh()
    view.points_t0, view.points_t1 = points_t0, points_t1
    view.faces, view.edges, view.used = mesh.faces, mesh.edges, mesh.used
    return view
