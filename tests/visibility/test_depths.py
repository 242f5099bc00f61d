"""Depths of faces over pixels hold the true ones, by rational arithmetic; slivers above all."""

from fractions import Fraction

import numpy as np
import pytest
import warp as wp

from abut.visibility.fragment import ROWS, depths_over, load_fresh_view, store_face, touches
from abut.visibility.view import View, map_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

SIDE, COUNT = 1024, 400  # pixels of the view, faces


@wp.kernel
def depths_kernel(
    # in
    corners: wp.array2d[wp.vec3f],
    centres: wp.array[wp.vec2f],
    reach: wp.vec2f,
    slack: wp.float32,
    # out
    rows_out: wp.array[wp.vec4f],
    touched_out: wp.array[wp.bool],
    depths_out: wp.array[wp.vec2f],
):
    """Whether a face touches a pixel, and its depths there."""
    i = wp.tid()
    store_face(rows_out, i, corners[i, 0], corners[i, 1], corners[i, 2])
    f = load_fresh_view(rows_out, i)
    touched_out[i] = touches(f, centres[i], reach)
    depths_out[i] = depths_over(f, centres[i], reach, slack)


def clipped(polygon, axis, line, sign):
    """The part of a polygon on one side of a line across an axis."""
    out = []
    for p, q in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        beside = [sign * (x[axis] - line) for x in (p, q)]
        if beside[0] >= 0:
            out.append(p)
        if beside[0] * beside[1] < 0:
            t = beside[0] / (beside[0] - beside[1])
            out.append([a + t * (b - a) for a, b in zip(p, q, strict=True)])
    return out


def true_depths(corners, centre):
    """Least and greatest depth over the closed pixel; None where the face does not touch it."""
    polygon = [[Fraction(float(x)) for x in corner] for corner in corners]
    for axis in range(2):
        for sign in (1, -1):
            line = Fraction(float(centre[axis])) - sign * Fraction(1, 2)
            polygon = clipped(polygon, axis, line, sign)
    depths = [point[2] for point in polygon]
    return (min(depths), max(depths)) if depths else None


def slivers(rng, thickness):
    """(n, 3, 3) corners on a line but for so many pixels, at any depth."""
    ends = rng.uniform([1, 1, 0.01], [SIDE - 1, SIDE - 1, 0.99], (COUNT, 2, 3))
    ends[::2, 1, :2] = ends[::2, 0, :2] + rng.uniform(0.3, 3, (len(ends[::2]), 2))  # short ones
    along = rng.random((COUNT, 1))
    third = ends[:, 0] * (1 - along) + ends[:, 1] * along
    third[:, :2] += rng.normal(scale=thickness, size=(COUNT, 2))
    third[:, 2] = rng.uniform(0.01, 0.99, COUNT)
    return np.concatenate([ends, third[:, None]], axis=1).astype(np.float32)


@pytest.mark.parametrize("thickness", [1e3, 1.0, 1e-2, 1e-3, 1e-4, 1e-6])
def test_depths_hold_the_true_ones(thickness, device):
    rng = np.random.default_rng(1)
    corners = np.clip(slivers(rng, thickness), 0.01, [SIDE - 0.01, SIDE - 0.01, 0.99])
    corners = corners.astype(np.float32)
    inside = rng.dirichlet([1, 1, 1], COUNT).astype(np.float32)
    centres = np.floor(np.einsum("nc,ncx->nx", inside, corners)[:, :2]) + np.float32(0.5)
    bounds = np.array([[0.0] * 3, [1.0] * 3])
    mapping = map_of(View("z"), bounds, SIDE, conservative=True)
    rows = wp.zeros(ROWS * COUNT, dtype=wp.vec4f, device=device)
    touched = wp.zeros(COUNT, dtype=wp.bool, device=device)
    depths = wp.zeros(COUNT, dtype=wp.vec2f, device=device)
    args = [wp.array(corners, dtype=wp.vec3f, device=device)]
    args += [wp.array(centres.astype(np.float32), dtype=wp.vec2f, device=device)]
    args += [wp.vec2f(*mapping.reach), mapping.slack, rows, touched, depths]
    wp.launch(depths_kernel, COUNT, args, device=device)
    tested = 0
    for i, (low, high) in enumerate(depths.numpy().astype(float)):
        truth = true_depths(corners[i], centres[i])
        if truth is not None:
            tested += 1
            assert touched.numpy()[i]
            assert Fraction(low) <= truth[0] and Fraction(high) >= truth[1], (i, low, high, truth)
    assert tested > COUNT // 2
