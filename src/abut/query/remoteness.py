"""How far apart two meshes are for their size, which decides how the nearest faces are found."""

from enum import IntEnum

import numpy as np

from abut.mesh import Mesh
from abut.traversal import remote

REMOTE_SIZES = float(remote.REMOTE_SIZES)
BEYOND_SIZES = float(remote.BEYOND_SIZES)
ROUNDED = float(remote.ROUNDED)


class Remoteness(IntEnum):
    """How far apart two meshes are for their size."""

    NEAR = 0
    REMOTE = 1
    BEYOND = 2


def remoteness(a: Mesh, b: Mesh, poses: tuple[np.ndarray | None, ...]) -> np.ndarray | None:
    """(B,) of Remoteness, one for each pose; None where all are near."""
    size, reach = _extent(a)[0] + _extent(b)[0], reach_of(a, b, poses)
    if 2.0 * reach <= REMOTE_SIZES * size:
        return None
    with np.errstate(all="ignore"):
        between = np.subtract(*(_centres(m, p) for m, p in zip((a, b), poses, strict=True)))
        apart = np.abs(between).max(axis=1)
    beyond = (apart > BEYOND_SIZES * size) & (apart > ROUNDED * reach)
    kinds = np.where(beyond, Remoteness.BEYOND, Remoteness.REMOTE)
    return np.where((apart > REMOTE_SIZES * size) & np.isfinite(apart), kinds, Remoteness.NEAR)


def reach_of(a: Mesh, b: Mesh, poses: tuple[np.ndarray | None, ...]) -> float:
    """The largest coordinate of both meshes where they are, at most."""
    shifts = sum(_largest_shift(p) for p in poses if p is not None)
    return _extent(a)[1] + _extent(b)[1] + shifts


def centre_of(mesh: Mesh) -> np.ndarray:
    """The middle of a mesh's bounds."""
    return mesh.bounds[0] / 2.0 + mesh.bounds[1] / 2.0


def _extent(mesh: Mesh) -> tuple[float, float]:
    """Sum of the sides of a mesh's bounds, and its largest coordinate."""

    def make() -> tuple[float, float]:
        with np.errstate(over="ignore"):
            size = float((mesh.bounds[1] - mesh.bounds[0]).sum())
        return size, float(np.abs(mesh.bounds).max())

    return mesh.per_shape("extent", make)


def _largest_shift(poses: np.ndarray) -> float:
    if len(poses) == 1:
        return max(map(abs, poses[0, :3, 3].tolist()))  # plain numbers are faster
    return float(np.abs(poses[:, :3, 3]).max(initial=0.0))


def _centres(mesh: Mesh, poses: np.ndarray | None) -> np.ndarray:
    """(B, 3), or (1, 3) of a mesh that is not moved."""
    centre = centre_of(mesh)
    return centre[None] if poses is None else poses[:, :3, :3] @ centre + poses[:, :3, 3]
