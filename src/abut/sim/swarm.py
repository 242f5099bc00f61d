"""Balls that attract each other and collide."""

import numpy as np

from abut.cases.placed_shapes import PlacedShapes, balls
from abut.sim.impulse_solver import ImpulseSolver, Surfaces
from abut.sim.simulation import Seen, Simulation

STEPS, SECONDS = 2, 0.02  # of a frame
SPIN = 0.7  # of the swarm to begin with [1 / s]


class Swarm(Simulation):
    """Bodies that fall towards their common centre and bounce off each other (gProximity §6).

    Args:
        placed: The balls.
        pull: Acceleration towards the centre over the distance from it [1 / s²].
        seed: Seed of the initial velocities.
        device: None is the first CUDA device, else the CPU.
    """

    stages = ("motion", "collide", "impulses")
    other_method = "joined"

    def __init__(
        self,
        placed: PlacedShapes,
        *,
        pull: float = 1.5,
        seed: int = 0,
        device: object = None,
    ) -> None:
        self.face_count, self.pull = placed.face_count, pull
        look = Surfaces(bounce=0.6, friction=0.3)
        self.solver = ImpulseSolver(placed.shapes, placed.poses, surfaces=look, device=device)
        bodies = self.solver.bodies
        swirl = np.random.default_rng(seed).normal(size=bodies.position.shape)
        bodies.velocity[:] = swirl + np.cross([0.0, 0.0, SPIN], bodies.position)
        self.around = self.solver.placed()[0].vertices

    def advance(self) -> dict[str, int]:
        """Make two steps."""
        hits = None
        for _ in range(STEPS):
            middle = self.solver.bodies.position.mean(axis=0)
            hits = self.solver.step(SECONDS, self.pull * (middle - self.solver.bodies.position))
        assert hits is not None
        return {"objects": len(hits.object_pairs), "pairs": len(hits)}

    def seen(self) -> list[Seen]:
        """Return the balls."""
        shape, body = self.solver.placed()
        return [Seen(shape, "stone", body)]

    def rows(self, method: str) -> np.ndarray:
        """Return faces that intersect."""
        return self.solver.rows(method)


def swarm_of_balls(faces: int = 145_920, device: object = None) -> Swarm:
    """Return balls of 320 faces, ``faces`` in all; 456 of 146K, as in the paper."""
    return Swarm(balls(max(2, round(faces / 320)), 320), device=device)
