"""Coplanar faces: an order in which faces of one plane are drawn, so that they do not speckle."""

import numpy as np

from abut.cases.shape import Shape
from abut.view.body import unit

FLAT = 1e-3  # step of the components of normals
THIN = 1e-5  # step of the offsets of planes, over the extent
LEVELS = 64
LEVEL = 4e-6  # distance of two levels over the distance from the eye
ABOVE = np.array([0.5377, 0.3829, 0.7514])  # of two opposite normals, the one on this side counts


def levels_of(shape: Shape, layer: np.ndarray, extent: float) -> np.ndarray:
    """The level of each face: among faces of one plane, layers rise with ``layer`` (m,)."""
    a, b, c = (shape.vertices[corner] for corner in shape.faces.T)
    normals = unit(np.cross(b - a, c - a))
    normals *= np.where(normals @ ABOVE < 0, -1.0, 1.0)[:, None]
    offsets = (normals * (a + b + c)).sum(axis=1) / 3
    planes = np.column_stack([normals / FLAT, offsets / (THIN * extent)])
    return np.maximum(*(_ranks(np.floor(planes + shift), layer) for shift in (0.0, 0.5)))


def lifted(shape: Shape, levels: np.ndarray, eye: np.ndarray) -> np.ndarray:
    """(3m, 3) corners of faces, each level nearer to the eye; the picture stays the same."""
    corners = shape.vertices[shape.faces] - eye
    return (eye + corners * (1 - LEVEL * (levels % LEVELS))[:, None, None]).reshape(-1, 3)


def _ranks(cells: np.ndarray, layer: np.ndarray) -> np.ndarray:
    """Number of smaller layers in the same cell."""
    keys = cells.astype(np.int64) @ np.array([0x9E3779B1, 0x85EBCA77C2B, 0xC2B2AE3D27D, 0x27D4EB2F])
    order = np.lexsort((layer, keys))
    keys, sorted_layer = keys[order], layer[order]
    new_cell = np.append(True, keys[1:] != keys[:-1])
    new_layer = np.append(True, sorted_layer[1:] != sorted_layer[:-1]) | new_cell
    count = np.cumsum(new_layer)
    firsts = count[new_cell]
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = count - firsts[np.cumsum(new_cell) - 1]
    return ranks
