"""abut.within: every pair of faces at most so far apart."""

from fractions import Fraction

import numpy as np
import pytest

import abut
import oracle
from abut import cases
from shapes import random_poses, shift, soup, strips

DISTANCES = [0.0, 1e-3, 0.03, 0.3]


def check_same(near, other):
    for name, value in other.numpy().items():
        np.testing.assert_array_equal(near.numpy()[name], value)


def check_against_brute(a, b, distance, **options):
    """Both methods give the same rows, which are returned."""
    truth = abut.within(a, b, distance, method="brute", **options)
    check_same(abut.within(a, b, distance, **options), truth)
    return truth


def meshes(name, faces, device):
    return [abut.Mesh(*shape, device) for shape in cases.pair(name, faces)]


def rows(near):
    return [tuple(row) for row in near.pairs.numpy().tolist()]


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", cases.PAIRS)
def test_scenes_against_brute_force(name, distance, device):
    a, b = meshes(name, 400, device)
    near = check_against_brute(a, b, distance)
    assert rows(near) == sorted(set(rows(near)))
    met = near.distance.numpy() == 0
    assert [row for row, m in zip(rows(near), met, strict=True) if m] == [
        tuple(row) for row in abut.collide(a, b).pairs.numpy().tolist()
    ]
    assert (near.distance.numpy() <= distance).all()
    p, q = near.points.numpy().transpose(1, 0, 2)
    apart = np.linalg.norm(q - p, axis=1)
    np.testing.assert_allclose(apart, near.distance.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["apart", "stacked_boxes", "knot"])
def test_small_scenes_against_fractions(name, device):
    a, b = cases.pair(name, 20)
    limit = 0.25
    want = [
        (i, j)
        for i, f in enumerate(a.faces)
        for j, g in enumerate(b.faces)
        if oracle.intersect_tri_tri(a.vertices[f], b.vertices[g])
        or oracle.squared_distance_tri_tri(a.vertices[f], b.vertices[g]) <= Fraction(limit) ** 2
    ]
    near = abut.within(abut.Mesh(*a, device), abut.Mesh(*b, device), limit)
    assert rows(near) == want


@pytest.mark.parametrize("name", cases.SINGLES)
@pytest.mark.parametrize("distance", DISTANCES)
def test_one_mesh_against_brute_force(name, distance, device):
    mesh = abut.Mesh(*cases.single(name, 400), device)
    near = check_against_brute(mesh, None, distance)
    met = near.distance.numpy() == 0
    want = [tuple(row) for row in abut.self_collide(mesh).pairs.numpy().tolist()]
    assert [row for row, m in zip(rows(near), met, strict=True) if m] == want
    faces = mesh.faces.numpy()
    for (i, j), m in zip(rows(near), met, strict=True):
        assert i < j and (m or not set(faces[i]) & set(faces[j]))


def test_one_mesh_against_fractions(device):
    shape = cases.single("folded_cloth", 40)
    limit = 0.2
    want = oracle.pairs_within(*shape)
    for i, f in enumerate(shape.faces):
        for j in range(i + 1, len(shape.faces)):
            g = shape.faces[j]
            squared = oracle.squared_distance_tri_tri(shape.vertices[f], shape.vertices[g])
            if not set(f) & set(g) and squared <= Fraction(limit) ** 2:
                want = [*want, (i, j)]
    assert rows(abut.within(abut.Mesh(*shape, device), None, limit)) == sorted(set(want))


def test_a_soup_is_like_its_mesh(device):
    shape = cases.single("folded_cloth", 500)
    near = abut.within(abut.Mesh(*shape, device), None, 0.05)
    assert len(near) > 100
    check_same(abut.within(abut.Mesh(*soup(shape), device), None, 0.05), near)


def test_a_batch_is_its_single_poses(device):
    a, b = meshes("tori", 300, device)
    poses = random_poses(12, 2.0)
    together = check_against_brute(a, b, 0.2, pose_a=poses[::-1], pose_b=poses)
    got = together.numpy()
    for k in range(12):
        alone = abut.within(a, b, 0.2, pose_a=poses[11 - k], pose_b=poses[k]).numpy()
        for name, value in alone.items():
            np.testing.assert_array_equal(got[name][got["pose"] == k], value)


def test_the_limit_itself_counts(device):
    a = abut.Mesh(*strips(10), device)
    for gap in (0.5, 0.1):
        apart = shift(0, 0, gap)
        assert len(check_against_brute(a, a, gap, pose_b=apart)) >= 10
        assert len(check_against_brute(a, a, np.nextafter(gap, 0), pose_b=apart)) == 0


def test_more_rows_than_room(device):
    """Queues grow: all pairs of faces are near."""
    a, b = meshes("spheres", 400, device)
    assert len(abut.within(a, b, 100.0)) == a.face_count * b.face_count


def test_the_nearest_pair_is_among_them(device):
    a, b = meshes("apart", 800, device)
    near = abut.distance(a, b)
    found = abut.within(a, b, near.value)
    assert tuple(near.faces.numpy()) in rows(found)
    assert found.distance.numpy().min() == near.value
    assert len(abut.within(a, b, np.nextafter(near.value, 0))) == 0


def test_empty_meshes_have_no_rows(device):
    a, _ = meshes("apart", 60, device)
    empty = abut.Mesh(np.zeros((3, 3)), np.zeros((0, 3), int), device)
    assert len(abut.within(a, empty, 1.0)) == 0
    assert len(abut.within(empty, None, 1.0)) == 0
    assert abut.within(a, a, 1.0, pose_b=np.zeros((0, 4, 4))).points.shape == (0, 2, 3)


def test_a_deformed_mesh(device):
    ball = cases.icosphere(320)
    a, b = abut.Mesh(*ball, device), abut.Mesh(*ball.moved((2.1, 0, 0)), device)
    before = check_against_brute(a, b, 0.3)
    a.deform(ball.vertices * 0.85)
    assert 0 < len(check_against_brute(a, b, 0.3)) < len(before)


def test_bad_input_is_refused(device):
    a, b = meshes("apart", 60, device)
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(abut.OptionError, match="distance must be"):
            abut.within(a, b, bad)
    with pytest.raises(abut.OptionError, match="itself has no poses"):
        abut.within(a, None, 1.0, pose_a=np.eye(4))
    with pytest.raises(abut.MeshError, match="b must be"):
        abut.within(a, "b", 1.0)


def test_one_mesh_at_its_own_distances(device):
    """Roundings depend on the order of two faces, and so must not on the order of the tree."""
    rng = np.random.default_rng(5)
    mesh = abut.Mesh(rng.normal(size=(90, 3)), np.arange(90).reshape(-1, 3), device)
    for distance in abut.within(mesh, None, 10.0).distance.numpy()[::20]:
        check_against_brute(mesh, None, distance)
