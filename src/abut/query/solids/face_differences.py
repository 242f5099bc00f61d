"""Minkowski differences of pairs of faces: the translations at which two faces meet.

Faces f of a and g of b, moved by s, meet exactly if s lies in the convex polytope f - g. Its facets
are normal to f, to g, or to an edge of each.
"""

from typing import NamedTuple

import numpy as np

from abut.query.solids.translated_solids import TranslatedSolids

PARALLEL = 1e-12  # rate of a facet along a unit direction, and share of a cross product


class FaceDifferences(NamedTuple):
    """Half-spaces of n polytopes: x lies in one if ``normals @ x <= offsets``.

    Attributes:
        normals: (n, 22, 3) unit vectors, the second half opposite to the first.
        offsets: (n, 22); infinite where two edges are parallel.
    """

    normals: np.ndarray
    offsets: np.ndarray


class Passages(NamedTuple):
    """Open intervals in which a line is inside each of n polytopes; empty where start >= stop.

    Attributes:
        start, stop: (n,) parameters of the line.
        exit_facet: (n,) the facet at ``stop``.
    """

    start: np.ndarray
    stop: np.ndarray
    exit_facet: np.ndarray


def face_differences(solids: TranslatedSolids, pairs: np.ndarray) -> FaceDifferences:
    """Return the polytopes of pairs (n, 2) of faces."""
    a, b = solids.corners(pairs)
    edges_a, edges_b = np.roll(a, -1, axis=1) - a, np.roll(b, -1, axis=1) - b
    crosses = np.cross(edges_a[:, :, None], edges_b[:, None]).reshape(-1, 9, 3)
    planes = [np.cross(e[:, 0], e[:, 1])[:, None] for e in (edges_a, edges_b)]
    axes = np.concatenate([*planes, crosses], axis=1)
    lengths_a, lengths_b = (np.linalg.norm(e, axis=2) for e in (edges_a, edges_b))
    scale = [e[:, :1] * e[:, 1:2] for e in (lengths_a, lengths_b)]
    scale = np.concatenate([*scale, (lengths_a[:, :, None] * lengths_b[:, None]).reshape(-1, 9)], 1)
    length = np.linalg.norm(axes, axis=2)
    real = length > PARALLEL * scale
    axes = np.where(real, 1.0 / np.where(real, length, 1.0), 0.0)[:, :, None] * axes
    on_a, on_b = axes @ a.swapaxes(1, 2), axes @ b.swapaxes(1, 2)
    high = on_a.max(axis=2) - on_b.min(axis=2)
    low = on_a.min(axis=2) - on_b.max(axis=2)
    offsets = np.concatenate([np.where(real, high, np.inf), np.where(real, -low, np.inf)], axis=1)
    return FaceDifferences(np.concatenate([axes, -axes], axis=1), offsets)


def passages(
    polytopes: FaceDifferences, origin: np.ndarray, direction: np.ndarray, margin: float
) -> Passages:
    """Return the parts of the line ``origin + t * direction`` inside each polytope.

    Args:
        polytopes: Polytopes.
        origin: (3,) a point.
        direction: (3,) a unit vector.
        margin: Distance from facets parallel to the line that counts as outside.
    """
    rate = polytopes.normals @ direction
    slack = polytopes.offsets - polytopes.normals @ origin
    along = np.abs(rate) <= PARALLEL
    with np.errstate(divide="ignore", invalid="ignore"):
        at = slack / rate
    stops = np.where(~along & (rate > 0), at, np.inf)
    starts = np.where(~along & (rate < 0), at, -np.inf)
    exit_facet = np.argmin(stops, axis=1)
    stop = np.take_along_axis(stops, exit_facet[:, None], axis=1)[:, 0]
    outside = (along & (slack <= margin)).any(axis=1)
    return Passages(np.where(outside, np.inf, starts.max(axis=1)), stop, exit_facet)
