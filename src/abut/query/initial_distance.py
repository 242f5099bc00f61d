"""Distances of features at the start of a step, for impacts at time 0."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from abut.mesh import Mesh
from abut.motion import Motion
from abut.operands.posed_mesh import make_posed_mesh
from abut.results import ImpactKind, Impacts

log = logging.getLogger("abut")
LEAST = np.finfo(np.float64).smallest_subnormal
_logged: list[float] = []  # the distance that was logged


def least_initial_distance(motions: Sequence[Motion], impacts: Impacts) -> float:
    """Least distance of the features of rows at time 0, at the start of the step."""
    sides = [(motion.mesh, motion.start_points) for motion in (motions[0], motions[-1])]
    rows = (impacts.kind.numpy(), impacts.features.numpy(), impacts.time.numpy())
    return float(initial_distances(sides, *rows).min(initial=np.inf))


def initial_distances(
    sides: Sequence[tuple[Mesh, wp.array]],
    kind: np.ndarray,
    features: np.ndarray,
    times: np.ndarray,
) -> np.ndarray:
    """(n,) distances at the start, of features that meet at time 0; else infinity.

    Args:
        sides: The mesh and the points at the start of a and b.
        kind, features, times: Of each impact.
    """
    out = np.full(len(times), np.inf)
    rows = np.flatnonzero(times == 0.0)
    if len(rows):
        a, b = (
            _triangles(mesh, points.numpy(), kind[rows], features[rows, side], side)
            for side, (mesh, points) in enumerate(sides)
        )
        out[rows] = _distances(a, b, sides[0][0].device)
    return out


def _triangles(
    mesh: Mesh, points: np.ndarray, kind: np.ndarray, features: np.ndarray, side: int
) -> np.ndarray:
    """(n, 3, 3) corners of features; a vertex has three equal ones, an edge one end twice."""
    is_edge = kind == ImpactKind.EDGE_EDGE
    is_vertex = kind == (ImpactKind.VERTEX_FACE, ImpactKind.FACE_VERTEX)[side]
    is_face = ~(is_edge | is_vertex)
    corners = np.repeat(features[:, None], 3, axis=1)
    corners[is_edge] = mesh.edges.numpy()[features[is_edge]][:, [0, 1, 1]]
    corners[is_face] = mesh.faces.numpy()[features[is_face]]
    return points[corners]


def _distances(a: np.ndarray, b: np.ndarray, device: wp.Device) -> np.ndarray:
    """(n,) distances of triangles (n, 3, 3), row by row."""
    from abut.narrow.pair_distance import measured  # seldom needed

    count = len(a)
    corners = np.arange(3 * count, dtype=np.int32).reshape(-1, 3)
    faces = wp.array(corners, dtype=wp.vec3i, device=device)
    sides = [
        make_posed_mesh(wp.array(side.reshape(-1, 3), dtype=wp.vec3d, device=device), faces)
        for side in (a, b)
    ]
    pairs = wp.array(corners[:, :2] // 3, dtype=wp.int32, device=device)
    unmet = np.zeros(count, bool)
    lengths, _ = measured(lambda: sides[0], lambda: sides[1], pairs, None, unmet, points=False)
    found = lengths.numpy()
    return np.where(found > LEAST, found, 0.0)  # features that touch are computed to be as close


def log_closer_start(impacts: Any, gap: float) -> None:
    """Log, once in a process, that features start closer than the gap to keep."""
    if gap == 0.0 or _logged:
        return
    distance = impacts.initial_distance
    least = float(distance if isinstance(distance, float) else distance.numpy().min(initial=np.inf))
    if least < gap:
        _logged.append(least)
        log.warning(
            "ccd: features start %.6g apart, closer than min_distance=%.6g, so their impacts are "
            "at time 0 and no step is safe; move them apart first, or keep a smaller gap. This is "
            "said once; initial_distance of the result has the distance of every step",
            least,
            gap,
        )
