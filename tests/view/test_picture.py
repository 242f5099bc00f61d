"""Rendered pictures: colours, occlusion, curves and camera."""

import time

import numpy as np
import pytest

import abut
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


RED = (1.0, 0.0, 0.0)


def is_red(picture):
    return (picture[..., 0] > 180) & (picture[..., 1] < 110) & (picture[..., 2] < 110)


def line(size, **options):
    """Picture of a line in front of a white box, and its width in pixels."""
    bodies = [view.Body(cases.box((2, 0.1, 2)), (0.9, 0.9, 0.9))]
    camera = view.Camera.around(bodies[0].shape.vertices, azimuth=-90, elevation=0, aspect=1)
    curve = np.array([[-0.9, -0.2, -0.4], [0.9, -0.2, 0.5]])
    options = {"camera": camera, "device": "cpu", "wire": 0.0, "curve_color": RED} | options
    picture = view.render(bodies, [curve], size=(size, size), **options)
    red = np.clip((picture[..., 0].astype(float) - picture[..., 1]) / 255, 0, 1)
    return picture, red[:, size // 3 : -size // 3].sum(axis=0)


@pytest.mark.parametrize("size", [64, 400])
@pytest.mark.parametrize("width", [1.0, 3.0])
def test_lines_are_as_wide_as_asked_in_pixels(size, width):
    """Regression: tubes of 0.6 % of the extent, thick in large pictures."""
    _, across = line(size, curve_width=width)
    assert np.abs(across.mean() - width * np.hypot(1, 0.5)) < 0.15 * width + 0.05
    assert across.std() < 0.3  # antialiased: the same in every column


def test_a_point_is_drawn_as_a_dot():
    bodies = [view.Body(BALL, (0.1, 0.1, 1.0))]
    dot = np.array([[0.0, 0.0, 1.0]])
    for points in (dot, dot.repeat(2, axis=0)):
        assert 4 < is_red(draw(bodies, [points], curve_color=RED, curve_width=5.0)).sum() < 30


def test_opaque_surfaces_hide_lines_and_glass_does_not():
    behind = [np.array([[-0.9, 2.0, 0.0], [0.9, 2.0, 0.0]])]
    camera = view.Camera.around(BALL.vertices, azimuth=-90, elevation=0, aspect=1)
    walls = [view.Body(BALL, (0.1, 0.1, 1.0), opacity) for opacity in (1.0, 0.3)]
    glass = [walls[1], *(view.Body(cases.icosphere(320, r), TEAL_GLASS, 0.3) for r in GLASSES)]
    options = {"camera": camera, "curve_color": RED}
    assert is_red(draw(walls[:1], behind, **options)[:, 24:40]).sum() == 0
    assert is_red(draw(walls[1:], behind, **options)[:, 24:40]).sum() > 20
    assert is_red(draw(glass, behind, **options)[:, 24:40]).sum() > 20


TEAL_GLASS, GLASSES = (0.2, 0.5, 0.7), (0.9, 0.8, 0.7, 0.6, 0.5)


def test_lines_outside_the_picture_and_behind_the_camera():
    camera = view.Camera.around(BALL.vertices)
    far = camera.eye - 5 * camera.ahead
    curves = [np.array([far, camera.eye + camera.ahead]), np.array([[90.0, 0, 0], [99.0, 1, 0]])]
    assert draw([view.Body(BALL)], curves, camera=camera).shape == (64, 64, 3)


@pytest.mark.parametrize("elevation", [60, 8])
@pytest.mark.parametrize("order", [1, -1])
def test_coplanar_faces_do_not_speckle(order, elevation):
    """Regression: rays met one or the other of two faces in one plane, pixel by pixel."""
    low = view.Body(cases.plane(3, 3, 2.0).turned("z", 17), (0.1, 0.1, 1.0))
    high = view.Body(cases.plane(4, 4, 2.0).turned("z", 44), (1.0, 0.1, 0.1))
    both = [low, high][::order]
    camera = view.Camera.around(low.shape.vertices, elevation=elevation, aspect=1)
    picture = draw(both, camera=camera).astype(int)
    red = (picture[..., 0] > picture[..., 2])[30:34, 20:44]
    assert red.all() or not red.any()


def test_marked_faces_lie_above_coplanar_ones():
    plain = view.Body(cases.plane(3, 3, 2.0).turned("z", 10), (0.1, 0.1, 1.0))
    marked = view.Body(cases.plane(2, 2, 2.0), (0.1, 1.0, 0.1), marked=[0, 1], mark=RED)
    for bodies in ([plain, marked], [marked, plain]):
        camera = view.Camera.around(plain.shape.vertices, elevation=70, aspect=1)
        assert middle(draw(bodies, camera=camera))[0] > 120


def test_scenes_far_from_the_origin():
    """Coordinates of a map, in the millions, are as sharp as others."""
    near = draw([view.Body(BALL, RED)])
    far = draw([view.Body(BALL.moved((4e6, 5e6, 100.0)), RED)])
    assert np.abs(near.astype(int) - far).mean() < 1.0


def test_a_camera_that_looks_straight_down():
    camera = view.Camera.around(BALL.vertices, elevation=90, aspect=1)
    red, _, blue = middle(draw([view.Body(BALL, (1.0, 0.1, 0.1))], camera=camera))
    assert red > 2 * blue


def test_what_points_upwards():
    """A body with y up looks as the same body with z up."""
    cone = cases.tube(np.array([[0.0, 0, 0], [0.3, 0.1, 1.0]]), 0.2, 12, closed=False)
    turned = cases.Shape(cone.vertices[:, [0, 2, 1]] * [1, 1, -1], cone.faces)
    ways = [draw([view.Body(cone)]), draw([view.Body(turned)], vertical="y")]
    assert np.abs(ways[0].astype(int) - ways[1]).mean() < 0.5
    assert np.abs(ways[0].astype(int) - draw([view.Body(turned)])).mean() > 1
    camera = view.Camera.around(turned.vertices, aspect=1, vertical="y")
    assert np.array_equal(draw([view.Body(turned)], camera=camera), ways[1])
    with pytest.raises(abut.OptionError, match="'y' or 'z', not 'x'"):
        draw([view.Body(cone)], vertical="x")


def test_nothing_hides_what_is_seen_from_below():
    camera = view.Camera.around(BALL.vertices, elevation=-60, aspect=1)
    red, _, blue = middle(draw([view.Body(BALL, (1.0, 0.1, 0.1))], camera=camera))
    assert red > 2 * blue


def test_bodies_of_meshes():
    """Regression: a Mesh had no shape that could be drawn."""
    trimesh = pytest.importorskip("trimesh")
    mesh = abut.Mesh(*BALL, device="cpu")
    expected = draw([view.Body(BALL)])
    for shape in (mesh, trimesh.Trimesh(*BALL, process=False), tuple(BALL), [*map(list, BALL)]):
        assert np.array_equal(draw([view.Body(shape)]), expected)
    pose = np.eye(4)
    pose[:3, 3] = 1, 2, 3
    assert np.allclose(view.Body(mesh, pose=pose).shape.vertices, BALL.moved((1, 2, 3)).vertices)
    assert np.array_equal(draw([mesh]), draw([view.Body(BALL, view.SAND)]))
    with pytest.raises(abut.MeshError, match="vertices"):
        view.Body(BALL.vertices[:, :2])
    with pytest.raises(abut.PoseError, match="4, 4"):
        view.Body(mesh, pose=np.eye(3))


def rooms(count):
    """A building: slabs and walls that stand on them, and the curves in which they meet."""
    scene = abut.Scene("cpu")
    for k in range(count):
        room, part = divmod(k, 5)
        at = np.array([2.0 * (room % 7), 2.0 * (room // 7), 0.0])
        size = [(2.2, 2.2, 0.2), (2, 0.2, 2), (0.2, 2, 2), (2, 0.1, 2), (0.1, 2, 2)][part]
        shift = [(0, 0, -1), (0, -1, 0), (-1, 0, 0), (0, 0.4, 0), (0.4, 0, 0)][part]
        scene.add(abut.Mesh(*cases.box(size).moved(at + shift), device="cpu"))
    bodies = [view.Body(m, (view.SAND, view.TEAL)[k % 2], 0.4) for k, m in enumerate(scene.meshes)]
    return bodies, scene.collide().curves()


@pytest.mark.slow
def test_a_building_of_215_parts_is_drawn_in_seconds():
    """Regression: 26 seconds, and a warning of NumPy."""
    bodies, curves = rooms(215)
    assert len(bodies) == 215 and len(curves) > 400
    draw(bodies[:2], curves[:1])
    start = time.process_time()
    view.render(bodies, curves, device="cpu")
    assert time.process_time() - start < 6.0  # of two cores
