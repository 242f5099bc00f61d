"""abut.self_collide: faces of one mesh that meet beyond what they share."""

import numpy as np
import pytest

import abut
import oracle
from abut import cases
from shapes import soup, strips


def rows(hits):
    return [tuple(row) for row in hits.pairs.numpy().tolist()]


def check_against_brute(mesh, **options):
    """Both methods agree; returns the rows."""
    found = rows(abut.self_collide(mesh, **options))
    assert found == rows(abut.self_collide(mesh, method="brute", **options))
    assert found == sorted(set(found)) and all(i < j for i, j in found)
    return found


@pytest.mark.parametrize("weld", [True, False])
@pytest.mark.parametrize("name", cases.SINGLES)
def test_scenes_against_brute_force(name, weld, device):
    found = check_against_brute(abut.Mesh(*cases.single(name, 1500), device), weld=weld)
    assert bool(found) is (name != "sphere")


@pytest.mark.parametrize("weld", [True, False])
@pytest.mark.parametrize("name", cases.SINGLES)
def test_small_scenes_against_fractions(name, weld, device):
    shape = cases.single(name, 100)
    found = check_against_brute(abut.Mesh(*shape, device), weld=weld)
    assert found == oracle.pairs_within(*shape, weld)


@pytest.mark.parametrize("shape", [cases.box(), cases.icosphere(1280), cases.torus()])
def test_clean_meshes_stay_clean_when_unmerged(shape, device):
    assert check_against_brute(abut.Mesh(*shape, device)) == []
    assert check_against_brute(abut.Mesh(*soup(shape), device)) == []
    # without weld every face meets its neighbours
    assert len(check_against_brute(abut.Mesh(*soup(shape), device), weld=False)) > len(shape.faces)


def test_welding_finds_the_same_in_soup(device):
    shape = cases.single("thick_knot", 800)
    found = check_against_brute(abut.Mesh(*shape, device))
    assert found == check_against_brute(abut.Mesh(*soup(shape), device)) != []


def test_two_meshes_joined_meet_as_apart(device):
    """Self-collision of two closed meshes in one is the collision between them."""
    a, b = cases.pair("tori", 800)
    both = check_against_brute(abut.Mesh(*cases.joined(a, b), device))
    between = rows(abut.collide(abut.Mesh(*a, device), abut.Mesh(*b, device)))
    assert both == [(i, j + len(a.faces)) for i, j in between] != []


CORNERS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0.25, 0.25, 0]])


@pytest.mark.parametrize(
    ("faces", "meet"),
    [
        ([[0, 1, 2], [0, 1, 2]], True),  # twice
        ([[0, 1, 2], [2, 1, 0]], True),  # and turned over
        ([[0, 1, 2], [0, 1, 3]], False),  # a common edge
        ([[0, 1, 2], [1, 4, 2]], False),  # a common edge, flat
        ([[0, 1, 2], [0, 1, 4]], True),  # folded over
        ([[0, 1, 2], [0, 3, 3]], False),  # a segment at a corner
        ([[0, 1, 2], [0, 5, 5]], True),  # a segment in the face
        ([[0, 1, 2], [0, 3, 5]], True),  # a common corner, another corner in the face
        ([[0, 1, 2], [0, 3, 4]], True),  # a common corner, an edge across
        ([[0, 1, 2], [1, 3, 4]], False),  # a common corner only
        ([[0, 1, 2], [3, 3, 5]], True),  # strangers
        ([[0, 1, 2], [3, 3, 3]], False),
        ([[0, 1, 2], [5, 5, 5]], True),
        ([[0, 0, 1], [0, 1, 1]], True),  # the same corners
        ([[0, 0, 1], [0, 1, 2]], False),  # an edge of it, as a face
    ],
)
def test_faces_that_share_corners(faces, meet, device):
    faces = np.array(faces)
    assert bool(check_against_brute(abut.Mesh(CORNERS, faces, device))) is meet
    assert bool(check_against_brute(abut.Mesh(CORNERS, faces, device), weld=False)) is meet
    unmerged = cases.Shape(CORNERS, faces)
    assert bool(check_against_brute(abut.Mesh(*soup(unmerged), device))) is meet


def test_negative_zero_is_zero(device):
    vertices = np.concatenate([CORNERS[:3], [[-0.0, -0.0, -0.0], [1, -0.0, -0.0], [0, 0, -1]]])
    assert check_against_brute(abut.Mesh(vertices, [[0, 1, 2], [3, 4, 5]], device)) == []


def test_many_copies_of_a_face(device):
    """All boxes equal: the hierarchy cannot tell them apart."""
    mesh = abut.Mesh(CORNERS, np.tile([[0, 1, 2]], (300, 1)), device)
    assert check_against_brute(mesh) == [(i, j) for i in range(300) for j in range(i + 1, 300)]


def test_more_pairs_than_the_queues_hold_at_first(device):
    count = 150
    mesh = abut.Mesh(*cases.joined(strips(count), strips(count, along=1)), device)
    want = [(i, j + count) for i in range(count) for j in range(count)]
    assert rows(abut.self_collide(mesh)) == want


@pytest.mark.parametrize("faces", [0, 1])
def test_one_face_and_none(faces, device):
    mesh = abut.Mesh(CORNERS, np.tile([[0, 1, 2]], (faces, 1)), device)
    assert check_against_brute(mesh) == [] and not abut.self_collide(mesh)


@pytest.mark.parametrize("exponent", [-1000, -30, 30, 130, 1000])
def test_scale_changes_nothing(exponent, device):
    shape = cases.single("thick_knot", 300)
    scaled = abut.Mesh(np.ldexp(shape.vertices, exponent), shape.faces, device)
    assert check_against_brute(scaled) == rows(abut.self_collide(abut.Mesh(*shape, device))) != []


def test_far_from_the_origin(device):
    shape = cases.single("thick_knot", 1500).moved((1e6, -1e6, 1e6))
    assert check_against_brute(abut.Mesh(*shape, device)) != []
