"""Piercing: one solid cuts the other into pieces. design/clash.md has the proof."""

import numpy as np
import warp as wp

from abut.coordination.checks.grown_mesh import grown_mesh
from abut.coordination.parts.part_surfaces import PartSurfaces
from abut.geometry.topology import components
from abut.mesh import Mesh
from abut.narrow.shifted_crossings import cross_faces, welded_faces, windings_of_vertices
from abut.operands.posed_mesh import make_posed_mesh
from abut.query.collide import collide
from abut.query.solids.contact_curves import EdgeCrossings, Segments, edge_crossings
from abut.query.solids.contact_patches import SolidSide, patches_of
from abut.query.solids.relation import components_of_faces

LEAST_GROWTH, MOST_GROWTH = 2.0**-24, 2.0**-12  # of the size of the part


def pierced(surfaces: PartSurfaces, pairs: np.ndarray, tolerance: np.ndarray) -> np.ndarray:
    """(k,) whether one of two solids cuts a component of the other into two pieces or more.

    Bridges thinner than half the tolerance do not join pieces, nor those thinner than 2**-24 of
    the cutting part.

    Args:
        surfaces: Surfaces of the parts, all closed.
        pairs: (k, 2) rows of parts that cross.
        tolerance: (k,) [m].
    """
    out = np.zeros(len(pairs), bool)
    for k, (i, j) in enumerate(pairs.tolist()):
        out[k] = any(
            _cuts(surfaces, knife, block, 0.5 * float(tolerance[k]))
            for knife, block in ((i, j), (j, i))
        )
    return out


def _cuts(surfaces: PartSurfaces, knife: int, block: int, growth: float) -> bool:
    size = surfaces[knife].size
    growth = min(max(growth, LEAST_GROWTH * size), MOST_GROWTH * size)
    grown = grown_mesh(surfaces[knife].mesh, growth)
    poses = surfaces.pose(knife), surfaces.pose(block)
    return cuts_into_pieces(grown, surfaces[block].mesh, *poses)


def cuts_into_pieces(
    knife: Mesh, block: Mesh, pose_knife: np.ndarray | None, pose_block: np.ndarray | None
) -> bool:
    """Whether a component of a solid, less another solid, falls into two pieces or more.

    Args:
        knife, block: Closed surfaces, oriented outward.
        pose_knife, pose_block: (1, 4, 4) or None.

    Guarantee:
        Exact for the knife and the block moved by an infinitesimal, where they do not intersect
        themselves.
    """
    poses = [pose_knife, pose_block]
    single = [None if pose is None else pose[0] for pose in poses]
    pairs = collide(knife, block, pose_a=single[0], pose_b=single[1]).pairs
    if not len(pairs):
        return False
    meshes = [knife, block]
    posed = [make_posed_mesh(m.points, m.faces, p) for m, p in zip(meshes, poses, strict=True)]
    at = wp.zeros(len(pairs), dtype=wp.int32, device=pairs.device)
    rows, crossed = cross_faces(posed[0], posed[1], pairs, at, 1)
    segments = Segments.of(rows)
    faces = [welded_faces(mesh).numpy().astype(np.int64) for mesh in meshes]
    on = [edge_crossings(segments, faces[side], side) for side in range(2)]
    curve, count = _curves(segments, *on)
    if count < 2:
        return False
    sides = []
    for side in range(2):
        both = posed[side], posed[1 - side]
        labels, windings = windings_of_vertices(
            meshes[side], meshes[1 - side], both, crossed[side], 1 if side else -1, joined=True
        )
        label = labels.numpy()[0]
        inside = (windings.numpy()[0][label] > 0) & (label >= 0)
        points = _moved(meshes[side], single[side])
        sides.append(SolidSide(points, faces[side], label, inside, side))
    inner = patches_of(sides[0], segments, on[0], curve, count).of_group
    outer = patches_of(sides[1].turned(), segments, on[1], curve, count).of_group
    names = [np.unique(patch, return_inverse=True)[1] for patch in (inner, outer)]
    links = np.stack([names[0], count + names[1]], axis=1)
    shell = components(links, 2 * count)[names[0]]
    of_curve = np.zeros(count, np.int64)
    real = segments.edges[:, 0] >= 0
    of_curve[curve[real]] = components_of_faces(block)[segments.pairs[real, 1]]
    cut = np.unique(np.stack([of_curve, shell], axis=1), axis=0)
    return len(np.unique(cut[:, 0])) < len(cut)


def _curves(segments: Segments, on_a: EdgeCrossings, on_b: EdgeCrossings) -> tuple[np.ndarray, int]:
    """The closed curve of each segment, and the number of curves; 0 for faces that do not cross."""
    node = np.full(segments.edges.shape, -1)
    node[on_a.row, on_a.end] = on_a.key
    node[on_b.row, on_b.end] = on_b.key + on_a.key.max(initial=-1) + 1
    rows = np.flatnonzero(segments.edges[:, 0] >= 0)
    labels = components(node[rows], int(node.max(initial=0)) + 1)[node[rows, 0]]
    names, which = np.unique(labels, return_inverse=True)
    curve = np.zeros(len(node), np.int64)
    curve[rows] = which.reshape(-1)
    return curve, len(names)


def _moved(mesh: Mesh, pose: np.ndarray | None) -> np.ndarray:
    points = mesh.points.numpy()
    return points if pose is None else points @ pose[:3, :3].T + pose[:3, 3]
