"""Cameras see the answer, and nothing hides it."""

import numpy as np
import pytest

import abut
from abut import cases, view

RED = view.RED
PAIRS = {"spheres": 300, "knot": 4000, "tori": 2000, "terrain": 4000, "nested": 300}


def is_answer(picture):
    """Pixels of the colour of the answer."""
    red, green, blue = np.moveaxis(picture.astype(int), -1, 0)
    return (red > 130) & (red - green > 70) & (red - blue > 50)


def picture_of(bodies, curves, device="cpu", **options):
    points = np.concatenate(curves)
    bodies, camera = view.aim(bodies, points, size=(240, 160), device=device, **options)
    look = {"camera": camera, "size": (240, 160), "device": device, "curve_color": RED}
    return bodies, camera, view.render(bodies, curves, **look)


def room(side=2.0):
    """A closed room around a small thing."""
    return view.Body(cases.box((side, side, side)), view.SAND)


@pytest.mark.parametrize("name", ["spheres", "knot", "tori", "terrain"])
def test_contacts_are_seen(name, device):
    a, b = (abut.Mesh(*shape, device=device) for shape in cases.pair(name, PAIRS[name]))
    curves = abut.collide(a, b).curves()
    bodies = [view.Body(a, view.SAND), view.Body(b, view.TEAL)]
    _, _, picture = picture_of(bodies, curves, device)
    assert is_answer(picture).sum() > 150


@pytest.mark.parametrize("way", np.concatenate([np.eye(3), -np.eye(3)]))
def test_a_point_on_any_side_is_seen_without_glass(way, device):
    bodies, camera, picture = picture_of([room()], [1.0 * way[None]], device)
    assert bodies[0].opacity == 1.0
    assert is_answer(picture).sum() > 3
    assert (camera.eye - way) @ way > 0


def test_an_answer_inside_is_seen_through_glass(device):
    inner = view.Body(cases.icosphere(80, 0.2), view.TEAL)
    curve = 0.25 * np.stack([np.cos(t := np.linspace(0, 7, 50)), np.sin(t), 0 * t], axis=1)
    for walls in ([room()], [room(), room(2.2), room(2.4)]):
        bodies, _, picture = picture_of([inner, *walls], [curve], device)
        assert all(body.opacity < 0.5 for body in bodies[1:])
        assert is_answer(picture).sum() > 100


def test_what_hides_nothing_stays_opaque(device):
    far = view.Body(cases.box().moved((9, 0, 0)), view.INDIGO)
    bodies, _, _ = picture_of([room(), far], [np.zeros((1, 3))], device)
    assert (bodies[0].opacity < 1, bodies[1].opacity) == (True, 1.0)


def test_the_camera_comes_close_to_a_small_answer():
    mesh = view.Body(cases.icosphere(1280, 100.0), view.SAND)
    t = np.linspace(0, 7, 50)
    ring = np.stack([np.cos(t), np.sin(t), 0 * t + 100], axis=1)
    _, camera, picture = picture_of([mesh], [ring])
    assert np.linalg.norm(camera.eye - [0, 0, 100]) < 200
    rows, columns = np.nonzero(is_answer(picture))
    assert abs(rows.mean() - 80) < 16 and abs(columns.mean() - 120) < 24


def test_bodies_fill_the_picture_of_an_answer_of_a_third_of_their_size():
    """Regression: a cube around the answer was kept in view, larger than flat bodies."""
    plate = view.Body(cases.box((10.0, 6.0, 3.0)), view.SAND)
    ring = np.array([[-1.2, 0, 1.6], [1.2, 0, 1.6]])
    _, camera, _ = picture_of([plate], [ring])
    whole = view.Camera.around(plate.shape.vertices, aspect=1.5)
    assert np.linalg.norm(camera.eye - ring.mean(axis=0)) <= 1.1 * np.linalg.norm(whole.eye)


def test_a_far_body_does_not_make_the_others_small():
    """Regression: a geodetic mark 30 m away made a house a fifth of its picture."""
    house, mark = (
        view.Body(cases.box((6.0, 6.0, 5.0)).moved(at)) for at in ((0, 0, 0), (30, 0, 0))
    )
    sill = np.array([[-2.5, -3.0, -2.0], [2.5, -3.0, 2.0]])
    _, camera, _ = picture_of([house, mark], [sill])
    alone = view.Camera.around(house.shape.vertices, aspect=1.5)
    assert np.linalg.norm(camera.eye - sill.mean(axis=0)) < 1.4 * np.linalg.norm(alone.eye)


def test_an_answer_that_leaves_the_bodies_is_in_view():
    plate = view.Body(cases.box((10.0, 6.0, 3.0)), view.SAND)
    arrow = np.array([[0, 0, 1.5], [0, 0, 30.0]])
    _, camera, _ = picture_of([plate], [arrow])
    offset = arrow[1] - camera.eye
    across = np.abs([offset @ camera.right / 1.5, offset @ camera.up]) / (offset @ camera.ahead)
    assert (across < camera.tangent).all()


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_any_unit_and_place(scale, shift):
    shape = cases.Shape(cases.box().vertices * scale + shift * scale, cases.box().faces)
    spot = np.array([[0.0, 0.0, -0.5]]) * scale + shift * scale
    assert is_answer(picture_of([view.Body(shape, view.SAND)], [spot])[2]).sum() > 3


def test_without_an_answer_all_bodies_are_in_view():
    bodies, camera = view.aim([room()], np.empty((0, 3)), size=(64, 64))
    expected = view.Camera.around(room().shape.vertices, aspect=1)
    assert np.array_equal(camera.eye, expected.eye) and len(bodies) == 1


def random_scene(seed):
    """Bodies that lie in each other's way, and a point, a face or a segment among them."""
    random = np.random.default_rng(seed)
    bodies = []
    for k in range(random.integers(1, 6)):
        box = cases.box(tuple(random.uniform(0.2, 2, 3)))
        shape = (box, cases.icosphere(80, random.uniform(0.2, 1)), cases.torus(16, 8))[k % 3]
        turn, _ = np.linalg.qr(random.normal(size=(3, 3)))
        vertices = shape.vertices @ turn.T + 0.8 * random.normal(size=3)
        bodies.append(view.Body((vertices, shape.faces), (view.SAND, view.TEAL)[k % 2]))
    vertices, faces = bodies[random.integers(len(bodies))].shape
    corners = vertices[faces[random.integers(len(faces))]]
    kinds = [random.dirichlet(np.ones(3))[None] @ corners, corners[[0, 1, 2, 0]]]
    return bodies, [*kinds, np.linspace(*0.3 * random.normal(size=(2, 3)), 9)][seed % 3]


@pytest.mark.parametrize("seed", range(18))
def test_answers_anywhere_are_seen(seed):
    bodies, curve = random_scene(seed)
    bodies, camera = view.aim(bodies, curve, size=(180, 120), device="cpu")
    look = {"camera": camera, "size": (180, 120), "device": "cpu", "quality": 0.5}
    picture = view.render(bodies, [curve], curve_color=RED, curve_width=5.0, **look)
    assert is_answer(picture).sum() >= 12


POINT = cases.Shape(np.full((3, 3), 5.0), np.array([[0, 1, 2]], np.int32))


def test_a_mesh_without_extent():
    bodies, camera = view.aim([view.Body(POINT)], POINT.vertices, size=(30, 20), device="cpu")
    picture = view.render(bodies, [POINT.vertices], camera=camera, size=(30, 20), device="cpu")
    assert picture.shape == (20, 30, 3)


def test_bodies_without_faces():
    """Regression: Warp ended the process."""
    empty = view.Body((POINT.vertices, np.empty((0, 3), np.int32)))
    assert view.aim([empty], POINT.vertices, device="cpu")[0] == [empty]
    with pytest.raises(abut.MeshError, match="at least one face"):
        view.render([empty], size=(30, 20), device="cpu")
    picture = view.render([empty, room()], size=(30, 20), device="cpu")
    assert np.array_equal(picture, view.render([room()], size=(30, 20), device="cpu"))
