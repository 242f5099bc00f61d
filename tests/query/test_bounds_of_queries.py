"""self_collide, ccd and Tracker return the same rows by every bounding volume."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_tracker import waves

import abut
from abut.cases import icosphere, torus
from abut.query.bvtt_front import CLIMB_EVERY
from shapes import random_poses

BOUNDS = list(abut.Bound)
MOVING = ["aabb", "obb", "rss"]
FINER = MOVING[1:]


def same(found, want):
    """Whether two results have the same rows, times and flags included."""
    mine, other = found.numpy(), want.numpy()
    return all(np.array_equal(mine[name], other[name]) for name in other)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-3, 0.2]), st.sampled_from([0, 1e5]))
def test_random_faces_meet_alike(seed, rounding, offset):
    """Also flat and degenerate faces, and far from the origin."""
    rng = np.random.default_rng(seed)
    vertices = rng.normal(size=(60, 3))
    if rounding:
        vertices = np.round(vertices / rounding) * rounding
    mesh = abut.Mesh(vertices + offset, rng.integers(0, 60, (80, 3)), "cpu")
    want = abut.self_collide(mesh, method="brute").pairs.numpy()
    for bound in BOUNDS:
        found = abut.self_collide(mesh, bound=bound).pairs.numpy()
        np.testing.assert_array_equal(found, want, err_msg=str(bound))


@pytest.mark.parametrize("weld", [True, False])
def test_contacts_of_a_crumpled_mesh(weld, device):
    shape = torus(32, 16)
    mesh = abut.Mesh(*shape, device)
    for frame in waves(shape, 3):
        mesh.deform(frame)
        want = abut.self_collide(mesh, weld=weld, method="brute").pairs.numpy()
        for bound in BOUNDS:
            found = abut.self_collide(mesh, weld=weld, bound=bound).pairs.numpy()
            np.testing.assert_array_equal(found, want, err_msg=str(bound))


@pytest.mark.parametrize("gap", [0.0, 0.01])
def test_impacts_of_one_mesh_and_of_two(gap, device):
    a, b = torus(16, 8), icosphere(320)
    rng = np.random.default_rng(0)
    moves = [
        abut.Motion(abut.Mesh(*shape, device), shape.vertices + 0.2 * rng.normal(size=(n, 3)))
        for shape, n in ((a, len(a.vertices)), (b, len(b.vertices)))
    ]
    for operands in (moves[:1], moves):
        want = abut.ccd(*operands, method="brute", min_distance=gap)
        assert len(want) > 50
        for bound in MOVING:
            assert same(abut.ccd(*operands, bound=bound, min_distance=gap), want), bound
            first = abut.ccd(*operands, bound=bound, min_distance=gap, first=True)
            assert first.first == want.first, bound


@pytest.mark.parametrize("bound", FINER)
def test_impacts_of_a_turning_body(bound, device):
    """Volumes are widened by the deviation of each straight piece from the turn."""
    starts, ends = random_poses(2, 2.0, seed=3), random_poses(2, 0.5, seed=5)
    meshes = [abut.Mesh(*icosphere(80), device) for _ in range(2)]
    moves = [
        abut.Motion(mesh, start_pose=start, end_pose=end)
        for mesh, start, end in zip(meshes, starts, ends, strict=True)
    ]
    want = abut.ccd(*moves, tolerance=1e-4)
    assert len(want) > 20
    assert same(abut.ccd(*moves, tolerance=1e-4, bound=bound), want)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-30, 1.0, 1e30]), st.sampled_from(FINER))
def test_random_motions_meet_alike(seed, scale, bound):
    rng = np.random.default_rng(seed)
    points = rng.integers(-3, 4, size=(2, 20, 3)) * scale
    mesh = abut.Mesh(points[0], rng.integers(0, 20, (12, 3)), "cpu")
    move = abut.Motion(mesh, points[1])
    assert same(abut.ccd(move, bound=bound), abut.ccd(move, method="brute"))


def keys_of(front):
    return front.queues[front.names[0]].keys.numpy()[: front.size]


@pytest.mark.parametrize("bound", FINER)
def test_fronts_of_volumes_that_are_not_nested(bound, device):
    """No pair is lost or held twice, while pairs move down and up again."""
    shape = torus(24, 12)
    mesh = abut.Mesh(*shape, device)
    contacts, impacts = (
        abut.Tracker(abut.Mesh(*shape, device), method="front", bound=bound) for _ in range(2)
    )
    frames = list(waves(shape, 2 * CLIMB_EVERY + 4))
    impacts.step(frames[0])
    met = 0
    for k, (before, frame) in enumerate(pairwise(frames)):
        mesh.deform(frame)
        assert same(contacts.step(frame), abut.self_collide(mesh))
        fronts = [contacts._search.front]
        if k < CLIMB_EVERY + 2:
            mesh.deform(before)
            hits = impacts.advance(frame)
            assert same(hits, abut.ccd(abut.Motion(mesh, frame)))
            fronts += impacts._fronts.kept.values()
            met += len(hits)
        for front in fronts:
            assert len(np.unique(keys_of(front))) == front.size > 0
    assert met > 100


@pytest.mark.parametrize("method", ["bvh", "front"])
def test_trackers_of_two_meshes(method, device):
    a, b = torus(20, 10), icosphere(320)
    for bound in MOVING:
        meshes = [abut.Mesh(*shape, device) for shape in (a, b)]
        follow = abut.Tracker(tuple(meshes), method=method, bound=bound)
        for frame in waves(a, 4):
            hits = follow.step(frame)
            fresh = [abut.Mesh(frame, a.faces, device), abut.Mesh(*b, device)]
            assert same(hits, abut.collide(*fresh)), bound


def test_a_front_follows_new_swept_spheres():
    """Distances on the CPU may put other swept spheres in the place of those of a front."""
    shape = torus(24, 12)
    mesh, other = abut.Mesh(*shape, "cpu"), abut.Mesh(*icosphere(80), "cpu")
    follow = abut.Tracker(mesh, method="front", bound="rss")
    for k, frame in enumerate(waves(shape, 6)):
        hits = follow.step(frame)
        fresh = abut.self_collide(abut.Mesh(frame, shape.faces, "cpu"))
        assert same(hits, fresh), k
        abut.distance(mesh, other, pose_b=random_poses(1, 4.0, seed=k)[0])


def test_options_that_cannot_serve_name_those_that_can():
    mesh = abut.Mesh(*icosphere(80), "cpu")
    move = abut.Motion(mesh, mesh.vertices)
    for call in (lambda: abut.ccd(move, bound="kdop"), lambda: abut.Tracker(mesh, bound="kdop")):
        with pytest.raises(abut.OptionError, match=r"'aabb', 'obb', 'rss', not 'kdop'"):
            call()
    with pytest.raises(abut.OptionError, match=r"'aabb', 'obb', 'rss', 'kdop', not 'sphere'"):
        abut.self_collide(mesh, bound="sphere")
