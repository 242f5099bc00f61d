"""Affine matrices of scene files: a rigid motion, and a stretch of the vertices before it."""

import numpy as np

NEARLY_RIGID = 1e-6  # singular values this close to 1 are rounding of a rotation


def split_matrix(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a rigid motion, and the (3, 3) scale and shear to apply to vertices before it."""
    u, sizes, v = np.linalg.svd(matrix[:3, :3])
    rotation = u @ v
    pose = np.eye(4)
    pose[:3, 3] = matrix[:3, 3]
    if np.allclose(sizes, 1.0, rtol=0, atol=NEARLY_RIGID) and np.linalg.det(rotation) > 0:
        pose[:3, :3] = rotation
        return pose, np.eye(3)
    if np.linalg.det(rotation) < 0:
        rotation = -rotation
    pose[:3, :3] = rotation
    return pose, rotation.T @ matrix[:3, :3]


def stretched(
    vertices: np.ndarray, faces: np.ndarray, stretch: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return a mesh after a (3, 3) stretch; a mirrored mesh keeps its outside."""
    if (stretch == np.eye(3)).all():
        return vertices, faces
    return vertices @ stretch.T, faces[:, ::-1] if np.linalg.det(stretch) < 0 else faces
