"""FieldSamples: a field at many points, by kernels or by texture units."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.core.pickling import PicklableResult
from abut.core.timing import stage
from abut.sdf.grid import FieldGrid, extrapolated, last_cell, sample_field, to_cells

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@dataclass(frozen=True, eq=False, repr=False)
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


@wp.struct
class FieldTextures:
    """A field in textures, 12 bytes a sample; on the CPU Warp interpolates them in software.

    Texture units of CUDA devices interpolate with weights in 256ths that add up to one; the eight
    of a cell together were measured to be off by up to 6.5/256 (H200). Samples of a cell differ by
    at most its diagonal, so that a distance is off by at most half of 7/256 of that: 0.024 of a
    cell.
    """

    grid: FieldGrid
    distance: wp.Texture3D
    gradient: wp.Texture3D  # with an unused fourth channel


@wp.func
def sample_at(grid: FieldGrid, p: wp.vec3d):
    """Return (distance, gradient) at p, see sample_field."""
    return sample_field(grid, p)


@wp.func
def sample_at(textures: FieldTextures, p: wp.vec3d):
    """Return (distance, gradient) at p by texture units, see sample_field."""
    at = to_cells(textures.grid, p)
    held = wp.min(wp.max(at, wp.vec3f(0.0)), last_cell(textures.grid))
    texel = wp.vec3f(held[2], held[1], held[0]) + wp.vec3f(0.5)  # the last index is the width
    distance = wp.texture_sample(textures.distance, texel, dtype=float)
    g = wp.texture_sample(textures.gradient, texel, dtype=wp.vec4f)
    blend = wp.vec4f(distance, g[0], g[1], g[2])
    return extrapolated(blend, wp.float32(textures.grid.spacing) * (at - held))


@cache
def field_kernel_for(field_type: Any) -> wp.Kernel:
    """Return the kernel that samples a FieldGrid, or FieldTextures."""

    @wp.kernel(module="unique", module_options={"enable_backward": False, "fuse_fp": False})
    def sample_kernel(
        # in
        span: wp.vec3i,
        field: field_type,
        points: wp.array[wp.vec3d],
        # out
        distance_out: wp.array[wp.float32],
        direction_out: wp.array[wp.vec3f],
        gradient_out: wp.array[wp.vec3f],
    ):
        """Sample the field at each point."""
        for i in range(span[0] + wp.tid(), span[1], span[2]):
            found = sample_at(field, points[i])
            gradient = wp.vec3f(found[1], found[2], found[3])
            distance_out[i] = found[0]
            gradient_out[i] = gradient
            direction_out[i] = wp.where(found[0] < wp.float32(0.0), gradient, -gradient)

    return sample_kernel


def sampled(field: Any, field_type: Any, points: wp.array) -> FieldSamples:
    """Sample a FieldGrid, or FieldTextures, at float64 points on its device."""
    device, count = points.device, points.shape[0]
    distance = wp.empty(count, dtype=wp.float32, device=device)
    direction, gradient = (wp.empty(count, dtype=wp.vec3f, device=device) for _ in range(2))
    args = [field, points, distance, direction, gradient]
    with stage("sample", device):
        launch(field_kernel_for(field_type), count, args, device)
    return FieldSamples(distance, direction.view(wp.float32), gradient.view(wp.float32))


def textures_of(grid: FieldGrid, device: wp.Device) -> FieldTextures:
    """Copy a grid's samples for texture units."""
    with stage("textures", device):
        padded = wp.zeros((*grid.distance.shape, 4), dtype=wp.int16, device=device)
        wp.copy(padded[:, :, :, :3], grid.gradient.view(wp.int16))
        textures = FieldTextures()
        textures.grid = grid
        textures.distance, textures.gradient = (
            wp.Texture3D(
                data,
                filter_mode=wp.TextureFilterMode.LINEAR,
                normalized_coords=False,
                device=device,
            )
            for data in (grid.distance, padded)
        )
    return textures
