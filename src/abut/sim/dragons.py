"""Dragons fall onto a waving floor (Morvan et al. 2008, section 5.4)."""

from typing import Any

import numpy as np

from abut.cases.shape import Shape
from abut.cases.shapes import plane, torus_knot
from abut.core.device import resolve_device
from abut.core.timing import stage
from abut.mesh import Mesh
from abut.scene import Scene
from abut.sdf.distance_field import DistanceField
from abut.sim.rigid import RigidBodies
from abut.sim.simulation import Seen, Simulation, box_corners
from abut.sim.waves import WavingFloor

COUNT = 15
SECONDS, SUBSTEPS = 1 / 30, 20  # of a frame
WIDE, DEEP = 3, 2  # dragons side by side in a layer
FLOOR = 5.0  # side, in lengths of a dragon


class Dragons(Simulation):
    """Fifteen solids fall onto a waving floor, and onto each other.

    Args:
        solid: The falling shape, z up; scaled to length 1.
        count: Number of solids.
        resolution: Samples along the longest side of its distance field.
        pixels: Pixels along the longest side of the field's box.
        device: None is the first CUDA device, else the CPU.
    """

    stages = ("physics",)
    other_method = "brute"

    def __init__(
        self,
        solid: Shape,
        *,
        count: int = COUNT,
        resolution: int = 96,
        pixels: int = 256,
        device: Any = None,
    ) -> None:
        self.device = resolve_device(device)
        size = np.ptp(solid.vertices, axis=0)
        middle = (solid.vertices.max(axis=0) + solid.vertices.min(axis=0)) / 2
        self.solid = Mesh((solid.vertices - middle) / size.max(), solid.faces, self.device)
        sheet = Mesh(*plane(160, 160, size=FLOOR), self.device)
        self.floor = WavingFloor(sheet, (0.07, 0.05), (2.5, 1.7), (2.0, 1.4))
        self.bodies = RigidBodies(
            stiffness=5e6,
            damping=2e4,
            friction=0.4,
            slip=0.1,
            pixels=pixels,
            sampling="dominant",
            device=self.device,
        )
        self.bodies.add_floor(self.floor)
        field = DistanceField(self.solid, resolution=resolution)
        self.bodies.add(self.solid, _piled(size / size.max(), count), field=field, density=300.0)
        self.face_count = count * self.solid.face_count + sheet.face_count
        self.around = box_corners((-1.5, -1.3, -0.1), (1.5, 1.3, 1.5))
        self._scene: Scene | None = None

    def advance(self) -> dict[str, int]:
        """Advance by a thirtieth of a second."""
        with stage("physics", self.device):
            self.bodies.step(SECONDS, SUBSTEPS)
        return {"pairs": self.bodies.pair_count}

    def seen(self) -> list[Seen]:
        """Return the dragons, and the floor as it is."""
        points, faces = self.solid.points.numpy(), self.solid.faces.numpy()
        poses = self.bodies.poses[1:]
        placed = np.einsum("nij,vj->nvi", poses[:, :3, :3], points) + poses[:, None, :3, 3]
        count = len(poses)
        each = (np.arange(count)[:, None, None] * len(points) + faces).reshape(-1, 3)
        part = np.repeat(np.arange(count), len(faces))
        dragons = Shape(placed.reshape(-1, 3), each.astype(np.int32))
        floor = self.bodies.mesh(0)
        ground = Shape(floor.points.numpy(), floor.faces.numpy())
        return [Seen(dragons, "piece", part), Seen(ground, "floor")]

    def rows(self, method: str) -> np.ndarray:
        """Return faces of dragons that intersect: in contact they overlap a little."""
        poses = self.bodies.poses[1:]
        if self._scene is None:
            self._scene = Scene(self.device)
            self._scene.add(self.solid, poses)
        self._scene.move(np.arange(len(poses)), poses)
        hits = self._scene.collide(method=method)
        return np.concatenate([hits.objects.numpy(), hits.pairs.numpy()], axis=1)


def falling_dragons(
    faces: int = 60_000, device: Any = None, meshes: list[Shape] | None = None
) -> Dragons:
    """Return fifteen solids of a mesh, or knots with ``faces`` in all."""
    if meshes:
        return Dragons(meshes[0], device=device)
    columns = max(6, round((faces / COUNT / 16) ** 0.5))
    return Dragons(torus_knot(8 * columns, columns, thick=0.3), device=device)


def _piled(size: np.ndarray, count: int) -> np.ndarray:
    """Return poses in layers above the floor, each rotated at random about z."""
    rng = np.random.default_rng(4)
    poses = np.tile(np.eye(4), (count, 1, 1))
    reach = float(np.hypot(size[0], size[1])) * 0.8
    for k, pose in enumerate(poses):
        layer, place = divmod(k, WIDE * DEEP)
        row, column = divmod(place, WIDE)
        angle = rng.uniform(0, 2 * np.pi)
        pose[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        at = np.array([column - (WIDE - 1) / 2, row - (DEEP - 1) / 2]) * reach
        pose[:2, 3] = at + rng.uniform(-0.1, 0.1, size=2)
        pose[2, 3] = 0.25 + size[2] * (0.5 + 1.05 * layer)
    return poses
