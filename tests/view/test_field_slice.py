"""Slices of distance fields."""

import numpy as np
import pytest

import abut
from abut import cases
from abut.view.body import INK
from abut.view.page.field_slice import isoline_spacing, paint_distances, slice_distances
from abut.view.page.section import Plane
from abut.view.page.show_page import make_page
from browser import wait_until


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_distances_are_those_of_the_mesh(device, axis):
    mesh = abut.Mesh(*cases.icosphere(1280), device=device)
    field = abut.DistanceField(mesh, resolution=64)
    pose = np.eye(4)
    pose[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    pose[:3, 3] = [0.5, -0.25, 2.0]
    low, high = pose[:3, 3] - 1.1, pose[:3, 3] + [1.0, 1.1, 1.2]
    offset = pose[axis, 3] + 0.1
    values = slice_distances(field, pose, Plane(axis, offset), low, high, pixels=40)
    u, v = (axis + 1) % 3, (axis + 2) % 3
    step = max(high[u] - low[u], high[v] - low[v]) / 40
    points = np.zeros((*values.shape, 3))
    points[..., u] = low[u] + step * (0.5 + np.arange(values.shape[1]))
    points[..., v] = low[v] + step * (0.5 + np.arange(values.shape[0]))[:, None]
    points[..., axis] = offset
    truth = abut.signed_distance(mesh, points.reshape(-1, 3), pose=pose)
    distance = getattr(truth, "distance", truth).numpy().reshape(values.shape)
    np.testing.assert_allclose(values, distance, atol=0.03)
    assert (values < 0).any()


def test_colours():
    values = np.linspace(-1, 2, 301)[None].repeat(2, axis=0)
    picture = paint_distances(values)
    assert picture.shape == (2, 301, 4)
    inside, outside = picture[0, 7].astype(int), picture[0, 263].astype(int)
    assert inside[0] > inside[2]
    assert outside[2] > outside[0]
    np.testing.assert_array_equal(picture[0, 100, :3], np.round(255 * np.array(INK)))


@pytest.mark.parametrize(("span", "spacing"), [(24, 1), (30, 2), (0.1, 0.005), (2.4e-9, 1e-10)])
def test_spacing_is_round(span, spacing):
    assert isoline_spacing(span) == pytest.approx(spacing)


def test_slice_on_the_page():
    pytest.importorskip("viser")
    page = make_page(abut.Mesh(*cases.icosphere(320), device="cpu"), port=0)
    assert page.shown.wait(120)
    assert page.slice.handle is None
    page.field.value = True
    page.axis.value = "z"
    wait_until(lambda: page.offset.visible)
    page.offset.value = 0.2
    wait_until(lambda: page.slice.handle is not None and page.slice.handle.position[2] > 0)
    assert page.slice.handle.position[2] == pytest.approx(0.2, abs=1e-6)
    page.axis.value = "off"
    wait_until(lambda: page.slice.handle is None)
    page.close()


def test_sections_are_placed_in_the_units_of_the_files():
    """Regression: the slider ran from -1.2 to 1.2 for every scene."""
    pytest.importorskip("viser")
    ball = cases.icosphere(80, 50.0).moved((1000.0, 0.0, 0.0))
    page = make_page(abut.Mesh(*ball, device="cpu"), port=0)
    assert page.shown.wait(120)
    page.axis.value = "x"
    wait_until(lambda: page.offset.visible)
    slider = page.offset
    assert (slider.min, slider.value, slider.max) == pytest.approx((940, 1000, 1060), abs=1)
    slider.value = 1040.0
    wait_until(lambda: page.sections.plane is not None and page.sections.plane.offset == 1040.0)
    page.close()
