"""Axes of oriented boxes are orthonormal for vectors of any size."""

import numpy as np
import pytest
import warp as wp

from abut.bounds.obb import axes_of_tri, fit_obb, orthonormal_axes, overlap_obb, unpack_obb
from abut.bounds.relative_frame import rotated_frame
from shapes import random_poses

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


def test_axes_of_a_triangle_follow_its_longest_edge_and_its_normal(device):
    rng = np.random.default_rng(0)
    corners = rng.normal(size=(500, 3, 3)).astype(np.float32)
    axes = wp.zeros((500, 2), dtype=wp.mat33f, device=device)
    points = wp.array(corners, dtype=wp.vec3f, device=device)
    wp.launch(axes_kernel, 500, [points, axes], device=device)
    found = axes.numpy()[:, 1].astype(np.float64)
    edges = (np.roll(corners, -1, axis=1) - corners).astype(np.float64)
    longest = edges[np.arange(500), np.linalg.norm(edges, axis=2).argmax(axis=1)]
    normal = np.cross(edges[:, 0], edges[:, 1])
    for axis, along in ((0, longest), (2, normal)):
        cosine = np.einsum("ni,ni->n", found[:, axis], along) / np.linalg.norm(along, axis=1)
        assert np.abs(np.abs(cosine) - 1.0).max() < 1e-5


@wp.kernel
def overlap_kernel(
    # in
    poses: wp.array[wp.mat44d],
    rows: wp.array2d[wp.vec4f],
    # out
    overlap_out: wp.array[wp.bool],
):
    i = wp.tid()
    zero = wp.vec3d()
    reach = wp.float64(4.0)
    frame = rotated_frame(wp.identity(4, dtype=wp.float64), poses[i], zero, zero, reach, reach)
    a = unpack_obb(rows[i, 0], rows[i, 1], rows[i, 2])
    b = unpack_obb(rows[i, 3], rows[i, 4], rows[i, 5])
    overlap_out[i] = overlap_obb(frame, a, b)


def separation(pose, a, b):
    """Largest gap of two boxes (centre, axes, half sides) along fifteen axes, in float64."""
    centre, axes = pose[:3, :3] @ b[0] + pose[:3, 3], b[1] @ pose[:3, :3].T
    candidates = [*a[1], *axes, *(np.cross(x, y) for x in a[1] for y in axes)]
    gaps = []
    for axis in candidates:
        size = np.linalg.norm(axis)
        if size > 1e-3:
            reach = np.abs(a[1] @ axis) @ a[2] + np.abs(axes @ axis) @ b[2]
            gaps.append((abs((centre - a[0]) @ axis) - reach) / size)
    return max(gaps)


def test_overlap_is_that_of_fifteen_axes(device):
    """Flat and long boxes, of which many are apart along one axis alone."""
    rng = np.random.default_rng(1)
    count = 4000
    poses = random_poses(count, 1.2, seed=3)
    boxes = []
    for axes in (random_poses(count, 0.0, seed=seed)[:, :3, :3] for seed in (4, 5)):
        half = rng.uniform(0.2, 1.2, size=(count, 3)) * rng.choice([0.02, 1.0], size=(count, 3))
        boxes.append((rng.uniform(-0.5, 0.5, size=(count, 3)), axes, half))
    packed = np.stack(
        [
            np.c_[part, half[:, k]]
            for centre, axes, half in boxes
            for k, part in enumerate((centre, axes[:, 0], axes[:, 1]))
        ],
        axis=1,
    )
    found = wp.zeros(count, dtype=wp.bool, device=device)
    args = [
        wp.array(poses, dtype=wp.mat44d, device=device),
        wp.array(packed.astype(np.float32), dtype=wp.vec4f, device=device),
    ]
    wp.launch(overlap_kernel, count, [*args, found], device=device)
    sides = [[(c[i], x[i], h[i]) for c, x, h in boxes] for i in range(count)]
    gaps = np.array([separation(poses[i], *sides[i]) for i in range(count)])
    clear = np.abs(gaps) > 1e-3
    assert (gaps > 1e-3).sum() > 500 and (gaps < -1e-3).sum() > 500
    assert np.array_equal(found.numpy()[clear], gaps[clear] < 0.0)


@wp.kernel
def fit_kernel(
    # in
    axes: wp.array[wp.mat33f],
    points: wp.array2d[wp.vec3f],
    # out
    centre_out: wp.array[wp.vec3f],
    half_out: wp.array[wp.vec3f],
):
    i = wp.tid()
    low = axes[i] * points[i, 0]
    high = low
    for k in range(1, points.shape[1]):
        at = axes[i] * points[i, k]
        low = wp.min(low, at)
        high = wp.max(high, at)
    box = fit_obb(axes[i], low, high)
    centre_out[i] = box.centre
    half_out[i] = box.half


@pytest.mark.parametrize("exponent", [-149, -140, -120, -75, 0, 60, 120, 127])
def test_boxes_hold_their_points(device, exponent):
    rng = np.random.default_rng(2)
    axes = random_poses(500, 0.0, seed=6)[:, :3, :3].astype(np.float32)
    points = (rng.uniform(-0.9, 0.9, size=(500, 5, 3)) * 2.0**exponent).astype(np.float32)
    out = [wp.zeros(500, dtype=wp.vec3f, device=device) for _ in range(2)]
    args = [
        wp.array(axes, dtype=wp.mat33f, device=device),
        wp.array(points, dtype=wp.vec3f, device=device),
    ]
    wp.launch(fit_kernel, 500, [*args, *out], device=device)
    centre, half = (array.numpy().astype(np.float64) for array in out)
    offsets = points.astype(np.float64) - centre[:, None]
    along = np.abs(np.einsum("nij,nkj->nki", axes.astype(np.float64), offsets))
    assert (along <= half[:, None]).all()
    if exponent in range(-110, 120):
        assert (half <= along.max(axis=1) * (1.0 + 1e-4) + 1e-4 * 2.0**exponent).all()
