"""Scenes of rigid bodies: one that breaks, a swarm, and dragons on a waving floor."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from abut.cases.breaking import breaking
from abut.cases.placed_shapes import PlacedShapes, balls
from abut.cases.shape import Shape, joined
from abut.cases.shapes import box, plane, torus_knot
from abut.core.device import resolve_device
from abut.core.timing import stage
from abut.mesh import Mesh
from abut.scene import Scene
from abut.sdf.distance_field import DistanceField
from abut.sim.impulse_solver import ImpulseSolver, Surfaces
from abut.sim.rigid import RigidBodies
from abut.sim.simulation import Seen, Simulation, box_corners
from abut.sim.waves import WavingFloor

SPEED = 3.0  # of the falling object, in extents of the whole a second
GRAVITY = 4.0  # in extents of the whole a second squared
WHOLE, FALLING, FLOOR = range(3)
SPIN = 0.7  # of the swarm to begin with [1 / s]
DRAGON_COUNT = 15
WIDE, DEEP = 3, 2  # dragons side by side in a layer
FLOOR_SIDE = 5.0  # in lengths of a dragon


class Fracture(Simulation):
    """An object falls on another, which breaks along Voronoi cells (FAR §5, Quick-CULLIDE §6).

    Args:
        placed: The pieces of the breaking object, then the falling one, see ``cases.breaking``.
        device: None is the first CUDA device, else the CPU.

    Attributes:
        broken: Whether the object has broken.
    """

    stages = ("motion", "collide", "split", "impulses")
    steps, seconds = 4, 0.006  # of a frame
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
        for _ in range(self.steps):
            solver.move(self.seconds, pull)
            hits = solver.collide()
            if not self.broken and [WHOLE, FALLING] in hits.object_pairs.numpy().tolist():
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


class Swarm(Simulation):
    """Bodies that fall towards their common centre and bounce off each other (gProximity §6).

    Args:
        placed: The balls.
        pull: Acceleration towards the centre over the distance from it [1 / s²].
        seed: Seed of the initial velocities.
        device: None is the first CUDA device, else the CPU.
    """

    stages = ("motion", "collide", "impulses")
    steps, seconds = 2, 0.02  # of a frame
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
        for _ in range(self.steps):
            position = self.solver.bodies.position
            hits = self.solver.step(self.seconds, self.pull * (position.mean(axis=0) - position))
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
    seconds, substeps = 1 / 30, 20  # of a frame
    other_method = "brute"

    def __init__(
        self,
        solid: Shape,
        *,
        count: int = DRAGON_COUNT,
        resolution: int = 96,
        pixels: int = 256,
        device: Any = None,
    ) -> None:
        self.device = resolve_device(device)
        size = np.ptp(solid.vertices, axis=0)
        middle = (solid.vertices.max(axis=0) + solid.vertices.min(axis=0)) / 2
        self.solid = Mesh((solid.vertices - middle) / size.max(), solid.faces, self.device)
        sheet = Mesh(*plane(160, 160, size=FLOOR_SIDE), self.device)
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
            self.bodies.step(self.seconds, self.substeps)
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
    columns = max(6, round((faces / DRAGON_COUNT / 16) ** 0.5))
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
