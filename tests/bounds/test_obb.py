"""Axes of oriented boxes are orthonormal for vectors of any size."""

import numpy as np
import pytest
import warp as wp

from abut.bounds.obb import axes_of_tri, orthonormal_axes

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def axes_kernel(
    # in
    corners: wp.array2d[wp.vec3f],
    # out
    axes_out: wp.array2d[wp.mat33f],
):
    i = wp.tid()
    axes_out[i, 0] = orthonormal_axes(corners[i, 0], corners[i, 1])
    axes_out[i, 1] = axes_of_tri(corners[i, 0], corners[i, 1], corners[i, 2])


@pytest.mark.parametrize("exponent", [*range(-149, -60, 4), 0, 60, 64, 100, 124])
def test_axes_are_orthonormal(device, exponent):
    rng = np.random.default_rng(exponent + 200)
    corners = rng.normal(size=(2000, 3, 3))
    corners[:200, 1] = corners[:200, 0] * rng.choice([0.0, 1.0, 1.0 + 1e-6], size=(200, 1))
    corners = (corners * 2.0**exponent).astype(np.float32)
    axes = wp.zeros((len(corners), 2), dtype=wp.mat33f, device=device)
    points = wp.array(corners, dtype=wp.vec3f, device=device)
    wp.launch(axes_kernel, len(corners), [points, axes], device=device)
    found = axes.numpy().astype(np.float64)
    gram = found @ np.swapaxes(found, -1, -2)
    assert np.abs(gram - np.eye(3)).max() < 2.0**-20
