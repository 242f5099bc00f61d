"""FieldSamples: a field at many points."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.core.pickling import PicklableResult
from abut.core.timing import stage
from abut.sdf.grid import FieldGrid, sample_field

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@dataclass(frozen=True, eq=False)
class FieldSamples(PicklableResult):
    """A distance field at many points.

    Attributes:
        distance: (n,) float32, negative inside.
        direction: (n, 3) float32, the unit vector to the closest point; zero where samples around
            the point cancel, and beyond the band of a field that has one.
        gradient: (n, 3) float32, the direction of increasing distance, continuous at the surface.
    """

    distance: wp.array
    direction: wp.array
    gradient: wp.array

    def __len__(self) -> int:
        """Number of rows."""
        return self.distance.shape[0]

    def numpy(self) -> dict[str, np.ndarray]:
        """The rows as plain NumPy arrays."""
        names = ("distance", "direction", "gradient")
        return {name: getattr(self, name).numpy() for name in names}


@wp.kernel
def sample_field_kernel(
    # in
    span: wp.vec3i,
    grid: FieldGrid,
    points: wp.array[wp.vec3d],
    # out
    distance_out: wp.array[wp.float32],
    direction_out: wp.array[wp.vec3f],
    gradient_out: wp.array[wp.vec3f],
):
    """Sample the field at each point."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        found = sample_field(grid, points[i])
        gradient = wp.vec3f(found[1], found[2], found[3])
        distance_out[i] = found[0]
        gradient_out[i] = gradient
        direction_out[i] = wp.where(found[0] < wp.float32(0.0), gradient, -gradient)


def sampled(kernel: wp.Kernel, field: list[Any], points: wp.array) -> FieldSamples:
    """Sample a field at float64 points on its device, by a kernel that takes it as ``field``."""
    device = points.device
    count = points.shape[0]
    distance = wp.empty(count, dtype=wp.float32, device=device)
    direction, gradient = (wp.empty(count, dtype=wp.vec3f, device=device) for _ in range(2))
    with stage("sample", device):
        outputs = [distance, direction, gradient]
        launch(kernel, count, [*field, points, *outputs], device)
    return FieldSamples(distance, direction.view(wp.float32), gradient.view(wp.float32))
