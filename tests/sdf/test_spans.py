"""Row spans of a face, against Python integers of any size."""

import numpy as np
import pytest
import warp as wp

from abut.sdf.orthographic_raster import footprint_of
from abut.sdf.pixel_patch import patch_from, patch_origin, patch_pixel, patch_pixel_count

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

SIDE = 300  # pixels of the raster


@wp.kernel
def count_pixels_kernel(
    # in
    faces: wp.array[wp.mat33d],
    axis: wp.int32,
    side: wp.int32,
    # out
    counts_out: wp.array3d[wp.int32],
):
    """Count how many faces cover each pixel."""
    face = wp.tid()
    high = wp.vec3i(side - 1, side - 1, side - 1)
    footprint = footprint_of(faces[face], axis, wp.vec3i(0, 0, 0), high)
    at = wp.vec2i(0, 0)
    while at[0] < footprint.size[0]:
        piece = patch_from(footprint, at, face, wp.float64(1.0))
        pixel = wp.vec2i(0, 0)
        for index in range(patch_pixel_count(piece.patch)):
            pixel = patch_pixel(piece.patch, index, pixel)
            p = patch_origin(piece.patch) + pixel
            counts_out[face, p[0], p[1]] += 1
        at = piece.next


def covered_by_integers(corners):
    """Return the pixels of a face in the raster along x, by Python integers."""
    a, b, c = ([int(np.floor(x * 256 + 0.5)) for x in corner[1:]] for corner in corners)
    if (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) < 0:
        b, c = c, b
    u, v = np.meshgrid(*[np.arange(SIDE, dtype=object) * 256 + 128] * 2, indexing="ij")
    inside = np.full(u.shape, a != b != c != a, dtype=bool)
    for (ax, ay), (bx, by) in ((a, b), (b, c), (c, a)):
        side = (bx - ax) * (v - ay) - (by - ay) * (u - ax)
        on_edge = by > ay or (by == ay and bx < ax)
        inside &= (side > 0) | ((side == 0) & on_edge)
    return inside


def drawn(faces, device, axis=0):
    counts = wp.zeros((len(faces), SIDE, SIDE), dtype=wp.int32, device=device)
    given = wp.array(np.asarray(faces, dtype=np.float64), dtype=wp.mat33d, device=device)
    wp.launch(count_pixels_kernel, len(faces), [given, axis, SIDE, counts], device=device)
    return counts.numpy()


def faces_of(kind, rng, count=12):
    faces = rng.uniform(0, SIDE, (count, 3, 3))
    if kind == "small":
        faces = faces[:, :1] + rng.normal(0, 4, (count, 3, 3))
    if kind == "slivers":
        faces[:, 2, 1:] = 0.5 * (faces[:, 0, 1:] + faces[:, 1, 1:]) + rng.normal(0, 0.3, (count, 2))
    if kind == "on pixels":  # edges through centres, upright and level ones
        faces = np.round(faces[:, :1] + rng.normal(0, 9, (count, 3, 3))) + 0.5
        faces[::2, 1, 1 + np.arange(2)] = faces[::2, 0, 1 + np.arange(2)] + [[0, 7]]
        faces[1::2, 1, 1:] = faces[1::2, 0, 1:] + [[-11, 0]]
    if kind == "far":  # as far as whole numbers fit
        faces = rng.uniform(-4000, 4000, (count, 3, 3))
    return faces


@pytest.mark.parametrize("kind", ["small", "any", "slivers", "on pixels", "far"])
def test_spans_against_python_integers(kind, device):
    faces = faces_of(kind, np.random.default_rng(len(kind)))
    faces[..., 0] *= 1e-3  # not perpendicular to the raster
    counts = drawn(faces, device)
    assert counts.sum() > 0
    for face, found in zip(faces, counts, strict=True):
        np.testing.assert_array_equal(found, covered_by_integers(face).astype(int))


def test_every_pixel_is_covered_by_one_face(device):
    """A fan of faces around a point, corners on and off pixels."""
    rng = np.random.default_rng(3)
    angles = np.sort(rng.uniform(0, 2 * np.pi, 30))
    rim = np.stack([np.zeros(30), 150 + 400 * np.cos(angles), 150 + 400 * np.sin(angles)], axis=1)
    rim[::3] = np.round(rim[::3]) + 0.5
    hub = np.array([0.0, 150.5, 150.5])
    fan = [[hub, rim[k], rim[(k + 1) % 30]] for k in range(30)]
    np.testing.assert_array_equal(drawn(fan, device).sum(axis=0), 1)


@pytest.mark.parametrize("axis", [1, 2])
def test_axes_are_alike(axis, device):
    faces = faces_of("small", np.random.default_rng(5))
    to_raster = np.roll(faces, axis, axis=2)
    np.testing.assert_array_equal(drawn(faces, device), drawn(to_raster, device, axis))
