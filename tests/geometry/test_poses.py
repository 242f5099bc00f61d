"""Poses: what is refused, and that moved meshes give the pairs of moved vertices."""

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases
from shapes import moved, random_poses, shift

QUARTER_TURN = np.array([[0.0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
TRIANGLE = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.array([[0, 1, 2]])


def collide_moved(a, b, pose_a, pose_b, device):
    """Brute force on vertices moved beforehand."""
    a = abut.Mesh(moved(a.vertices, pose_a), a.faces, device)
    b = abut.Mesh(moved(b.vertices, pose_b), b.faces, device)
    return abut.collide(a, b, method="brute").pairs.numpy()


def check_batch(a, b, device, pose_a=None, pose_b=None, bound="aabb"):
    """A batch gives, pose for pose, the rows of vertices moved beforehand."""
    meshes = abut.Mesh(*a, device), abut.Mesh(*b, device)
    hits = abut.collide(*meshes, pose_a=pose_a, pose_b=pose_b, bound=bound)
    pose, pairs, colliding = (x.numpy() for x in (hits.pose, hits.pairs, hits.colliding))
    for i in range(len(colliding)):
        at_a, at_b = (
            np.eye(4) if p is None else p[i] if np.ndim(p) == 3 else p for p in (pose_a, pose_b)
        )
        want = collide_moved(a, b, at_a, at_b, device)
        np.testing.assert_array_equal(pairs[pose == i], want)
        assert colliding[i] == (len(want) > 0)
    return colliding


@pytest.mark.parametrize("bound", list(abut.Bound))
@pytest.mark.parametrize("name", ["tori", "needles", "twins"])
def test_batch_of_poses(name, bound, device):
    a, b = cases.pair(name, 250)
    some = random_poses(8, 1.5)
    assert check_batch(a, b, device, pose_b=some, bound=bound).any()
    assert check_batch(a, b, device, pose_a=some, bound=bound).any()
    check_batch(a, b, device, pose_a=some, pose_b=random_poses(8, 1.5, seed=1), bound=bound)
    check_batch(a, b, device, pose_a=some, pose_b=some[3], bound=bound)


@pytest.mark.parametrize("bound", list(abut.Bound))
@pytest.mark.parametrize("depth", [1e-3, 1e-9, 1e-13, 0.0])
def test_barely_touching_poses_are_not_lost(depth, bound, device):
    """A corner touches a face after any rotation, up to rounding: boxes must not be too tight."""
    poses = random_poses(200, 0.0, seed=2)
    tip = np.array([[0.0, 0, 0], [0.3, 0.1, -1], [-0.2, 0.2, -1]])
    floor = np.array([[-1.0, -1, 0], [1, -1, 0], [0, 1, 0]])
    places = np.random.default_rng(3).uniform(-5, 5, size=(200, 3))
    pose_a, pose_b = poses.copy(), poses.copy()
    pose_a[:, :3, 3] = places
    pose_b[:, :3, 3] = places + depth * poses[:, :3, 2] * np.linspace(-1, 1, 200)[:, None]
    shapes = cases.Shape(floor, TRIANGLE[1]), cases.Shape(tip, TRIANGLE[1])
    colliding = check_batch(*shapes, device, pose_a=pose_a, pose_b=pose_b, bound=bound)
    assert 20 < colliding.sum() < 190


def test_coordinates_are_rounded_once_for_each_operation(device):
    """Rotated boxes rest on each other: rounding decides, as documented."""
    a, b = cases.pair("stacked_boxes")
    some = random_poses(100, 3.0, seed=4)
    check_batch(a, b, device, pose_a=some, pose_b=some)


def test_single_pose(device):
    a, b = cases.pair("spheres", 300)
    for pose in random_poses(3, 1.0, seed=5):
        hits = abut.collide(abut.Mesh(*a, device), abut.Mesh(*b, device), pose_a=pose, pose_b=pose)
        assert hits.pose is None and hits.colliding is True
        want = collide_moved(a, b, pose, pose, device)
        np.testing.assert_array_equal(hits.pairs.numpy(), want)


@pytest.mark.parametrize("turns", range(1, 4))
def test_exact_motions_change_nothing(turns, device):
    a, b = (abut.Mesh(*s, device) for s in cases.pair("stacked_boxes"))
    pose = np.linalg.matrix_power(QUARTER_TURN, turns) @ shift(4, -8, 16)
    hits = abut.collide(a, b, pose_a=pose, pose_b=pose)
    np.testing.assert_array_equal(hits.pairs.numpy(), abut.collide(a, b).pairs.numpy())


@pytest.mark.parametrize("count", [0, 1, 2, 300, 1000])
@pytest.mark.parametrize("first", [False, True])
def test_batch_sizes(count, first, device):
    """Triangles in a row; every third pose brings them together."""
    mesh = abut.Mesh(*TRIANGLE, device)
    poses = np.tile(shift(5, 0, 0), (count, 1, 1))
    poses[::3, 0, 3] = 0.5
    hits = abut.collide(mesh, mesh, pose_b=poses, first=first)
    assert hits.colliding.numpy().tolist() == [i % 3 == 0 for i in range(count)]
    assert hits.pose.numpy().tolist() == list(range(0, count, 3))
    assert bool(hits) is (count > 0)


POSES = np.stack([shift(0.5, 0, 0), shift(5, 0, 0), shift(0, 0.5, 0)])


@pytest.mark.parametrize(
    "given",
    [
        POSES,
        POSES.astype(np.float32),
        POSES.tolist(),
        wp.array(POSES, dtype=wp.float64, device="cpu"),
        wp.array(POSES, dtype=wp.mat44d, device="cpu"),
        wp.array(POSES, dtype=wp.mat44f, device="cpu"),
    ],
    ids=["numpy", "float32", "list", "warp scalars", "warp mat44d", "warp mat44f"],
)
def test_batches_of_any_kind_of_array(given, device):
    mesh = abut.Mesh(*TRIANGLE, device)
    hits = abut.collide(mesh, mesh, pose_b=given)
    assert hits.colliding.numpy().tolist() == [True, False, True]


def refused(pose, message, **other):
    mesh = abut.Mesh(*TRIANGLE, "cpu")
    with pytest.raises(abut.PoseError, match=message):
        abut.collide(mesh, mesh, pose_b=pose, **other)


def spoilt(pose, at, value):
    pose = np.array(pose)
    pose[at] = value
    return pose


@pytest.mark.parametrize(
    "matrix",
    [
        np.diag([2.0, 2, 2, 1]),
        np.diag([1.0, 1, -1, 1]),
        np.diag([1.0, 1, 1, 2]),
        np.diag([0.0, 0, 0, 1]),
        spoilt(np.eye(4), (0, 1), 0.1),
        spoilt(np.eye(4), (3, 0), 0.1),
    ],
    ids=["scale", "mirror", "bottom right", "flat", "shear", "bottom row"],
)
def test_what_is_not_rigid_is_refused(matrix):
    refused(matrix, r"pose_b\[0\] is not a rigid motion")
    refused([np.eye(4), np.eye(4), matrix, matrix], r"pose_b\[2\] is not a rigid motion")


def test_poses_of_the_wrong_shape_are_refused():
    refused(np.eye(3), r"pose_b must have shape \(4, 4\) or \(B, 4, 4\), not \(3, 3\)")
    refused(np.zeros(16), r"not \(16,\)")
    refused(np.zeros((2, 2, 4, 4)), r"not \(2, 2, 4, 4\)")
    refused(1.0, r"not \(\)")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_poses_that_are_not_finite_are_refused(value):
    refused(spoilt(np.eye(4), (1, 3), value), r"pose_b\[0\] is not finite")
    refused(spoilt(POSES, (1, 0, 0), value), r"pose_b\[1\] is not finite")


def test_batches_of_different_size_are_refused():
    refused(POSES, "2 and 3 poses", pose_a=POSES[:2])
    refused(POSES, "0 and 3 poses", pose_a=POSES[:0])


def test_rotations_in_float32_are_rigid_enough(device):
    a, b = cases.pair("spheres", 100)
    some = random_poses(20, 1.0, seed=6).astype(np.float32)
    check_batch(a, b, device, pose_b=some)
