"""abut.closest_point of one point: one call of kernels gives what brute force does."""

import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import abut
from abut import cases
from abut.bvh.bvh_cache import bvh_of
from abut.bvh.wide import wide_nodes_of
from abut.query.one_point import OnePoint
from shapes import random_poses


def check_same(near, truth):
    """Two results that are equal to the last bit."""
    assert near.sign == truth.sign
    for name, value in truth.numpy().items():
        np.testing.assert_array_equal(near.numpy()[name], value)


def prepared(mesh, **options):
    tree = bvh_of(mesh)
    options = {"posed": False, **options}
    return OnePoint(mesh, tree, wide_nodes_of(mesh, tree), **options)


@pytest.fixture(scope="module", params=["closed", "open", "inverted"])
def mesh(request, device):
    vertices, faces = cases.pair("knot", 900)[0]
    shapes = {"closed": faces, "open": faces[40:], "inverted": faces[:, ::-1]}
    return abut.Mesh(vertices, shapes[request.param], device)


@pytest.mark.parametrize("each_face", [False, True])
@pytest.mark.parametrize("sign", [None, "pseudonormal", "winding"])
def test_every_way_against_brute_force(each_face, sign, mesh):
    if sign == "pseudonormal" and not mesh.watertight:
        pytest.skip("there is no such sign")
    one = prepared(mesh, sign=sign and abut.Sign(sign), each_face=each_face)
    points = np.random.default_rng(0).uniform(-1.5, 1.5, (60, 3))
    points[:3] = mesh.points.numpy()[:3]
    for point in points:
        near = one.ask(point, None)
        assert near is not None
        options = {"signed": sign or False, "method": "brute"}
        check_same(near, abut.closest_point(mesh, point[None], **options))


@given(
    st.lists(st.floats(-2.0, 2.0), min_size=3, max_size=3),
    st.floats(0.0, 2.0),
    st.integers(0, 99),
    st.sampled_from([False, True, "winding"]),
)
def test_calls_against_brute_force(device, point, upper_bound, seed, signed):
    gem = abut.Mesh(*cases.gem(40), device)
    options = {"upper_bound": upper_bound, "pose": random_poses(1, 0.5, seed=seed)[0]}
    options |= {"signed": signed}
    points = np.array([point])
    near = abut.closest_point(gem, points, **options)
    check_same(near, abut.closest_point(gem, points, method="brute", **options))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_points_that_are_not_finite_are_refused(bad, mesh):
    for k in range(3):
        point = np.zeros((1, 3))
        point[0, k] = bad
        assert prepared(mesh).ask(point[0], None) is None
        with pytest.raises(abut.PointError, match="finite"):
            abut.closest_point(mesh, point)


@pytest.mark.parametrize("value", [np.nan, np.inf, 7.0])
def test_poses_that_are_not_rigid_are_refused(value, mesh):
    for row in range(4):
        pose = np.eye(4)
        pose[row, row] = value
        assert prepared(mesh, posed=True).ask(np.zeros(3), pose) is None
        with pytest.raises(abut.PoseError, match="pose"):
            abut.closest_point(mesh, np.zeros((1, 3)), pose=pose)


@pytest.mark.parametrize("size", [1e-200, 1e-12, 1e15, 1e200])
def test_huge_and_tiny_meshes_and_points(size, device):
    shape = cases.gem(40)
    big, usual = abut.Mesh(shape.vertices * size, shape.faces, device), abut.Mesh(*shape, device)
    point = np.array([[0.3, 2.0, -0.4]])
    for mesh, points in ((big, point * size), (big, point), (usual, point * size)):
        near = abut.closest_point(mesh, points)
        check_same(near, abut.closest_point(mesh, points, method="brute"))


def test_float32_points(mesh):
    point = np.random.default_rng(1).uniform(-1.0, 1.0, (1, 3)).astype(np.float32)
    check_same(abut.closest_point(mesh, point), abut.closest_point(mesh, point.astype(float)))


@pytest.mark.parametrize("signed", [False, True])
def test_answers_outlive_the_point_and_the_shape(signed, device):
    vertices, faces = cases.gem(80)
    mesh = abut.Mesh(vertices, faces, device)
    point = np.array([[0.1, 0.2, 0.3]])
    options = {"signed": signed, "method": "brute"}
    truth = abut.closest_point(mesh, point, **options).numpy()
    near, kept = (abut.closest_point(mesh, point, signed=signed) for _ in range(2))
    assert len(near) == 1
    for scale in (0.5, 0.1, 0.7):
        mesh.deform(vertices * scale)
        moved = abut.closest_point(mesh, point, signed=signed)
        check_same(moved, abut.closest_point(mesh, point, **options))
    point += 1.0
    abut.closest_point(mesh, point, signed=signed)
    for result in (near, pickle.loads(pickle.dumps(kept))):
        for name, value in result.numpy().items():
            np.testing.assert_array_equal(value, truth[name])


def test_threads_ask_at_once(mesh):
    points = np.random.default_rng(3).uniform(-1.5, 1.5, (60, 1, 3))
    truth = [abut.closest_point(mesh, p, signed=True).numpy()["distance"][0] for p in points]
    found = {}

    def ask(k):
        near = [abut.closest_point(mesh, p, signed=True) for p in points]
        found[k] = [result.numpy()["distance"][0] for result in near]

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[k] == truth for k in range(4))
