"""Arguments of questions to a field about a mesh, validated and as plain numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from abut.core.arrays import to_plain
from abut.core.device import require_same_device
from abut.errors import MeshError, OptionError, PointError
from abut.geometry.mass import centre_of_mass
from abut.geometry.poses import checked_poses
from abut.mesh import Mesh, require_meshes
from abut.options import number_from

MOST_PIXELS = 8192
AT_REST = np.zeros(6)
IDENTITY = np.eye(4)[None]
MATERIAL_NAMES = ("stiffness", "damping", "friction", "slip")


def require_sampled(field: Any, other: Mesh) -> None:
    """Refuse meshes without faces, or on another device than the field."""
    require_meshes(other=other)
    require_same_device(field, other)
    if other.face_count == 0:
        raise MeshError("other has no faces, so there is nothing to look at.")


def batch_of(pose: Any) -> tuple[np.ndarray, bool]:
    """Return poses (B, 4, 4), and whether a single one was given."""
    if pose is None:
        return IDENTITY, True
    pose = to_plain(pose)
    poses = checked_poses(pose, "pose")
    assert poses is not None
    return poses, pose.ndim == 2


def pixel_of(field: Any, pixels: Any) -> float:
    """Return the side of a pixel, ``pixels`` along the longest side of the field's box."""
    if not (isinstance(pixels, int | np.integer) and 1 <= pixels <= MOST_PIXELS):
        raise OptionError(f"pixels must be a whole number from 1 to {MOST_PIXELS}, not {pixels!r}.")
    return field.box.spacing * (max(field.box.shape) - 1) / int(pixels)


def checked_material(material: tuple[Any, ...]) -> list[float]:
    """Return stiffness, damping, friction and slip, each at least 0."""
    named = zip(MATERIAL_NAMES, material, strict=True)
    return [number_from(value, name, 0.0) for name, value in named]


def checked_centre(field: Any, centre: Any) -> np.ndarray:
    """Return the point that torques are about; None is the object's centre of mass."""
    if centre is None:
        return field.centre
    numbers = _numpy(centre)
    numbers = numbers.astype(np.float64) if numbers.dtype.kind in "fiu" else np.empty(0)
    if numbers.shape != (3,) or not np.isfinite(numbers).all():
        raise PointError(f"centre must be three finite numbers, not {centre!r}.")
    return numbers


def checked_twist(value: Any, count: int, name: str) -> np.ndarray:
    """Return velocity and spin, (6,) or (B, 6)."""
    if value is None:
        return AT_REST
    data = _numpy(value)
    if data.dtype.kind not in "fiu":
        raise OptionError(f"{name} must be numbers, not {data.dtype}.")
    if data.shape not in ((6,), (count, 6)):
        raise OptionError(
            f"{name} must have shape (6,) or ({count}, 6), velocity and spin, not {data.shape}."
        )
    return _finite(data, name)


def vertex_velocities_of(velocity: Any, other: Mesh) -> np.ndarray | None:
    """Return velocities (n, 3) of all vertices; None where ``velocity`` is None or a twist."""
    if velocity is None or tuple(to_plain(velocity).shape) != (other.vertex_count, 3):
        return None
    return _finite(_numpy(velocity), "velocity")


def centre_later(other: Mesh, poses: np.ndarray) -> Callable[[], np.ndarray]:
    """Return a function that computes the centres (B, 3) of the mesh in the field's frame."""
    points, faces = other.points, other.faces

    def make(_lease: Any = other.lease) -> np.ndarray:  # held: the points are not overwritten
        centre = centre_of_mass(points.numpy(), faces.numpy())
        return poses[:, :3, :3] @ centre + poses[:, :3, 3]

    return make


def _numpy(value: Any) -> np.ndarray:
    data = to_plain(value)
    return data if isinstance(data, np.ndarray) else data.numpy()


def _finite(data: np.ndarray, name: str) -> np.ndarray:
    numbers = data.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise OptionError(f"{name} must be finite.")
    return numbers
