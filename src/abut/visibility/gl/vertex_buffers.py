"""Corners of a soup's faces as the graphics device takes them."""

import numpy as np
import warp as wp

from abut.core.launch import launch
from abut.operands.soup import Soup

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def corner_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    faces: wp.array[wp.vec3i],
    low: wp.vec3d,
    size: wp.vec3d,
    # out
    corners_out: wp.array2d[wp.float32],
):
    """Corners in halves of the scene's box: three numbers each, from 0 to 1."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        f = faces[i]
        for k in range(3):
            p = wp.cw_div(points[f[k]] * wp.float64(0.5) - low, size)
            for axis in range(3):
                x = wp.clamp(p[axis], wp.float64(0.0), wp.float64(1.0))
                corners_out[i, 3 * k + axis] = wp.float32(x)


def corners_of(soup: Soup) -> np.ndarray:
    """(m, 9) float32: x, y, z of the three corners of each face, from 0 to 1 within the scene."""
    corners = wp.empty((soup.face_count, 9), dtype=wp.float32, device=soup.device)
    low, size = wp.vec3d(*(soup.bounds[0] / 2)), wp.vec3d(*half_size(soup))
    args = [soup.points, soup.faces, low, size, corners]
    launch(corner_kernel, soup.face_count, args, soup.device)
    return corners.numpy()


def half_size(soup: Soup) -> np.ndarray:
    """(3,) Half the size of the scene; 1 where it has none."""
    half = soup.bounds[1] / 2 - soup.bounds[0] / 2
    return np.where(half > 0, half, 1.0)
