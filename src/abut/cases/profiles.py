"""Extruded, revolved and bent solids: steel sections, tubes, elbows, vessels. All are closed."""

import numpy as np

from abut.cases.shape import Shape, grid_faces, tube_faces


def section_i(width: float, height: float, plate: float) -> tuple[np.ndarray, np.ndarray]:
    """Profile (12, 2) of an I-beam, counter-clockwise, and the faces of its caps."""
    w, t, web = width / 2, plate, plate / 2
    right = [(w, 0), (w, t), (web, t), (web, height - t), (w, height - t), (w, height)]
    points = np.array(right + [(-x, y) for x, y in right[::-1]])
    caps = [(11, 0, 1), (11, 1, 2), (11, 2, 9), (11, 9, 10), (2, 3, 8), (2, 8, 9)]
    return points, np.array([*caps, (5, 6, 7), (5, 7, 8), (5, 8, 3), (5, 3, 4)])


def section_u(width: float, height: float, plate: float) -> tuple[np.ndarray, np.ndarray]:
    """Profile (8, 2) of a tray, counter-clockwise, and the faces of its caps."""
    w, t = width / 2, plate
    right = [(w, 0), (w, height), (w - t, height), (w - t, t)]
    points = np.array(right + [(-x, y) for x, y in right[::-1]])
    quads = [(7, 0, 3, 4), (0, 1, 2, 3), (4, 5, 6, 7)]
    return points, np.array([f for a, b, c, d in quads for f in ((a, b, c), (a, c, d))])


def section_box(width: float, height: float) -> tuple[np.ndarray, np.ndarray]:
    """Profile (4, 2) of a block, counter-clockwise, and the faces of its caps."""
    w = width / 2
    return np.array([(w, 0), (w, height), (-w, height), (-w, 0)]), np.array([(0, 1, 2), (0, 2, 3)])


def extruded(profile: tuple[np.ndarray, np.ndarray], stations: np.ndarray) -> Shape:
    """A profile in the plane of y and z, swept along x through ascending stations."""
    points, caps = profile
    count, rings = len(points), len(stations)
    vertices = np.empty((rings, count, 3))
    vertices[..., 0], vertices[..., 1:] = stations[:, None], points
    belt = grid_faces(rings, count, wrap=(False, True))
    last = caps + (rings - 1) * count
    faces = np.concatenate([belt, caps[:, ::-1], last])
    return Shape(vertices.reshape(-1, 3), faces.astype(np.int32))


def circle(sides: int) -> np.ndarray:
    """(sides, 2) points of the unit circle from (0, -1), counter-clockwise; axes are exact."""
    angle = 2 * np.pi * np.arange(sides) / sides
    points = np.stack([np.sin(angle), -np.cos(angle)], axis=1)
    return np.where(np.abs(points) < 1e-12, 0.0, points)


def ring_solid(loop: np.ndarray, sides: int) -> Shape:
    """A ring about the x axis: a loop of (x, radius), counter-clockwise, revolved."""
    turn = circle(sides)
    vertices = np.empty((sides, len(loop), 3))
    vertices[..., 0] = loop[:, 0]
    vertices[..., 1:] = loop[:, 1][:, None] * turn[:, None]
    return Shape(vertices.reshape(-1, 3), grid_faces(sides, len(loop), wrap=(True, True)))


def hollow(x: tuple[float, float], radii: tuple[float, float], sides: int, rings: int) -> Shape:
    """A straight tube along x with an inner and an outer radius."""
    along = np.linspace(*x, rings)
    wall = np.repeat(radii, rings)
    return ring_solid(np.stack([np.concatenate([along, along[::-1]]), wall], axis=1), sides)


def elbow(radii: tuple[float, float], bend: float, sides: int, rings: int) -> Shape:
    """A quarter of a bent tube from the origin, upwards, then towards x; both ends are exact.

    Args:
        radii: Inner and outer radius of the tube.
        bend: Radius of its axis.
        sides: Vertices around it.
        rings: Vertices along it.
    """
    turn = np.linspace(0.0, np.pi / 2, rings)
    turn = np.concatenate([turn, turn[::-1]])
    radius = np.repeat(radii, rings)
    ahead = np.stack([-np.cos(turn), np.sin(turn)], axis=1)  # from the centre of the bend
    ahead[[0, -1]], ahead[[rings - 1, rings]] = (-1.0, 0.0), (0.0, 1.0)
    around = circle(sides)
    reach = bend + radius * around[:, 1][:, None]
    vertices = np.empty((sides, 2 * rings, 3))
    vertices[..., 0] = bend + reach * ahead[:, 0]
    vertices[..., 1] = radius * around[:, 0][:, None]
    vertices[..., 2] = reach * ahead[:, 1]
    return Shape(vertices.reshape(-1, 3), grid_faces(sides, 2 * rings, wrap=(True, True)))


def vessel(x: np.ndarray, radius: np.ndarray, sides: int) -> Shape:
    """A solid of revolution about the x axis with flat ends, through ascending (x, radius)."""
    turn = circle(sides)
    vertices = np.empty((len(x), sides, 3))
    vertices[..., 0] = x[:, None]
    vertices[..., 1:] = radius[:, None, None] * turn
    ends = [[x[0], 0.0, 0.0], [x[-1], 0.0, 0.0]]
    return Shape(np.concatenate([vertices.reshape(-1, 3), ends]), tube_faces(len(x), sides))


def upright(shape: Shape) -> Shape:
    """The shape with its x axis turned to z, y to x and z to y; exact."""
    return Shape(np.ascontiguousarray(shape.vertices[:, [1, 2, 0]]), shape.faces)


def sideways(shape: Shape) -> Shape:
    """The shape with its x axis turned to y, and y to minus x; exact."""
    x, y, z = shape.vertices.T
    return Shape(np.stack([0.0 - y, x, z], axis=1), shape.faces)
