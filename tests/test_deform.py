"""Mesh.deform: answers follow the vertices, hierarchies are refitted or rebuilt."""

import numpy as np
import pytest

import abut
from abut import cases
from abut.bvh import bvh_cache, ploc
from abut.bvh.bvh_cache import bvh_of
from shapes import moved, random_poses, soup
from trees import cost_of, leaf_boxes

BALL = cases.icosphere(1280)


def check_like_new(mesh, device):
    """A deformed mesh answers as a new one of the same vertices does."""
    new = abut.Mesh(mesh.vertices.numpy().copy(), mesh.faces.numpy(), device)
    other = abut.Mesh(*cases.torus().moved((0.5, 0.2, 0.1)), device)
    for bound in abut.Bound:
        want = abut.collide(new, other, method="brute").pairs.numpy()
        np.testing.assert_array_equal(abut.collide(mesh, other, bound=bound).pairs.numpy(), want)
    want = abut.self_collide(new).pairs.numpy()
    np.testing.assert_array_equal(abut.self_collide(mesh).pairs.numpy(), want)


def with_hierarchy(device, dtype=np.float64):
    """A ball that has been asked once."""
    mesh = abut.Mesh(BALL.vertices.astype(dtype), BALL.faces, device)
    check_like_new(mesh, device)
    return mesh


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1.3, 0.01, 1e4])
def test_scaled(size, dtype, device):
    mesh = with_hierarchy(device, dtype)
    mesh.deform((BALL.vertices * size).astype(dtype))
    check_like_new(mesh, device)


def test_step_by_step(device):
    mesh = with_hierarchy(device)
    for pose in random_poses(5, 1.0):
        mesh.deform(moved(BALL.vertices, pose))
        check_like_new(mesh, device)


@pytest.mark.parametrize("offset", [1e3, 1e6, 2.0**40])
def test_far_away_and_back(offset, device):
    """Boxes are float32 about an origin, which must follow."""
    mesh = with_hierarchy(device)
    mesh.deform(BALL.vertices + offset)
    check_like_new(mesh, device)
    same = abut.Mesh(BALL.vertices + offset, BALL.faces, device)
    assert len(abut.collide(mesh, same)) >= mesh.face_count
    mesh.deform(BALL.vertices)
    check_like_new(mesh, device)


def test_a_slow_drift_keeps_boxes_tight(device):
    """Many small steps lead as far as a large one."""
    mesh = with_hierarchy(device)
    for step in range(1, 11):
        mesh.deform(BALL.vertices + 4.0**step)
        assert np.ptp(leaf_boxes(bvh_of(mesh)), axis=1).max() < 0.5


def test_a_shuffled_mess_is_rebuilt(device):
    """Faces are shuffled: a refitted BVH is useless, and soon rebuilt."""
    loose = soup(BALL)
    mesh = abut.Mesh(*loose, device)
    shuffled = np.random.default_rng(0).permutation(loose.vertices.reshape(-1, 9)).reshape(-1, 3)
    before = bvh_of(mesh)
    for step in range(2):  # the cost of a refit is known when the next one is due
        mesh.deform(shuffled * (1 + step / 8))
        check_like_new(mesh, device)
    assert bvh_of(mesh) is not before


def test_a_careful_tree_stays_while_it_is_good(device):
    mesh = with_hierarchy(device)
    careful = bvh_of(mesh, effort=10**6)
    for step in range(10):
        mesh.deform(BALL.vertices * (1 + step / 100))
        assert bvh_of(mesh) is careful


def test_a_tree_made_for_a_mess_does_not_stay(device):
    """A shuffled mesh is restored: the BVH must become about as good as a new one."""
    scattered = np.random.default_rng(0).permutation(BALL.vertices)
    mesh = abut.Mesh(scattered, BALL.faces, device)
    for step in range(4):
        bvh_of(mesh)
        mesh.deform(BALL.vertices * (1 + step / 8))
    new = abut.Mesh(*BALL, device)
    assert cost_of(bvh_of(mesh)) < 2 * cost_of(bvh_of(new))


def test_a_gentle_change_is_refitted(device):
    mesh = with_hierarchy(device)
    before = bvh_of(mesh)
    mesh.deform(BALL.vertices * [1, 1.1, 0.9])
    assert bvh_of(mesh) is before


def test_flat_and_to_a_point_and_back(device):
    mesh = with_hierarchy(device)
    for shape in ([1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 1]):
        mesh.deform(BALL.vertices * shape)
        hits = abut.collide(mesh, abut.Mesh(*cases.box(), device))
        truth = abut.collide(mesh, abut.Mesh(*cases.box(), device), method="brute")
        np.testing.assert_array_equal(hits.pairs.numpy(), truth.pairs.numpy())


def test_an_array_may_be_written_and_given_again(device):
    vertices = BALL.vertices.copy()
    mesh = abut.Mesh(vertices, BALL.faces, device)
    check_like_new(mesh, device)
    vertices *= 1.2
    mesh.deform(vertices)
    np.testing.assert_array_equal(mesh.vertices.numpy(), vertices)
    check_like_new(mesh, device)


def test_the_number_of_vertices_stays(device):
    mesh = abut.Mesh(*cases.box(), device)
    for wrong in (np.zeros((7, 3)), np.zeros((8, 2)), np.zeros(24)):
        with pytest.raises(abut.MeshError, match=r"the mesh has 8 vertices, .* shape \(8, 3\)"):
            mesh.deform(wrong)


def test_a_refused_deformation_changes_nothing(device):
    mesh = with_hierarchy(device)
    bad = BALL.vertices * 2
    bad[7, 0] = np.nan
    with pytest.raises(abut.MeshError, match=r"vertices\[7\] is"):
        mesh.deform(bad)
    np.testing.assert_array_equal(mesh.vertices.numpy(), BALL.vertices)
    check_like_new(mesh, device)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_buffers_that_are_no_longer_read_are_let_go(dtype, device):
    """A mesh frees the buffers of results that were kept for a while."""
    shape = cases.icosphere(80)
    mesh = abut.Mesh(shape.vertices.astype(dtype), shape.faces, device)

    def follow(count):
        for k in range(count):
            mesh.deform((shape.vertices * (1 + 0.01 * k)).astype(dtype))
            yield mesh.points, abut.self_collide(mesh)

    assert len({id(points) for points, _ in list(follow(20))}) == 20
    for _ in follow(4):
        pass
    assert len(mesh._buffers) <= 4
    assert len({id(points) for points, _ in follow(20)}) <= 3


def test_useless_rebuilds_are_not_repeated(device, monkeypatch):
    """A rebuild that does not improve the BVH is not repeated."""
    built = []
    careful, quick = ploc.build_ploc, bvh_cache.build_lbvh
    monkeypatch.setattr(bvh_cache, "build_lbvh", lambda *args: built.append(1) or quick(*args))
    monkeypatch.setattr(ploc, "build_ploc", lambda *args: built.append(1) or careful(*args))
    calm = cases.icosphere(1280)
    noise = np.random.default_rng(0).normal(size=calm.vertices.shape)
    mesh = abut.Mesh(*calm, device)
    assert bvh_of(mesh, effort=10**6).improved
    for k in range(40):
        mesh.deform(calm.vertices + 0.12 * noise + 0.001 * k)
        abut.self_collide(mesh)
    assert len(built) < 12
