"""Depth intervals of faces over pixels contain exact depths, by rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import warp as wp

from abut.visibility.coverage import depths_over, touches
from abut.visibility.screen_faces import (
    ROWS,
    load_own_screen_face,
    map_point,
    screen_face_of,
    store_face,
)
from abut.visibility.settings import View, ViewMap, map_of
from hard_faces import needles

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
    f = screen_face_of(corners[i, 0], corners[i, 1], corners[i, 2])
    store_face(rows_out, i, f)
    f = load_own_screen_face(rows_out, i)
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
    polygon = [[x if isinstance(x, Fraction) else Fraction(float(x)) for x in p] for p in corners]
    for axis in range(2):
        for sign in (1, -1):
            line = Fraction(float(centre[axis])) - sign * Fraction(1, 2)
            polygon = clipped(polygon, axis, line, sign)
    depths = [point[2] for point in polygon]
    return (min(depths), max(depths)) if depths else None


def slivers(rng, thickness):
    """(n, 3, 3) corners of slivers, ``thickness`` pixels off a line, at any depth."""
    ends = rng.uniform([1, 1, 0.01], [SIDE - 1, SIDE - 1, 0.99], (COUNT, 2, 3))
    ends[::2, 1, :2] = ends[::2, 0, :2] + rng.uniform(0.3, 3, (len(ends[::2]), 2))  # short ones
    along = rng.random((COUNT, 1))
    third = ends[:, 0] * (1 - along) + ends[:, 1] * along
    third[:, :2] += rng.normal(scale=thickness, size=(COUNT, 2))
    third[:, 2] = rng.uniform(0.01, 0.99, COUNT)
    return np.concatenate([ends, third[:, None]], axis=1).astype(np.float32)


def computed_depths(corners, centres, mapping, device):
    """(whether faces touch pixels, their depths there)."""
    count = len(corners)
    rows = wp.zeros(ROWS * count, dtype=wp.vec4f, device=device)
    touched = wp.zeros(count, dtype=wp.bool, device=device)
    depths = wp.zeros(count, dtype=wp.vec2f, device=device)
    args = [wp.array(corners, dtype=wp.vec3f, device=device)]
    args += [wp.array(centres.astype(np.float32), dtype=wp.vec2f, device=device)]
    args += [wp.vec2f(*mapping.reach), mapping.slack, rows, touched, depths]
    wp.launch(depths_kernel, count, args, device=device)
    return touched.numpy(), depths.numpy().astype(float)


def check(corners, truly, mapping, device, seed=1):
    """Check that intervals at a pixel of each face contain the depths of the exact corners."""
    inside = np.random.default_rng(seed).dirichlet([1, 1, 1], len(corners))
    centres = np.floor(np.einsum("nc,ncx->nx", inside, corners)[:, :2]) + 0.5
    touched, depths = computed_depths(corners, centres, mapping, device)
    tested = 0
    for i, (low, high) in enumerate(depths):
        truth = true_depths(truly[i], centres[i])
        if truth is not None:
            tested += 1
            assert touched[i]
            assert Fraction(low) <= truth[0] and Fraction(high) >= truth[1], (i, low, high, truth)
    assert tested > len(corners) // 2


def unit_map(pixels):
    return map_of(View("z"), np.array([[0.0] * 3, [1.0] * 3]), pixels, conservative=True)


@pytest.mark.parametrize("thickness", [1e3, 1.0, 1e-2, 1e-3, 1e-4, 1e-6])
def test_intervals_contain_exact_depths(thickness, device):
    corners = slivers(np.random.default_rng(1), thickness)
    corners = np.clip(corners, 0.01, [SIDE - 0.01, SIDE - 0.01, 0.99]).astype(np.float32)
    check(corners, corners, unit_map(SIDE), device)


@pytest.mark.parametrize("side", [16, 64, 1024])
def test_depths_of_needles(side, device):
    """Needles amplify the rounding of float64 products in the slope by a small area."""
    corners = needles(np.random.default_rng(2), 60, side)
    check(corners, corners, unit_map(side), device)


@wp.kernel
def map_kernel(
    # in
    points: wp.array[wp.vec3d],
    views: wp.array[ViewMap],
    # out
    mapped_out: wp.array[wp.vec3f],
):
    """Points as a view shows them."""
    mapped_out[wp.tid()] = map_point(views[0], points[wp.tid()])


def mapped(points, mapping, device):
    """Points (n, 3) as a view shows them: in float32, and truly."""
    view = wp.zeros(1, dtype=ViewMap, device="cpu")
    view.numpy()[0] = mapping
    given = wp.array(points, dtype=wp.vec3d, device=device)
    out = wp.zeros(len(points), dtype=wp.vec3f, device=device)
    wp.launch(map_kernel, len(points), [given, wp.clone(view, device=device), out], device=device)
    numbers = [[Fraction(float(x)) for x in row] for row in points]
    shrink, base, scale = ([Fraction(x) for x in part] for part in mapping[1:4])
    truly = [[(p[a] * shrink[k] - base[k]) * scale[k] for k, a in enumerate(mapping.axes)]
             for p in numbers]  # fmt: skip
    return out.numpy(), truly


@pytest.mark.parametrize("slope", [0.0, 1e-8, 1e-3])
@pytest.mark.parametrize("view", ["x", "Y", "z"])
def test_depths_of_faces_before_they_are_rounded(view, slope, device):
    """Level faces: the depth of all of one is rounded to float32, up or down, by up to 2**-25."""
    rng = np.random.default_rng(3)
    bounds = np.array([[-1.0, 3.0, 0.1], [2.0, 4.0, 0.7]])
    mapping = map_of(View(view), bounds, SIDE, conservative=True)
    share = rng.uniform(0.01, 0.99, (COUNT, 3, 3))
    into = mapping.axes[2]
    share[:, :, into] = share[:, :1, into] + slope * (share[:, :, into] - 0.5)
    points = bounds[0] + (bounds[1] - bounds[0]) * np.clip(share, 0, 1)
    corners, truly = mapped(points.reshape(-1, 3), mapping, device)
    truly = [truly[3 * i : 3 * i + 3] for i in range(COUNT)]
    check(corners.reshape(-1, 3, 3), truly, mapping, device)
