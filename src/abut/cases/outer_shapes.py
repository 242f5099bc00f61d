"""Polyhedra that contain round shapes, and how far they reach beyond them."""

from collections.abc import Callable
from functools import lru_cache
from math import cos, pi
from typing import NamedTuple

import numpy as np

from abut.cases.shape import Shape, tube_faces
from abut.cases.shapes import box, icosphere
from abut.errors import OptionError

SIDES = 32  # of a circle, unless a chord asks for more
MOST_SIDES = 2048
MARGIN = 1 + 1e-14  # covers the rounding of vertices


class OuterShape(NamedTuple):
    """A closed polyhedron that contains a shape, and their deviation.

    Attributes:
        shape: Vertices and faces, oriented outwards.
        deviation: No point of the polyhedron is farther from the shape [mesh length unit].
    """

    shape: Shape
    deviation: float


class _Unit(NamedTuple):
    """A polyhedron around the unit ball; its vertices are no farther out than ``reach``."""

    vertices: np.ndarray
    faces: np.ndarray
    reach: float


def outer_box(size: tuple[float, float, float]) -> OuterShape:
    """A box about the origin, exact; ``size`` are its edges."""
    return OuterShape(box(size), 0.0)


def outer_sphere(radius: float, chord: float | None = None) -> OuterShape:
    """Contain a sphere about the origin.

    Args:
        radius: Of the sphere [mesh length unit].
        chord: The largest deviation allowed; None takes 1,280 faces.
    """
    return outer_ellipsoid((radius, radius, radius), chord)


def outer_ellipsoid(radii: tuple[float, float, float], chord: float | None = None) -> OuterShape:
    """Contain an ellipsoid with these radii along the axes; ``chord`` as in ``outer_sphere``."""
    widest = max(radii)
    ball = _fine_enough(_unit_ball, lambda ball: widest * (ball.reach - 1), chord)
    vertices = ball.vertices * np.asarray(radii, float)
    return OuterShape(Shape(vertices, ball.faces), widest * (ball.reach - 1))


def outer_cylinder(radius: float, height: float, chord: float | None = None) -> OuterShape:
    """Contain a cylinder about the origin and the z axis: a prism as high as it is.

    Args:
        radius, height: Of the cylinder [mesh length unit].
        chord: The largest deviation allowed; None takes 32 sides.
    """
    sides = _circle_sides(radius, chord)
    ring = _ring(sides) * (radius * _ring_reach(sides))
    low, high = (np.insert(ring, 2, z, axis=1) for z in (-height / 2, height / 2))
    ends = [[0, 0, -height / 2], [0, 0, height / 2]]
    shape = Shape(np.concatenate([low, high, ends]), tube_faces(2, sides))
    return OuterShape(shape, radius * (_ring_reach(sides) * MARGIN - 1))


def outer_cone(radius: float, height: float, chord: float | None = None) -> OuterShape:
    """Contain a cone with its tip at height / 2 of the z axis and its base at -height / 2."""
    sides = _circle_sides(radius, chord)
    base = np.insert(_ring(sides) * (radius * _ring_reach(sides)), 2, -height / 2, axis=1)
    ends = [[0, 0, -height / 2], [0, 0, height / 2]]
    shape = Shape(np.concatenate([base, ends]), tube_faces(1, sides))
    return OuterShape(shape, radius * (_ring_reach(sides) * MARGIN - 1))


def outer_capsule(radius: float, length: float, chord: float | None = None) -> OuterShape:
    """Contain a capsule: all points within ``radius`` of a segment along the z axis.

    Args:
        radius: Of the capsule [mesh length unit].
        length: Of the segment, whose middle is the origin.
        chord: The largest deviation allowed; None takes 32 sides.
    """
    if length == 0:
        return outer_sphere(radius, chord)
    caps = _fine_enough(_unit_caps, lambda caps: radius * (caps.reach - 1), chord)
    vertices = caps.vertices * radius
    half = len(caps.vertices[:-2]) // 2
    vertices[:half, 2] -= length / 2
    vertices[half:-2, 2] += length / 2
    vertices[-2, 2] -= length / 2
    vertices[-1, 2] += length / 2
    return OuterShape(Shape(vertices, caps.faces), radius * (caps.reach - 1))


def _fine_enough(
    make: Callable[[int], _Unit], deviation: Callable[[_Unit], float], chord: float | None
) -> _Unit:
    """The coarsest polyhedron of at least SIDES sides whose deviation is at most ``chord``."""
    sides = SIDES
    while chord is not None and deviation(make(sides)) > chord:
        sides = max(sides + 4, int(sides * (deviation(make(sides)) / chord) ** 0.5) // 4 * 4)
        _require_sides(sides, chord)
    return make(sides)


def _circle_sides(radius: float, chord: float | None) -> int:
    """Sides of a polygon around a circle."""
    sides = SIDES
    while chord is not None and radius * (_ring_reach(sides) * MARGIN - 1) > chord:
        sides += 4
        _require_sides(sides, chord)
    return sides


def _require_sides(sides: int, chord: float) -> None:
    if sides > MOST_SIDES:
        raise OptionError(f"chord {chord} asks for a shape of more than {MOST_SIDES} sides.")


def _ring(sides: int) -> np.ndarray:
    angle = np.arange(sides) * (2 * pi / sides)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _ring_reach(sides: int) -> float:
    return MARGIN / cos(pi / sides)


@lru_cache(maxsize=8)
def _unit_ball(sides: int) -> _Unit:
    ball = icosphere(20 * (sides // 4) ** 2)
    return _around_ball(ball.vertices, ball.faces, ball.faces)


@lru_cache(maxsize=8)
def _unit_caps(sides: int) -> _Unit:
    """Two hemispheres with a ring each at the equator, the lower one first."""
    steps = sides // 4
    angle = np.concatenate([np.arange(1 - steps, 1), np.arange(steps)]) * (pi / 2 / steps)
    rings = [np.insert(_ring(sides) * cos(a), 2, np.sin(a), axis=1) for a in angle]
    vertices = np.concatenate([*rings, [[0, 0, -1], [0, 0, 1]]])
    faces = tube_faces(2 * steps, sides)
    flat = np.isin(faces, np.arange((steps - 1) * sides, (steps + 1) * sides)).all(axis=1)
    return _around_ball(vertices, faces, faces[~flat])


def _around_ball(vertices: np.ndarray, faces: np.ndarray, outer: np.ndarray) -> _Unit:
    """Scale vertices on the unit sphere until the planes of the outer faces miss the ball."""
    a, b, c = vertices[outer].swapaxes(0, 1)
    normal = np.cross(b - a, c - a)
    depth = (normal * a).sum(axis=1) / np.linalg.norm(normal, axis=1)
    return _Unit(vertices * (MARGIN / depth.min()), faces, float(MARGIN / depth.min()) * MARGIN)
