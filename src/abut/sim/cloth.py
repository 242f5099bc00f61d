"""Cloth: sheets that fall, fold and drape without intersections."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import warp as wp

from abut.cases.shape import Shape
from abut.core.launch import Task, launch
from abut.core.timing import stage
from abut.errors import MeshError, OptionError
from abut.mesh import Mesh
from abut.query.collide import collide
from abut.query.self_collide import self_collide
from abut.sim.particles import (
    ExternalForces,
    normal_kernel,
    predict_kernel,
    scale_velocity_kernel,
    spring_kernel,
    velocity_kernel,
)
from abut.sim.repulsion import Repulsion
from abut.sim.safe_paths import safe_paths
from abut.sim.springs import Springs, bend_springs, brace_springs, edge_springs

REACH = 2.0  # thicknesses within which faces repel


@dataclass(frozen=True)
class Fabric:
    """The material of a sheet.

    Attributes:
        stretch, bend: Compliance of edges and folds [s²: 1 over stiffness over mass].
        braces: Springs from each vertex to others of its sheet, which keep its form, as that of a
            leaf; none for cloth.
        form: Compliance of the braces [s²].
        friction: Slip removed, over the depth by which the thickness is missed.
        drag: Rate at which air stops motion across the sheet, and along it [1 / s].
        thickness: Distance kept between faces over the length of short edges; at most 0.4.
        substeps: Of a step.
    """

    stretch: float = 0.0
    bend: float = 1e-5
    braces: int = 0
    form: float = 1e-6
    friction: float = 0.4
    drag: tuple[float, float] = (2.0, 0.8)
    thickness: float = 0.25
    substeps: int = 8


@dataclass(frozen=True)
class StepReport:
    """Statistics of a step: near pairs of faces, impacts on full paths, rounds of shortening."""

    near: int
    impacts: int
    rounds: int


class Cloth:
    """Sheets under gravity, by position-based dynamics (XPBD) in small steps.

    Faces that come near (``within``) repel each other, and the paths of each step are shortened
    where they would cross anything (``ccd``).

    Args:
        sheet: One sheet or several; faces must not intersect.
        obstacle: A mesh at rest.
        fabric: The material of the sheets.
        pinned: Vertices that do not move.
        gravity, wind: Acceleration, and velocity of the air.
        device: None is the first CUDA device, else the CPU.

    Attributes:
        mesh: The sheets in their present shape.
        seconds: Time since the start.

    Raises:
        MeshError: The sheets intersect themselves or the obstacle to begin with.

    Guarantee:
        After every step no two faces of the sheets intersect, and none intersects the obstacle.
    """

    def __init__(
        self,
        sheet: Shape,
        obstacle: Shape | None = None,
        *,
        fabric: Fabric | None = None,
        pinned: Any = (),
        gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
        wind: tuple[float, float, float] = (0.0, 0.0, 0.0),
        device: Any = None,
    ) -> None:
        self.fabric = fabric or Fabric()
        if not 0.0 < self.fabric.thickness <= 0.4:
            raise OptionError(f"thickness must be in (0, 0.4], not {self.fabric.thickness!r}.")
        self.mesh = Mesh(sheet.vertices.astype(np.float64), sheet.faces, device)
        self.device = self.mesh.device
        self.obstacle = None if obstacle is None else Mesh(*obstacle, device=self.device)
        self.gravity, self.wind, self.seconds = gravity, wind, 0.0
        _require_apart(self.mesh, self.obstacle)
        free = np.ones(self.mesh.vertex_count)
        free[np.asarray(pinned, dtype=np.int64)] = 0.0
        self.free = wp.array(free, dtype=wp.float64, device=self.device)
        self.velocity = wp.zeros(len(free), dtype=wp.vec3d, device=self.device)
        self._normal = wp.zeros_like(self.velocity)
        edges = edge_springs(sheet)
        self.thickness = self.fabric.thickness * float(np.quantile(edges.rest, 0.1))
        self.reach = REACH * self.thickness
        args = (self.mesh, self.obstacle, self.free, self.thickness, self.fabric.friction)
        self._repulsion = Repulsion(*args)
        self._around = _faces_around(sheet, self.device)
        self._before, self._now = (wp.empty_like(self.mesh.points) for _ in range(2))
        self._springs = [
            (springs, softness, *self._on_device(springs))
            for springs, softness in (
                (edges, self.fabric.stretch),
                (bend_springs(sheet), self.fabric.bend),
                (brace_springs(sheet, self.fabric.braces), self.fabric.form),
            )
        ]
        self._substep: tuple[float, list[Task]] = (0.0, [])

    def step(self, seconds: float = 0.01) -> StepReport:
        """Advance by some time."""
        count, device = len(self.free), self.device
        with stage("near", device):
            near = self._repulsion.find(self.reach)
        with stage("motion", device):
            args = [self.mesh.points, self.mesh.faces, *self._around, self._normal]
            launch(normal_kernel, count, args, device)
            wp.copy(self._now, self.mesh.points)
            for _ in range(self.fabric.substeps):
                self._move(seconds / self.fabric.substeps)
        with stage("safe way", device):
            way = safe_paths(self.mesh, wp.clone(self._now), self.obstacle)
            launch(scale_velocity_kernel, count, [way.share, self.velocity], device)
            self.mesh.deform(way.points)
        self.seconds += seconds
        return StepReport(near, way.impacts, way.rounds)

    def release(self, vertices: Any) -> None:
        """Release pinned vertices."""
        free = self.free.numpy().copy()
        free[np.asarray(vertices, dtype=np.int64)] = 1.0
        self.free.assign(free)

    def _move(self, seconds: float) -> None:
        """Make one substep: external forces, springs, repulsion."""
        count, device = len(self.free), self.device
        wp.copy(self._before, self._now)
        external = ExternalForces()
        external.gravity, external.wind = wp.vec3d(*self.gravity), wp.vec3d(*self.wind)
        external.drag, external.seconds = wp.vec2d(*self.fabric.drag), wp.float64(seconds)
        args = [external, self.free, self._normal, self._before, self.velocity, self._now]
        launch(predict_kernel, count, args, device)
        for pull in self._pulls(seconds):
            pull.run()
        self._repulsion.apply(self._before, self._now, seconds)
        args = [self._before, self._now, wp.float64(seconds), self.velocity]
        launch(velocity_kernel, count, args, device)

    def _pulls(self, seconds: float) -> list[Task]:
        """Return the spring launches, recorded for this duration of a substep."""
        if self._substep[0] != seconds:
            pulls = []
            for springs, softness, ends, rest in self._springs:
                soft = wp.float64(softness / seconds**2)
                args = [ends, rest, self.free, soft, self._now]
                for start, stop in pairwise(springs.starts.tolist()):
                    pulls.append(Task(spring_kernel, stop - start, args, self.device, start=start))
            self._substep = (seconds, pulls)
        return self._substep[1]

    def _on_device(self, springs: Springs) -> tuple[wp.array, wp.array]:
        ends = wp.array(springs.ends, dtype=wp.int32, device=self.device)
        return ends, wp.array(springs.rest, dtype=wp.float64, device=self.device)


def _require_apart(mesh: Mesh, obstacle: Mesh | None) -> None:
    hits = self_collide(mesh)
    if hits:
        pair = hits.pairs.numpy()[0].tolist()
        raise MeshError(f"faces {pair} of the sheet meet; begin with a sheet that is free.")
    if obstacle is not None and collide(mesh, obstacle, first=True):
        raise MeshError("the sheet meets the obstacle; begin with a gap between them.")


def _faces_around(shape: Shape, device: wp.Device) -> tuple[wp.array, wp.array]:
    """Return the faces around each vertex in CSR form: starts and faces."""
    order = np.argsort(shape.faces.ravel(), kind="stable")
    use = np.bincount(shape.faces.ravel(), minlength=len(shape.vertices))
    starts = np.concatenate([[0], np.cumsum(use)]).astype(np.int32)
    return wp.array(starts, device=device), wp.array((order // 3).astype(np.int32), device=device)
