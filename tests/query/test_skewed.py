"""Poses that are rigid only just: lengths change by a hundred-thousandth, and nothing is lost.

A pose may be off by ``RIGID_TOLERANCE``, far more than float32 rounds by. So that it matters, all
entries of its Gram matrix are off by as much, and things lie along the diagonal: there it adds up.
"""

import numpy as np
import pytest

import abut
from abut.geometry.poses import RIGID_TOLERANCE
from shapes import moved

SKEW = 0.4999 * RIGID_TOLERANCE * np.ones((3, 3))
DIAGONAL = np.ones(3) / np.sqrt(3)


def about_the_diagonal(angle):
    x, y, z = DIAGONAL
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def pose_of(turn, at=(0.0, 0.0, 0.0)):
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = turn, at
    return pose


def narrowed(angle=0.0, at=(0.0, 0.0, 0.0)):
    """A turn about the diagonal that shortens it, as much as is allowed."""
    return pose_of(about_the_diagonal(angle) @ (np.eye(3) - SKEW), at)


def widened(angle=0.0, at=(0.0, 0.0, 0.0)):
    """And one that lengthens it."""
    return pose_of(about_the_diagonal(angle) @ (np.eye(3) + SKEW), at)


def mesh_of(faces, device):
    faces = np.asarray(faces, float)
    return abut.Mesh(faces.reshape(-1, 3), np.arange(3 * len(faces)).reshape(-1, 3), device)


def tip(at, size):
    """Faces around a point, across the diagonal."""
    return np.array([[[1, -1, 0], [-1, 1, 0], [0.5, 0.5, -1]], [[1, 0, -1], [-1, 0, 1], [0, 1, 0]],
                     [[0, 1, -1], [0, -1, 1], [1, 0, 0.1]]]) * size + at  # fmt: skip


BLADES = np.array(
    [[[1.0, 1, 1], [-1, -1, 0.9], [-1, 1, -1]], [[1, 1, 1], [0.9, -1, -1], [1, -1, -1]],
     [[1, 1, 1], [-1, 0.9, -1], [-1, -1, 1]]]
)  # fmt: skip
ANGLES = np.linspace(0.05, 2.0, 24)


@pytest.mark.parametrize("bound", list(abut.Bound))
def test_contacts_at_the_corner_of_a_box(bound, device):
    """The corner of a box that a pose has lengthened, seen from a frame that it has shortened."""
    a, b = mesh_of(tip(np.zeros(3), 1e-7), device), mesh_of(BLADES, device)
    lengthened = np.stack([widened(angle) for angle in ANGLES])
    at = [moved(np.ones((1, 3)), pose)[0] for pose in lengthened]
    shortened = np.stack([narrowed(0.0, p) for p in at])
    for sides, poses in (((a, b), (shortened, lengthened)), ((b, a), (lengthened, shortened))):
        options = {"pose_a": poses[0], "pose_b": poses[1]}
        truth = abut.collide(*sides, method="brute", **options).numpy()
        assert truth["colliding"].all()
        for name, rows in abut.collide(*sides, bound=bound, **options).numpy().items():
            np.testing.assert_array_equal(rows, truth[name])


def apart(device, gap=1.0):
    """Small meshes on the diagonal, and poses of both that lengthen what is between them."""
    a = mesh_of(tip(np.zeros(3), 1e-7), device)
    b = mesh_of(tip(gap * DIAGONAL, 1e-7), device)
    return a, b


@pytest.mark.parametrize("pose", [narrowed, widened])
def test_distances_along_the_diagonal(pose, device):
    a, b = apart(device)
    for angle in (0.0, 0.7):
        poses = {"pose_a": pose(angle), "pose_b": pose(angle)}
        truth = abut.distance(a, b, method="brute", **poses)
        for bound in (1.0, 1 + 2e-5, 1 - 2e-5, truth.value, truth.value * (1 + 1e-12)):
            want = abut.distance(a, b, method="brute", upper_bound=bound, **poses)
            for volume in ("aabb", "obb", "rss"):
                got = abut.distance(a, b, upper_bound=bound, bound=volume, **poses)
                assert got.value == want.value
                np.testing.assert_array_equal(got.faces.numpy(), want.faces.numpy())


@pytest.mark.parametrize("pose", [narrowed, widened])
def test_gaps_along_the_diagonal(pose, device):
    a, b = apart(device)
    for angle in (0.0, 0.7):
        poses = {"pose_a": pose(angle), "pose_b": pose(angle)}
        far = abut.within(a, b, 2.0, method="brute", **poses).distance.numpy()
        assert len(far) == 9 and np.ptp(far) < 1e-6
        for distance in np.sort(far):
            want = abut.within(a, b, float(distance), method="brute", **poses).pairs.numpy()
            got = abut.within(a, b, float(distance), **poses).pairs.numpy()
            assert len(want) and np.array_equal(got, want)


def test_gaps_along_an_axis_that_is_too_long(device):
    """The first axis of b, along the diagonal of a's frame: what is measured along it is more."""
    a, b = (mesh_of(tip(np.zeros(3), 1e-7), device) for _ in range(2))
    turn = np.stack([DIAGONAL, [0, 0.5**0.5, -(0.5**0.5)], np.zeros(3)], axis=1)
    turn[:, 2] = np.cross(turn[:, 0], turn[:, 1])
    turn[:, 0] *= 1 + SKEW[0, 0]
    for sign in (1.0, -1.0):
        pose = pose_of(turn, sign * DIAGONAL)
        for distance in np.sort(abut.within(a, b, 2.0, pose_b=pose).distance.numpy()):
            want = abut.within(a, b, float(distance), pose_b=pose, method="brute").pairs.numpy()
            got = abut.within(a, b, float(distance), pose_b=pose).pairs.numpy()
            assert len(want) and np.array_equal(got, want)
            for volume in ("aabb", "obb", "rss"):
                how = {"pose_b": pose, "upper_bound": float(distance), "bound": volume}
                assert np.isfinite(abut.distance(a, b, **how).value)


@pytest.mark.parametrize("count", [40, 70_000])
@pytest.mark.parametrize("pose", [narrowed, widened])
def test_points_along_the_diagonal(pose, count, device):
    """Two faces, the nearer one across the diagonal, the other beside it and a little farther."""
    rng = np.random.default_rng(5)
    across = tip(DIAGONAL, 1e-7)
    aside = np.array([-1.0, 2.0, -1.0]) / np.sqrt(6)
    beside = tip(aside * (1 + 1e-5 * (1 if pose is widened else -1)), 1e-7)
    mesh = mesh_of(np.concatenate([beside, across]), device)
    points = rng.normal(scale=1e-8, size=(count, 3))
    for angle in (0.0, 0.7):
        got = abut.closest_point(mesh, points, pose=pose(angle)).numpy()
        some = slice(0, 400)
        want = abut.closest_point(mesh, points[some], pose=pose(angle), method="brute").numpy()
        for name in want:
            np.testing.assert_array_equal(got[name][some], want[name])


def impacts(arm, wall, start, end):
    """Of an arm that moves and a wall that stands, each way round, and in a scene."""
    move = abut.Motion(arm, start_pose=start, end_pose=end)
    still = abut.Motion(wall, end=wall.vertices)
    scene = abut.Scene(arm.device)
    scene.add(arm, start)
    scene.add(wall)
    here = np.eye(4)
    return abut.ccd(move, still), abut.ccd(still, move), scene.ccd(np.stack([end, here]))


def wall_at(far, device):
    across = np.array([[1, -1, 0], [-1, 0, 1], [0, 1, -1]]) * 3e-6
    return mesh_of([far * DIAGONAL + across], device)


@pytest.mark.parametrize("angle", [1e-4, 0.01, 0.3, 2.0])
def test_impacts_of_the_last_moment(angle, device):
    """A tip turns on the spot: only the pose at the end is longer, and takes it to a wall."""
    arm, wall = mesh_of(tip(DIAGONAL, 1e-6), device), wall_at(1 + 0.8e-5, device)
    for hits in impacts(arm, wall, narrowed(), widened(angle)):
        assert len(hits) and 0 <= hits.first <= 1


@pytest.mark.parametrize("angle", [1e-4, 0.01, 0.3, 2.0])
def test_impacts_before_the_last_moment(angle, device):
    """It goes to the wall at its first length, which only the pose at the end takes from it."""
    arm, wall = mesh_of(tip(DIAGONAL, 1e-6), device), wall_at(2.0, device)
    for hits in impacts(arm, wall, widened(), narrowed(angle, DIAGONAL)):
        assert len(hits) and 0.9999 <= hits.first <= 1 - 1e-5
