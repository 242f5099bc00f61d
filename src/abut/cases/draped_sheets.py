"""Initial states of cloth simulations: a sheet above a round obstacle."""

import numpy as np

from abut.cases.placed_shapes import PlacedShapes
from abut.cases.shape import Shape, grid_faces, tube_faces
from abut.cases.shapes import icosphere

ROUNDING = 4  # rows of the table's rounded rim


def drape_table(faces: int = 20_000, size: float = 2.0, radius: float = 0.6) -> PlacedShapes:
    """A square sheet of about ``faces`` faces just above a round table top: sheet, table."""
    return _above(sheet(faces, size), round_table(radius))


def drape_ball(faces: int = 20_000, size: float = 2.0, radius: float = 0.5) -> PlacedShapes:
    """A square sheet of about ``faces`` faces just above a ball: sheet, ball."""
    return _above(sheet(faces, size), icosphere(1280, radius))


def sheet(faces: int = 20_000, size: float = 2.0) -> Shape:
    """A flat square over the xy plane, facing up; diagonals of its cells alternate."""
    cells = max(2, round((faces / 2) ** 0.5))
    y, x = np.meshgrid(*[np.linspace(-size / 2, size / 2, cells + 1)] * 2, indexing="ij")
    vertices = np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3)
    pairs = grid_faces(cells + 1, cells + 1, wrap=(False, False)).reshape(-1, 2, 3)
    here, east, far, north = pairs[:, 0, 0], pairs[:, 0, 1], pairs[:, 0, 2], pairs[:, 1, 2]
    other = np.stack([here, east, north, east, far, north], axis=1).reshape(-1, 2, 3)
    row, column = np.divmod(np.arange(cells * cells), cells)
    odd = ((row + column) % 2 == 1)[:, None, None]
    return Shape(vertices, np.where(odd, other, pairs).reshape(-1, 3).astype(np.int32))


def round_table(radius: float = 0.6, thick: float = 0.08, sides: int = 64) -> Shape:
    """A closed disc about the z axis with a rounded rim."""
    angle = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    bend = np.linspace(-np.pi / 2, np.pi / 2, 2 * ROUNDING + 1)
    reach = radius - thick / 2 + thick / 2 * np.cos(bend)
    reach = np.concatenate([[0.5 * radius], reach, [0.5 * radius]])
    height = thick / 2 * np.sin(bend)
    height = np.concatenate([[-thick / 2], height, [thick / 2]])
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rows = reach[:, None, None] * ring
    rows = np.concatenate([rows, np.broadcast_to(height[:, None, None], rows[..., :1].shape)], 2)
    vertices = np.concatenate([rows.reshape(-1, 3), [[0, 0, -thick / 2], [0, 0, thick / 2]]])
    return Shape(vertices, tube_faces(len(reach), sides))


def _above(cloth: Shape, obstacle: Shape) -> PlacedShapes:
    """Place the sheet above the obstacle, at a hundredth of its size."""
    poses = np.tile(np.eye(4), (2, 1, 1))
    gap = 0.01 * np.ptp(cloth.vertices[:, 0])
    poses[0, 2, 3] = obstacle.vertices[:, 2].max() + gap
    return PlacedShapes([cloth, obstacle], poses)
