"""Distances of meshes far apart for their size: what brute force finds, and soon."""

import numpy as np
import pytest
import warp as wp

import abut
import oracle
from abut.bvh.bvh_cache import bvh_of
from abut.cases import box, icosphere, torus
from abut.core.launch import launch
from abut.core.pair_queue import KeyLayout
from abut.geometry.common_corners import SHARED_NONE
from abut.operands.distance_queues import distance_queues
from abut.operands.posed_mesh import make_posed_mesh
from abut.operands.posed_pairs import MeshPairs, mesh_pairs
from abut.query.distance import may_be_far, mesh_extent
from abut.query.distance_plan import NearestPlan
from abut.traversal.distance.extremal_faces import far_field_kernel_for
from abut.traversal.distance.far_field import EXTREMAL_FIELD, FAR_FIELD, NEAR_FIELD
from shapes import random_poses

SIZES = [1e1, 1e2, 1e3, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e12, 1e15, 1e20, 1e100, 1e200]
ROUNDINGS = 8 * 2.0**-53


def pair(device):
    return [abut.Mesh(*s, device) for s in (icosphere(320), torus(20, 12))]


def poses_at(sizes, count, seed=0):
    """Any turn, about so far away."""
    poses = random_poses(count, 1.0, seed)
    poses[:, :3, 3] *= sizes * 8.0 / np.linalg.norm(poses[:, :3, 3], axis=1, keepdims=True)
    return poses


def check_same(near, other):
    for name, value in other.numpy().items():
        np.testing.assert_array_equal(near.numpy()[name], value)


@pytest.mark.parametrize("sizes", SIZES)
def test_brute_force_finds_the_same(sizes, device):
    a, b = pair(device)
    poses = poses_at(sizes, 6)
    truth = abut.distance(a, b, pose_b=poses, method="brute")
    for bound in ("aabb", "rss"):
        check_same(abut.distance(a, b, pose_b=poses, bound=bound), truth)
    for pose, value, faces in zip(poses, truth.value.numpy(), truth.faces.numpy(), strict=True):
        single = abut.distance(a, b, pose_b=pose)
        assert single.value == value
        np.testing.assert_array_equal(single.faces.numpy(), faces)


@pytest.mark.parametrize("scale", [1e36, 1e38, 1e40, 1e60])
@pytest.mark.parametrize("sizes", [1e2, 1e6, 1e9])
def test_meshes_beyond_float32(sizes, scale, device):
    meshes = [
        abut.Mesh(shape.vertices.astype(np.float64) * scale, shape.faces, device)
        for shape in (icosphere(80), box())
    ]
    poses = poses_at(sizes * scale, 4)
    truth = abut.distance(*meshes, pose_b=poses, method="brute")
    assert np.isfinite(truth.value.numpy()).all()
    check_same(abut.distance(*meshes, pose_b=poses), truth)
    assert abut.distance(*meshes, pose_b=poses[0]).value == truth.value.numpy()[0]


@pytest.mark.parametrize("sizes", SIZES[:-2])
def test_both_sides_moved_and_poses_of_float32(sizes, device):
    a, b = pair(device)
    turns = random_poses(4, 1.0, seed=1).astype(np.float32)
    options = {"pose_a": turns, "pose_b": poses_at(sizes, 4, seed=2).astype(np.float32)}
    check_same(abut.distance(a, b, **options), abut.distance(a, b, method="brute", **options))


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e9])
@pytest.mark.parametrize("sizes", [1e3, 1e6, 1e9, 1e13])
def test_vertices_far_away(sizes, offset, device):
    (v, f), (w, g) = icosphere(320), torus(20, 12)
    away = np.array([1.0, -0.3, 0.2])
    a, b = abut.Mesh(v + offset, f, device), abut.Mesh(w + offset + 8 * sizes * away, g, device)
    check_same(abut.distance(a, b), abut.distance(a, b, method="brute"))


@pytest.mark.parametrize("sizes", [1e3, 1e7, 1e10])
def test_the_value_is_the_true_one(sizes, device):
    a, b = box(), icosphere(20)
    pose = poses_at(sizes, 1, seed=3)[0]
    near = abut.distance(abut.Mesh(*a, device), abut.Mesh(*b, device), pose_b=pose)
    moved = posed(pose, b.vertices)
    squares = [
        oracle.squared_distance_tri_tri(a.vertices[f], moved[g]) for f in a.faces for g in b.faces
    ]
    np.testing.assert_allclose(near.value, float(min(squares)) ** 0.5, rtol=ROUNDINGS)


def posed(pose, points):
    """Moved points, rounded as faces.move_point does."""
    x, y, z = points.T
    rows = [((r[0] * x + r[1] * y) + r[2] * z) + r[3] for r in pose[:3]]
    return np.stack(rows, axis=1)


def plan_of(a, b, poses, **options):
    sides = make_posed_mesh(a.points, a.faces), make_posed_mesh(b.points, b.faces, poses)
    layout = KeyLayout.of(a.face_count, b.face_count)
    return NearestPlan(a.device, *sides, (), layout, len(poses), **options)


def fields_of(a, b, poses):
    """The field of each row, as the kernel decides."""
    plan, device = plan_of(a, b, poses), a.device
    trees = [bvh_of(mesh).view() for mesh in (a, b)]
    extents = mesh_extent(a), mesh_extent(b)
    view = mesh_pairs(plan.a, plan.b, SHARED_NONE, len(poses), trees, extents)
    bounds, keys = (wp.full(len(poses), 1 << 62, dtype=wp.int64, device=device) for _ in "ab")
    fields = wp.empty(len(poses), dtype=wp.int32, device=device)
    out = distance_queues(plan.queues, plan.layout, bounds)
    launch(far_field_kernel_for(MeshPairs, False), len(poses), [view, out, fields, keys], device)
    return fields.numpy()


def test_beyond_float64_faces_are_as_near_as_any(device):
    a, b = pair(device)
    poses = poses_at(1e9, 8, seed=4)
    assert (fields_of(a, b, poses) == EXTREMAL_FIELD).all()
    by_rule = abut.distance(a, b, pose_b=poses).value.numpy()
    of_all, _ = plan_of(a, b, poses).run(np.inf)
    np.testing.assert_allclose(by_rule, of_all, rtol=ROUNDINGS)


def test_poses_near_and_far_in_one_batch(device):
    a, b = pair(device)
    poses = np.concatenate([poses_at(sizes, 2) for sizes in (0.1, 1e3, 1e12, 0.5, 1e6, 0.01)])
    fields = fields_of(a, b, poses)
    assert {*fields.tolist()} == {NEAR_FIELD, FAR_FIELD, EXTREMAL_FIELD}
    truth = abut.distance(a, b, pose_b=poses, method="brute")
    check_same(abut.distance(a, b, pose_b=poses), truth)
    assert 0 in truth.value.numpy()


@pytest.mark.parametrize("sizes", [1e3, 1e10])
def test_bounds_and_tolerance(sizes, device):
    a, b = pair(device)
    poses = poses_at(sizes, 6, seed=5)
    value = abut.distance(a, b, pose_b=poses).value.numpy()
    bound = float(np.median(value))
    near = abut.distance(a, b, pose_b=poses, upper_bound=bound)
    np.testing.assert_array_equal(near.value.numpy(), np.where(value <= bound, value, np.inf))
    np.testing.assert_array_equal(near.faces.numpy()[value > bound], -1)
    loose = abut.distance(a, b, pose_b=poses, tolerance=0.5).value.numpy()
    assert (loose >= value).all()
    assert (loose <= value + 0.5).all()


@pytest.mark.parametrize("sizes", [1e3, 1e5, 1e6])
def test_plates_that_face_each_other(sizes, device):
    side = np.linspace(0, 1, 13)
    x, y = (c.ravel() for c in np.meshgrid(side, side))
    k = (np.arange(12)[:, None] * 13 + np.arange(12)).ravel()
    corners = np.stack([k, k + 1, k + 13, k + 1, k + 14, k + 13], axis=1)
    faces = corners.reshape(-1, 3)
    low = abut.Mesh(np.stack([x, y, 0 * x], axis=1), faces, device)
    high = abut.Mesh(np.stack([x + 0.31, y - 0.17, 0 * x + sizes], axis=1), faces, device)
    check_same(abut.distance(low, high), abut.distance(low, high, method="brute"))


@pytest.mark.parametrize("sizes", [1e2, 1e5, 1e8, 1e10, 1e13, 1e20])
def test_few_pairs_are_measured(sizes, device, data):
    """There are 4.8 billion."""
    bunny = abut.Mesh.load(data / "models" / "bunny_69k.ply", device)
    other = abut.Mesh.load(data / "models" / "bunny_69k.ply", device)
    poses = poses_at(sizes * float(np.ptp(bunny.vertices.numpy())), 2, seed=6)
    value = abut.distance(bunny, other, pose_b=poses).value.numpy()
    assert (np.abs(value / np.linalg.norm(poses[:, :3, 3], axis=1) - 1) < 1 / sizes).all()


def test_points_and_a_mesh_without_extent(device):
    dot = abut.Mesh(np.zeros((3, 3)), [[0, 1, 2], [2, 1, 0]], device)
    ball = abut.Mesh(*icosphere(80), device)
    pose = np.eye(4)
    for away in (1e-3, 1.0, 1e3, 1e20):
        pose[0, 3] = away
        for a, b in ((dot, dot), (dot, ball)):
            near = abut.distance(a, b, pose_b=pose)
            check_same(near, abut.distance(a, b, pose_b=pose, method="brute"))
    pose[0, 3] = 5.0
    assert abut.distance(dot, dot, pose_b=pose).value == 5.0


@pytest.mark.parametrize("spread", [1e2, 1e4, 1e6, 1e9, 1e12, 1e20])
def test_scenes(spread, device):
    scene = abut.Scene(device)
    shapes = pair(device)
    poses = random_poses(8, 1.0, seed=7)
    poses[::2, :3, 3] *= 3.0
    poses[1::2, :3, 3] *= spread
    for k, pose in enumerate(poses):
        scene.add(shapes[k % 2], pose)
    for bound in (None, 2.0 * spread):
        near = scene.distance(upper_bound=bound).numpy()
        assert len(near["value"]) >= 8
        for (i, j), value, faces in zip(near["objects"], near["value"], near["faces"], strict=True):
            low, high = min(i, j), max(i, j)
            options = {"pose_a": poses[low], "pose_b": poses[high], "method": "brute"}
            truth = abut.distance(shapes[low % 2], shapes[high % 2], **options)
            np.testing.assert_allclose(value, truth.value, rtol=ROUNDINGS)
            if truth.value > 0:
                expected = truth.faces.numpy()
                np.testing.assert_array_equal(faces, expected if i < j else expected[::-1])


def test_near_meshes_are_not_told_to_be_far():
    a, b = pair("cpu")
    assert not may_be_far(a, b, (None, None))
    assert not may_be_far(a, b, (None, poses_at(0.5, 3)))
