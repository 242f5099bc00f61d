"""Balls that draw each other together and collide."""

import numpy as np

from abut.cases.placed_shapes import PlacedShapes, balls
from abut.sim.impulse_solver import Surfaces, Tumble
from abut.sim.simulation import Seen

STEPS, SECONDS = 2, 0.02  # of a frame
SPIN = 0.7  # of the swarm to begin with [1 / s]


class Swarm:
    """n bodies that fall towards their common centre and bounce off each other (gProximity §6).

    Args:
        crowd: The balls.
        pull: Acceleration towards the middle over the distance from it [1 / s²].
        seed: Of the velocities to begin with.
        device: None is the first CUDA device, else the CPU.
    """

    stages = ("motion", "collide", "impulses")
    other_method = "joined"

    def __init__(
        self, crowd: PlacedShapes, *, pull: float = 1.5, seed: int = 0, device: object = None
    ) -> None:
        self.face_count, self.pull = crowd.face_count, pull
        look = Surfaces(bounce=0.6, friction=0.3)
        self.tumble = Tumble(crowd.shapes, crowd.poses, surfaces=look, device=device)
        bodies = self.tumble.bodies
        swirl = np.random.default_rng(seed).normal(size=bodies.position.shape)
        bodies.velocity[:] = swirl + np.cross([0.0, 0.0, SPIN], bodies.position)
        self.around = self.tumble.placed()[0].vertices

    def advance(self) -> dict[str, int]:
        """Two steps."""
        for _ in range(STEPS):
            middle = self.tumble.bodies.position.mean(axis=0)
            hits = self.tumble.step(SECONDS, self.pull * (middle - self.tumble.bodies.position))
        return {"objects": len(hits.object_pairs), "pairs": len(hits)}

    def seen(self) -> list[Seen]:
        """The balls."""
        shape, body = self.tumble.placed()
        return [Seen(shape, "stone", body)]

    def rows(self, method: str) -> np.ndarray:
        """Faces that meet."""
        return self.tumble.rows(method)


def swarm_of_balls(faces: int = 145_920, device: object = None) -> Swarm:
    """Balls of 320 faces, ``faces`` in all; 456 of them in 146K, as in the paper."""
    return Swarm(balls(max(2, round(faces / 320)), 320), device=device)
