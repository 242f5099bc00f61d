"""Shapes and named scenes: closed, oriented, of the expected size."""

import numpy as np
import pytest

import abut
from abut import cases

CLOSED = {
    "box": cases.box,
    "icosphere": cases.icosphere,
    "uv_sphere": cases.uv_sphere,
    "gem": cases.gem,
    "torus": cases.torus,
    "torus_knot": cases.torus_knot,
    "needles": cases.needles,
    "open_tube": lambda: cases.tube(np.eye(3), 0.1, 6, closed=False),
    "closed_tube": lambda: cases.tube(np.eye(3), 0.1, 6, closed=True),
}
OPEN = {"plane": cases.plane, "folded_cloth": cases.folded_cloth}
CONTACT = {
    "knot": True,
    "tori": True,
    "spheres": True,
    "apart": False,
    "nested": False,
    "stacked_boxes": True,
    "twins": True,
    "needles": True,
    "terrain": True,
}
SELF_CONTACT = {"folded_cloth": True, "thick_knot": True, "sphere": False, "needles": True}


def volume(shape):
    a, b, c = (shape.vertices[corner] for corner in shape.faces.T)
    return np.einsum("ij,ij->", np.cross(a, b), c) / 6


def mesh(shape):
    return abut.Mesh(*shape, device="cpu")


@pytest.mark.parametrize("name", CLOSED)
def test_closed_shapes(name):
    shape = CLOSED[name]()
    assert mesh(shape).watertight
    assert mesh(shape).oriented
    assert volume(shape) > 0


@pytest.mark.parametrize("name", OPEN)
def test_open_shapes(name):
    shape = OPEN[name]()
    assert not mesh(shape).watertight
    assert np.array_equal(np.unique(shape.faces), np.arange(len(shape.vertices)))


@pytest.mark.parametrize("name", CLOSED | OPEN)
def test_plain_arrays(name):
    shape = (CLOSED | OPEN)[name]()
    assert shape.vertices.dtype == np.float64
    assert shape.faces.dtype == np.int32
    assert np.isfinite(shape.vertices).all()


def test_volumes():
    assert volume(cases.box((1, 2, 3))) == pytest.approx(6)
    assert volume(cases.icosphere(20_000)) == pytest.approx(4 / 3 * np.pi, rel=1e-3)
    assert volume(cases.uv_sphere(100, 200)) == pytest.approx(4 / 3 * np.pi, rel=2e-3)
    assert volume(cases.torus(200, 100, 1.0, 0.25)) == pytest.approx(np.pi**2 / 8, rel=3e-3)


@pytest.mark.parametrize("name", cases.PAIRS)
def test_pairs(name):
    a, b = cases.pair(name, faces=1000)
    assert bool(abut.collide(mesh(a), mesh(b))) == CONTACT[name]


@pytest.mark.parametrize("name", cases.SINGLES)
def test_singles(name):
    shape = cases.single(name, faces=1000)
    assert bool(abut.self_collide(mesh(shape))) == SELF_CONTACT[name]


@pytest.mark.parametrize("faces", [300, 5000])
@pytest.mark.parametrize("name", sorted(set(cases.PAIRS) - {"stacked_boxes"}))
def test_sizes(name, faces):
    for shape in cases.pair(name, faces):
        assert 0.7 * faces < len(shape.faces) < 1.4 * faces


def test_shapes_move():
    shape = cases.box().moved((1, 2, 3))
    assert shape.vertices.mean(axis=0) == pytest.approx([1, 2, 3])
    turned = cases.Shape(np.eye(3), shape.faces).turned("z", 90)
    assert turned.vertices == pytest.approx(np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]]))


def test_unknown_names_are_refused():
    with pytest.raises(abut.OptionError, match="there is no scene 'nothing'; there are: knot"):
        cases.pair("nothing")
    with pytest.raises(abut.OptionError, match="folded_cloth"):
        cases.single("nothing")
