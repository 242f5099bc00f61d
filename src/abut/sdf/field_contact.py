"""FieldContact: the contact of two solids, each sampled in the distance field of the other."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from abut.core.device import require_same_device
from abut.core.pickling import PicklableResult
from abut.errors import MeshError, OptionError, PoseError
from abut.geometry.mass import centre_of_mass
from abut.mesh import Mesh, require_meshes
from abut.options import EarlyOut, Sampling, chosen, number_from
from abut.sdf.distance_field import DistanceField
from abut.sdf.field_arguments import batch_of, checked_material, checked_twist, pixel_of
from abut.sdf.field_plan import answer_rows
from abut.sdf.response import Wrench, fill_inputs
from abut.sdf.response_plans import response_plan_of
from abut.sdf.static_friction_plan import STATIC_FRICTION_NEEDS, StaticFrictionPlan


@dataclass(frozen=True, eq=False)
class ContactResponse(PicklableResult):
    """Forces of two solids in contact on each other, in the world; equal and opposite.

    Attributes:
        on_a, on_b: Force, and torque about the centre of mass of a or b.
        area_a: Area of b inside a; a float, (B,) for a batch.
        area_b: Area of a inside b.
        energy: Energy of the springs.
        fragment_count: Number of samples of both inside the other.
    """

    on_a: Wrench
    on_b: Wrench
    area_a: Any
    area_b: Any
    energy: Any
    fragment_count: Any

    def numpy(self) -> dict[str, np.ndarray]:
        """The answer as plain NumPy arrays."""
        out = {
            f"{name}_{side}": getattr(wrench, name).numpy()
            for side, wrench in (("a", self.on_a), ("b", self.on_b))
            for name in ("force", "torque")
        }
        for name in ("area_a", "area_b", "energy", "fragment_count"):
            value = getattr(self, name)
            out[name] = value.numpy() if isinstance(value, wp.array) else np.array(value)
        return out


@dataclass(eq=False)
class _Side:
    """A solid: its mesh and its field, and the plan that keeps springs on its surface."""

    mesh: Mesh
    field: DistanceField
    plan: StaticFrictionPlan | None = None

    def centre(self) -> np.ndarray:
        """Return the centre of mass (3,) of the mesh as it is now."""
        points, faces = self.mesh.points, self.mesh.faces
        return self.mesh.per_shape(
            "centre_of_mass", lambda: centre_of_mass(points.numpy(), faces.numpy())
        )


class FieldContact:
    """The contact of two rigid solids, each sampled in the distance field of the other.

    One field alone gives another force for a on b than for b on a (Morvan et al. 2008 push the
    object that has the field). The response here is the mean of both. Forces are equal and opposite
    to the bit, and so are torques about a common point; exchanging a and b exchanges the answers.

    Args:
        a, b: Meshes of the solids, on the same device.
        field_a, field_b: Their distance fields, or resolutions of fields to be made.
        pixels: Samples along the longest side of each field's box, at most 8192.
        sampling: ``faces``, or without static friction another, see abut.Sampling.
        stiffness: Force for a unit of depth and area.
        damping: Force for a unit of closing speed and area.
        friction: Friction coefficient.
        slip: Sliding speed below which friction fades; without static friction only.
        tangential_stiffness: Force for a unit of tangential displacement and area. Above 0 each
            sample inside holds a spring along the surface from call to call: static friction. Its
            force, with damping along the surface, is at most ``friction`` times the normal force.
            At 0 there is dynamic friction only, as in the paper.

    Raises:
        DeviceError: The meshes or fields live on different devices.
        MeshError: A mesh has no face.
        OptionError: An option has none of the values above.

    Guarantee:
        Approximate: a sum over samples. Deterministic: the same calls give the same bytes.
    """

    def __init__(
        self,
        a: Mesh,
        b: Mesh,
        *,
        field_a: DistanceField | int = 64,
        field_b: DistanceField | int = 64,
        pixels: int = 256,
        sampling: str = "faces",
        stiffness: float = 1.0,
        damping: float = 0.0,
        friction: float = 0.0,
        slip: float = 0.0,
        tangential_stiffness: float = 0.0,
    ) -> None:
        require_meshes(a=a, b=b)
        if not (a.face_count and b.face_count):
            raise MeshError("a or b has no faces, so the two have no contact.")
        require_same_device(a, b)
        self._sides = _Side(a, _field_of(a, field_a)), _Side(b, _field_of(b, field_b))
        for side in self._sides:
            require_same_device(a, side.field)
        self.device = a.device
        self.pixels = pixels
        self.sampling = chosen(Sampling, sampling, "sampling")
        self._material = checked_material((stiffness, damping, friction, slip))
        stiff = number_from(tangential_stiffness, "tangential_stiffness", 0.0)
        if stiff > 0:
            self._hold_springs(stiff)

    def response(
        self,
        pose_a: Any = None,
        pose_b: Any = None,
        *,
        velocity_a: Any = None,
        velocity_b: Any = None,
        advance: bool = True,
    ) -> ContactResponse:
        """Add up penalty, damping and friction over the parts of each mesh inside the other.

        Args:
            pose_a, pose_b: Rigid motions (4, 4) of the meshes in the world; without static
                friction also a batch (B, 4, 4).
            velocity_a, velocity_b: (6,) or (B, 6), velocity of the mesh's origin, and spin.
            advance: With static friction, whether springs move on with this call; False leaves
                them as they were.

        Raises:
            OptionError: A batch is asked of springs that hold the state of one contact.
            PoseError: A pose is not a rigid motion, or the batches differ in length.
        """
        poses, single = _batches(pose_a, pose_b)
        if not single and self._sides[0].plan is not None:
            raise OptionError("springs hold the state of one contact; ask for a single pose.")
        count = len(poses[0])
        twists = [
            np.broadcast_to(checked_twist(v, count, name), (count, 6))
            for v, name in ((velocity_a, "velocity_a"), (velocity_b, "velocity_b"))
        ]
        halves = [self._half(k, poses, twists, advance) for k in (0, 1)]
        return self._joined(halves, poses, single)

    def reset(self) -> None:
        """Release all springs of static friction."""
        for side in self._sides:
            if side.plan is not None:
                side.plan.springs.clear()

    def _hold_springs(self, stiff: float) -> None:
        if self.sampling is not Sampling.FACES or not self._material[0] > 0:
            raise OptionError(STATIC_FRICTION_NEEDS)
        ratio = stiff / self._material[0]
        for side, other in (self._sides, self._sides[::-1]):
            pixel = pixel_of(side.field, self.pixels)
            side.plan = StaticFrictionPlan(side.field, other.mesh, pixel, ratio)

    def _half(
        self, k: int, poses: list[np.ndarray], twists: list[np.ndarray], advance: bool
    ) -> np.ndarray:
        """Return the rows of one side's field, with half of the material's forces."""
        side, other = self._sides[k], self._sides[1 - k]
        pose = _relative(poses[k], poses[1 - k])
        back = poses[k][:, :3, :3].transpose(0, 2, 1)
        local = [
            np.concatenate([_turned(back, t[:, :3]), _turned(back, t[:, 3:])], 1) for t in twists
        ]
        stiffness, damping, friction, slip = self._material
        fill = partial(
            fill_inputs,
            pose_count=len(pose),
            velocities=(local[1 - k], local[k]),
            centre=side.centre(),
            material=(0.5 * stiffness, 0.5 * damping, friction, slip),
            vertex_velocities=None,
        )
        if side.plan is not None:
            return side.plan.step(other.mesh, pose, fill, advance=advance)
        plan_type, options = response_plan_of(
            self.sampling, EarlyOut.BOUND, damping != 0 or friction != 0
        )
        asked = side.field, other.mesh, pose, self.pixels, options
        return answer_rows(plan_type, *asked, constants=None, fill=fill)

    def _joined(
        self, halves: list[np.ndarray], poses: list[np.ndarray], single: bool
    ) -> ContactResponse:
        """Join both halves in the world; each step gives the same bits when a and b change."""
        pairs = list(zip(self._sides, poses, strict=True))
        centres = [_turned(p[:, :3, :3], s.centre()[None]) + p[:, :3, 3] for s, p in pairs]
        middle = 0.5 * (centres[0] + centres[1])
        parts = []
        for rows, pose, centre in zip(halves, poses, centres, strict=True):
            force = _turned(pose[:, :3, :3], rows[:, :3])
            torque = _turned(pose[:, :3, :3], rows[:, 3:6])
            parts.append((force, torque + np.cross(centre - middle, force)))
        force, torque = (parts[0][k] - parts[1][k] for k in (0, 1))
        wrenches = []
        for sign, centre in zip((1.0, -1.0), centres, strict=True):
            own = sign * force, sign * torque + np.cross(middle - centre, sign * force)
            wrenches.append(Wrench(*(self._array(x, single) for x in own)))
        (a, b) = halves
        numbers = a[:, 6], b[:, 6], a[:, 7] + b[:, 7], (a[:, 8] + b[:, 8]).astype(np.int64)
        plain = (x[0].item() if single else wp.array(x, device=self.device) for x in numbers)
        return ContactResponse(*wrenches, *plain)

    def _array(self, rows: np.ndarray, single: bool) -> wp.array:
        rows = np.ascontiguousarray(rows[0] if single else rows)
        return wp.array(rows, dtype=wp.float64, device=self.device)


def _field_of(mesh: Mesh, given: DistanceField | int) -> DistanceField:
    return given if isinstance(given, DistanceField) else DistanceField(mesh, resolution=given)


def _batches(pose_a: Any, pose_b: Any) -> tuple[list[np.ndarray], bool]:
    """Return poses (B, 4, 4) of both, and whether single ones were given."""
    both = [batch_of(pose_a), batch_of(pose_b)]
    count = max(len(poses) for poses, _ in both)
    if any(not single and len(poses) != count for poses, single in both):
        lengths = " and ".join(str(len(poses)) for poses, _ in both)
        raise PoseError(f"pose_a and pose_b have {lengths} poses; give equally many.")
    poses = [np.broadcast_to(poses, (count, 4, 4)) for poses, _ in both]
    return poses, all(single for _, single in both)


def _relative(frame: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Return poses (B, 4, 4) in the frames."""
    back = frame[:, :3, :3].transpose(0, 2, 1)
    out = np.tile(np.eye(4), (len(pose), 1, 1))
    out[:, :3, :3] = np.einsum("bij,bjk->bik", back, pose[:, :3, :3])
    out[:, :3, 3] = _turned(back, pose[:, :3, 3] - frame[:, :3, 3])
    return out


def _turned(rotations: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return vectors (B, 3) turned by rotations (B, 3, 3)."""
    return np.einsum("bij,bj->bi", rotations, np.broadcast_to(vectors, (len(rotations), 3)))
