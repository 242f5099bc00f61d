"""Centre of mass of what a field says is inside."""

from typing import Any

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.sdf.grid import FieldGrid

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def inside_kernel(
    # in
    span: wp.vec3i,
    grid: FieldGrid,
    # out
    moments_out: wp.array[wp.vec4d],
):
    """(volume, first moments) in cells, of a column of samples along z."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        x = i / grid.shape[1]
        y = i % grid.shape[1]
        volume = wp.float64(0.0)
        moment = wp.float64(0.0)
        for z in range(grid.shape[2]):
            depth = -wp.float64(grid.distance[x, y, z]) / grid.spacing
            share = wp.clamp(wp.float64(0.5) + depth, wp.float64(0.0), wp.float64(1.0))
            volume += share
            moment += share * wp.float64(z)
        moments_out[i] = wp.vec4d(volume, volume * wp.float64(x), volume * wp.float64(y), moment)


def centre_of_inside(grid: Any) -> np.ndarray:
    """The centre of mass (3,), the middle of the box where nothing is inside."""
    device = grid.distance.device
    shape = np.array(grid.distance.shape)
    moments = wp.empty(int(shape[0] * shape[1]), dtype=wp.vec4d, device=device)
    launch(inside_kernel, moments.shape[0], [grid, moments], device, grain=256)
    total = moments.numpy().sum(axis=0)
    middle = total[1:] / total[0] if total[0] > 0 else (shape - 1) / 2
    return np.array(grid.lower) + grid.spacing * middle


def margin_of(grid: Any) -> float:
    """The least distance on the sides of the box, less what lies between samples; at least 0."""
    distance = grid.distance
    ends = [n - 1 for n in distance.shape]
    sides = [distance[k] for k in (0, ends[0])]
    sides += [distance[:, k] for k in (0, ends[1])] + [distance[:, :, k] for k in (0, ends[2])]
    least = min(float(side.contiguous().numpy().min()) for side in sides)
    return max(0.0, least - grid.spacing)
