"""What is asked of a field about a mesh: checked at the door, answered in rows of poses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from abut.core.arrays import to_plain
from abut.core.device import require_same_device
from abut.errors import CapacityError, MeshError, OptionError, PointError
from abut.geometry.mass import centre_of
from abut.geometry.poses import checked_poses
from abut.mesh import Mesh, require_meshes
from abut.options import EarlyOut, Sampling, chosen, number_from
from abut.sdf.closest_sample import ClosestPlan, Proximity, proximity_of
from abut.sdf.field_plan import plan_for
from abut.sdf.posed_in_field import CENTRE, FIELD_VELOCITY, MARGIN, MATERIAL, SPEED, VELOCITY
from abut.sdf.response import Response, ResponsePlan
from abut.sdf.tape import Law, TapedResponse, parts_of, taped

SAMPLINGS = {sampling: number for number, sampling in enumerate(Sampling)}
EARLY = {out: number for number, out in enumerate(EarlyOut)}
MOST_PIXELS = 8192
MOST_FACES = 1 << 26
FACES_AT_ONCE = 1 << 22  # in all poses: their patches take room
REST = np.zeros(6)
IN_PLACE = np.eye(4)[None]


def ask_closest(field: Any, other: Mesh, pose: Any, pixels: int, sampling: str) -> Proximity:
    """See DistanceField.closest."""
    poses, single, how = _checked(field, other, pose, sampling)
    pixel = _pixel(field, pixels)

    def answered(part: slice) -> np.ndarray:
        these = poses[part]
        about = (ClosestPlan, len(these), int(pixels), how)
        kind = (field.grid, other, len(these), pixel, how, False)
        plan = plan_for(field, other, about, lambda: ClosestPlan(*kind))
        if plan.settled != about:
            plan.asked[:, MARGIN] = field.margin
            plan.settle(about)
        plan.poses[:] = these.reshape(-1, 16)
        return plan.ask(other)

    return proximity_of(_in_parts(len(poses), other, answered, 8), single, field.device)


def ask_response(
    field: Any,
    other: Mesh,
    pose: Any,
    pixels: int,
    sampling: str,
    early_out: str,
    velocity: Any,
    field_velocity: Any,
    material: tuple[Any, Any, Any, Any],
    centre: Any,
) -> Response:
    """See DistanceField.response."""
    poses, single, how = _checked(field, other, pose, sampling)
    early = EARLY[chosen(EarlyOut, early_out, "early_out")]
    pixel = _pixel(field, pixels)
    moving = _vertex_velocities(velocity, other)
    plain = velocity is None and field_velocity is None and centre is None
    settled = material if plain else None  # of a call like the last one, only poses are new
    kind = (moving is not None, material[1] != 0 or material[2] != 0, early)
    images = field.depth_images if EARLY[EarlyOut.DEPTH] == early else None
    centre = field.centre if centre is None else _three(centre, "centre")

    def answered(part: slice) -> np.ndarray:
        these = poses[part]
        about = (ResponsePlan, len(these), int(pixels), how, *kind)
        args = (field.grid, other, len(these), pixel, how, *kind, images)
        plan = plan_for(field, other, about, lambda: ResponsePlan(*args))
        if plan.settled is None or plan.settled != settled:
            twist = REST if moving is not None else _twist(velocity, len(poses), "velocity")
            field_twist = _twist(field_velocity, len(poses), "field_velocity")
            _settle(plan.asked, part, twist, field_twist, centre, material, moving)
            plan.settle(settled)
        plan.poses[:] = these.reshape(-1, 16)
        return plan.ask(other, moving)

    rows = _in_parts(len(poses), other, answered, 9)
    return Response(rows, single, field.device, _centre_later(other, poses), centre)


def _settle(
    asked: np.ndarray,
    part: slice,
    twist: np.ndarray,
    field_twist: np.ndarray,
    centre: np.ndarray,
    material: tuple[Any, ...],
    moving: np.ndarray | None,
) -> None:
    """Write down what is asked beside the poses; see read_meeting."""
    numbers = [number_from(x, name, 0.0) for name, x in zip(_MATERIAL, material, strict=True)]
    asked[:, VELOCITY : VELOCITY + 6] = twist if twist.ndim == 1 else twist[part]
    asked[:, FIELD_VELOCITY : FIELD_VELOCITY + 6] = (
        field_twist if field_twist.ndim == 1 else field_twist[part]
    )
    asked[:, CENTRE : CENTRE + 3] = centre
    asked[:, MATERIAL : MATERIAL + 4] = numbers
    fastest = 0.0 if moving is None else np.linalg.norm(moving, axis=1).max(initial=0.0)
    asked[:, SPEED] = fastest


def ask_on_tape(
    field: Any,
    other: Mesh,
    poses: wp.array,
    pixels: int,
    velocity: Any,
    field_velocity: Any,
    material: tuple[Any, Any, Any, Any],
    centre: Any,
) -> TapedResponse:
    """See DistanceField.response_on_tape."""
    _checked(field, other, None, Sampling.FACES)
    law = Law()
    law.centre = wp.vec3d(*(field.centre if centre is None else _three(centre, "centre")))
    theirs, ours = _twist(velocity, 1, "velocity"), _twist(field_velocity, 1, "field_velocity")
    law.other_velocity, law.other_spin = wp.vec3d(*theirs.flat[:3]), wp.vec3d(*theirs.flat[3:])
    law.velocity, law.spin = wp.vec3d(*ours.flat[:3]), wp.vec3d(*ours.flat[3:])
    named = zip(_MATERIAL, material, strict=True)
    law.material = wp.vec4d(*(number_from(x, name, 0.0) for name, x in named))
    points, areas = parts_of(other.points.numpy(), other.faces.numpy(), _pixel(field, pixels))
    device = field.device
    return taped(
        field.grid,
        wp.array(points, dtype=wp.vec3d, device=device),
        wp.array(areas, dtype=wp.float64, device=device),
        poses,
        law,
    )


_MATERIAL = ("stiffness", "damping", "friction", "slip")


def _checked(field: Any, other: Mesh, pose: Any, sampling: str) -> tuple[np.ndarray, bool, int]:
    """Poses (B, 4, 4), whether there is but one, and the sampling's number."""
    require_meshes(other=other)
    require_same_device(field, other)
    if other.face_count == 0:
        raise MeshError("other has no faces, so there is nothing to look at.")
    how = SAMPLINGS[chosen(Sampling, sampling, "sampling")]
    if pose is None:
        return IN_PLACE, True, how
    pose = to_plain(pose)
    return checked_poses(pose, "pose"), pose.ndim == 2, how


def _pixel(field: Any, pixels: Any) -> float:
    """The side of a pixel, of so many along the longest side of the field's box."""
    if not (isinstance(pixels, int | np.integer) and 1 <= pixels <= MOST_PIXELS):
        raise OptionError(f"pixels must be a whole number from 1 to {MOST_PIXELS}, not {pixels!r}.")
    return field.box.spacing * (max(field.box.shape) - 1) / int(pixels)


def _in_parts(
    count: int, other: Mesh, answered: Callable[[slice], np.ndarray], columns: int
) -> np.ndarray:
    """Rows of all poses, some at a time where they are many."""
    if other.face_count > MOST_FACES:
        raise CapacityError(f"{other.face_count} faces are too many; {MOST_FACES} is the most.")
    parts = min(-(-count * other.face_count // FACES_AT_ONCE), count)
    if parts <= 1:
        return answered(slice(0, count))
    step = -(-count // parts)
    rows = np.empty((count, columns))
    for start in range(0, count, step):
        part = slice(min(start, count - step), min(start + step, count))  # all of one size
        rows[part] = answered(part)
    return rows


def _three(value: Any, name: str) -> np.ndarray:
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.shape != (3,) or not np.isfinite(numbers).all():
        raise PointError(f"{name} must be three finite numbers, not {value!r}.")
    return numbers


def _twist(value: Any, count: int, name: str) -> np.ndarray:
    """(6,) or (B, 6) velocities and spins."""
    if value is None:
        return REST
    data = to_plain(value)
    data = data if isinstance(data, np.ndarray) else data.numpy()
    if data.dtype.kind not in "fiu":
        raise OptionError(f"{name} must be numbers, not {data.dtype}.")
    numbers = data.astype(np.float64)
    if numbers.shape not in ((6,), (count, 6)):
        raise OptionError(
            f"{name} must have shape (6,) or ({count}, 6), velocity and spin, not {numbers.shape}."
        )
    if not np.isfinite(numbers).all():
        raise OptionError(f"{name} must be finite.")
    return numbers


def _vertex_velocities(velocity: Any, other: Mesh) -> np.ndarray | None:
    """Velocities (n, 3) of all vertices, or None where ``velocity`` is none or a twist."""
    if velocity is None:
        return None
    data = to_plain(velocity)
    if tuple(data.shape) != (other.vertex_count, 3):
        return None
    numbers = np.asarray(data if isinstance(data, np.ndarray) else data.numpy(), dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise OptionError("velocity must be finite.")
    return numbers


def _centre_later(other: Mesh, poses: np.ndarray) -> Callable[[], np.ndarray]:
    """Make (B, 3) centres of the mesh as it is now, in the field's frame, when asked."""
    points, faces = other.points, other.faces

    def make(_lease: Any = other.lease) -> np.ndarray:  # held: the points are not overwritten
        centre = centre_of(points.numpy(), faces.numpy())
        return poses[:, :3, :3] @ centre + poses[:, :3, 3]

    return make
