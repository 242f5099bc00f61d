"""Outer shapes: they contain what they stand for, in rational arithmetic, and not much more."""

from fractions import Fraction

import numpy as np
import pytest

import abut
from abut import cases


def planes(shape):
    """Outward normal and offset of each face, as fractions."""
    for face in shape.faces.tolist():
        a, b, c = ([Fraction(x) for x in shape.vertices[k].tolist()] for k in face)
        u, v = ([p - q for p, q in zip(end, a, strict=True)] for end in (b, c))
        n = [u[i - 2] * v[i - 1] - u[i - 1] * v[i - 2] for i in range(3)]
        if any(n):
            yield n, sum(p * q for p, q in zip(n, a, strict=True))


def at_least_root(value, square):
    """Whether value >= sqrt(square), exactly."""
    return value >= 0 and value * value >= square


def ball(size):
    (r,) = map(Fraction, size)
    return lambda n, d: at_least_root(d, r * r * sum(x * x for x in n))


def ellipsoid(size):
    s = [Fraction(x) for x in size]
    return lambda n, d: at_least_root(d, sum((x * y) ** 2 for x, y in zip(n, s, strict=True)))


def cylinder(size):
    r, h = map(Fraction, size)
    return lambda n, d: at_least_root(d - h / 2 * abs(n[2]), r * r * (n[0] ** 2 + n[1] ** 2))


def cone(size):
    r, h = map(Fraction, size)
    return lambda n, d: (
        d >= h / 2 * n[2] and at_least_root(d + h / 2 * n[2], r * r * (n[0] ** 2 + n[1] ** 2))
    )


def capsule(size):
    r, h = map(Fraction, size)
    return lambda n, d: at_least_root(d - h / 2 * abs(n[2]), r * r * sum(x * x for x in n))


KINDS = {
    "sphere": (lambda s, c: cases.outer_sphere(*s, c), ball, 1),
    "ellipsoid": (cases.outer_ellipsoid, ellipsoid, 3),
    "cylinder": (lambda s, c: cases.outer_cylinder(*s, c), cylinder, 2),
    "cone": (lambda s, c: cases.outer_cone(*s, c), cone, 2),
    "capsule": (lambda s, c: cases.outer_capsule(*s, c), capsule, 2),
}


@pytest.mark.parametrize("chord", [None, 0.002])
@pytest.mark.parametrize("kind", KINDS)
def test_every_plane_of_a_face_leaves_the_whole_shape_inside(kind, chord):
    """The shape is inside all planes of a closed surface around its middle: it is contained."""
    make, holds, count = KINDS[kind]
    rng = np.random.default_rng(0)
    for _ in range(1 if chord else 2):
        size = tuple(rng.uniform(0.1, 1, count).tolist())
        outer = make(size, chord)
        contains = holds(size)
        assert all(contains(n, d) for n, d in planes(outer.shape))
        assert chord is None or outer.deviation <= chord
        mesh = abut.Mesh(*outer.shape, device="cpu")
        assert mesh.oriented and mesh.topology.closed


def test_the_planes_notice_an_inscribed_shape():
    contains = ball((1.0,))
    assert not all(contains(n, d) for n, d in planes(cases.icosphere(320)))


@pytest.mark.parametrize("kind", ["sphere", "cylinder", "cone", "capsule"])
def test_no_vertex_is_farther_out_than_the_deviation(kind):
    make, _, count = KINDS[kind]
    size = (0.7, 1.3)[:count]
    outer = make(size, None)
    points, r = outer.shape.vertices, size[0]
    h = size[1] / 2 if count == 2 else 0.0
    x, z = np.hypot(points[:, 0], points[:, 1]), points[:, 2]
    if kind == "cylinder":
        away = np.hypot(np.maximum(x - r, 0), np.maximum(abs(z) - h, 0))
    elif kind == "cone":
        along = np.where(z > 0, 0.0, np.maximum(x - r, 0))  # the tip is a vertex
        away = along + np.abs(abs(z) - h)
    else:
        away = np.hypot(x, np.maximum(abs(z) - h, 0)) - r
    assert away.max() <= outer.deviation
    assert away.max() > 0.9 * outer.deviation  # the number is no guess


def test_ellipsoids_stay_within_their_deviation():
    outer = cases.outer_ellipsoid((1.0, 0.4, 0.2))
    on = (
        outer.shape.vertices
        / np.linalg.norm(outer.shape.vertices / (1.0, 0.4, 0.2), axis=1)[:, None]
    )
    away = np.linalg.norm(outer.shape.vertices - on, axis=1)
    assert away.max() <= outer.deviation < 0.005


def test_deviations_of_the_defaults():
    """The table of docs/robots.md, for a radius of 1."""
    found = {kind: make((1.0,) * n, None) for kind, (make, _, n) in KINDS.items()}
    worst = {kind: round(outer.deviation, 4) for kind, outer in found.items()}
    faces = {kind: len(outer.shape.faces) for kind, outer in found.items()}
    assert worst == {
        "sphere": 0.0045,
        "ellipsoid": 0.0045,
        "cylinder": 0.0048,
        "cone": 0.0048,
        "capsule": 0.0097,
    }
    assert list(faces.values()) == [1280, 1280, 128, 64, 1024]
    assert cases.outer_box((1, 2, 3)).deviation == 0


def test_a_chord_that_asks_for_too_much():
    with pytest.raises(abut.OptionError, match="more than 2048 sides"):
        cases.outer_cylinder(1.0, 1.0, 1e-9)
    with pytest.raises(abut.OptionError, match="more than 2048 sides"):
        cases.outer_sphere(1.0, 1e-12)


def test_a_capsule_without_length_is_a_ball():
    assert len(cases.outer_capsule(1.0, 0.0).shape.faces) == 1280
