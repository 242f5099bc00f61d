"""WavingFloor: a sheet whose height is a sum of running waves, moved on the device."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from abut.mesh import Mesh

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.struct
class Waves:
    """Two running waves: height * sin(2 pi (x / length - time / period)), along x and along y."""

    height: wp.vec2d
    length: wp.vec2d
    period: wp.vec2d


@wp.kernel
def waves_kernel(
    # in
    span: wp.vec3i,
    rest: wp.array[wp.vec3d],
    waves: Waves,
    clock: wp.array[wp.float64],
    # out
    points_out: wp.array[wp.vec3d],
    velocity_out: wp.array[wp.vec3d],
):
    """Compute position and velocity of the floor's vertices now."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        p = rest[i]
        speed = wp.float64(0.0)
        height = p[2]
        for k in range(2):
            tau = wp.float64(wp.TAU)
            at = tau * (p[k] / waves.length[k] - clock[0] / waves.period[k])
            height += waves.height[k] * wp.sin(at)
            speed -= waves.height[k] * tau / waves.period[k] * wp.cos(at)
        points_out[i] = wp.vec3d(p[0], p[1], height)
        velocity_out[i] = wp.vec3d(wp.float64(0.0), wp.float64(0.0), speed)


@dataclass(frozen=True)
class WavingFloor:
    """A sheet and the waves that run through it.

    Attributes:
        mesh: The sheet at rest.
        height, length, period: Of the waves along x and along y.
    """

    mesh: Mesh
    height: tuple[float, float] = (0.1, 0.1)
    length: tuple[float, float] = (2.0, 3.0)
    period: tuple[float, float] = (2.0, 3.0)

    @property
    def fastest(self) -> float:
        """Upper bound of the speed of all vertices."""
        return float(2 * np.pi * (np.abs(self.height) / np.abs(self.period)).sum())

    @property
    def bounds(self) -> np.ndarray:
        """(2, 3) bounds at all times."""
        reach = float(np.abs(self.height).sum())
        return self.mesh.bounds + np.array([[0, 0, -reach], [0, 0, reach]])

    def waves(self) -> Any:
        """Return the waves as a struct for kernels."""
        out = Waves()
        out.height, out.length = wp.vec2d(*self.height), wp.vec2d(*self.length)
        out.period = wp.vec2d(*self.period)
        return out
