"""Regions of contact of two solids: curves, area vectors, centroids and depths.

design/overlap.md defines a region and derives its area vector.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import warp as wp

from abut.geometry.polylines import join_segments
from abut.mesh import Mesh
from abut.narrow.contact_features import contact_features
from abut.narrow.shifted_crossings import cross_faces, welded_faces, windings_of_vertices
from abut.operands.posed_mesh import PosedMesh, make_posed_mesh
from abut.query.collide import collide
from abut.query.solids.contact_curves import Segments, closed_curves, edge_crossings
from abut.query.solids.contact_groups import contact_groups
from abut.query.solids.contact_patches import InnerPatches, SolidSide, patches_of
from abut.query.solids.contact_region import ContactRegion
from abut.query.solids.deepest_points import deepest_points
from abut.query.solids.region_sums import are_long, region_sums, rows_of
from abut.query.solids.relation import interiors_meet


@dataclass(frozen=True)
class ContactRegions:
    """The regions in which the surfaces of two solids meet; ``regions[i]`` is one of them.

    A region is a connected set of common points of both surfaces; curves that bound the same patch
    of a inside b and the same patch of b inside a are one region.

    Attributes:
        area_vector: (n, 3) integral of a's outward normal over the part of a's surface that the
            region bounds inside b; over the common area where faces touch. Half of it counts where
            surfaces coincide with the solids on the same side. Swapping a and b flips it.
        normal: (n, 3) unit vector along ``area_vector``. For contacts in a point or along edges,
            the normal of the face, or across both edges, or the mean of the faces' normals, out of
            a. NaN where it is undefined.
        centroid: (n, 3) centroid of the area seen along the normal, else of the curves or points.
        deepest: (n, 3) the deepest of these points: vertices of each solid inside the other on the
            patches that the region bounds, and middles of the pieces of crossed edges on them. The
            centroid where solids only touch.
        depth: (n,) its distance to the surface of the other solid; 0 where solids only touch.
        touching: (n,) bool, whether the solids have no common interior near the region.
        curves: For each region its closed curves (k, 3), whose last point is the first. The patch
            of a inside b is on their left, seen from outside a. A contact along edges has open
            curves; one in a point has none.
    """

    area_vector: np.ndarray
    normal: np.ndarray
    centroid: np.ndarray
    deepest: np.ndarray
    depth: np.ndarray
    touching: np.ndarray
    curves: list[list[np.ndarray]]

    def __len__(self) -> int:
        """Number of regions."""
        return len(self.depth)

    def scaled(self, unit: float) -> "ContactRegions":
        """Return the regions with lengths multiplied by a power of two."""
        if unit == 1.0:
            return self
        with np.errstate(over="ignore", under="ignore"):
            return ContactRegions(
                self.area_vector * unit * unit,
                self.normal,
                self.centroid * unit,
                self.deepest * unit,
                self.depth * unit,
                self.touching,
                [[curve * unit for curve in curves] for curves in self.curves],
            )

    def __getitem__(self, index: int) -> ContactRegion:
        """Return one region."""
        index = range(len(self))[index]
        return ContactRegion(
            self.area_vector[index],
            self.normal[index],
            self.centroid[index],
            self.deepest[index],
            float(self.depth[index]),
            bool(self.touching[index]),
            self.curves[index],
        )

    def __iter__(self) -> Iterator[ContactRegion]:
        """Iterate over the regions."""
        return (self[i] for i in range(len(self)))

    def points(self, count: int = 4) -> list[np.ndarray]:
        """Return at most ``count`` points (k, 3) of each region: ``ContactRegion.points``."""
        return [region.points(count) for region in self]


def contact_regions(
    a: Mesh, b: Mesh, pose_a: np.ndarray | None = None, pose_b: np.ndarray | None = None
) -> ContactRegions:
    """Find the regions of contact of two solids at one pose.

    Args:
        a, b: Closed surfaces, oriented outward (``closed_surface_of``).
        pose_a, pose_b: (1, 4, 4) or None.

    Returns:
        Regions in the order of the lowest pair of faces that meet in each. None for solids that
        are apart or strictly inside each other.

    Guarantee:
        Which contacts exist, which are connected, and which only touch is exact. Coordinates are
        rounded. ``depth`` is a lower bound of the largest depth near the region.
    """
    return _Search(a, b, pose_a, pose_b).regions()


class _Search:
    """Contacts of two solids at one pose."""

    def __init__(
        self, a: Mesh, b: Mesh, pose_a: np.ndarray | None, pose_b: np.ndarray | None
    ) -> None:
        self.meshes, self.poses = (a, b), (pose_a, pose_b)
        single = [None if p is None else p[0] for p in self.poses]
        self.pairs = collide(a, b, pose_a=single[0], pose_b=single[1]).pairs
        self.posed = [
            make_posed_mesh(m.points, m.faces, p)
            for m, p in zip(self.meshes, self.poses, strict=True)
        ]
        self.faces = [welded_faces(mesh).numpy().astype(np.int64) for mesh in self.meshes]

    def regions(self) -> ContactRegions:
        """Return all regions."""
        features = contact_features(*self._both(), self.pairs)
        group = contact_groups(self.pairs.numpy(), features.bits, self.faces)
        count = int(group.max(initial=-1)) + 1
        touching = self._touching(group, count)
        segments, curves, patches = self._crossings(group, count)
        merged = _merged(patches, touching)
        region = merged[group]
        touching = touching[np.unique(merged, return_index=True)[1]]
        corners = [(s.points, s.faces) for s in self._surfaces]
        area, normal, centroid = region_sums(segments, features, region, touching, corners)
        deepest, depth = self._deepest(patches, merged, touching, centroid)
        flat = touching & area.any(axis=1)
        if flat.any():
            curves += [c for c in self._curves_shifted_back() if flat[region[c[0]]]]
        lines: list[list[np.ndarray]] = [[] for _ in touching]
        for row, points in curves:
            if flat[region[row]] or not touching[region[row]]:
                lines[region[row]].append(points)
        long = are_long(features.ends)
        for i, rows in rows_of(region, touching & ~flat):
            lines[i] = join_segments(features.ends[rows[long[rows]]])
        return ContactRegions(area, normal, centroid, deepest, depth, touching, lines)

    def _both(self) -> tuple[PosedMesh, PosedMesh]:
        return self.posed[0], self.posed[1]

    def _touching(self, group: np.ndarray, count: int) -> np.ndarray:
        """Return (count,) whether the solids have no common interior near a group of contacts."""
        common = np.zeros(count, bool)
        common[group[interiors_meet(*self.meshes, *self.poses, self.pairs.numpy())]] = True
        return ~common

    def _crossings(
        self, group: np.ndarray, count: int
    ) -> tuple[Segments, list[tuple[int, np.ndarray]], list[InnerPatches]]:
        """Return segments and curves, b shifted, and the patches of both surfaces."""
        pose = wp.zeros(len(self.pairs), dtype=wp.int32, device=self.pairs.device)
        rows, crossed = cross_faces(*self._both(), self.pairs, pose, 1)
        segments = Segments.of(rows)
        on = [edge_crossings(segments, self.faces[side], side) for side in range(2)]
        self._surfaces = [self._surface(side, crossed[side]) for side in range(2)]
        patches = [
            patches_of(surface, segments, on[side], group, count)
            for side, surface in enumerate(self._surfaces)
        ]
        return segments, closed_curves(segments, *on), patches

    def _curves_shifted_back(self) -> list[tuple[int, np.ndarray]]:
        """Return curves with a shifted in place of b: around areas that the other shift leaves."""
        pose = wp.zeros(len(self.pairs), dtype=wp.int32, device=self.pairs.device)
        pairs = wp.array(self.pairs.numpy()[:, ::-1].copy(), device=self.pairs.device)
        rows, _ = cross_faces(self.posed[1], self.posed[0], pairs, pose, 1)
        segments = Segments.of(rows)
        on = [edge_crossings(segments, self.faces[1 - side], side) for side in range(2)]
        return [(row, points[::-1]) for row, points in closed_curves(segments, *on)]

    def _surface(self, side: int, crossed: wp.array) -> SolidSide:
        """Return one solid with the winding numbers of the other at its vertices."""
        inner, outer = self.meshes[side], self.meshes[1 - side]
        both = self.posed[side], self.posed[1 - side]
        labels, windings = windings_of_vertices(
            inner, outer, both, crossed, 1 if side else -1, joined=True
        )
        label = labels.numpy()[0]
        inside = (windings.numpy()[0][label] > 0) & (label >= 0)
        points, pose = inner.points.numpy(), self.poses[side]
        if pose is not None:
            points = points @ pose[0, :3, :3].T + pose[0, :3, 3]
        return SolidSide(points, self.faces[side], label, inside, side)

    def _deepest(
        self,
        patches: list[InnerPatches],
        merged: np.ndarray,
        touching: np.ndarray,
        centroid: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the deepest point of the patches of each region, and its depth."""
        deepest, depth = centroid.copy(), np.zeros(len(touching))
        for side, patch in enumerate(patches):
            solid = ~touching[merged]
            wanted = np.isin(patch.of_point, patch.of_group[solid])
            points, of_point = patch.points[wanted], patch.of_point[wanted]
            if not len(points):
                continue
            other, pose = self.meshes[1 - side], self.poses[1 - side]
            at = None if pose is None else pose[0]
            names, points, distance = deepest_points(other, at, points, of_point)
            for group in np.flatnonzero(solid & np.isin(patch.of_group, names)).tolist():
                i = np.searchsorted(names, patch.of_group[group])
                if distance[i] > depth[merged[group]]:
                    depth[merged[group]] = distance[i]
                    deepest[merged[group]] = points[i]
        return deepest, depth


def _merged(patches: list[InnerPatches], touching: np.ndarray) -> np.ndarray:
    """Return the region of each group: groups that bound the same two patches are one region."""
    own = np.arange(len(touching))
    names = np.stack([np.where(touching, own, p.of_group) for p in patches], axis=1)
    names = np.column_stack([names, np.where(touching, own, -1)])
    _, first, which = np.unique(names, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), int)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[which.reshape(-1)]
