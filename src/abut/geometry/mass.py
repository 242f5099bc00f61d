"""Volume, centre of mass and inertia of solids given by their surface."""

from dataclasses import dataclass

import numpy as np

from abut.geometry.topology import components, topology_of

MOSTLY_CLOSED = 0.05  # area that is missing, over all area, of a solid with holes


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
    """The solid inside a surface, or None where it encloses none.

    Each hole is closed by a fan around its middle. None: more than a hole or two is missing, or
    the faces look inwards.
    """
    middle = points[faces].mean(axis=(0, 1))
    corners = _closed(points - middle, faces)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    own = normals[: len(faces)]
    area = np.linalg.norm(own, axis=1).sum()
    volume = float(np.einsum("ij,ij->i", corners[:, 0], normals).sum()) / 6
    missing = np.linalg.norm(own.sum(axis=0))
    if not volume > 1e-9 * area**1.5 or missing > MOSTLY_CLOSED * area:
        return None
    return _integrated(corners, normals, volume, middle)


def centre_of(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Centre of mass of the solid inside a surface; of the surface where there is none."""
    solid = solid_of(points, faces)
    if solid is not None:
        return solid.centre
    corners = points[faces]
    area = np.linalg.norm(
        np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1
    )
    weights = area if area.sum() > 0 else np.ones(len(faces))
    return np.average(corners.mean(axis=1), axis=0, weights=weights)


def _closed(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """(k, 3, 3) corners of all faces, and of fans over the holes."""
    rim = topology_of(points, faces).rim
    if len(rim) == 0:
        return points[faces]
    label = components(rim, len(points))[rim[:, 0]]
    _, hole = np.unique(label, return_inverse=True)
    counts = np.bincount(hole)[:, None]
    middles = np.stack([np.bincount(hole, points[rim[:, 0], x]) for x in range(3)], axis=1) / counts
    fans = np.stack([points[rim[:, 1]], points[rim[:, 0]], middles[hole]], axis=1)
    return np.concatenate([points[faces], fans])


def _integrated(
    corners: np.ndarray, normals: np.ndarray, volume: float, middle: np.ndarray
) -> Solid:
    """Moments of the solid under signed tetrahedra from the origin."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    shares = np.einsum("ij,ij->i", a, normals) / 6
    total = a + b + c
    centre = (shares[:, None] * total).sum(axis=0) / (4 * volume)
    second = sum(np.einsum("i,ij,ik->jk", shares, p, p) for p in (a, b, c, total)) / 20
    second -= volume * np.outer(centre, centre)
    inertia = np.trace(second) * np.eye(3) - second
    return Solid(volume, centre + middle, inertia)
