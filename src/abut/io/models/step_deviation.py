"""Distances of meshes from the B-rep surfaces and curves that they replace, by sampling."""

from typing import Any

import numpy as np

ORDER = 4  # points of a triangle: the lattice with this many steps along a side
CHUNK = 1 << 15  # triangles that are looked at together
SHARES = (0.25, 0.5, 0.75)  # of a segment of a curve


def surface_deviation(face: Any, parameters: np.ndarray, corners: np.ndarray) -> float:
    """Return the largest distance of the surface from the triangles of a face, where sampled.

    Args:
        face: A TopoDS_Face.
        parameters: (n, 3, 2) parameters of the corners on the surface.
        corners: (n, 3, 3) corners.
    """
    from OCP.BRepAdaptor import BRepAdaptor_Surface
    from OCP.GeomAbs import GeomAbs_SurfaceType

    surface = BRepAdaptor_Surface(face, False)
    largest = 0.0
    if surface.GetType() == GeomAbs_SurfaceType.GeomAbs_Plane:
        plane = surface.Plane()  # an inaccurate file has corners off the plane
        origin, normal = _xyz(plane.Location()), _xyz(plane.Axis().Direction())
        return float(np.abs((corners.reshape(-1, 3) - origin) @ normal).max(initial=0.0))
    shares = _lattice()
    for start in range(0, len(corners), CHUNK):
        spots = np.einsum("sc,ncp->nsp", shares, parameters[start : start + CHUNK])
        true = _points(surface, spots.reshape(-1, 2)).reshape(*spots.shape[:2], 3)
        some = np.repeat(corners[start : start + CHUNK, None], len(shares), axis=1)
        gaps = distances_to_triangles(true.reshape(-1, 3), some.reshape(-1, 3, 3))
        largest = max(largest, float(gaps.max(initial=0.0)))
    return largest


def curve_deviation(edge: Any, polygon: Any, points: np.ndarray) -> float:
    """Return the largest distance of the curve of an edge from its polygon, where sampled."""
    from OCP.BRepAdaptor import BRepAdaptor_Curve
    from OCP.GeomAbs import GeomAbs_CurveType

    curve = BRepAdaptor_Curve(edge)
    if curve.GetType() == GeomAbs_CurveType.GeomAbs_Line or not polygon.HasParameters():
        return 0.0
    at = [polygon.Parameter(k) for k in range(1, polygon.NbNodes() + 1)]
    largest = 0.0
    for k in range(len(at) - 1):
        for share in SHARES:
            point = _xyz(curve.Value(at[k] + share * (at[k + 1] - at[k])))
            largest = max(largest, _gap(point, points[k], points[k + 1]))
    return largest


def _gap(point: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    along = b - a
    square = float(along @ along)
    share = min(max(float((point - a) @ along) / square, 0.0), 1.0) if square > 0 else 0.0
    return float(np.linalg.norm(point - a - share * along))


def _lattice() -> np.ndarray:
    """Return barycentric coordinates of points of a triangle without its corners."""
    rows = [
        (i, j, ORDER - i - j)
        for i in range(ORDER + 1)
        for j in range(ORDER + 1 - i)
        if max(i, j, ORDER - i - j) < ORDER
    ]
    return np.array([*rows, (4 / 3, 4 / 3, 4 / 3)]) / ORDER


def _xyz(vector: Any) -> np.ndarray:
    return np.array([vector.X(), vector.Y(), vector.Z()])


def _points(surface: Any, spots: np.ndarray) -> np.ndarray:
    """Return points of a surface; elementary surfaces are evaluated at once."""
    from OCP.GeomAbs import GeomAbs_SurfaceType as Kind

    kind = surface.GetType()
    u, v = spots.T
    if kind == Kind.GeomAbs_Cylinder:
        shape = surface.Cylinder()
        radius, height = np.full_like(u, shape.Radius()), v
    elif kind == Kind.GeomAbs_Cone:
        shape = surface.Cone()
        angle = shape.SemiAngle()
        radius, height = shape.RefRadius() + v * np.sin(angle), v * np.cos(angle)
    elif kind == Kind.GeomAbs_Sphere:
        shape = surface.Sphere()
        radius, height = shape.Radius() * np.cos(v), shape.Radius() * np.sin(v)
    elif kind == Kind.GeomAbs_Torus:
        shape = surface.Torus()
        radius = shape.MajorRadius() + shape.MinorRadius() * np.cos(v)
        height = shape.MinorRadius() * np.sin(v)
    else:
        values = [surface.Value(a, b) for a, b in spots.tolist()]
        return np.array([(p.X(), p.Y(), p.Z()) for p in values]).reshape(-1, 3)
    frame = shape.Position()
    origin = _xyz(frame.Location())
    axes = (frame.XDirection(), frame.YDirection(), frame.Direction())
    x, y, z = (_xyz(axis) for axis in axes)
    across = radius[:, None] * (np.cos(u)[:, None] * x + np.sin(u)[:, None] * y)
    return origin + across + height[:, None] * z


def distances_to_triangles(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Return the distance of each point (n, 3) from its triangle (n, 3, 3)."""
    sides = np.roll(corners, -1, axis=1) - corners
    normal = np.cross(sides[:, 0], sides[:, 1])
    square = (normal * normal).sum(axis=1)
    away = points[:, None] - corners
    inside = (square > 0) & ((np.cross(sides, away) * normal[:, None]).sum(axis=2) >= 0).all(axis=1)
    lengths = (sides * sides).sum(axis=2)
    share = np.divide(
        (away * sides).sum(axis=2), lengths, out=np.zeros_like(lengths), where=lengths > 0
    )
    off = away - np.clip(share, 0.0, 1.0)[:, :, None] * sides
    gaps = np.linalg.norm(off, axis=2).min(axis=1)
    plane = np.abs((away[:, 0] * normal).sum(axis=1))
    flat = np.divide(plane, np.sqrt(square), out=np.zeros_like(plane), where=square > 0)
    return np.where(inside, flat, gaps)
