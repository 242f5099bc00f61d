"""The relation of two solids: apart, touching, crossing, or one in the other. Exact."""

from enum import StrEnum
from typing import Any

import numpy as np
import warp as wp

from abut.bvh.bvh_cache import bvh_of
from abut.geometry.local_solid import SurfaceStars
from abut.mesh import Mesh
from abut.narrow.solid_contact import (
    A_INSIDE,
    A_OUTSIDE,
    ALIKE,
    B_INSIDE,
    B_OUTSIDE,
    CROSSING,
    OPPOSITE,
    anchors_inside,
    face_contacts,
)
from abut.narrow.surface_sides import surface_sides, surface_stars
from abut.operands.posed_mesh import make_posed_mesh
from abut.query.collide import collide
from abut.query.self_collide import self_collide


class Relation(StrEnum):
    """Relations of two solids; every pair has exactly one."""

    APART = "apart"  # no common point
    TOUCHING = "touching"  # common points of the surfaces, no common interior
    CROSSING = "crossing"  # common interior, and each has a part outside the other
    A_IN_B = "a_in_b"  # all of a is in b, and not all of b in a
    B_IN_A = "b_in_a"
    EQUAL = "equal"  # the same set of points


RELATIONS = tuple(Relation)
OFF_SURFACE = 2.0**-40  # of the largest coordinate: such a vertex is surely not on a surface


def relations(
    a: Mesh, b: Mesh, pose_a: np.ndarray | None = None, pose_b: np.ndarray | None = None
) -> np.ndarray:
    """Return the relation of two solids at each of B poses, as indices into ``RELATIONS``.

    Args:
        a, b: Closed surfaces, oriented outward (``closed_surface_of``).
        pose_a, pose_b: (B, 4, 4), (1, 4, 4) for one pose of all, or None.

    Returns:
        (B,) int32.

    Guarantee:
        Exact for surfaces that do not intersect themselves.
    """
    count = max(1 if pose is None else len(pose) for pose in (pose_a, pose_b))
    search = _Search(a, b, _repeated(pose_a, count), _repeated(pose_b, count))
    parts = np.zeros(count, int)
    pairs, pose, colliding = search.contacts(np.arange(count), first=True)
    parts[pose] = search.face_contacts(pairs, pose)
    unclear = np.flatnonzero(colliding & (parts != CROSSING))
    met = None
    if len(unclear):
        pairs, pose, _ = search.contacts(unclear, first=False)
        np.bitwise_or.at(parts, pose, search.local_parts(pairs, pose))
        met = pairs, pose
    search.add_free_components(parts, np.flatnonzero(parts & CROSSING != CROSSING), met)
    codes = codes_of_parts(parts, colliding)
    touching = np.flatnonzero(codes == RELATIONS.index(Relation.TOUCHING))
    if len(touching) and (intersects_itself(a) or intersects_itself(b)):
        search.add_free_vertices(parts, touching)
        codes = codes_of_parts(parts, colliding)
    return codes


def intersects_itself(mesh: Mesh) -> bool:
    """Return whether faces of a mesh meet beyond their common corners, cached for its shape."""
    return mesh.per_shape("intersects_itself", lambda: bool(self_collide(mesh)))


def interiors_meet(
    a: Mesh, b: Mesh, pose_a: np.ndarray | None, pose_b: np.ndarray | None, pairs: np.ndarray
) -> np.ndarray:
    """Return (n,) whether two solids at one pose have common interior near faces that meet.

    Guarantee:
        Exact for surfaces that do not intersect themselves.
    """
    search = _Search(a, b, pose_a, pose_b)
    parts = search.local_parts(pairs, np.zeros(len(pairs), int))
    return parts & (A_INSIDE | B_INSIDE | ALIKE) != 0


def codes_of_parts(parts: np.ndarray, colliding: np.ndarray) -> np.ndarray:
    """Return the relations that parts of the surfaces imply."""
    common = parts & (A_INSIDE | B_INSIDE | ALIKE) != 0
    rest_of_a = parts & (A_OUTSIDE | B_INSIDE | OPPOSITE) != 0
    rest_of_b = parts & (B_OUTSIDE | A_INSIDE | OPPOSITE) != 0
    names = np.select(
        [~common & ~colliding, ~common, rest_of_a & rest_of_b, rest_of_b, rest_of_a],
        [RELATIONS.index(r) for r in RELATIONS[:5]],
        RELATIONS.index(Relation.EQUAL),
    )
    return names.astype(np.int32)


def local_parts(
    a: SurfaceStars, b: SurfaceStars, posed_a: Any, posed_b: Any, pairs: wp.array, pose: wp.array
) -> np.ndarray:
    """Return all parts of two surfaces near each pair of faces that meet."""
    parts = face_contacts(posed_a, posed_b, pairs, pose)
    parts |= surface_sides(b, posed_b, posed_a, pairs, 1, pose)
    parts |= surface_sides(a, posed_a, posed_b, pairs, 0, pose) * B_INSIDE
    return parts


def _repeated(pose: np.ndarray | None, count: int) -> np.ndarray | None:
    return pose if pose is None or len(pose) == count else np.repeat(pose, count, axis=0)


class _Search:
    """Contacts of two solids at poses, and the parts of their surfaces near them."""

    def __init__(
        self, a: Mesh, b: Mesh, pose_a: np.ndarray | None, pose_b: np.ndarray | None
    ) -> None:
        self.meshes, self.poses = (a, b), (pose_a, pose_b)
        self.posed = [
            make_posed_mesh(m.points, m.faces, p)
            for m, p in zip(self.meshes, self.poses, strict=True)
        ]

    def contacts(
        self, wanted: np.ndarray, first: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return pairs of faces that meet, their poses, and which of the wanted poses have any."""
        a, b = self.meshes
        batch = len(wanted) > 1
        pose_a, pose_b = (
            None if p is None else p[wanted] if batch else p[wanted[0]] for p in self.poses
        )
        found = collide(a, b, pose_a=pose_a, pose_b=pose_b, first=first)
        pairs = found.pairs.numpy()
        if (pose_a is None and pose_b is None) or not batch:
            return pairs, np.repeat(wanted, len(pairs)), np.array([bool(found)])
        assert found.pose is not None
        return pairs, wanted[found.pose.numpy()], found.colliding.numpy().astype(bool)

    def face_contacts(self, pairs: np.ndarray, pose: np.ndarray) -> np.ndarray:
        """Return the parts that interiors of faces tell, for each pair."""
        if not len(pairs):
            return np.zeros(0, np.int32)
        return face_contacts(self.posed[0], self.posed[1], *self._on_device(pairs, pose))

    def local_parts(self, pairs: np.ndarray, pose: np.ndarray) -> np.ndarray:
        """Return all parts of both surfaces near each pair of faces that meet."""
        rows, at = self._on_device(pairs, pose)
        a, b = (self._stars(mesh) for mesh in self.meshes)
        return local_parts(a, b, self.posed[0], self.posed[1], rows, at)

    def add_free_components(
        self, parts: np.ndarray, wanted: np.ndarray, met: tuple[np.ndarray, np.ndarray] | None
    ) -> None:
        """Add the sides of components without a contact, at the wanted poses.

        ``met`` are all pairs, and their poses, where surfaces touch.
        """
        for side, (inside, outside) in enumerate(((A_INSIDE, A_OUTSIDE), (B_INSIDE, B_OUTSIDE))):
            mesh, outer = self.meshes[side], self.meshes[1 - side]
            anchors, pose = _free_anchors(mesh, wanted, met, side)
            if not len(anchors):
                continue
            tree = bvh_of(outer).view()
            found = anchors_inside(self.posed[side], self.posed[1 - side], tree, anchors, pose)
            np.bitwise_or.at(parts, pose, np.where(found, inside, outside))

    def add_free_vertices(self, parts: np.ndarray, wanted: np.ndarray) -> None:
        """Add the sides of vertices off the other surface, at the wanted poses.

        A solid that touches an inner face of one that intersects itself has no other sign of it.
        """
        from abut.query.closest_point import closest_point

        for side, (inside, outside) in enumerate(((A_INSIDE, A_OUTSIDE), (B_INSIDE, B_OUTSIDE))):
            mesh, outer = self.meshes[side], self.meshes[1 - side]
            vertices, points = np.unique(mesh.faces.numpy()), mesh.points.numpy()
            tree = bvh_of(outer).view()
            for pose in wanted.tolist():
                here, there = (None if p is None else p[pose] for p in self.poses[:: 1 - 2 * side])
                at = points[vertices]
                if here is not None:
                    at = at @ here[:3, :3].T + here[:3, 3]
                near = closest_point(outer, at, pose=there).distance.numpy()
                free = vertices[near > OFF_SURFACE * np.abs(at).max(initial=0.0)]
                rows = np.full(len(free), pose)
                found = anchors_inside(self.posed[side], self.posed[1 - side], tree, free, rows)
                for part, any_vertex in ((inside, found.any()), (outside, not found.all())):
                    parts[pose] |= part * bool(any_vertex and len(free))

    def _stars(self, mesh: Mesh) -> Any:
        return mesh.per_shape("surface_stars", lambda: surface_stars(mesh))

    def _on_device(self, pairs: np.ndarray, pose: np.ndarray) -> tuple[wp.array, wp.array]:
        device = self.meshes[0].device
        return (
            wp.array(pairs, dtype=wp.int32, device=device, ndim=2),
            wp.array(pose, dtype=wp.int32, device=device),
        )


def _free_anchors(
    mesh: Mesh, wanted: np.ndarray, met: tuple[np.ndarray, np.ndarray] | None, side: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return a vertex of every component that has no contact, and its pose."""
    anchors = mesh.topology.anchors
    free = np.ones((len(wanted), len(anchors)), bool)
    if met is not None:
        pairs, pose = met
        known = np.isin(pose, wanted)
        component = components_of_faces(mesh)[pairs[known, side]]
        free[np.searchsorted(wanted, pose[known]), component] = False
    rows, which = np.nonzero(free)
    return anchors[which], wanted[rows]


def components_of_faces(mesh: Mesh) -> np.ndarray:
    """Return (m,) the index of the component of each face."""

    def make() -> np.ndarray:
        from abut.geometry.topology import components

        faces = mesh.topology.welded[mesh.faces.numpy()]
        labels = components(faces, mesh.vertex_count)
        return np.searchsorted(mesh.topology.anchors, labels[faces[:, 0]])

    return mesh.per_shape("component_of_face", make)
