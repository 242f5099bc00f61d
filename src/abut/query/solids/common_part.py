"""Volume, centroid and surface areas of the common part of two solids.

The common part is bounded by the part of a's surface in b and the part of b's surface in a. In
general position these are faces cut along the segments in which faces cross; a sum over corners,
edges and segments gives all measures, without assembling polygons (after Franklin 1987, Polygon
properties calculated from the vertex neighborhoods). design/overlap.md has the proof.
"""

from dataclasses import dataclass

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.geometry.solid_terms import (
    SolidTerms,
    coplanar_areas,
    crossing_terms,
    edge_terms,
    face_terms,
    tri_about,
)
from abut.mesh import Mesh
from abut.narrow.shifted_crossings import (
    CrossingRows,
    cross_faces,
    welded_faces,
    windings_of_vertices,
)
from abut.operands.posed_mesh import PosedMesh, load_face, make_posed_mesh
from abut.query.collide import collide
from abut.query.solids.relation import RELATIONS, Relation, relations

wp.set_module_options({"enable_backward": False, "fuse_fp": False, "max_unroll": 0})

FACES_PER_SUM = wp.constant(64)
ROOM = 1 << 22  # vertices of all poses that are classified at once
SMALL_VOLUME = 1e-9  # of the cubed size of the smaller solid; below, the relation is asked
ROUNDING = 1e-12  # of coordinates: boxes grow by it


Poses = tuple[np.ndarray | None, np.ndarray | None]


@dataclass(frozen=True)
class CommonParts:
    """The common part of two solids at each of B poses.

    Attributes:
        volume: (B,) float64; 0 if the solids have no common interior.
        centroid: (B, 3) float64; NaN where the volume is 0.
        area_a, area_b: (B,) float64, area of the surface of a (of b) that bounds the common part.
            Where both surfaces coincide, with the solids on the same side, it counts in both.
    """

    volume: np.ndarray
    centroid: np.ndarray
    area_a: np.ndarray
    area_b: np.ndarray


@wp.kernel
def sum_crossings_kernel(
    # in
    span: wp.vec3i,
    a: PosedMesh,
    b: PosedMesh,
    rows: CrossingRows,
    origins: wp.array[wp.vec3d],
    # out
    terms_a_out: wp.array[SolidTerms],
    terms_b_out: wp.array[SolidTerms],
):
    """Terms of the segment and the crossed edges of each pair of faces."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        pose = rows.pose[i]
        origin = origins[pose]
        whole_a = load_face(a, rows.pairs[i, 0], pose)
        whole_b = load_face(b, rows.pairs[i, 1], pose)
        face_a = tri_about(whole_a, origin)
        face_b = tri_about(whole_b, origin)
        of_a = SolidTerms()
        of_b = SolidTerms()
        edges = wp.vec2i(rows.edges[i, 0], rows.edges[i, 1])
        if edges[0] >= 0 and edges[1] >= 0:
            one = wp.float64(1.0)
            shares = wp.vec2d(rows.shares[i, 0], rows.shares[i, 1])
            start = rows.points[i, 0] - origin
            stop = rows.points[i, 1] - origin
            of_a = edge_terms(face_a, start, stop, one, one)
            of_b = edge_terms(face_b, stop, start, one, one)
            of_a += crossing_terms(face_a, edges, 0, shares, one)
            of_b += crossing_terms(face_b, edges, 3, shares, -one)
        if rows.coplanar[i]:
            lacking = coplanar_areas(whole_a, whole_b)
            of_a[4] += lacking[0]
            of_b[4] += lacking[1]
        terms_a_out[i] = of_a
        terms_b_out[i] = of_b


@wp.kernel
def sum_faces_kernel(
    # in
    span: wp.vec3i,
    mesh: PosedMesh,
    welded: wp.array[wp.vec3i],
    labels: wp.array2d[wp.int32],
    windings: wp.array2d[wp.int32],
    origins: wp.array[wp.vec3d],
    sums: wp.int32,
    # out
    terms_out: wp.array2d[SolidTerms],
):
    """Sum over FACES_PER_SUM faces: each edge whose end is inside, as if all of it were."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        pose = i / sums
        begin = (i % sums) * FACES_PER_SUM
        total = SolidTerms()
        for face in range(begin, wp.min(begin + FACES_PER_SUM, welded.shape[0])):
            corners = welded[face]
            times = wp.vec3i()
            for k in range(3):
                times[k] = windings[pose, labels[pose, corners[k]]]
            if wp.dot(times, times) > 0:
                t = tri_about(load_face(mesh, face, pose), origins[pose])
                if times[0] == times[1] and times[1] == times[2]:
                    total += wp.float64(times[0]) * face_terms(t)
                else:
                    for k in range(3):
                        n = (k + 1) % 3
                        weight = wp.float64(times[n])
                        total += edge_terms(t, t[k], t[n], weight, weight)
        terms_out[pose, i % sums] = total


def common_parts(
    a: Mesh, b: Mesh, pose_a: np.ndarray | None = None, pose_b: np.ndarray | None = None
) -> CommonParts:
    """Measure the common part of two solids at each of B poses.

    Args:
        a, b: Closed surfaces, oriented outward (``closed_surface_of``).
        pose_a, pose_b: (B, 4, 4), (1, 4, 4) for one pose of all, or None.

    Guarantee:
        Which points, edges and faces bound the common part is decided exactly, also where
        surfaces touch or coincide; sums are rounded.
    """
    count = max(1 if pose is None else len(pose) for pose in (pose_a, pose_b))
    pose_a, pose_b = (
        p if p is None or len(p) == count else np.repeat(p, count, axis=0) for p in (pose_a, pose_b)
    )
    poses = pose_a, pose_b
    low, high = _common_boxes(a, b, poses, count)
    origins = (low + high) / 2.0
    total = np.zeros((count, 6))
    near = np.flatnonzero((low <= high).all(axis=1))
    room = max(1, ROOM // (a.vertex_count + b.vertex_count))
    for first in range(0, len(near), room):
        rows = near[first : first + room]
        total[rows] = _measure(a, b, _rows_of(poses, rows), origins[rows])
    _clear_touching(a, b, poses, total)
    volume = np.maximum(total[:, 0] / 6.0, 0.0)
    solid = volume > 0.0
    centroid = np.full((count, 3), np.nan)
    centroid[solid] = origins[solid] + total[solid, 1:4] / (4.0 * total[solid, :1])
    centroid = np.clip(centroid, low, high, where=solid[:, None], out=centroid)
    area_a, area_b = np.maximum(total[:, 4:] / 2.0, 0.0).T
    return CommonParts(volume, centroid, area_a, area_b)


def _rows_of(poses: Poses, rows: np.ndarray) -> Poses:
    pose_a, pose_b = (None if p is None else p[rows] for p in poses)
    return pose_a, pose_b


def _common_boxes(a: Mesh, b: Mesh, poses: Poses, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the low and high corners of boxes that hold the common parts; inverted if apart."""
    lows, highs = [], []
    for mesh, pose in zip((a, b), poses, strict=True):
        low, high = mesh.bounds
        middle, half = (low + high) / 2.0, (high - low) / 2.0
        centre, reach = np.tile(middle, (count, 1)), np.tile(half, (count, 1))
        if pose is not None:
            centre = pose[:, :3, :3] @ middle + pose[:, :3, 3]
            reach = np.abs(pose[:, :3, :3]) @ half
        reach = reach + ROUNDING * (np.abs(centre).max(axis=1) + np.abs(mesh.bounds).max())[:, None]
        lows.append(centre - reach)
        highs.append(centre + reach)
    return np.maximum(*lows), np.minimum(*highs)


def _clear_touching(a: Mesh, b: Mesh, poses: Poses, total: np.ndarray) -> None:
    """Set the sums to 0 where they may be rounding and the solids have no common interior."""
    size = min(float(np.ptp(mesh.bounds, axis=0).max()) for mesh in (a, b))
    tiny = np.abs(total[:, 0]) < SMALL_VOLUME * size**3
    doubtful = np.flatnonzero(tiny & total.any(axis=1))
    if len(doubtful):
        codes = relations(a, b, *_rows_of(poses, doubtful))
        touching = RELATIONS.index(Relation.TOUCHING)
        total[doubtful[codes <= touching]] = 0.0


def _measure(a: Mesh, b: Mesh, poses: Poses, origins: np.ndarray) -> np.ndarray:
    """Return (B, 6): 6 volume, 24 first moment, 2 area of a, 2 area of b."""
    device, count = a.device, len(origins)
    posed = [make_posed_mesh(m.points, m.faces, p) for m, p in zip((a, b), poses, strict=True)]
    pairs, pose = _contacts(a, b, poses)
    centres = wp.array(origins, dtype=wp.vec3d, device=device)
    rows, crossed = cross_faces(posed[0], posed[1], pairs, pose, count)
    terms = [wp.zeros(len(pairs), dtype=SolidTerms, device=device) for _ in range(2)]
    args = [*posed, rows, centres, *terms]
    launch(sum_crossings_kernel, len(pairs), args, device, grain=256)
    total = np.zeros((2, count, 5))
    pose = pose.numpy()
    sides = ((a, b, -1), (b, a, 1))
    for side, (inner, outer, shift) in enumerate(sides):
        by_pose = total[side]
        if len(pose):
            starts = np.flatnonzero(np.r_[True, pose[1:] != pose[:-1]])
            by_pose[pose[starts]] = np.add.reduceat(terms[side].numpy(), starts)
        both = posed[side], posed[1 - side]
        windings = windings_of_vertices(inner, outer, both, crossed[side], shift)
        by_pose += _face_sums(inner, both[0], windings, centres)
    whole = total[0] + total[1]
    return np.column_stack([whole[:, :4], total[0, :, 4], total[1, :, 4]])


def _face_sums(
    mesh: Mesh, posed: PosedMesh, windings: tuple[wp.array, wp.array], centres: wp.array
) -> np.ndarray:
    """Return (B, 5) sums over faces with corners inside the other solid."""
    sums = -(-mesh.face_count // int(FACES_PER_SUM))
    count = centres.shape[0]
    terms = wp.empty((count, sums), dtype=SolidTerms, device=mesh.device)
    args = [posed, welded_faces(mesh), *windings, centres, sums, terms]
    launch(sum_faces_kernel, count * sums, args, mesh.device, grain=64)
    return terms.numpy().sum(axis=1)


def _contacts(a: Mesh, b: Mesh, poses: Poses) -> tuple[wp.array, wp.array]:
    """Return the pairs of faces that meet, and their poses, in order."""
    single = all(p is None or len(p) == 1 for p in poses)
    pose_a, pose_b = (p if p is None or not single else p[0] for p in poses)
    found = collide(a, b, pose_a=pose_a, pose_b=pose_b)
    pose = found.pose
    if pose is None:
        pose = wp.zeros(len(found), dtype=wp.int32, device=a.device)
    return found.pairs, pose
