"""Questions to a field about a mesh: validate arguments, run plans, wrap the rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from abut.core.arrays import to_plain
from abut.core.device import require_same_device
from abut.errors import CapacityError, MeshError, OptionError, PointError
from abut.geometry.mass import centre_of_mass
from abut.geometry.poses import checked_poses
from abut.mesh import Mesh, require_meshes
from abut.options import EarlyOut, Sampling, chosen, number_from
from abut.sdf.closest_sample import ClosestPlan, Proximity, proximity_of
from abut.sdf.field_pairs import CENTRE, FIELD_VELOCITY, MARGIN, MATERIAL, SPEED, VELOCITY
from abut.sdf.field_plan import plan_for
from abut.sdf.response import Response, ResponsePlan
from abut.sdf.tape import ContactLaw, TapedResponse, record_response, subdivided_samples

SAMPLINGS = {sampling: number for number, sampling in enumerate(Sampling)}
EARLY_OUTS = {out: number for number, out in enumerate(EarlyOut)}
MOST_PIXELS = 8192
MOST_FACES = 1 << 26
FACES_AT_ONCE = 1 << 22  # in all poses: their patches take memory
AT_REST = np.zeros(6)
IDENTITY = np.eye(4)[None]
MATERIAL_NAMES = ("stiffness", "damping", "friction", "slip")


def ask_closest(field: Any, other: Mesh, pose: Any, pixels: int, sampling: str) -> Proximity:
    """Answer DistanceField.closest."""
    poses, single, sampling_number = _checked(field, other, pose, sampling)
    pixel = _pixel(field, pixels)

    def fill(inputs: np.ndarray) -> None:
        inputs[:, MARGIN] = field.margin

    def answered(chunk: slice) -> np.ndarray:
        count = chunk.stop - chunk.start
        key = (ClosestPlan, count, int(pixels), sampling_number)
        args = (field.grid, other, count, pixel, sampling_number)
        plan = plan_for(field, other, key, lambda: ClosestPlan(*args))
        return plan.ask(other, poses[chunk], field.margin, fill)

    return proximity_of(_in_chunks(len(poses), other, answered, 8), single, field.device)


def ask_response(
    field: Any,
    other: Mesh,
    pose: Any,
    *,
    pixels: int,
    sampling: str,
    early_out: str,
    velocity: Any,
    field_velocity: Any,
    material: tuple[Any, Any, Any, Any],
    centre: Any,
) -> Response:
    """Answer DistanceField.response."""
    poses, single, sampling_number = _checked(field, other, pose, sampling)
    early = EARLY_OUTS[chosen(EarlyOut, early_out, "early_out")]
    pixel = _pixel(field, pixels)
    vertex_velocities = _vertex_velocities(velocity, other)
    only_poses = velocity is None and field_velocity is None and centre is None
    images = field.depth_images if EARLY_OUTS[EarlyOut.DEPTH] == early else None
    centre = field.centre if centre is None else _three(centre, "centre")
    _, damping, friction, _ = material
    kind = {
        "vertex_velocities": vertex_velocities is not None,
        "dissipative": damping != 0 or friction != 0,
        "early_out": early,
    }

    def answered(chunk: slice) -> np.ndarray:
        def fill(inputs: np.ndarray) -> None:
            twist = AT_REST
            if vertex_velocities is None:
                twist = _twist(velocity, len(poses), "velocity")
            field_twist = _twist(field_velocity, len(poses), "field_velocity")
            twist, field_twist = (t if t.ndim == 1 else t[chunk] for t in (twist, field_twist))
            _fill_response(inputs, twist, field_twist, centre, material, vertex_velocities)

        count = chunk.stop - chunk.start
        key = (ResponsePlan, count, int(pixels), sampling_number, *kind.values())
        args = (field.grid, other, count, pixel, sampling_number)
        plan = plan_for(field, other, key, lambda: ResponsePlan(*args, **kind, depth_images=images))
        constants = material if only_poses else None
        return plan.ask(other, poses[chunk], constants, fill, vertex_velocities)

    rows = _in_chunks(len(poses), other, answered, 9)
    return Response(rows, single, field.device, _centre_later(other, poses), centre)


def _fill_response(
    inputs: np.ndarray,
    twist: np.ndarray,
    field_twist: np.ndarray,
    centre: np.ndarray,
    material: tuple[Any, ...],
    vertex_velocities: np.ndarray | None,
) -> None:
    """Write the inputs beside the poses; see read_pair."""
    numbers = _numbers(material)  # refused before anything is written
    inputs[:, VELOCITY : VELOCITY + 6] = twist
    inputs[:, FIELD_VELOCITY : FIELD_VELOCITY + 6] = field_twist
    inputs[:, CENTRE : CENTRE + 3] = centre
    inputs[:, MATERIAL : MATERIAL + 4] = numbers
    inputs[:, SPEED] = 0.0
    if vertex_velocities is not None:
        inputs[:, SPEED] = np.linalg.norm(vertex_velocities, axis=1).max(initial=0.0)


def ask_on_tape(
    field: Any,
    other: Mesh,
    poses: wp.array,
    *,
    pixels: int,
    velocity: Any,
    field_velocity: Any,
    material: tuple[Any, Any, Any, Any],
    centre: Any,
) -> TapedResponse:
    """Answer DistanceField.response_on_tape."""
    _checked(field, other, None, Sampling.FACES)
    law = ContactLaw()
    law.centre = wp.vec3d(*(field.centre if centre is None else _three(centre, "centre")))
    twist = _twist(velocity, 1, "velocity").ravel()
    field_twist = _twist(field_velocity, 1, "field_velocity").ravel()
    law.other_velocity, law.other_spin = wp.vec3d(*twist[:3]), wp.vec3d(*twist[3:])
    law.velocity, law.spin = wp.vec3d(*field_twist[:3]), wp.vec3d(*field_twist[3:])
    law.material = wp.vec4d(*_numbers(material))
    points, areas = subdivided_samples(
        other.points.numpy(), other.faces.numpy(), _pixel(field, pixels)
    )
    device = field.device
    return record_response(
        field.grid,
        wp.array(points, dtype=wp.vec3d, device=device),
        wp.array(areas, dtype=wp.float64, device=device),
        poses,
        law,
    )


def _checked(field: Any, other: Mesh, pose: Any, sampling: str) -> tuple[np.ndarray, bool, int]:
    """Return poses (B, 4, 4), whether a single one was given, and the sampling's number."""
    require_meshes(other=other)
    require_same_device(field, other)
    if other.face_count == 0:
        raise MeshError("other has no faces, so there is nothing to look at.")
    sampling_number = SAMPLINGS[chosen(Sampling, sampling, "sampling")]
    if pose is None:
        return IDENTITY, True, sampling_number
    pose = to_plain(pose)
    poses = checked_poses(pose, "pose")
    assert poses is not None
    return poses, pose.ndim == 2, sampling_number


def _pixel(field: Any, pixels: Any) -> float:
    """Return the side of a pixel, ``pixels`` along the longest side of the field's box."""
    if not (isinstance(pixels, int | np.integer) and 1 <= pixels <= MOST_PIXELS):
        raise OptionError(f"pixels must be a whole number from 1 to {MOST_PIXELS}, not {pixels!r}.")
    return field.box.spacing * (max(field.box.shape) - 1) / int(pixels)


def _in_chunks(
    count: int, other: Mesh, answered: Callable[[slice], np.ndarray], columns: int
) -> np.ndarray:
    """Return the rows of all poses, asked in chunks of one size where they are many."""
    if other.face_count > MOST_FACES:
        raise CapacityError(f"{other.face_count} faces are too many; {MOST_FACES} is the most.")
    chunk_count = min(-(-count * other.face_count // FACES_AT_ONCE), count)
    if chunk_count <= 1:
        return answered(slice(0, count))
    step = -(-count // chunk_count)
    rows = np.empty((count, columns))
    for start in range(0, count, step):
        chunk = slice(min(start, count - step), min(start + step, count))
        rows[chunk] = answered(chunk)
    return rows


def _numbers(material: tuple[Any, ...]) -> list[float]:
    named = zip(MATERIAL_NAMES, material, strict=True)
    return [number_from(value, name, 0.0) for name, value in named]


def _three(value: Any, name: str) -> np.ndarray:
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.shape != (3,) or not np.isfinite(numbers).all():
        raise PointError(f"{name} must be three finite numbers, not {value!r}.")
    return numbers


def _twist(value: Any, count: int, name: str) -> np.ndarray:
    """Return velocity and spin, (6,) or (B, 6)."""
    if value is None:
        return AT_REST
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
    """Return velocities (n, 3) of all vertices; None where ``velocity`` is None or a twist."""
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
    """Return a function that computes the centres (B, 3) of the mesh in the field's frame."""
    points, faces = other.points, other.faces

    def make(_lease: Any = other.lease) -> np.ndarray:  # held: the points are not overwritten
        centre = centre_of_mass(points.numpy(), faces.numpy())
        return poses[:, :3, :3] @ centre + poses[:, :3, 3]

    return make
