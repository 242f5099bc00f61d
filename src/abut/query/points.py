"""Points as queries take them: checked, in float64, on the device of a mesh."""

from typing import Any

import numpy as np
import warp as wp

from abut.core.arrays import as_vec3_array, scalar_dtype, to_plain
from abut.core.point_check import check_points
from abut.errors import DeviceError, PointError
from abut.mesh import Mesh

HIGH, LOW = 2.0**40, 2.0**-30  # float32 boxes and their squares are at home in between
ON_SURFACE = 2.0**-43  # of the mesh's size: so far off the computed foot of a point on it may be


def checked_points(points: Any, device: wp.Device) -> tuple[wp.array, np.ndarray]:
    """(n, 3) coordinates as float64 on ``device``, and their bounds; refuses what is not finite."""
    points = to_plain(points)
    if len(points.shape) == 1 and points.shape[0] == 0:
        points = np.zeros((0, 3))
    if len(points.shape) != 2 or points.shape[1] != 3:
        hint = "; [point] asks about one" if tuple(points.shape) == (3,) else ""
        raise PointError(f"points must have shape (n, 3), not {tuple(points.shape)}{hint}.")
    if isinstance(points, wp.array) and points.device != device:
        raise DeviceError(
            f"the points live on {points.device} but the mesh on {device}; bring them together."
        )
    if isinstance(points, np.ndarray) and points.dtype.kind in "iu":
        points = points.astype(np.float64)
    kind = scalar_dtype(points)
    if kind not in (np.float32, np.float64):
        raise PointError(f"points must be float32 or float64, not {kind}.")
    rows = (
        _widened(points, device) if kind == np.float32 else as_vec3_array(points, wp.vec3d, device)
    )
    first_bad, bounds = check_points(rows)
    if first_bad >= 0:
        value = rows[first_bad : first_bad + 1].numpy()[0]
        raise PointError(f"points[{first_bad}] is {value}; coordinates must be finite.")
    return rows, bounds


def unit_of(mesh: Mesh, bounds: np.ndarray, poses: np.ndarray | None) -> float:
    """The power of two by which lengths are divided, for meshes and points huge or tiny.

    Squares of distances then neither overflow nor vanish, and float32 can hold the boxes.
    """
    reach = float(np.abs([mesh.bounds, bounds]).max())
    if poses is not None and len(poses):
        reach = max(reach, float(np.abs(poses[:, :3, 3]).max()))
    with np.errstate(over="ignore"):
        extent = min(float((mesh.bounds[1] - mesh.bounds[0]).max()), reach)
    if reach <= HIGH and not 0.0 < extent < LOW:
        return 1.0
    least = np.floor(np.log2(reach)) - 39.0  # reach is at most HIGH units
    return float(2.0 ** max(np.floor(np.log2(extent)) if extent > 0.0 else least, least))


def needs_no_unit(mesh: Mesh) -> bool:
    """Whether lengths of a mesh need no unit, for points and poses that are not huge either."""
    with np.errstate(over="ignore"):
        extent = float((mesh.bounds[1] - mesh.bounds[0]).max())
    return float(np.abs(mesh.bounds).max()) <= HIGH and (extent == 0.0 or extent >= 2.0 * LOW)


def search_bound(mesh: Mesh, upper_bound: float) -> Any:
    """The square of the distance up to which faces are found; feet are compared with the bound."""
    size = float((mesh.bounds[1] - mesh.bounds[0]).max())
    farthest = upper_bound + ON_SURFACE * size
    return wp.float64(farthest * farthest * (1.0 + 2.0**-50))


def empty_order(device: wp.Device) -> wp.array:
    """The order of points as given."""
    return wp.empty(0, dtype=wp.int32, device=device)


def in_unit(mesh: Mesh, unit: float) -> Mesh:
    """A mesh with coordinates divided by a power of two."""

    def divided() -> Mesh:
        return Mesh(mesh.points.numpy() / unit, mesh.faces, mesh.device)

    return mesh.per_shape("in_unit", divided, unit)


def _widened(points: Any, device: wp.Device) -> wp.array:
    if isinstance(points, np.ndarray) and device.is_cpu:
        return as_vec3_array(points.astype(np.float64), wp.vec3d, device)
    rows = as_vec3_array(points, wp.vec3f, device)
    wide = wp.empty(rows.shape[0], dtype=wp.vec3d, device=device)
    if device.is_cpu:
        wide.numpy()[:] = rows.numpy()
    elif rows.shape[0]:
        wp.utils.array_cast(rows, wide)
    return wide
