"""Certified bounds of the values that ``closest`` and ``response`` estimate.

Faces are halved along their longest edge until parts that matter are short. Each part is bounded by
the field (certified.py); a part that cannot matter is dropped as a whole.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.errors import MeshError
from abut.mesh import Mesh
from abut.sdf.certified import (
    LEAF_COLUMNS,
    CertifiedField,
    leaf_forces_kernel,
    triangle_intervals_kernel,
)
from abut.sdf.field_plan import PlanRows
from abut.sdf.grid import Box, make_grid

SAMPLE_ERROR = 2.0**-15  # of the longest side of the box, see docs/distance_field.md
ROUNDING = 2.0**-49  # of the largest coordinate
SUM_ROUNDING = 1e-12  # of the sum of sizes
AT_ONCE = 1 << 18  # triangles of a launch


@dataclass(frozen=True, eq=False)
class ResponseBounds(PlanRows):
    """Lower and upper bounds of penalty integrals over the surface inside, in the field's frame."""

    @property
    def force(self) -> wp.array:
        """(2, 3) float64; (B, 2, 3) for a batch."""
        return self._array(self._rows[:, :, :3])

    @property
    def torque(self) -> wp.array:
        """(2, 3) about the object's centre of mass, or the centre given; (B, 2, 3) for a batch."""
        return self._array(self._rows[:, :, 3:6])

    @property
    def area(self) -> wp.array:
        """(2,) Area of the mesh inside; (B, 2) for a batch."""
        return self._array(self._rows[:, :, 6])

    @property
    def energy(self) -> wp.array:
        """(2,) Energy of the springs; (B, 2) for a batch."""
        return self._array(self._rows[:, :, 7])

    def numpy(self) -> dict[str, np.ndarray]:
        """The bounds as plain NumPy arrays."""
        return {name: getattr(self, name).numpy() for name in ("force", "torque", "area", "energy")}


def bound_closest(field: Any, mesh: Mesh, poses: np.ndarray, pixel: float) -> np.ndarray:
    """Return bounds (B, 2) of the least signed distance of a mesh at each pose."""
    return np.array([_bound_least(field, t, pixel) for t in _placed(field, mesh, poses)])


def bound_response(
    field: Any, mesh: Mesh, poses: np.ndarray, pixel: float, centre: np.ndarray, stiffness: float
) -> np.ndarray:
    """Return bounds (B, 2, 8) of force, torque, area and energy."""
    local = centre - field.box.lower
    rows = [_bound_forces(field, t, pixel, local, stiffness) for t in _placed(field, mesh, poses)]
    return np.array(rows).reshape(len(poses), 2, LEAF_COLUMNS // 2)


def _placed(field: Any, mesh: Mesh, poses: np.ndarray) -> Any:
    """Yield the triangles (n, 3, 3) of each pose, from the lower corner of the field's box."""
    if not field.certain:
        raise MeshError(
            "bounds need a field whose sign changes at the surface alone, of a closed and oriented "
            "mesh; repair the mesh, or take closest or response."
        )
    points, faces = mesh.points.numpy(), mesh.faces.numpy().reshape(-1, 3)
    for pose in poses:
        placed = points @ pose[:3, :3].T + pose[:3, 3]
        yield (placed - field.box.lower)[faces]


def _certified(field: Any, triangles: np.ndarray) -> Any:
    out = CertifiedField()
    box = Box(np.zeros(3), field.box.spacing, field.box.shape)
    out.grid = make_grid(box, field.grid.distance, field.grid.gradient)
    size = field.box.upper - field.box.lower
    largest = max(np.abs(field.box.lower).max(), np.abs(triangles).max(), size.max())
    out.error = SAMPLE_ERROR * float(size.max()) + ROUNDING * float(2.0 * largest)
    out.band = field.band * (1.0 - 1e-6) if np.isfinite(field.band) else 1e300
    return out


def _bound_least(field: Any, triangles: np.ndarray, pixel: float) -> np.ndarray:
    certified = _certified(field, triangles)
    low = high = np.inf
    while len(triangles):
        found = _intervals(certified, triangles, field.device)
        high = min(high, found[:, 1].min())
        triangles, found = triangles[found[:, 0] < high], found[found[:, 0] < high]
        short = _edges(triangles).max(axis=1, initial=0.0) <= pixel
        low = min(low, found[short, 0].min(initial=np.inf))
        triangles = _halved(triangles[~short])
    low = min(low, high)
    return np.array([low if low > -field.band else -np.inf, high if high < field.band else np.inf])


def _bound_forces(
    field: Any, triangles: np.ndarray, pixel: float, centre: np.ndarray, stiffness: float
) -> np.ndarray:
    certified = _certified(field, triangles)
    total, sizes = np.zeros(LEAF_COLUMNS), np.zeros(LEAF_COLUMNS)
    while len(triangles):
        found = _intervals(certified, triangles, field.device)
        triangles = triangles[found[:, 0] < 0.0]
        short = _edges(triangles).max(axis=1, initial=0.0) <= pixel
        leaves = triangles[short]

        def forces(part: wp.array, out: wp.array) -> None:
            args = [certified, part, wp.vec3d(*centre), wp.float64(stiffness), out]
            launch(leaf_forces_kernel, part.shape[0], args, field.device, grain=64)

        for start in range(0, len(leaves), AT_ONCE):
            part = leaves[start : start + AT_ONCE]
            rows = _launched(forces, part, LEAF_COLUMNS, field.device)
            total += rows.sum(axis=0)
            sizes += np.abs(rows).sum(axis=0)
        triangles = _halved(triangles[~short])
    half = LEAF_COLUMNS // 2
    slack = SUM_ROUNDING * np.maximum(sizes[:half], sizes[half:])
    return np.array([total[:half] - slack, total[half:] + slack])


def _intervals(certified: Any, triangles: np.ndarray, device: wp.Device) -> np.ndarray:
    """Return rows of triangle_interval."""

    def intervals(part: wp.array, out: wp.array) -> None:
        args = [certified, part, out.view(wp.vec4d).flatten()]
        launch(triangle_intervals_kernel, part.shape[0], args, device, grain=256)

    return np.concatenate(
        [
            _launched(intervals, triangles[start : start + AT_ONCE], 4, device)
            for start in range(0, len(triangles), AT_ONCE)
        ]
    )


def _launched(
    run: Callable[[wp.array, wp.array], None], part: np.ndarray, columns: int, device: wp.Device
) -> np.ndarray:
    triangles = wp.array(np.ascontiguousarray(part), dtype=wp.mat33d, device=device)
    out = wp.empty((len(part), columns), dtype=wp.float64, device=device)
    run(triangles, out)
    return out.numpy()


def _edges(triangles: np.ndarray) -> np.ndarray:
    """Return the lengths (n, 3) of the edges from corner k to k + 1."""
    return np.linalg.norm(np.roll(triangles, -1, axis=1) - triangles, axis=2)


def _halved(triangles: np.ndarray) -> np.ndarray:
    """Return both halves of triangles that are divided at the middle of their longest edge."""
    if not len(triangles):
        return triangles
    first = _edges(triangles).argmax(axis=1)
    order = (first[:, None] + np.arange(3)) % 3
    a, b, c = np.take_along_axis(triangles, order[:, :, None], axis=1).transpose(1, 0, 2)
    middle = 0.5 * (a + b)
    halves = [np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)]
    return np.concatenate(halves)
