"""RigidBodies: solids that fall, touch and rest, on the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.core.device import resolve_device
from abut.core.launch import Task, launch
from abut.errors import MeshError, OptionError
from abut.geometry.mass import Solid, solid_of
from abut.geometry.poses import checked_poses
from abut.mesh import Mesh, require_meshes
from abut.options import Sampling, chosen, number_from
from abut.sdf.distance_field import DistanceField
from abut.sdf.field_pairs import DOMINANT, FACES
from abut.sdf.grid import FieldGrid
from abut.sdf.orthographic_raster import SampledMesh
from abut.sdf.static_friction_plan import STATIC_FRICTION_NEEDS
from abut.sdf.tangential_springs import TangentialSprings
from abut.sim.bodies import Bodies, Shapes, place_bodies_kernel
from abut.sim.rigid_step import RigidStep
from abut.sim.waves import WavingFloor, waves_kernel

SAMPLINGS = (Sampling.DOMINANT, Sampling.VIEWS, Sampling.FACES)
STATE = {"position": wp.vec3d, "rotation": wp.quatd, "velocity": wp.vec3d, "spin": wp.vec3d}


@dataclass(frozen=True)
class Energy:
    """The energy of all bodies together."""

    kinetic: float
    potential: float
    contact: float

    @property
    def total(self) -> float:
        """The sum."""
        return self.kinetic + self.potential + self.contact


@dataclass(eq=False)
class _Shape:
    mesh: Mesh
    field: DistanceField | None
    solid: Solid
    floor: WavingFloor | None = None


class RigidBodies:
    """Solids under gravity that repel each other by penalty forces.

    A small demonstration of ``DistanceField.response``. Forces are integrals over the area inside
    (Morvan et al. 2008, section 3.4), for all pairs of bodies at once; of two solids each is
    sampled in the field of the other, as in ``abut.FieldContact``. Steps are semi-implicit Euler
    with quaternions. On CUDA a substep is one graph.

    Args:
        gravity: Acceleration.
        stiffness: Force for a unit of depth and area. A step must be short beside
            sqrt(mass / (stiffness * area of contact)).
        damping: Force for a unit of closing speed and area.
        friction, slip: Friction coefficient, and the speed below which dynamic friction fades.
        tangential_stiffness: Force for a unit of tangential displacement and area; above 0 for
            static friction, which needs no ``slip``. See ``abut.FieldContact``.
        pixels: Samples along the longest side of a field's box.
        sampling: See abut.Sampling; ``faces`` does not depend on the rotation of bodies.
        device: None is the first CUDA device, else the CPU.
    """

    def __init__(
        self,
        *,
        gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
        stiffness: float = 1e5,
        damping: float = 0.0,
        friction: float = 0.0,
        slip: float = 1e-3,
        tangential_stiffness: float = 0.0,
        pixels: int = 256,
        sampling: str = "faces",
        device: Any = None,
    ) -> None:
        self.device = resolve_device(device)
        self.gravity = np.array(gravity, dtype=np.float64)
        names = ("stiffness", "damping", "friction", "slip")
        numbers = (stiffness, damping, friction, slip)
        self.material = [number_from(x, n, 0.0) for n, x in zip(names, numbers, strict=True)]
        self.pixels = number_from(pixels, "pixels", 1.0)
        views = chosen(SAMPLINGS, sampling, "sampling") is not Sampling.FACES
        self.sampling = DOMINANT if views else FACES
        stiff = number_from(tangential_stiffness, "tangential_stiffness", 0.0)
        self._springs = None
        if stiff > 0:
            if views or not self.material[0] > 0:
                raise OptionError(STATIC_FRICTION_NEEDS)
            self._springs = TangentialSprings(self.device, stiff / self.material[0])
        self._shapes: list[_Shape] = []
        self._rows: list[dict[str, Any]] = []
        self._clock = wp.zeros(2, dtype=wp.float64, device=self.device)
        self._ready = False

    def __len__(self) -> int:
        """Number of bodies, floors included."""
        return len(self._rows)

    def add(
        self,
        mesh: Mesh,
        pose: Any = None,
        *,
        field: DistanceField | int = 64,
        density: float = 1.0,
        velocity: Any = None,
        static: bool = False,
    ) -> np.ndarray:
        """Add a solid, or one for each pose of a batch; they share a mesh and a field.

        Args:
            mesh: Closed, or with small holes only.
            pose: (4, 4) or (B, 4, 4) of the mesh in the world.
            field: Its distance field, or the resolution of one to be made.
            density: Mass for a unit of volume.
            velocity: (6,) of the centre of mass, and spin.
            static: Never moved by forces.

        Returns:
            (B,) indices of the new bodies.
        """
        require_meshes(mesh=mesh)
        solid = solid_of(mesh.points.numpy(), mesh.faces.numpy())
        if solid is None:
            raise MeshError("the mesh encloses no volume, so it has no mass; is it closed?")
        shape = self._shape_of(mesh, field, solid)
        poses = checked_poses(pose, "pose")
        twist = np.zeros(6) if velocity is None else np.array(velocity, dtype=np.float64)
        if twist.shape != (6,):
            raise OptionError(f"velocity must have shape (6,), not {twist.shape}.")
        mass = number_from(density, "density", 0.0) * solid.volume
        if not (mass > 0 or static):
            raise OptionError("density must be above 0.")
        first = len(self._rows)
        for one in np.eye(4)[None] if poses is None else poses:
            self._append(shape, one, solid, 0.0 if static else 1.0 / mass, twist)
        return np.arange(first, len(self._rows))

    def add_floor(self, floor: Mesh | WavingFloor) -> int:
        """Add a sheet without field and mass, at rest or waving."""
        waving = floor if isinstance(floor, WavingFloor) else None
        mesh = floor.mesh if isinstance(floor, WavingFloor) else floor
        solid = Solid(0.0, np.zeros(3), np.eye(3))
        self._shapes.append(_Shape(mesh, None, solid, waving))
        self._append(len(self._shapes) - 1, np.eye(4), solid, 0.0, np.zeros(6))
        return len(self._rows) - 1

    @property
    def time(self) -> float:
        """Seconds since the beginning."""
        return float(self._clock.numpy()[0])

    @property
    def poses(self) -> np.ndarray:
        """(n, 4, 4) poses of the meshes in the world."""
        self._prepare()
        return self._bodies.pose.numpy()

    def state(self) -> dict[str, np.ndarray]:
        """Return centre of mass, rotation (x, y, z, w), velocity and spin of each body, by name."""
        self._prepare()
        return {name: getattr(self._bodies, name).numpy().copy() for name in STATE}

    def mesh(self, i: int) -> Mesh:
        """Return the mesh of a body; a floor's as it is now."""
        self._prepare()
        shape = self._shapes[self._rows[i]["shape"]]
        if shape.floor is not None:
            moved = self._floors[self._rows[i]["shape"]][0]
            return Mesh(moved.numpy(), shape.mesh.faces, self.device)
        return shape.mesh

    def step(self, seconds: float, substeps: int = 1) -> None:
        """Advance by some time, in equal substeps."""
        number_from(seconds, "seconds", 0.0)
        self._prepare()
        before = self.state()
        clock = [self.time, seconds / substeps]
        self._clock.assign(clock)
        self._step.run(substeps, lambda: self._restore(before, clock))

    @property
    def pair_count(self) -> int:
        """Pairs of bodies whose bounds overlapped in the last substep."""
        self._prepare()
        return self._step.pair_count

    def energy(self) -> Energy:
        """Return kinetic, potential (0 at height 0 along gravity) and contact energy."""
        self._prepare()
        state = self.state()
        light = np.array([row["inverse_mass"] for row in self._rows])
        mass = np.divide(1.0, light, out=np.zeros_like(light), where=light > 0)
        moving = 0.5 * mass * (state["velocity"] ** 2).sum(axis=1)
        turns = self.poses[:, :3, :3]
        inertia = np.array([row["inertia"] for row in self._rows])
        local = np.einsum("nji,nj->ni", turns, state["spin"])
        spinning = 0.5 * np.einsum("ni,nij,nj->n", local, inertia, local) * (light > 0)
        height = -(mass[:, None] * state["position"]) @ self.gravity
        contact = self._step.contact_energy()
        return Energy(float((moving + spinning).sum()), float(height.sum()), contact)

    def _shape_of(self, mesh: Mesh, field: DistanceField | int, solid: Solid) -> int:
        for k, shape in enumerate(self._shapes):
            if shape.mesh is mesh and shape.field is not None:
                return k
        if not isinstance(field, DistanceField):
            field = DistanceField(mesh, resolution=field)
        self._shapes.append(_Shape(mesh, field, solid))
        return len(self._shapes) - 1

    def _append(
        self, shape: int, pose: np.ndarray, solid: Solid, inverse_mass: float, twist: np.ndarray
    ) -> None:
        mass = 1.0 / inverse_mass if inverse_mass > 0 else 1.0
        density = mass / solid.volume if solid.volume > 0 else 1.0
        self._rows.append(
            {
                "shape": shape,
                "position": pose[:3, :3] @ solid.centre + pose[:3, 3],
                "rotation": _quaternion(pose[:3, :3]),
                "velocity": twist[:3],
                "spin": twist[3:],
                "inverse_mass": inverse_mass,
                "inertia": solid.inertia * density,
            }
        )
        self._forget()

    def _forget(self) -> None:
        """Take the states from the device, whose arrays are made anew."""
        if self._ready:
            for name, values in self.state().items():
                for row, value in zip(self._rows, values, strict=False):
                    row[name] = value
        self._ready = False

    def _prepare(self) -> None:
        if self._ready:
            return
        device, count = self.device, len(self._rows)
        bodies = Bodies()
        columns = {"shape": wp.int32, "inverse_mass": wp.float64, "inertia": wp.mat33d} | STATE
        for name, dtype in columns.items():
            values = np.array([row[name] for row in self._rows])
            values = values.astype(np.int32 if name == "shape" else np.float64)
            setattr(bodies, name, wp.array(values, dtype=dtype, device=device))
        bodies.pose = wp.zeros(count, dtype=wp.mat44d, device=device)
        bodies.low, bodies.high = (wp.zeros(count, dtype=wp.vec3d, device=device) for _ in "lh")
        self._bodies = bodies
        self._table = self._shape_table()
        launch(place_bodies_kernel, count, [self._table, bodies], device)
        self._step = RigidStep(
            bodies,
            self._table,
            self._clock,
            self._floor_tasks(),
            pixels=self.pixels,
            sampling=self.sampling,
            material=wp.vec4d(*self.material),
            gravity=wp.vec3d(*self.gravity),
            springs=self._springs,
        )
        self._ready = True

    def _shape_table(self) -> Any:
        device = self.device
        self._floors: dict[int, tuple[wp.array, wp.array]] = {}
        grids, views, bounds, speeds = [], [], [], []
        for k, shape in enumerate(self._shapes):
            view = SampledMesh()
            view.points, view.faces = shape.mesh.points, shape.mesh.faces
            bounds.append(shape.mesh.bounds)
            speeds.append(0.0)
            if shape.floor is not None:
                velocities = wp.zeros_like(shape.mesh.points)
                self._floors[k] = wp.clone(shape.mesh.points), velocities
                view.points, view.velocities = self._floors[k]
                bounds[-1], speeds[-1] = shape.floor.bounds, shape.floor.fastest
            views.append(view)
            grids.append(FieldGrid() if shape.field is None else shape.field.grid)
        table = Shapes()
        table.fields = wp.array(grids, dtype=FieldGrid, device=device)
        table.meshes = wp.array(views, dtype=SampledMesh, device=device)
        centres = np.array([shape.solid.centre for shape in self._shapes])
        table.centre = wp.array(centres, dtype=wp.vec3d, device=device)
        low, high = np.array(bounds).transpose(1, 0, 2).copy()
        table.low = wp.array(low, dtype=wp.vec3d, device=device)
        table.high = wp.array(high, dtype=wp.vec3d, device=device)
        table.speed = wp.array(speeds, dtype=wp.float64, device=device)
        self._held = grids, views, [shape.mesh.lease for shape in self._shapes]
        return table

    def _floor_tasks(self) -> list[Callable[[], None]]:
        tasks = []
        for k, (points, velocities) in self._floors.items():
            floor = self._shapes[k].floor
            assert floor is not None
            args = [floor.mesh.points, floor.waves(), self._clock, points, velocities]
            tasks.append(Task(waves_kernel, points.shape[0], args, self.device).run)
        return tasks

    def _restore(self, state: dict[str, np.ndarray], clock: list[float]) -> None:
        for name, values in state.items():
            getattr(self._bodies, name).assign(values)
        self._clock.assign(clock)
        launch(place_bodies_kernel, len(self._rows), [self._table, self._bodies], self.device)


def _quaternion(rotation: np.ndarray) -> np.ndarray:
    """Return (x, y, z, w) of a rotation matrix: an eigenvector (Bar-Itzhack 2000)."""
    (a, b, c), (d, e, f), (g, h, i) = rotation
    low = [[a - e - i, 0, 0, 0], [b + d, e - a - i, 0, 0], [c + g, f + h, i - a - e, 0]]
    values, vectors = np.linalg.eigh(np.array([*low, [h - f, c - g, d - b, a + e + i]]))
    return vectors[:, values.argmax()]
