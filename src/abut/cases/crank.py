"""A crank that hangs in the rings of a frame: a part that a planner takes out of an assembly."""

import numpy as np

from abut.cases.shape import Shape, joined
from abut.cases.shapes import torus, tube

ARM = 0.8  # length of the bent ends
HALF = 0.8  # half the length between the bends
THICK = 0.09
POST = 1.15  # distance of the posts from the axis
APART = 0.6  # distance of the rings


def crank(faces: int = 2000) -> Shape:
    """Return a rod along x whose ends are bent, one up and one aside."""
    corner = 0.18  # radius of the bends
    turn = np.linspace(0.0, np.pi / 2, 6)[1:-1, None]
    up, aside = np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0])
    along = np.array([1.0, 0.0, 0.0])

    def end(side: float, bent: np.ndarray) -> np.ndarray:
        """Points from the middle to the tip."""
        bend = side * along * (HALF - corner) + bent * corner
        arc = bend + corner * (side * along * np.sin(turn) - bent * np.cos(turn))
        straight = side * along * np.linspace(0.1, HALF - corner, 4)[:, None]
        tip = side * along * HALF + bent * np.linspace(corner, ARM, 4)[:, None]
        return np.concatenate([straight, arc, tip])

    line = np.concatenate([end(-1.0, up)[::-1], end(1.0, aside)])
    sides = max(6, round(faces / (2 * len(line))))
    return tube(line, THICK, sides, closed=False)


def ring_frame(faces: int = 4000) -> Shape:
    """Return two rings about the x axis, each between two posts."""
    rows = max(12, round(np.sqrt(faces / 2)))
    ring = torus(rows, max(6, rows // 2), radius=0.5, thick=0.12)
    upright = Shape(ring.vertices[:, [2, 0, 1]], ring.faces)
    parts = []
    for x in (-APART / 2, APART / 2):
        parts.append(upright.moved((x, 0.0, 0.0)))
        for side in (-1.0, 1.0):
            post = np.array([[x, side * POST, z] for z in (-1.5, 1.5)])
            rib = np.array([[x, side * y, 0.0] for y in (0.6, POST)])
            parts += [tube(post, 0.1, 12, closed=False), tube(rib, 0.06, 12, closed=False)]
    return joined(*parts)
