"""Rendered pictures: colours, occlusion, curves and camera."""

import numpy as np
import pytest

from abut import cases, view

BALL = cases.icosphere(320)
MIDDLE = np.s_[28:36, 28:36]


def draw(bodies, curves=(), **options):
    return view.render(bodies, curves, size=(64, 64), device="cpu", wire=0.0, **options)


def middle(picture):
    return picture[MIDDLE].reshape(-1, 3).mean(axis=0)


def test_size_and_background():
    picture = view.render([view.Body(BALL)], size=(60, 40), device="cpu")
    assert picture.shape == (40, 60, 3)
    assert picture.dtype == np.uint8
    assert picture[0, 0].min() > 200


def test_bodies_have_their_colour():
    red, _, blue = middle(draw([view.Body(BALL, (1.0, 0.1, 0.1))]))
    assert red > 2 * blue


def test_opaque_bodies_occlude():
    inner = view.Body(cases.icosphere(320, 0.5), (1.0, 0.1, 0.1))
    opaque = middle(draw([inner, view.Body(BALL, (0.1, 0.1, 1.0))]))
    glass = middle(draw([inner, view.Body(BALL, (0.1, 0.1, 1.0), 0.2)]))
    assert opaque[2] > opaque[0]
    assert glass[0] > glass[2]


def test_marked_faces():
    plain = draw([view.Body(BALL, (0.1, 0.1, 1.0))])
    marked = draw([view.Body(BALL, (0.1, 0.1, 1.0), marked=np.arange(320), mark=(1.0, 0.1, 0.1))])
    assert middle(marked)[0] > 2 * middle(plain)[0]


def test_curves_are_drawn():
    ring = 1.05 * np.stack([np.cos(t := np.linspace(0, 2 * np.pi, 50)), np.sin(t), 0 * t], axis=1)
    ring[-1] = ring[0]
    bodies = [view.Body(BALL, (0.1, 0.1, 1.0))]
    picture = draw(bodies, [ring, ring[:2] * 1e-20], curve_color=(1.0, 0.1, 0.1), curve_radius=0.03)
    assert ((picture[..., 0] > 200) & (picture[..., 2] < 120)).sum() > 40


def test_camera_has_all_points_in_its_picture():
    points = np.random.default_rng(0).normal(size=(100, 3)) * [3, 1, 2] + [5, 6, 7]
    camera = view.Camera.around(points, aspect=1.5, margin=1.0)
    offset = points - camera.eye
    depth = offset @ camera.ahead
    across = np.abs(offset @ camera.right) / depth / camera.tangent / 1.5
    upward = np.abs(offset @ camera.up) / depth / camera.tangent
    assert depth.min() > 0
    assert max(across.max(), upward.max()) == pytest.approx(1.0)


def test_files(tmp_path):
    from PIL import Image

    picture = draw([view.Body(BALL)])
    path = view.save_picture(tmp_path / "new" / "ball.png", picture)
    with Image.open(path) as read:
        assert np.array_equal(np.asarray(read), picture)
