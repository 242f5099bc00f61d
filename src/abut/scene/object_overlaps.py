"""Overlaps of the objects of a scene, taken as solids."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import warp as wp

from abut.broad.overlaps import overlapping_boxes
from abut.mesh import Mesh
from abut.narrow.pair_corners import PairSides
from abut.narrow.solid_contact import CROSSING, face_contacts
from abut.query.collide import collide
from abut.query.overlap import Overlap, SolidPair, no_rows
from abut.query.solids.closed_surface import ClosedSurface, closed_surface_of
from abut.query.solids.relation import RELATIONS, Relation, relations
from abut.scene.mesh_methods import poses_of, world_boxes
from abut.scene.rows import ObjectRows
from abut.scene.scene_results import SceneContacts
from abut.scene.search_cache import SearchCache
from abut.scene.selection import Part
from abut.scene.touching_solids import moved, relations_of_touching

APART = RELATIONS.index(Relation.APART)
Meshes = dict[int, Mesh] | list[Mesh]  # by row of the scene


@dataclass(frozen=True, eq=False, repr=False)
class SceneOverlaps(ObjectRows, Overlap):
    """Pairs of objects that are not apart, sorted; every measure has one row for each.

    Measures are computed when they are first read, about the scene as it was.
    """

    def __len__(self) -> int:
        """Number of pairs of objects."""
        return self.objects.shape[0]


def scene_overlaps(
    searches: SearchCache, part: Part, tolerance: float, volume: bool
) -> SceneOverlaps:
    """Find the relation of all pairs of objects that are not apart.

    Raises:
        MeshError: An object that may meet another one is open.
    """
    meshes, poses = part.meshes, poses_of(part)
    pairs = _candidates(part, meshes, poses)
    solids = {i: _closed(part, meshes[i], i) for i in np.unique(pairs).tolist()}
    codes = _codes(searches, part, pairs, solids, poses)
    kept = codes != APART
    pairs, codes = pairs[kept], codes[kept]
    surfaces = {i: solid.mesh for i, solid in solids.items()}
    groups = [
        (rows, _pair_of(surfaces, pairs[rows], poses), tolerance * _size(solids, pairs[rows[0]]))
        for rows in _same_meshes(pairs, surfaces)
    ]
    device = part.objects.device

    def measure(name: str) -> Any:
        if len(pairs) == 0:
            return no_rows(name, device, volume)
        if name == "common_part" and not volume:
            return None, None, None
        return _joined(groups, name, len(pairs), device)

    rows = pairs - np.array([0, part.first_external])
    objects = wp.array(rows.astype(np.int32), dtype=wp.int32, device=device, ndim=2)
    relation = wp.array(codes, dtype=wp.int32, device=device)
    return SceneOverlaps(relation, measure, objects=objects)


def with_contained(contacts: SceneContacts, part: Part) -> SceneContacts:
    """Add the pairs with an object, or a part of it, inside the other, whose faces do not meet.

    Open objects contain nothing.
    """
    shift = np.array([0, part.first_external])
    met = contacts.object_pairs.numpy() + shift
    found = (_contained_pairs(part, met) - shift).astype(np.int32)
    pairs = wp.array(found, dtype=wp.int32, device=contacts.objects.device, ndim=2)
    return replace(contacts, contained=pairs, colliding=contacts.colliding or len(found) > 0)


def _contained_pairs(part: Part, met: np.ndarray) -> np.ndarray:
    """(k, 2) pairs with a connected part of one inside the other, but those whose faces meet."""
    meshes, poses = part.meshes, poses_of(part)
    pairs = _candidates(part, meshes, poses)
    key = [len(meshes), 1]
    pairs = pairs[~np.isin(pairs @ key, met @ key)]
    closed = {i: meshes[i].watertight for i in np.unique(pairs).tolist()}
    pairs = pairs[np.array([closed[i] and closed[j] for i, j in pairs.tolist()], bool)]
    pairs = pairs[_may_contain(pairs, meshes, poses)]
    inside = np.zeros(len(pairs), bool)
    for rows in _same_meshes(pairs, meshes):
        i, j = pairs[rows].T
        a, b = meshes[i[0]], meshes[j[0]]
        found = collide(a, b, pose_a=poses[i], pose_b=poses[j], first=True, solid=True)
        inside[rows] = found.contained.numpy()
    return pairs[inside]


def _candidates(part: Part, meshes: list[Mesh], poses: np.ndarray) -> np.ndarray:
    """(k, 2) pairs of objects that are asked about and whose boxes overlap, sorted."""
    objects = part.objects
    boxes = world_boxes(meshes, poses)
    pairs = overlapping_boxes(*boxes, objects.device, objects.filters(part.roles))
    tested, swapped = part.ordered(pairs)
    pairs[swapped] = pairs[swapped][:, ::-1]
    pairs = pairs[tested]
    return pairs[np.lexsort(pairs.T[::-1])]


def _closed(part: Part, mesh: Mesh, row: int) -> ClosedSurface:
    name = None if row >= part.first_external > 0 else part.objects.names_of(row).item()
    return closed_surface_of(mesh, f"object {row}" if name is None else f"object {name!r}")


def _codes(
    searches: SearchCache,
    part: Part,
    pairs: np.ndarray,
    solids: dict[int, ClosedSurface],
    poses: np.ndarray,
) -> np.ndarray:
    """(k,) relations; a pair of faces that cross decides most of the pairs that meet."""
    found = searches.contacts(part, None, False, first=True)
    _, objects, faces = found.rows
    sides = PairSides(found.view, objects, faces, None, found.poses, found.first_external)
    parts = np.zeros(0, np.int32)
    if len(faces):
        at = wp.zeros(faces.shape[0], dtype=wp.int32, device=faces.device)
        parts = face_contacts(sides.a(), sides.b(), sides.pairs, at)
    met = objects.numpy() + np.array([0, found.first_external])
    count = len(part.objects)
    met_keys, keys = met @ [count, 1], pairs @ [count, 1]
    clean = np.zeros(count, bool)
    clean[[i for i, solid in solids.items() if solid.mesh is part.meshes[i]]] = True
    crossing = np.isin(keys, met_keys[parts == CROSSING]) & clean[pairs].all(axis=1)
    codes = np.full(len(pairs), APART, np.int32)
    codes[crossing] = RELATIONS.index(Relation.CROSSING)
    touched = np.isin(keys, met_keys)
    whole = np.zeros(count, bool)
    whole[[i for i in solids if clean[i] and len(solids[i].mesh.topology.anchors) == 1]] = True
    plain = np.flatnonzero(touched & ~crossing & whole[pairs].all(axis=1))
    surfaces = {i: solid.mesh for i, solid in solids.items()}
    if len(plain):
        _, objects, faces = searches.contacts(part, None, False, first=False).rows
        met = objects.numpy() + np.array([0, found.first_external])
        used = {i: surfaces[i] for i in np.unique(pairs[plain]).tolist()}
        codes[plain] = relations_of_touching(pairs[plain], used, poses, met, faces.numpy())
    other = ~crossing & ~(touched & whole[pairs].all(axis=1))
    other &= touched | ~clean[pairs].all(axis=1) | _may_contain(pairs, surfaces, poses)
    left = np.flatnonzero(other)
    for some in _same_meshes(pairs[left], surfaces):
        rows = left[some]
        i, j = pairs[rows].T
        codes[rows] = relations(surfaces[i[0]], surfaces[j[0]], poses[i], poses[j])
    return codes


def _may_contain(pairs: np.ndarray, meshes: Meshes, poses: np.ndarray) -> np.ndarray:
    """(k,) bool: a vertex of one object is in the box of the other, or one has several parts.

    Neither need the box of an object inside another be, which is larger than a rotated mesh, nor
    the middle of that, which may be off the mesh.
    """
    rows = np.unique(pairs)
    boxes = np.zeros((2, int(rows.max(initial=0)) + 1, 3))
    several, vertex = np.zeros(boxes.shape[1], bool), np.zeros(boxes.shape[1:])
    if len(rows):
        boxes[:, rows] = world_boxes([meshes[i] for i in rows.tolist()], poses[rows])
    first: dict[int, np.ndarray] = {}  # vertices of meshes, read once from their device
    for i in rows.tolist():
        mesh, anchors = meshes[i], meshes[i].topology.anchors
        several[i] = len(anchors) > 1
        if id(mesh) not in first:
            first[id(mesh)] = mesh.points.numpy()[anchors[:1]]
        vertex[i] = moved(poses[i], first[id(mesh)])[0]
    pad = 2.0**-40 * np.abs(boxes).max(axis=(0, 2), initial=0.0)[:, None]
    low, high = boxes[0] - pad, boxes[1] + pad
    out = several[pairs].any(axis=1)
    for i, j in (pairs.T, pairs.T[::-1]):
        out |= ((vertex[i] >= low[j]) & (vertex[i] <= high[j])).all(axis=1)
    return out


def _same_meshes(pairs: np.ndarray, meshes: Meshes) -> Iterator[np.ndarray]:
    """Rows of pairs with the same two meshes."""
    index: dict[int, int] = {}
    kinds = {i: index.setdefault(id(meshes[i]), len(index)) for i in np.unique(pairs).tolist()}
    keys = np.array([kinds[i] * len(index) + kinds[j] for i, j in pairs.tolist()], np.int64)
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    return iter(np.split(order, starts[1:])) if len(pairs) else iter(())


def _pair_of(meshes: Meshes, pairs: np.ndarray, poses: np.ndarray) -> SolidPair:
    i, j = pairs[0]
    at = poses[pairs[:, 0]], poses[pairs[:, 1]]
    return SolidPair(meshes[i], meshes[j], *at, len(pairs))


def _size(solids: dict[int, ClosedSurface], pair: np.ndarray) -> float:
    return min(solids[i].size for i in pair.tolist())


def _joined(groups: list[Any], name: str, count: int, device: wp.Device) -> Any:
    """A measure of all pairs, from those of the groups."""
    if name == "regions":
        out: list[Any] = [None] * count
        for rows, pair, _ in groups:
            for row, regions in zip(rows.tolist(), pair.regions(), strict=True):
                out[row] = regions
        return out
    asked = {
        "depths": lambda pair, length: pair.depths(length),
        "separation": lambda pair, length: pair.separation(length, None),
        "common_part": lambda pair, _: pair.common_part(),
    }[name]
    found = [(rows, [x.numpy() for x in asked(pair, length)]) for rows, pair, length in groups]
    columns = []
    for k, sample in enumerate(found[0][1]):
        column = np.empty((count, *sample.shape[1:]), sample.dtype)
        for rows, arrays in found:
            column[rows] = arrays[k]
        columns.append(wp.array(column, dtype=wp.dtype_from_numpy(column.dtype), device=device))
    return tuple(columns)
