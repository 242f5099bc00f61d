"""Meshes at rest keep their swept hierarchies in ccd, and are never mistaken for moving ones."""

import numpy as np
import pytest
import warp as wp

import abut
from abut.bvh import swept_cache
from abut.cases import icosphere, plane
from shapes import shift


@pytest.fixture
def refits(monkeypatch):
    """Numbers of features of the trees that are fitted, in order."""
    counts = []
    for name in ("build_swept", "refit_swept"):
        real = getattr(swept_cache, name)

        def counted(*args, real=real, name=name):
            tree = real(*args)
            counts.append(args[2 if name == "build_swept" else 3].shape[0])
            return tree

        monkeypatch.setattr(swept_cache, name, counted)
    return counts


def falling(device, height=2.0, down=3.0, dtype=np.float64):
    ball = icosphere(80).moved((0, 0, height))
    mesh = abut.Mesh(ball.vertices.astype(dtype), ball.faces, device)
    return mesh, (ball.vertices - [0, 0, down]).astype(dtype)


def ground(device, dtype=np.float64, height=0.0):
    shape = plane(6, 6, size=4.0)
    raised = shape.moved((0, 0, height)).vertices
    return abut.Mesh(raised.astype(dtype), shape.faces, device)


def features_of(mesh):
    return {mesh.vertex_count, mesh.edges.shape[0], mesh.face_count}


def same_rows(hits, others):
    a, b = hits.numpy(), others.numpy()
    return len(hits) > 0 and all(np.array_equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("posed", [False, True])
def test_trees_are_kept(dtype, posed, device, refits):
    (ball, end), floor = falling(device, dtype=dtype), ground(device, dtype)
    where = {"start_pose": shift(0, 0, 0.1), "end_pose": shift(0, 0, 0.1)}

    def still(mesh):
        return abut.Motion(mesh, **where) if posed else abut.Motion(mesh, mesh.vertices)

    first = abut.ccd(abut.Motion(ball, end), still(floor))
    refits.clear()
    again = abut.ccd(abut.Motion(ball, end), still(floor))
    assert same_rows(again, first)
    assert set(refits) == features_of(ball)
    fresh = abut.ccd(abut.Motion(ball, end), still(ground(device, dtype)))
    assert same_rows(again, fresh)


def test_deformed_obstacle_is_refitted(device):
    (ball, end), floor = falling(device), ground(device)
    for height in (0.0, 0.3, -0.2, 0.3):
        floor.deform(ground(device, height=height).vertices)
        hits = abut.ccd(abut.Motion(ball, end), abut.Motion(floor, floor.vertices))
        there = ground(device, height=height)
        fresh = abut.ccd(abut.Motion(ball, end), abut.Motion(there, there.vertices))
        assert same_rows(hits, fresh)


def test_other_poses_and_gaps_refit(device):
    (ball, end), floor = falling(device), ground(device)
    for height, gap in ((0.0, 0.0), (0.4, 0.0), (0.4, 0.2), (0.4, 0.1), (0.0, 0.0)):
        pose = shift(0, 0, height)
        there = abut.Motion(floor, start_pose=pose, end_pose=pose)
        hits = abut.ccd(abut.Motion(ball, end), there, min_distance=gap)
        alone = ground(device, height=height)
        fresh = abut.ccd(
            abut.Motion(ball, end), abut.Motion(alone, alone.vertices), min_distance=gap
        )
        assert np.array_equal(hits.features.numpy(), fresh.features.numpy()) and len(hits) > 0
        np.testing.assert_allclose(hits.time.numpy(), fresh.time.numpy(), atol=1e-9)


def test_a_motion_made_before_a_deform(device):
    (ball, end), floor = falling(device), ground(device)
    low = abut.Motion(floor, floor.vertices)
    before = abut.ccd(abut.Motion(ball, end), low)
    floor.deform(ground(device, height=0.5).vertices)
    high = abut.ccd(abut.Motion(ball, end), abut.Motion(floor, floor.vertices))
    assert high.first < before.first
    assert same_rows(abut.ccd(abut.Motion(ball, end), low), before)


def test_rotating_mesh_over_one_at_rest(device, refits):
    (ball, _), floor = falling(device), ground(device)
    turn = shift(0, 0, -2) @ np.diag([1.0, -1.0, -1.0, 1.0])
    turning = abut.Motion(ball, end_pose=turn)
    hits = abut.ccd(turning, abut.Motion(floor, floor.vertices))
    assert turning.piece_count > 5 and len(hits) > 0
    assert sum(n == floor.edges.shape[0] for n in refits) <= 2
    brute = abut.ccd(turning, abut.Motion(floor, floor.vertices), method="brute")
    assert same_rows(hits, brute)


@pytest.mark.parametrize("dtype", [wp.vec3f, wp.vec3d])
def test_vertices_written_in_place_move(dtype, device):
    """A program may write each frame into the one array that it gives to a tracker."""
    shape = icosphere(80).moved((0, 0, 2))
    vertices = wp.array(shape.vertices, dtype=dtype, device=device)
    floor = ground(device)
    tracker = abut.Tracker((abut.Mesh(wp.clone(vertices), shape.faces, device), floor))
    counts = []
    for down in (0.5, 0.4, 0.5, 0.0):
        moved = vertices.numpy() - [0, 0, down]
        vertices.assign(moved.astype(np.float32 if dtype is wp.vec3f else np.float64))
        counts.append(len(tracker.advance(vertices)))
    assert counts[:2] == [0, 0] and counts[2] > 0


def test_obstacle_against_two_moving_meshes(device):
    floor = ground(device)
    for height in (2.0, 3.0, 1e6):
        ball, end = falling(device, height, down=height + 1.0)
        hits = abut.ccd(abut.Motion(ball, end), abut.Motion(floor, floor.vertices))
        alone = ground(device)
        fresh = abut.ccd(abut.Motion(ball, end), abut.Motion(alone, alone.vertices))
        assert same_rows(hits, fresh)
