"""RigidState: rigid bodies as NumPy arrays, and their free motion."""

from dataclasses import dataclass

import numpy as np

from abut.cases.placed_shapes import rotations_of_quaternions
from abut.cases.shape import Shape
from abut.geometry.mass import solid_of


@dataclass
class RigidState:
    """The state of n rigid bodies.

    Attributes:
        position: (n, 3) centres of mass.
        rotation: (n, 4) unit quaternions, x y z w.
        velocity, spin: (n, 3) linear velocity of the centre, and angular velocity.
        centre: (n, 3) centre of mass in the frame of each mesh.
        inverse_mass: (n,) 1 / mass; 0 for a fixed body.
        inverse_inertia: (n, 3, 3) in the frame of each mesh; 0 for a fixed body.
    """

    position: np.ndarray
    rotation: np.ndarray
    velocity: np.ndarray
    spin: np.ndarray
    centre: np.ndarray
    inverse_mass: np.ndarray
    inverse_inertia: np.ndarray

    @staticmethod
    def of(shapes: list[Shape], poses: np.ndarray, density: float = 1.0) -> "RigidState":
        """Return bodies at rest, of closed shapes of one density; holes count as closed."""
        distinct = list({id(shape): shape for shape in shapes}.values())
        place = {id(shape): k for k, shape in enumerate(distinct)}
        of_shape = [place[id(shape)] for shape in shapes]
        mass, centre, inertia = (values[of_shape] for values in _mass_properties(distinct, density))
        count = len(shapes)
        return RigidState(
            np.einsum("nij,nj->ni", poses[:, :3, :3], centre) + poses[:, :3, 3],
            quaternions_of(poses[:, :3, :3]),
            np.zeros((count, 3)),
            np.zeros((count, 3)),
            centre,
            1.0 / mass,
            np.linalg.inv(inertia),
        )

    def fixed(self, which: np.ndarray) -> None:
        """Fix some bodies in place."""
        self.inverse_mass[which] = 0.0
        self.inverse_inertia[which] = 0.0
        self.velocity[which] = 0.0
        self.spin[which] = 0.0

    def joined(self, other: "RigidState") -> "RigidState":
        """Return these bodies and others as one state."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return RigidState(*(np.concatenate(pair) for pair in pairs))

    def poses(self) -> np.ndarray:
        """Return the poses (n, 4, 4) of the meshes."""
        poses = np.tile(np.eye(4), (len(self.rotation), 1, 1))
        poses[:, :3, :3] = rotations_of_quaternions(self.rotation)
        poses[:, :3, 3] = self.position - np.einsum("nij,nj->ni", poses[:, :3, :3], self.centre)
        return poses

    def integrate(self, seconds: float) -> None:
        """Advance positions and rotations by the present velocities."""
        self.position = self.position + self.velocity * seconds
        x, y, z, w = self.rotation.T
        a, b, c = (0.5 * seconds * self.spin).T
        change = [a * w + b * z - c * y, b * w + c * x - a * z, c * w + a * y - b * x]
        rotation = self.rotation + np.stack([*change, -a * x - b * y - c * z], axis=1)
        self.rotation = rotation / np.linalg.norm(rotation, axis=1, keepdims=True)


def quaternions_of(rotations: np.ndarray) -> np.ndarray:
    """Return unit quaternions (n, 4), x y z w, of rotations (n, 3, 3)."""
    trace = np.trace(rotations, axis1=1, axis2=2)
    diagonal = rotations[:, [0, 1, 2], [0, 1, 2]]
    squares = np.column_stack([1 + 2 * diagonal - trace[:, None], 1 + trace])
    largest = np.argmax(squares, axis=1)
    skew = rotations.transpose(0, 2, 1) - rotations
    both = rotations.transpose(0, 2, 1) + rotations
    w = np.stack([-skew[:, 1, 2], skew[:, 0, 2], -skew[:, 0, 1]], axis=1)
    rows = np.empty((len(rotations), 4, 4))
    rows[:, :3, :3] = both
    rows[:, [0, 1, 2], [0, 1, 2]] = squares[:, :3]
    rows[:, :3, 3] = rows[:, 3, :3] = -w
    rows[:, 3, 3] = squares[:, 3]
    out = rows[np.arange(len(rotations)), largest]
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def _mass_properties(
    shapes: list[Shape], density: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return masses (n,), centres (n, 3) and inertias (n, 3, 3) of shapes."""
    volume, centre, inertia, closed = _integrals(shapes)
    for k in np.flatnonzero(~closed):
        volume[k], centre[k], inertia[k] = _approximate(shapes[k])
    inertia += 1e-9 * np.trace(inertia, axis1=1, axis2=2)[:, None, None] * np.eye(3)
    return density * volume, centre, density * inertia


def _integrals(shapes: list[Shape]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return volume, centre and inertia of all shapes at once, and whether they are closed."""
    count = len(shapes)
    owner = np.repeat(np.arange(count), [len(shape.faces) for shape in shapes])
    middle = np.stack([shape.vertices.mean(axis=0) for shape in shapes])
    corners = np.concatenate([s.vertices[s.faces] - m for s, m in zip(shapes, middle, strict=True)])
    a, b, c = corners.transpose(1, 0, 2)
    area = np.cross(b - a, c - a)
    share = np.einsum("ij,ij->i", a, area) / 6
    total = a + b + c
    volume = _sums(owner, share, count)
    safe = np.where(volume > 0, volume, 1.0)
    centre = _sums(owner, share[:, None] * total, count) / (4 * safe[:, None])
    parts = [share[:, None, None] * p[:, :, None] * p[:, None] for p in (a, b, c, total)]
    second = (parts[0] + parts[1] + parts[2] + parts[3]) / 20
    second = _sums(owner, second.reshape(-1, 9), count).reshape(-1, 3, 3)
    second -= volume[:, None, None] * centre[:, :, None] * centre[:, None]
    inertia = np.trace(second, axis1=1, axis2=2)[:, None, None] * np.eye(3) - second
    missing = np.linalg.norm(_sums(owner, area, count), axis=1)
    whole = _sums(owner, np.linalg.norm(area, axis=1), count)
    closed = (missing <= 1e-9 * whole) & (volume > 1e-9 * whole**1.5)
    return volume, centre + middle, inertia, closed


def _sums(owner: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """Return the sums of the rows of each owner."""
    columns = values.reshape(len(owner), -1).T
    out = np.stack([np.bincount(owner, column, count) for column in columns], axis=1)
    return out.reshape(count, *values.shape[1:])


def _approximate(shape: Shape) -> tuple[float, np.ndarray, np.ndarray]:
    """Return volume, centre and inertia with holes closed, or of the bounding box."""
    solid = solid_of(shape.vertices, shape.faces)
    if solid is not None:
        return solid.volume, solid.centre, solid.inertia
    low, high = shape.vertices.min(axis=0), shape.vertices.max(axis=0)
    size = np.maximum(high - low, 1e-3 * (high - low).max())
    volume = float(size.prod())
    return volume, (low + high) / 2, np.diag((size @ size - size**2) * volume / 12)
