"""Volume, centre of mass and inertia of the solid inside a surface."""

from dataclasses import dataclass

import numpy as np

from abut.geometry.topology import components, topology_of

MOSTLY_CLOSED = 0.05  # largest missing area over all area


@dataclass(frozen=True)
class Solid:
    """A solid of density 1.

    Attributes:
        volume: Its volume, and so its mass.
        centre: (3,) centre of mass.
        inertia: (3, 3) about the centre, along the axes of the frame.
    """

    volume: float
    centre: np.ndarray
    inertia: np.ndarray


def solid_of(points: np.ndarray, faces: np.ndarray) -> Solid | None:
    """Return the solid inside a surface, or None if there is none.

    A fan around its middle closes each hole. None if too much area is missing or the faces are
    oriented inwards.
    """
    middle = points[faces].mean(axis=(0, 1))
    corners = _with_caps(points - middle, faces)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    own = normals[: len(faces)]
    area = np.linalg.norm(own, axis=1).sum()
    volume = float(np.einsum("ij,ij->i", corners[:, 0], normals).sum()) / 6
    missing = np.linalg.norm(own.sum(axis=0))
    if not volume > 1e-9 * area**1.5 or missing > MOSTLY_CLOSED * area:
        return None
    return _integrated(corners, normals, volume, middle)


def centre_of_mass(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return the centre of mass of the solid inside a surface, or of the surface itself."""
    solid = solid_of(points, faces)
    if solid is not None:
        return solid.centre
    corners = points[faces]
    area = np.linalg.norm(
        np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1
    )
    weights = area if area.sum() > 0 else np.ones(len(faces))
    return np.average(corners.mean(axis=1), axis=0, weights=weights)


def _with_caps(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return (k, 3, 3) corners of all faces, and of fans over the holes."""
    boundary = topology_of(points, faces).boundary
    if len(boundary) == 0:
        return points[faces]
    label = components(boundary, len(points))[boundary[:, 0]]
    _, hole = np.unique(label, return_inverse=True)
    counts = np.bincount(hole)[:, None]
    middles = (
        np.stack([np.bincount(hole, points[boundary[:, 0], x]) for x in range(3)], axis=1) / counts
    )
    fans = np.stack([points[boundary[:, 1]], points[boundary[:, 0]], middles[hole]], axis=1)
    return np.concatenate([points[faces], fans])


def _integrated(
    corners: np.ndarray, normals: np.ndarray, volume: float, middle: np.ndarray
) -> Solid:
    """Integrate signed tetrahedra from the origin."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    shares = np.einsum("ij,ij->i", a, normals) / 6
    total = a + b + c
    centre = (shares[:, None] * total).sum(axis=0) / (4 * volume)
    second = sum(np.einsum("i,ij,ik->jk", shares, p, p) for p in (a, b, c, total)) / 20
    second -= volume * np.outer(centre, centre)
    inertia = np.trace(second) * np.eye(3) - second
    return Solid(volume, centre + middle, inertia)
