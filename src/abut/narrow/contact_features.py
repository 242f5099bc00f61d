"""Edges and corners of faces that meet the other face, and the overlaps of coplanar faces."""

from dataclasses import dataclass

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.geometry.clip_tri_tri import (
    POLYGON_SIZE,
    clip_tri_tri,
    polygon_area_vector,
    polygon_centroid,
)
from abut.geometry.intersect_tri_tri_exact import point_in_tri, segment_intersects_tri
from abut.geometry.orientation_table import TABLE_SIZE, fill_orientation_table, orient3d_at
from abut.geometry.segment_tri_tri import IntersectionSegment, extend_by_edge
from abut.geometry.shifted_signs import normal_sign
from abut.operands.posed_mesh import PosedMesh, load_face

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})


@wp.kernel
def contact_features_kernel(
    # in
    span: wp.vec3i,
    a: PosedMesh,
    b: PosedMesh,
    pairs: wp.array2d[wp.int32],
    # out
    features_out: wp.array[wp.int32],
    alike_out: wp.array[wp.int32],
    ends_out: wp.array2d[wp.vec3d],
    overlap_out: wp.array[wp.vec3d],
    centroid_out: wp.array[wp.vec3d],
):
    """Features of each pair of faces that meet, see ``contact_features``."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        face_a = load_face(a, pairs[i, 0], 0)
        face_b = load_face(b, pairs[i, 1], 0)
        points = wp.zeros(shape=(6,), dtype=wp.vec3d)
        table = wp.zeros(shape=(TABLE_SIZE,), dtype=wp.int32)
        for k in range(3):
            points[k] = face_a[k]
            points[3 + k] = face_b[k]
        fill_orientation_table(points, table, 0, 1)
        bits = wp.int32(0)
        coplanar = wp.bool(True)
        segment = IntersectionSegment()
        for k in range(6):
            t = wp.where(k < 3, 0, 3)
            segment = extend_by_edge(segment, points, table, k, t + (k + 1) % 3, 3 - t)
            if segment_intersects_tri(points, table, k, t + (k + 1) % 3, 3 - t):
                bits = bits | (1 << k)
            if point_in_tri(points, table, k, 3 - t):
                bits = bits | (64 << k)
            if orient3d_at(table, 3 - t, 4 - t, 5 - t, k) != 0:
                coplanar = False
        features_out[i] = bits
        alike = wp.int32(0)
        area = wp.vec3d()
        centroid = wp.float64(0.5) * (segment.p + segment.q)
        if coplanar:
            alike = normal_sign(face_a) * normal_sign(face_b)
            polygon = wp.zeros(shape=(POLYGON_SIZE,), dtype=wp.vec3d)
            count = clip_tri_tri(face_a, face_b, polygon)
            area = polygon_area_vector(polygon, count)
            centroid = polygon_centroid(polygon, count)
        alike_out[i] = alike * (1 + wp.int32(normal_sign(face_b) > 0))
        ends_out[i, 0] = segment.p
        ends_out[i, 1] = segment.q
        overlap_out[i] = area
        centroid_out[i] = centroid


@dataclass(frozen=True)
class ContactFeatures:
    """Features of n pairs of faces that meet, on the host.

    Attributes:
        bits: (n,) 0 to 2: the edge of a from that corner on meets the face of b; 3 to 5: an edge
            of b meets the face of a; 6 to 8: a corner of a is in the face of b; 9 to 11: of b in
            that of a. Exact.
        alike: (n,) 0 if the faces are not coplanar; positive if their normals are the same,
            negative if opposite; 2 or -2 if the shift of ``shifted_signs`` moves b's face along its
            normal, 1 or -1 if not. Exact.
        ends: (n, 2, 3) the segment in which the faces meet, across their overlap if coplanar.
        overlap: (n, 3) area of the overlap of coplanar faces times a's normal.
        centroid: (n, 3) centroid of the overlap, or the middle of the segment.
    """

    bits: np.ndarray
    alike: np.ndarray
    ends: np.ndarray
    overlap: np.ndarray
    centroid: np.ndarray


def contact_features(a: PosedMesh, b: PosedMesh, pairs: wp.array) -> ContactFeatures:
    """Return features of pairs of faces that meet, at the first pose."""
    device, count = pairs.device, pairs.shape[0]
    bits, alike = (wp.empty(count, dtype=wp.int32, device=device) for _ in range(2))
    ends = wp.empty((count, 2), dtype=wp.vec3d, device=device)
    overlap, centroid = (wp.empty(count, dtype=wp.vec3d, device=device) for _ in range(2))
    rows = [bits, alike, ends, overlap, centroid]
    launch(contact_features_kernel, count, [a, b, pairs, *rows], device, grain=128)
    return ContactFeatures(*(row.numpy() for row in rows))
