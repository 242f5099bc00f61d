"""Drawings of distance fields: a section, and the closest point of a mesh."""

from typing import Any

import numpy as np
import warp as wp

from abut import view
from abut.cases.shape import grid_faces
from abut.mesh import Mesh
from abut.sdf.distance_field import DistanceField
from abut.view.body import GLOW

BANDS = 24  # of colour, over the range of distances
PALE = np.array([0.95, 0.95, 0.93])


def section(field: DistanceField) -> tuple[view.Body, np.ndarray, int]:
    """A section across the shortest side of a field, its points inside, and the axis it cuts."""
    box, axis = field.box, int(np.argmin(field.box.shape))
    values = np.take(field.distance.numpy(), box.shape[axis] // 2, axis)
    index = np.insert(np.indices(values.shape).reshape(2, -1).T, axis, box.shape[axis] // 2, axis=1)
    points = box.lower + box.spacing * index
    faces = grid_faces(*values.shape, wrap=(False, False))
    colors = _banded(values.ravel()[faces].mean(axis=1))
    return view.Body((points, faces), colors, finish=GLOW), points[values.ravel() < 0], axis


def half_of(mesh: Mesh, axis: int, at: float, eye: np.ndarray) -> tuple[Any, Any]:
    """Vertices and faces of a mesh beyond a plane, as seen from the eye."""
    points, faces = mesh.points.numpy(), mesh.faces.numpy()
    return points, faces[(points[faces].mean(axis=1)[:, axis] > at) != (eye[axis] > at)]


def surface(field: DistanceField) -> tuple[Any, Any]:
    """Vertices and faces of the surface on which a field is 0."""
    upper = field.box.lower + field.box.spacing * (np.array(field.box.shape) - 1)
    bounds = wp.vec3(*field.box.lower.tolist()), wp.vec3(*upper.tolist())
    found = wp.MarchingCubes.extract_surface_marching_cubes(field.distance, 0.0, *bounds)
    return found[0].numpy(), found[1].numpy().reshape(-1, 3)


def _banded(values: np.ndarray) -> np.ndarray:
    """(m, 3) colours: red inside, teal outside, paler further away, in bands."""
    reach = max(float(np.abs(values).max()), 1e-300)
    share = np.floor(np.abs(values) / reach * BANDS) / BANDS
    dark = np.where(values[:, None] < 0, view.RED, view.TEAL)
    return dark + (PALE - dark) * (0.85 * share)[:, None]
