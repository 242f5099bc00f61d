"""Rigid bodies as plain arrays, and how they move when nothing touches them."""

from dataclasses import dataclass

import numpy as np

from abut.cases.crowd import turns_of
from abut.cases.shape import Shape
from abut.mass import solid_of


@dataclass
class Lumps:
    """n rigid bodies.

    Attributes:
        position: (n, 3) centres of mass.
        turn: (n, 4) unit quaternions, x y z w.
        velocity, spin: (n, 3) of the centre, and angular.
        centre: (n, 3) centre of mass in the frame of each mesh.
        lightness: (n,) 1 over mass; 0 does not move.
        looseness: (n, 3, 3) inverse of the inertia in the frame of each mesh; 0 does not turn.
    """

    position: np.ndarray
    turn: np.ndarray
    velocity: np.ndarray
    spin: np.ndarray
    centre: np.ndarray
    lightness: np.ndarray
    looseness: np.ndarray

    @staticmethod
    def of(shapes: list[Shape], poses: np.ndarray, density: float = 1.0) -> "Lumps":
        """Closed shapes (holes count as closed) of one density, at rest in their poses."""
        known: dict[int, tuple[float, np.ndarray, np.ndarray]] = {}
        for shape in shapes:
            if id(shape) not in known:
                known[id(shape)] = _inert(shape, density)
        mass, centre, inertia = zip(*(known[id(shape)] for shape in shapes), strict=True)
        centre = np.stack(centre)
        count = len(shapes)
        return Lumps(
            np.einsum("nij,nj->ni", poses[:, :3, :3], centre) + poses[:, :3, 3],
            quaternions_of(poses[:, :3, :3]),
            np.zeros((count, 3)),
            np.zeros((count, 3)),
            centre,
            1.0 / np.array(mass),
            np.linalg.inv(np.stack(inertia)),
        )

    def fixed(self, which: np.ndarray) -> None:
        """Let some bodies stay where they are."""
        self.lightness[which] = 0.0
        self.looseness[which] = 0.0
        self.velocity[which] = 0.0
        self.spin[which] = 0.0

    def joined(self, other: "Lumps") -> "Lumps":
        """These and others."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Lumps(*(np.concatenate(pair) for pair in pairs))

    def poses(self) -> np.ndarray:
        """(n, 4, 4) poses of the meshes."""
        poses = np.tile(np.eye(4), (len(self.turn), 1, 1))
        poses[:, :3, :3] = turns_of(self.turn)
        poses[:, :3, 3] = self.position - np.einsum("nij,nj->ni", poses[:, :3, :3], self.centre)
        return poses

    def drift(self, seconds: float) -> None:
        """Go on with the present velocities."""
        self.position = self.position + self.velocity * seconds
        x, y, z, w = self.turn.T
        a, b, c = (0.5 * seconds * self.spin).T
        change = [a * w + b * z - c * y, b * w + c * x - a * z, c * w + a * y - b * x]
        turn = self.turn + np.stack([*change, -a * x - b * y - c * z], axis=1)
        self.turn = turn / np.linalg.norm(turn, axis=1, keepdims=True)

    def energy(self) -> float:
        """Kinetic energy."""
        moving = self.lightness > 0
        turns = turns_of(self.turn[moving])
        local = np.einsum("nji,nj->ni", turns, self.spin[moving])
        inertia = np.linalg.inv(self.looseness[moving])
        turning = np.einsum("ni,nij,nj->", local, inertia, local)
        return 0.5 * float(
            ((self.velocity[moving] ** 2).sum(axis=1) / self.lightness[moving]).sum() + turning
        )


def quaternions_of(turns: np.ndarray) -> np.ndarray:
    """(n, 4) unit quaternions x y z w of rotations (n, 3, 3)."""
    trace = np.trace(turns, axis1=1, axis2=2)
    diagonal = turns[:, [0, 1, 2], [0, 1, 2]]
    squares = np.column_stack([1 + 2 * diagonal - trace[:, None], 1 + trace])
    largest = np.argmax(squares, axis=1)
    skew = turns.transpose(0, 2, 1) - turns
    both = turns.transpose(0, 2, 1) + turns
    w = np.stack([-skew[:, 1, 2], skew[:, 0, 2], -skew[:, 0, 1]], axis=1)
    rows = np.empty((len(turns), 4, 4))
    rows[:, :3, :3] = both
    rows[:, [0, 1, 2], [0, 1, 2]] = squares[:, :3]
    rows[:, :3, 3] = rows[:, 3, :3] = -w
    rows[:, 3, 3] = squares[:, 3]
    out = rows[np.arange(len(turns)), largest]
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def _inert(shape: Shape, density: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and inertia; those of its box for a shape that encloses nothing."""
    solid = solid_of(shape.vertices, shape.faces)
    if solid is not None:
        inertia = solid.inertia + 1e-9 * np.trace(solid.inertia) * np.eye(3)
        return density * solid.volume, solid.centre, density * inertia
    low, high = shape.vertices.min(axis=0), shape.vertices.max(axis=0)
    size = np.maximum(high - low, 1e-3 * (high - low).max())
    mass = density * float(size.prod())
    return mass, (low + high) / 2, np.diag((size @ size - size**2) * mass / 12)
