"""Places of impacts: where features of a deforming mesh touch, at the time when they do."""

import numpy as np

from abut.mesh import Mesh
from abut.results import ImpactKind, Impacts


def impact_points(mesh: Mesh, end: np.ndarray, impacts: Impacts) -> np.ndarray:
    """(n, 3) points in which a mesh touches itself on its way to the vertices ``end``.

    A vertex is where it is at the time of its impact; of two edges it is the point halfway between
    their nearest points then.
    """
    start, time = mesh.vertices.numpy().astype(np.float64), impacts.time.numpy()
    features = impacts.features.numpy()
    points = np.empty((len(time), 3))
    edges = impacts.kind.numpy() == ImpactKind.EDGE_EDGE

    def at(vertices: np.ndarray, when: np.ndarray) -> np.ndarray:
        share = when.reshape(-1, *[1] * vertices.ndim)
        return (1 - share) * start[vertices] + share * end[vertices]

    points[~edges] = at(features[~edges, 0], time[~edges])
    ends = mesh.edges.numpy()[features[edges]]
    corners = at(ends, time[edges])
    points[edges] = _between_edges(corners[:, 0], corners[:, 1])
    return points


def _between_edges(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Points halfway between the nearest points of edges (n, 2, 3); middles of parallel ones."""
    u, v, w = a[:, 1] - a[:, 0], b[:, 1] - b[:, 0], a[:, 0] - b[:, 0]
    uu, uv, vv = ((p * q).sum(axis=1) for p, q in ((u, u), (u, v), (v, v)))
    wu, wv = (w * u).sum(axis=1), (w * v).sum(axis=1)
    area = uu * vv - uv * uv
    flat = area <= 1e-12 * uu * vv
    area = np.where(flat, 1.0, area)
    s = np.clip(np.where(flat, 0.5, (uv * wv - vv * wu) / area), 0, 1)[:, None]
    t = np.clip(np.where(flat, 0.5, (uu * wv - uv * wu) / area), 0, 1)[:, None]
    return (a[:, 0] + s * u + b[:, 0] + t * v) / 2
