"""Relations of solids of a scene that touch, from all of their contacts at once."""

import numpy as np
import warp as wp

from abut.mesh import Mesh
from abut.narrow.surface_sides import join_stars
from abut.operands.posed_mesh import make_posed_mesh
from abut.query.solids.relation import (
    RELATIONS,
    Relation,
    codes_of_parts,
    intersects_itself,
    local_parts,
    relations,
)


def relations_of_touching(
    pairs: np.ndarray,
    meshes: dict[int, Mesh],
    poses: np.ndarray,
    objects: np.ndarray,
    faces: np.ndarray,
) -> np.ndarray:
    """Return the relation of pairs of solids of one component each, which meet.

    Args:
        pairs: (k, 2) objects, in the order of ``objects``.
        meshes: Closed surface of each of these objects.
        poses: (n, 4, 4) of all objects.
        objects, faces: (m, 2) all pairs of faces that meet, in any order.

    Returns:
        (k,) indices into RELATIONS.
    """
    count = len(poses)
    keys, wanted = objects @ [count, 1], pairs @ [count, 1]
    order = np.argsort(wanted)
    rank = np.searchsorted(wanted[order], keys)
    known = (rank < len(wanted)) & (wanted[order[np.minimum(rank, len(wanted) - 1)]] == keys)
    row, objects, faces = order[rank[known]], objects[known], faces[known]

    rows = sorted(meshes)
    place = np.zeros(count, int)
    place[rows] = np.arange(len(rows))
    first_point = np.cumsum([0, *(meshes[i].vertex_count for i in rows)])
    first_face = np.cumsum([0, *(meshes[i].face_count for i in rows)])
    device = meshes[rows[0]].device
    points = np.concatenate([moved(poses[i], meshes[i].points.numpy()) for i in rows])
    corners, welded = (
        np.concatenate(
            [array(meshes[i]) + first for i, first in zip(rows, first_point, strict=False)]
        )
        for array in (lambda mesh: mesh.faces.numpy(), lambda mesh: mesh.topology.welded)
    )
    positions = wp.array(points, dtype=wp.vec3d, device=device)
    triangles = wp.array(corners.astype(np.int32), dtype=wp.vec3i, device=device)
    stars, posed = join_stars(positions, triangles, welded), make_posed_mesh(positions, triangles)
    numbered = wp.array(faces + first_face[place[objects]], dtype=wp.int32, device=device, ndim=2)
    at = wp.zeros(len(faces), dtype=wp.int32, device=device)
    parts = np.zeros(len(pairs), int)
    np.bitwise_or.at(parts, row, local_parts(stars, stars, posed, posed, numbered, at))
    codes = codes_of_parts(parts, np.ones(len(pairs), bool))
    touching = np.flatnonzero(codes == RELATIONS.index(Relation.TOUCHING))
    inner = {i for i in np.unique(pairs[touching]).tolist() if intersects_itself(meshes[i])}
    for k in touching.tolist():
        i, j = pairs[k].tolist()
        if i in inner or j in inner:  # they may touch an inner face alone
            codes[k] = relations(meshes[i], meshes[j], poses[i : i + 1], poses[j : j + 1])[0]
    return codes


def moved(pose: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return moved points, rounded as by ``geometry.poses.move_point``."""
    x, y, z = points.T
    rows = [pose[i, 0] * x + pose[i, 1] * y + pose[i, 2] * z + pose[i, 3] for i in range(3)]
    return np.stack(rows, axis=1)
