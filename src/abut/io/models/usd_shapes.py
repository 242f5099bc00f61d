"""Meshes of the shapes of USD: polygon meshes, and cubes, spheres, cylinders, cones, capsules."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from abut.io.models.polygons import triangles_of_polygons

TURNED = {"X": [2, 0, 1], "Y": [1, 2, 0], "Z": [0, 1, 2]}  # coordinates whose axis is Z
LEAST_SIDES = 8  # of a circle
CAGES = ("catmullClark", "loop", "bilinear")


class UsdShape(NamedTuple):
    """A mesh in the frame of its prim.

    Attributes:
        curved: The mesh replaces a curved surface.
        cage: The mesh is the control cage of a subdivision surface.
    """

    vertices: np.ndarray
    faces: np.ndarray
    curved: bool = False
    cage: bool = False


def shape_of(prim: Any, time: Any, chord: float) -> UsdShape:
    """Return the mesh of a prim.

    Args:
        prim: A prim of a Gprim schema.
        time: Time code of the values.
        chord: Largest distance of the mesh from a curved surface, in the unit of the prim.

    Raises:
        ValueError: The prim has no surface, or its values are no mesh.
    """
    kind = str(prim.GetTypeName())
    if kind == "Mesh":
        return _mesh(prim, time)
    if kind == "Cube":
        return UsdShape(*_box(_value(prim, "size", time)))
    if kind == "Plane":
        return UsdShape(*_plane(prim, time))
    profile = _profile(prim, kind, time, chord / 2)
    vertices, faces = _revolved(profile, chord / 2)
    axis = "Z" if kind == "Sphere" else str(_value(prim, "axis", time))
    return UsdShape(vertices[:, TURNED[axis]], faces, True)


def _value(prim: Any, name: str, time: Any) -> Any:
    value = prim.GetAttribute(name).Get(time)
    if value is None:
        raise ValueError(f"it has no {name}.")
    return value


def _mesh(prim: Any, time: Any) -> UsdShape:
    points = np.array(_value(prim, "points", time), np.float64).reshape(-1, 3)
    counts = np.array(_value(prim, "faceVertexCounts", time), np.int64)
    corners = np.array(_value(prim, "faceVertexIndices", time), np.int64)
    if (counts < 0).any() or counts.sum() != len(corners):
        raise ValueError(f"its faces need {counts.sum()} corners, but it has {len(corners)}.")
    if len(corners) and not 0 <= corners.min() <= corners.max() < len(points):
        raise ValueError("its faces refer to points that it does not have.")
    if not np.isfinite(points).all():
        raise ValueError("its points are not finite.")
    holes = np.array(prim.GetAttribute("holeIndices").Get(time) or [], np.int64)
    solid = np.ones(len(counts), bool)
    solid[holes[(holes >= 0) & (holes < len(counts))]] = False
    corners = corners[np.repeat(solid, counts)]
    faces = triangles_of_polygons(points, counts[solid], corners)
    if not len(faces):
        raise ValueError("it has no faces.")
    if str(_value(prim, "orientation", time)) == "leftHanded":
        faces = faces[:, ::-1]
    return UsdShape(points, faces, cage=str(_value(prim, "subdivisionScheme", time)) in CAGES)


def _box(size: float) -> tuple[np.ndarray, np.ndarray]:
    points = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * size / 2
    sides = [0, 1, 3, 2, 4, 6, 7, 5, 0, 4, 5, 1, 2, 3, 7, 6, 0, 2, 6, 4, 1, 5, 7, 3]
    return points, triangles_of_polygons(points, np.full(6, 4), np.array(sides))


def _plane(prim: Any, time: Any) -> tuple[np.ndarray, np.ndarray]:
    x, y = _value(prim, "width", time) / 2, _value(prim, "length", time) / 2
    points = np.array([(-x, -y, 0), (x, -y, 0), (x, y, 0), (-x, y, 0)], float)
    turned = points[:, TURNED[str(_value(prim, "axis", time))]]
    return turned, np.array([[0, 1, 2], [0, 2, 3]], np.int32)


def _profile(prim: Any, kind: str, time: Any, sagitta: float) -> np.ndarray:
    """Return (k, 2) radii and heights from the lowest to the highest point of a shape."""
    if kind not in ("Sphere", "Cylinder", "Cylinder_1", "Cone", "Capsule"):
        raise ValueError(f"a {kind} has no surface that is read.")
    names = ("radiusBottom", "radiusTop") if kind == "Cylinder_1" else ("radius", "radius")
    low, top = (float(_value(prim, name, time)) for name in names)
    half = 0.0 if kind == "Sphere" else float(_value(prim, "height", time)) / 2
    if (
        min(low, top, half) < 0
        or max(low, top) == 0
        or (half == 0 and kind not in ("Sphere", "Capsule"))
    ):
        raise ValueError("its radius or height is not positive.")
    if kind in ("Cylinder", "Cylinder_1"):
        rows = [(0, -half), (low, -half), (top, half), (0, half)]
    elif kind == "Cone":
        rows = [(0, -half), (low, -half), (0, half)]
    else:
        angles = np.linspace(0, np.pi / 2, 1 + _sides(low, sagitta) // 4)
        arc = [(low * np.sin(t), low * np.cos(t)) for t in angles.tolist()]
        arc[0], arc[-1] = (0.0, low), (low, 0.0)
        rows = [(r, -half - h) for r, h in arc]
        rows += [(r, half + h) for r, h in arc[::-1]][half == 0 :]
    rows = [row for k, row in enumerate(rows) if k == 0 or row != rows[k - 1]]
    return np.array(rows, float)


def _sides(radius: float, sagitta: float) -> int:
    """Return how many sides, a multiple of 4, a polygon in a circle needs for a sagitta."""
    share = min(max(sagitta / radius, 1e-9), 1.0)
    return max(LEAST_SIDES, 4 * int(np.ceil(np.pi / np.arccos(1 - share) / 4)))


def _revolved(profile: np.ndarray, sagitta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the closed surface of a profile that is turned about z and ends on z."""
    sides = _sides(float(profile[:, 0].max()), sagitta)
    angles = 2 * np.pi * np.arange(sides) / sides
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points, rings = [], []
    for radius, height in profile.tolist():
        count = sides if radius > 0 else 1
        rings.append(len(points) + np.arange(sides) % count)
        ring = circle[:count] * radius
        points += [(x, y, height) for x, y in ring.tolist()]
    faces = []
    for low, high in pairwise(rings):
        after = np.roll(low, -1), np.roll(high, -1)
        faces += [
            np.stack([low, after[0], after[1]], axis=1),
            np.stack([low, after[1], high], axis=1),
        ]
    rows = np.concatenate(faces)
    a, b, c = rows.T
    return np.array(points, float), rows[(a != b) & (b != c) & (c != a)].astype(np.int32)
