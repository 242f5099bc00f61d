"""Patches: connected parts of the surface of one solid inside, or outside, the other."""

from dataclasses import dataclass, replace

import numpy as np

from abut.geometry.topology import components
from abut.query.solids.contact_curves import EdgeCrossings, Segments


@dataclass(frozen=True)
class SolidSide:
    """One solid at its pose: points, welded faces, and winding numbers of the other solid.

    Attributes:
        points: (n, 3) moved vertices.
        faces: (m, 3) faces of welded vertices.
        label: (n,) vertices joined by uncrossed edges have one label.
        inside: (n,) whether the vertex is inside the other solid.
        side: 0 for a, 1 for b.
        outer: Inside and outside are exchanged: patches are those outside the other solid.
    """

    points: np.ndarray
    faces: np.ndarray
    label: np.ndarray
    inside: np.ndarray
    side: int
    outer: bool = False

    def turned(self) -> "SolidSide":
        """Exchange the inside and the outside of this solid."""
        return replace(self, inside=~self.inside & (self.label >= 0), outer=not self.outer)


@dataclass(frozen=True)
class InnerPatches:
    """Parts of one surface inside the other solid.

    Attributes:
        of_group: (g,) the patch that is bounded by each group of contacts.
        points: (k, 3) vertices inside, and middles of the pieces of crossed edges inside.
        of_point: (k,) the patch of each.
    """

    of_group: np.ndarray
    points: np.ndarray
    of_point: np.ndarray


def patches_of(
    surface: SolidSide, segments: Segments, crossings: EdgeCrossings, group: np.ndarray, count: int
) -> InnerPatches:
    """Find which groups of contacts bound the same patch.

    Args:
        surface: The solid whose surface is looked at.
        segments, crossings: Its crossings with the other one.
        group: (n,) group of each segment, below ``count``.
        count: Number of groups.
    """
    order = np.unique(crossings.key, return_index=True)[1]
    order = order[np.lexsort((crossings.share[order], crossings.edge[order]))]
    edge, row = crossings.edge[order], crossings.row[order]
    low, high = surface.label[crossings.low[order]], surface.label[crossings.high[order]]
    first = np.r_[True, edge[1:] != edge[:-1]] if len(edge) else np.zeros(0, bool)
    last = np.r_[first[1:], True] if len(edge) else first
    step = -crossings.step[order] if surface.outer else crossings.step[order]
    entered = np.cumsum(step)
    before = entered - step
    base = (surface.inside[crossings.low[order]] - before)[first]
    within = (entered + np.repeat(base, np.diff(np.r_[np.flatnonzero(first), len(edge)]))) > 0
    here = group[row]
    piece = np.flatnonzero(within & ~last)
    begin = np.flatnonzero(first & surface.inside[crossings.low[order]])
    end = np.flatnonzero(within & last)
    starts = np.concatenate([here[piece], here[begin], here[end]])
    stops = np.concatenate([here[piece + 1], count + low[begin], count + high[end]])
    links = np.stack([starts, stops], axis=1), _holes(surface, segments, crossings, group, count)
    nodes = components(np.concatenate(links), count + len(surface.points))
    at = segments.points[row, crossings.end[order]]
    ends = surface.points[crossings.low[order[begin]]], surface.points[crossings.high[order[end]]]
    pieces = np.concatenate([at[piece], at[begin], at[end]]), np.concatenate([at[piece + 1], *ends])
    vertices = np.flatnonzero(surface.inside & (surface.label >= 0))
    joined = nodes[count + surface.label[vertices]]
    vertices, joined = vertices[joined < count], joined[joined < count]  # lowest: a group
    return InnerPatches(
        nodes[:count],
        np.concatenate([surface.points[vertices], (pieces[0] + pieces[1]) / 2.0]),
        np.concatenate([joined, nodes[starts]]),
    )


def _holes(
    surface: SolidSide, segments: Segments, crossings: EdgeCrossings, group: np.ndarray, count: int
) -> np.ndarray:
    """Return links of groups that lie inside one face, as holes of a patch, to what is around."""
    rows = np.flatnonzero(segments.edges[:, 0] >= 0)
    face = segments.pairs[rows, surface.side]
    low, high = np.full(count, len(surface.faces)), np.full(count, -1)
    np.minimum.at(low, group[rows], face)
    np.maximum.at(high, group[rows], face)
    alone = low == high
    alone[group[crossings.row]] = False
    corners = surface.points[surface.faces[face]]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    start, stop = (segments.points[rows, k] - corners[:, 0] for k in range(2))
    area = np.bincount(group[rows], (np.cross(start, stop) * normal).sum(axis=1), count)
    holes = np.flatnonzero(
        alone & ((area > 0.0) if bool(surface.side) != surface.outer else (area < 0.0))
    )
    links = [
        _around(surface, segments, crossings, group, rows[face == low[hole]], int(hole), count)
        for hole in holes
    ]
    return np.array([link for link in links if link], dtype=np.int64).reshape(-1, 2)


def _around(
    surface: SolidSide,
    segments: Segments,
    crossings: EdgeCrossings,
    group: np.ndarray,
    rows: np.ndarray,
    hole: int,
    count: int,
) -> tuple[int, int] | None:
    """Return the link of a hole to the nearest contact or vertex around it.

    The nearest is looked for along one direction of the plane of the face whose segments are
    ``rows``. None if the hole is at the edge of the face, but for rounding.
    """
    face = segments.pairs[rows[0], surface.side]
    corners = surface.points[surface.faces[face]]
    along = corners[1] - corners[0]
    across = np.cross(np.cross(along, corners[2] - corners[0]), along)
    axes = np.stack([along / (along @ along), across / (across @ across)], axis=1)
    start, stop = np.moveaxis((segments.points[rows] - corners[0]) @ axes, 1, 0)
    mine = group[rows] == hole
    x, y = start[mine][np.argmax(start[mine, 0])]
    others = np.flatnonzero(~mine)
    hit = _nearest_on_ray(start[others], stop[others], x, y)
    if hit is not None:
        return hole, int(group[rows[others[hit]]])
    flat = (corners - corners[0]) @ axes
    k = _nearest_on_ray(flat, np.roll(flat, -1, axis=0), x, y)
    if k is None:
        return None
    u, v = surface.faces[face, k], surface.faces[face, (k + 1) % 3]
    share = (y - flat[k, 1]) / (flat[(k + 1) % 3, 1] - flat[k, 1])
    share = share if u < v else 1.0 - share
    same = (crossings.low == min(u, v)) & (crossings.high == max(u, v)) & (crossings.share <= share)
    if same.any():
        before = np.flatnonzero(same)[np.argmax(crossings.share[same])]
        return hole, int(group[crossings.row[before]])
    return hole, count + int(surface.label[min(u, v)])


def _nearest_on_ray(start: np.ndarray, stop: np.ndarray, x: float, y: float) -> int | None:
    """Return the first of segments (n, 2) that a ray along the first axis crosses."""
    (x0, y0), (x1, y1) = start.T, stop.T
    hit = np.flatnonzero((y0 <= y) != (y1 <= y))
    at = x0[hit] + (x1[hit] - x0[hit]) * (y - y0[hit]) / (y1[hit] - y0[hit])
    hit, at = hit[at >= x], at[at >= x]
    return int(hit[np.argmin(at)]) if len(hit) else None
