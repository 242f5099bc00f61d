"""An object falls on another and breaks it."""

from collections.abc import Sequence

import numpy as np

from abut.cases.breaking import breaking
from abut.cases.placed_shapes import PlacedShapes
from abut.cases.shape import Shape, joined
from abut.cases.shapes import box
from abut.core.timing import stage
from abut.sim.impulse_solver import ImpulseSolver, Surfaces
from abut.sim.simulation import Seen, Simulation, box_corners

STEPS, SECONDS = 4, 0.006  # of a frame
SPEED = 3.0  # of the falling object, in extents of the whole a second
GRAVITY = 4.0  # in extents of the whole a second squared
WHOLE, FALLING, FLOOR = range(3)


class Fracture(Simulation):
    """An object falls on another, which breaks along Voronoi cells (FAR §5, Quick-CULLIDE §6).

    Args:
        placed: The pieces of the breaking object, then the falling one, see ``cases.breaking``.
        device: None is the first CUDA device, else the CPU.

    Attributes:
        broken: Whether the object has broken.
    """

    stages = ("motion", "collide", "split", "impulses")
    other_method = "joined"

    def __init__(self, placed: PlacedShapes, device: object = None) -> None:
        *pieces, falling = placed.shapes
        whole = joined(*pieces)
        self.labels = np.repeat(np.arange(len(pieces)), [len(piece.faces) for piece in pieces])
        low, high = whole.vertices.min(axis=0), whole.vertices.max(axis=0)
        self.size = float((high - low).max())
        floor = Shape(box().vertices * self.size * [6, 6, 0.2], box().faces)
        poses = np.tile(np.eye(4), (3, 1, 1))
        poses[FALLING] = placed.poses[-1]
        poses[FLOOR, :3, 3] = (low + high) / 2
        poses[FLOOR, 2, 3] = low[2] - 0.101 * self.size
        fixed = np.array([True, False, True])  # the whole stands until it is hit
        look = Surfaces(bounce=0.15, friction=0.5, parting=0.01 * self.size)
        shapes = [whole, falling, floor]
        self.solver = ImpulseSolver(shapes, poses, fixed=fixed, surfaces=look, device=device)
        self.solver.bodies.velocity[FALLING, 2] = -SPEED * self.size
        self.solver.bodies.inverse_mass[FALLING] /= 3.0  # heavy stuff
        self.solver.bodies.inverse_inertia[FALLING] /= 3.0
        self.face_count = len(whole.faces) + len(falling.faces) + len(floor.faces)
        self.broken = False
        top = high[2] + 0.5 * np.ptp(falling.vertices[:, 2])
        low, high = low - 0.2 * self.size, high + 0.2 * self.size
        self.around = box_corners((*low[:2], low[2] + 0.2 * self.size), (*high[:2], top))

    def advance(self) -> dict[str, int]:
        """Make four steps; at first contact the object breaks, and its pieces are hit."""
        solver = self.solver
        pull = np.array([0.0, 0.0, -GRAVITY * self.size])
        hits = None
        for _ in range(STEPS):
            solver.move(SECONDS, pull)
            hits = solver.collide()
            if not self.broken and [WHOLE, FALLING] in hits.object_pairs.tolist():
                with stage("split", solver.scene.device):
                    solver.split(WHOLE, self.labels)
                self.broken = True
                hits = solver.collide()
            solver.respond(hits)
        assert hits is not None
        count = len(solver.shapes)
        return {"bodies": count, "objects": len(hits.object_pairs), "pairs": len(hits)}

    def seen(self) -> list[Seen]:
        """Return the falling object, and the whole or its pieces."""
        shape, body = self.solver.placed()
        still, falling = (1, 0) if self.broken else (2, 1)
        pieces = (body != still) & (body != falling)
        part = body[pieces] if self.broken else self.labels
        return [
            Seen(Shape(shape.vertices, shape.faces[pieces]), "piece", part),
            Seen(Shape(shape.vertices, shape.faces[body == falling]), "stone"),
        ]

    def rows(self, method: str) -> np.ndarray:
        """Return faces that intersect."""
        return self.solver.rows(method)


def breaking_object(
    faces: int = 20_000, device: object = None, meshes: Sequence[Shape] = ()
) -> Fracture:
    """Return a knot that breaks into hundreds of pieces, or two meshes of the caller's.

    Args:
        faces: Approximate number of faces before the cut.
        device: None is the first CUDA device, else the CPU.
        meshes: The breaking and the falling object, in one unit of length; z is up.
    """
    pieces = max(8, min(300, faces // 100))
    whole, falling = meshes if meshes else (None, None)
    return Fracture(breaking(faces, pieces, whole=whole, falling=falling), device)
