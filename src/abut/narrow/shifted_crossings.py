"""Crossings of the faces of two solids, and the vertices of one inside the other, b shifted.

The infinitesimal shift of b (``shifted_signs``) puts any two solids in general position: curves of
contact are closed, and every vertex is inside or outside.
"""

import numpy as np
import warp as wp

from abut.bvh.bvh_cache import bvh_of
from abut.bvh.layout import BvhView
from abut.core.launch import launch
from abut.geometry.cross_tri_tri import cross_tri_tri
from abut.geometry.poses import move_point
from abut.mesh import Mesh
from abut.narrow.inside import cross_ray_tree
from abut.operands.posed_mesh import PosedMesh, load_face, pose_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})


@wp.struct
class CrossingRows:
    """One row for each pair of faces that meet, see ``CrossingSegment``; ``edges`` start, stop."""

    pairs: wp.array2d[wp.int32]
    pose: wp.array[wp.int32]
    points: wp.array2d[wp.vec3d]
    edges: wp.array2d[wp.int32]
    shares: wp.array2d[wp.float64]
    coplanar: wp.array[wp.bool]


@wp.kernel
def cross_faces_kernel(
    # in
    span: wp.vec3i,
    a: PosedMesh,
    b: PosedMesh,
    # out
    rows_out: CrossingRows,
    crossed_a_out: wp.array2d[wp.uint8],
    crossed_b_out: wp.array2d[wp.uint8],
):
    """Cross each pair of faces; mark the crossed edges of both, three for each face and pose."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        pose = rows_out.pose[i]
        face_a = rows_out.pairs[i, 0]
        face_b = rows_out.pairs[i, 1]
        segment = cross_tri_tri(load_face(a, face_a, pose), load_face(b, face_b, pose))
        rows_out.points[i, 0] = segment.start
        rows_out.points[i, 1] = segment.stop
        rows_out.edges[i, 0] = segment.start_edge
        rows_out.edges[i, 1] = segment.stop_edge
        rows_out.shares[i, 0] = segment.start_share
        rows_out.shares[i, 1] = segment.stop_share
        rows_out.coplanar[i] = segment.coplanar
        for end in range(2):
            edge = rows_out.edges[i, end]
            if edge >= 3:
                crossed_b_out[pose, 3 * face_b + edge - 3] = wp.uint8(1)
            elif edge >= 0:
                crossed_a_out[pose, 3 * face_a + edge] = wp.uint8(1)


@wp.func
def root_of_vertex(labels: wp.array2d[wp.int32], pose: wp.int32, vertex: wp.int32):
    """Return the representative of a vertex, and halve the path to it."""
    v = vertex
    while labels[pose, v] != v:
        labels[pose, v] = labels[pose, labels[pose, v]]
        v = labels[pose, v]
    return v


@wp.kernel
def join_vertices_kernel(
    # in
    span: wp.vec3i,
    faces: wp.array[wp.vec3i],
    crossed: wp.array2d[wp.uint8],
    # out
    labels_out: wp.array2d[wp.int32],
):
    """Label the vertices of each pose by the lowest one that uncrossed edges join to them."""
    for pose in range(span[0] + wp.tid(), span[1], span[2]):
        for face in range(faces.shape[0]):
            for k in range(3):
                u = faces[face][k]
                v = faces[face][(k + 1) % 3]
                if labels_out[pose, u] < 0:
                    labels_out[pose, u] = u
                if labels_out[pose, v] < 0:
                    labels_out[pose, v] = v
                # a closed mesh has every edge in both directions
                if u < v and crossed[pose, 3 * face + k] == wp.uint8(0):
                    root_u = root_of_vertex(labels_out, pose, u)
                    root_v = root_of_vertex(labels_out, pose, v)
                    labels_out[pose, wp.max(root_u, root_v)] = wp.min(root_u, root_v)
        for v in range(labels_out.shape[1]):
            if labels_out[pose, v] >= 0:
                labels_out[pose, v] = labels_out[pose, labels_out[pose, v]]


@wp.kernel
def label_corners_kernel(
    # in
    span: wp.vec3i,
    faces: wp.array[wp.vec3i],
    # out
    labels_out: wp.array2d[wp.int32],
):
    """Label each vertex of each (pose, face) by itself."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        corners = faces[i % faces.shape[0]]
        for k in range(3):
            labels_out[i / faces.shape[0], corners[k]] = corners[k]


@wp.kernel
def wind_kernel(
    # in
    span: wp.vec3i,
    inner: PosedMesh,
    outer: PosedMesh,
    tree: BvhView,
    shift: wp.int32,
    labels: wp.array2d[wp.int32],
    # out
    winding_out: wp.array2d[wp.int32],
):
    """Shoot a ray from each (pose, vertex) that is its own label."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        pose = i / labels.shape[1]
        v = i % labels.shape[1]
        if labels[pose, v] == v:
            p = inner.points[v]
            if inner.pose_count > 0:
                p = move_point(pose_of(inner, pose), p)
            winding_out[pose, v] = cross_ray_tree(p, outer, pose, tree, shift)[0]


def cross_faces(
    a: PosedMesh, b: PosedMesh, pairs: wp.array, pose: wp.array, pose_count: int
) -> tuple[CrossingRows, tuple[wp.array, wp.array]]:
    """Return the crossings of pairs of faces that meet, and the crossed edges of a and b.

    Returns:
        Rows; (pose_count, 3 m) uint8 for each mesh, 1 for edges that the other surface crosses.
    """
    device, count = pairs.device, pairs.shape[0]
    rows = CrossingRows()
    rows.pairs, rows.pose = pairs, pose
    rows.points = wp.empty((count, 2), dtype=wp.vec3d, device=device)
    rows.edges = wp.empty((count, 2), dtype=wp.int32, device=device)
    rows.shares = wp.empty((count, 2), dtype=wp.float64, device=device)
    rows.coplanar = wp.empty(count, dtype=wp.bool, device=device)
    crossed = tuple(
        wp.zeros((pose_count, 3 * side.faces.shape[0]), dtype=wp.uint8, device=device)
        for side in (a, b)
    )
    launch(cross_faces_kernel, count, [a, b, rows, *crossed], device, grain=256)
    return rows, crossed


def windings_of_vertices(
    inner: Mesh,
    outer: Mesh,
    posed: tuple[PosedMesh, PosedMesh],
    crossed: wp.array,
    shift: int,
    joined: bool | None = None,
) -> tuple[wp.array, wp.array]:
    """Return how often ``outer`` winds around the vertices of ``inner``: 1 inside, 0 outside.

    Args:
        inner, outer: Closed meshes, oriented outward.
        posed: Both with poses.
        crossed: (poses, 3 m) crossed edges of ``inner``.
        shift: 1 if ``inner`` is shifted, -1 if ``outer`` is.
        joined: Shoot one ray for vertices that uncrossed edges join, rather than one for each
            vertex; None does so on the CPU. The answer is the same.

    Returns:
        labels, windings: (poses, n) int32. The winding number at vertex v is
        ``windings[pose, labels[pose, v]]``. Labels are -1 for vertices that no face uses or that
        are at the position of a lower vertex.

    Guarantee:
        Exact.
    """
    device = inner.device
    faces = welded_faces(inner)
    poses, count = crossed.shape[0], inner.vertex_count
    if device.is_cpu if joined is None else joined:
        labels = _join_vertices(faces, crossed, count).to(device)
    else:
        labels = wp.full((poses, count), -1, dtype=wp.int32, device=device)
        launch(label_corners_kernel, poses * faces.shape[0], [faces, labels], device)
    windings = wp.zeros((poses, count), dtype=wp.int32, device=device)
    args = [*posed, bvh_of(outer).view(), shift, labels, windings]
    launch(wind_kernel, poses * count, args, device, grain=1024)
    return labels, windings


def _join_vertices(faces: wp.array, crossed: wp.array, vertex_count: int) -> wp.array:
    """Return (poses, n) labels of vertices that uncrossed edges join, computed on the CPU."""
    poses, cpu = crossed.shape[0], wp.get_device("cpu")
    labels = wp.full((poses, vertex_count), -1, dtype=wp.int32, device=cpu)
    args = [faces.to(cpu), crossed.to(cpu), labels]
    launch(join_vertices_kernel, poses, args, cpu, grain=1)
    return labels


def welded_faces(mesh: Mesh) -> wp.array:
    """Return the faces with vertices at equal positions replaced by the lowest of them."""

    def make() -> wp.array:
        welded = mesh.topology.welded
        if (welded == np.arange(len(welded))).all():
            return mesh.faces
        faces = welded[mesh.faces.numpy()].astype(np.int32)
        return wp.array(faces, dtype=wp.vec3i, device=mesh.device)

    return mesh.per_shape("welded_faces", make)
