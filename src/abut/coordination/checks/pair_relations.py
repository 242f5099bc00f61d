"""Relations of pairs of parts, closed or open: apart, touching, crossing, or one in the other."""

import numpy as np

from abut.bvh.bvh_cache import bvh_of
from abut.coordination.checks.part_contacts import PartContacts
from abut.coordination.parts.part_surfaces import PartSurfaces
from abut.narrow.solid_contact import (
    A_INSIDE,
    A_OUTSIDE,
    CROSSING,
    anchors_inside,
    face_contacts,
)
from abut.narrow.surface_sides import surface_sides, surface_stars
from abut.operands.posed_mesh import make_posed_mesh
from abut.query.solids.relation import RELATIONS, Relation, components_of_faces, relations
from abut.scene.touching_solids import relations_of_touching

CODES = {relation: code for code, relation in enumerate(RELATIONS)}


def pair_relations(surfaces: PartSurfaces, pairs: np.ndarray, contacts: PartContacts) -> np.ndarray:
    """Relation of each pair of parts, as an index into ``RELATIONS``.

    An open part is its surface. It crosses a solid if it has points inside and outside, and is in
    a solid if it has none outside. Two open parts cross if the interiors of two faces do.

    Args:
        surfaces: Surfaces of the parts.
        pairs: (k, 2) rows of parts.
        contacts: All contacts of these pairs.

    Guarantee:
        Exact for closed surfaces that do not intersect themselves.
    """
    codes = np.full(len(pairs), CODES[Relation.APART], np.int32)
    met = np.zeros(len(pairs), bool)
    met[contacts.pair] = True
    closed = surfaces.closed(pairs)
    solid = closed.all(axis=1)
    single = _single(surfaces, pairs)
    plain = np.flatnonzero(met & solid & single)
    codes[plain] = _of_touching(surfaces, pairs, plain, contacts)
    nested = met | _box_in_box(surfaces.parts.boxes, pairs) | ~single
    for row in np.flatnonzero(solid & nested & ~(met & single)).tolist():
        i, j = pairs[row].tolist()
        poses = surfaces.pose(i), surfaces.pose(j)
        codes[row] = relations(surfaces[i].mesh, surfaces[j].mesh, *poses)[0]
    for row in np.flatnonzero(~solid & nested).tolist():
        i, j = pairs[row].tolist()
        found = contacts.faces[contacts.of(row)]
        codes[row] = _with_open(surfaces, i, j, closed[row], found)
    return codes


def _single(surfaces: PartSurfaces, pairs: np.ndarray) -> np.ndarray:
    """(k,) whether both surfaces of a pair have one component."""
    known = {row: surfaces[row].component_count == 1 for row in np.unique(pairs).tolist()}
    return np.array([known[i] and known[j] for i, j in pairs.tolist()], bool)


def _box_in_box(boxes: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """(k,) whether the box of one part is inside that of the other."""
    out = np.zeros(len(pairs), bool)
    for i, j in (pairs.T, pairs.T[::-1]):
        out |= ((boxes[i, 0] >= boxes[j, 0]) & (boxes[i, 1] <= boxes[j, 1])).all(axis=1)
    return out


def _of_touching(
    surfaces: PartSurfaces, pairs: np.ndarray, rows: np.ndarray, contacts: PartContacts
) -> np.ndarray:
    """Relations of solids of one component that meet, from all contacts at once."""
    if not len(rows):
        return np.empty(0, np.int32)
    used, local = np.unique(pairs[rows], return_inverse=True)
    local = local.reshape(-1, 2)
    wanted = np.isin(contacts.pair, rows)
    at = np.searchsorted(rows, contacts.pair[wanted])
    meshes = {k: surfaces[row].mesh for k, row in enumerate(used.tolist())}
    poses = surfaces.parts.poses[used]
    return relations_of_touching(local, meshes, poses, local[at], contacts.faces[wanted])


def _with_open(
    surfaces: PartSurfaces, i: int, j: int, closed: np.ndarray, faces: np.ndarray
) -> int:
    """Relation of two parts of which one or both are open."""
    meshes = [surfaces[i].mesh, surfaces[j].mesh]
    poses = surfaces.pose(i), surfaces.pose(j)
    posed = [make_posed_mesh(m.points, m.faces, p) for m, p in zip(meshes, poses, strict=True)]
    rows, at = surfaces.on_device(faces), surfaces.on_device(np.zeros(len(faces), np.int32))
    if not closed.any():
        crosses = len(faces) and (face_contacts(posed[0], posed[1], rows, at) == CROSSING).any()
        met = Relation.TOUCHING if len(faces) else Relation.APART
        return CODES[Relation.CROSSING if crosses else met]
    side = int(closed[0])  # the open one
    solid = 1 - side
    parts = 0
    if len(faces):
        stars = meshes[solid].per_shape("surface_stars", lambda: surface_stars(meshes[solid]))
        found = surface_sides(stars, posed[solid], posed[side], rows, solid, at)
        parts = int(np.bitwise_or.reduce(found))
        if (face_contacts(posed[0], posed[1], rows, at) == CROSSING).any():
            parts |= A_INSIDE | A_OUTSIDE
    component = components_of_faces(meshes[side])
    free = np.setdiff1d(np.arange(component.max() + 1), component[faces[:, side]])
    if len(free):
        anchors = meshes[side].topology.anchors[free]
        tree, zeros = bvh_of(meshes[solid]).view(), np.zeros(len(free), int)
        inside = anchors_inside(posed[side], posed[solid], tree, anchors, zeros)
        parts |= A_INSIDE * bool(inside.any()) | A_OUTSIDE * bool((~inside).any())
    if parts & A_INSIDE and parts & A_OUTSIDE:
        return CODES[Relation.CROSSING]
    if parts & A_INSIDE:
        return CODES[Relation.B_IN_A if side else Relation.A_IN_B]
    return CODES[Relation.TOUCHING if len(faces) else Relation.APART]
