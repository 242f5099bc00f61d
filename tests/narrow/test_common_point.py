"""The nearest points of faces that meet are one point of both."""

import numpy as np
import pytest

import abut


@pytest.mark.parametrize("shape", ["any", "flat", "almost flat"])
def test_a_common_point_lies_on_both_faces(shape, device):
    """Where faces lie almost in one plane, the ends of their segment are rounded badly."""
    rng = np.random.default_rng(5)
    met = 0
    for _ in range(60):
        corners = rng.integers(-4, 5, size=(2, 3, 3)).astype(np.float64)
        if shape != "any":
            corners[..., 2] = corners[..., 0] + corners[..., 1]
        if shape == "almost flat":
            corners += 1e-14 * rng.normal(size=corners.shape)
        a, b = (abut.Mesh(points, [[0, 1, 2]], device) for points in corners)
        near = abut.distance(a, b)
        if near.value == 0:
            met += 1
            p, q = near.points.numpy()
            np.testing.assert_array_equal(p, q)
            for mesh in (a, b):
                assert abut.closest_point(mesh, p[None]).distance.numpy()[0] < 1e-13
    assert met > 10
