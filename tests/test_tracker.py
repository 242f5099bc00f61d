"""Fronts give the rows of a fresh search, hold no pair twice and stay within bounds."""

import numpy as np
import pytest

import abut
from abut.cases import icosphere, torus
from abut.query import tracker as tracking
from shapes import random_poses


def waves(shape, count, height=0.4):
    """Frames in which a shape is bent to and fro and crumpled."""
    x = shape.vertices[:, 0]
    noise = np.random.default_rng(0).normal(size=shape.vertices.shape)
    for k in range(count):
        bent = shape.vertices + 0.1 * np.sin(0.4 * k) * noise
        bent[:, 2] *= 1.0 - 1.6 * height * np.sin(0.7 * k) * np.cos(2.0 * x)
        bent[:, 1] += height * np.sin(1.3 * k + 3.0 * x)
        yield bent


def front_of(tracker):
    search = tracker._search
    return search.queues[search._names[0]].keys.numpy()[: search.size]


def test_one_mesh(device):
    shape = torus(48, 24)
    mesh, other = (abut.Mesh(*shape, device=device) for _ in range(2))
    follow = abut.Tracker(mesh, method="front")
    met = 0
    for frame in waves(shape, 20):
        hits = follow.step(frame)
        other.deform(frame)
        fresh = abut.self_collide(other)
        assert np.array_equal(hits.pairs.numpy(), fresh.pairs.numpy())
        assert follow.front_size > 0
        pairs = front_of(follow)
        assert len(np.unique(pairs)) == len(pairs)
        met += len(hits)
    assert met > 0


def test_two_meshes(device):
    a, b = torus(40, 20), icosphere(1280)
    follow = abut.Tracker(
        (abut.Mesh(*a, device=device), abut.Mesh(*b, device=device)), method="front"
    )
    mesh_a, mesh_b = abut.Mesh(*a, device=device), abut.Mesh(*b, device=device)
    met = 0
    for k, frame in enumerate(waves(a, 16)):
        ball = b.vertices * 0.7 + np.array([np.cos(0.2 * k), np.sin(0.2 * k), 0.1])
        mesh_a.deform(frame)
        mesh_b.deform(ball)
        hits = follow.step(frame, ball)
        assert np.array_equal(hits.pairs.numpy(), abut.collide(mesh_a, mesh_b).pairs.numpy())
        pairs = front_of(follow)
        assert len(np.unique(pairs)) == len(pairs)
        met += len(hits)
    assert met > 100
    assert np.array_equal(follow.step(None, ball).pairs.numpy(), hits.pairs.numpy())


def test_a_front_moves_up_again(device):
    """After a mess, a front shrinks to what a new one has, give or take."""
    shape = icosphere(1280)
    follow = abut.Tracker(abut.Mesh(*shape, device=device), method="front")
    follow.step(shape.vertices)
    calm = follow.front_size
    rng = np.random.default_rng(0)
    follow.step(shape.vertices + 0.2 * rng.normal(size=shape.vertices.shape))
    wild = follow.front_size
    for _ in range(2 * tracking.CLIMB_EVERY):
        hits = follow.step(shape.vertices)
    assert calm <= follow.front_size < wild
    assert follow.front_size < 1.2 * calm
    assert len(hits) == 0


def test_a_front_that_grows_too_long_is_given_up(device, monkeypatch):
    monkeypatch.setattr(tracking, "MOST_PAIRS", 1000)
    shape = torus(48, 24)
    follow = abut.Tracker(abut.Mesh(*shape, device=device), method="front")
    for frame in waves(shape, 3):
        hits = follow.step(frame)
        fresh = abut.self_collide(abut.Mesh(frame, shape.faces, device=device))
        assert np.array_equal(hits.pairs.numpy(), fresh.pairs.numpy())
        assert follow.front_size == 0


@pytest.mark.parametrize("method", ["bvh", "brute", "front"])
def test_all_methods_and_tiny_meshes(method, device):
    one = abut.Mesh(np.eye(3), [[0, 1, 2]], device=device)
    follow = abut.Tracker((one, abut.Mesh(*icosphere(20), device=device)), method=method)
    assert len(follow.step(np.eye(3) * 5)) == 0
    assert len(follow.step(np.eye(3))) > 0
    alone = abut.Tracker(one, method=method)
    assert len(alone.step()) == 0


def test_poses_are_given_as_vertices(device):
    a, b = icosphere(320), torus(24, 12)
    follow = abut.Tracker(
        (abut.Mesh(*a, device=device), abut.Mesh(*b, device=device)), method="front"
    )
    for pose in random_poses(12, reach=1.0):
        moved = b.vertices @ pose[:3, :3].T + pose[:3, 3]
        fresh = abut.collide(abut.Mesh(*a, device=device), abut.Mesh(moved, b.faces, device=device))
        assert np.array_equal(follow.step(None, moved).pairs.numpy(), fresh.pairs.numpy())


def test_bad_input_is_refused(device):
    mesh = abut.Mesh(*icosphere(20), device=device)
    with pytest.raises(abut.OptionError, match="one mesh or two"):
        abut.Tracker((mesh, mesh, mesh))
    with pytest.raises(abut.MeshError, match=r"b must be an abut\.Mesh"):
        abut.Tracker((mesh, 3))
    with pytest.raises(abut.OptionError, match="2 arrays of vertices for 1 mesh"):
        abut.Tracker(mesh).step(None, None)
    with pytest.raises(abut.OptionError, match="method must be one of"):
        abut.self_collide(mesh, method="front")
    with pytest.raises(abut.MeshError, match="deform needs shape"):
        abut.Tracker(mesh).step(np.zeros((3, 3)))


def test_a_dance(data, device):
    frames = np.load(data / "anim" / "rumba_dancing_25k_f0-59.npz")
    follow = abut.Tracker(abut.Mesh(frames["V"][0], frames["F"], device=device), method="front")
    fresh = abut.Tracker(abut.Mesh(frames["V"][0], frames["F"], device=device))
    for vertices in frames["V"][:12]:
        found = follow.step(vertices).pairs.numpy()
        assert np.array_equal(found, fresh.step(vertices).pairs.numpy())
    assert len(found) > 100
