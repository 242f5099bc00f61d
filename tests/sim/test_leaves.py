"""Leaves hang, come loose, bend and fall, and never cut anything."""

import numpy as np

import abut
from abut import cases, sim


def test_leaves_fall_through_a_tree(device):
    play = sim.falling_leaves(2500, device)
    cloth = play.cloth
    start = cloth.mesh.points.numpy().copy()
    impacts = 0
    for _ in range(45):
        counts = play.advance()
        impacts += counts["impacts"]
        assert counts["meeting"] == 0
    assert counts["loose"] == play.count
    assert impacts > 0
    fallen = start[:, 2] - cloth.mesh.points.numpy()[:, 2]
    assert fallen.reshape(play.count, -1).mean(axis=1).max() > 0.5
    assert not abut.self_collide(cloth.mesh)
    assert not abut.collide(cloth.mesh, cloth.obstacle)


def test_leaves_bend_while_they_hang(device):
    play = sim.falling_leaves(1500, device)
    play.loose_at[:] = 9.0
    before = play.cloth.mesh.points.numpy().copy()
    for _ in range(10):
        play.advance()
    after = play.cloth.mesh.points.numpy()
    assert np.array_equal(after[play.stalks], before[play.stalks])
    tips = [p.reshape(play.count, -1, 3)[:, [0, -1]] for p in (before, after)]
    spans = [np.linalg.norm(np.diff(t, axis=1), axis=2) for t in tips]
    assert np.abs(spans[1] / spans[0] - 1).max() > 0.01  # not rigid
    assert np.abs(spans[1] / spans[0] - 1).max() < 0.5  # nor limp


def test_intersecting_leaves_are_left_out(device):
    tree, *leaves = cases.leaves(12, 600).placed()
    doubled = cases.PlacedShapes([tree, *leaves, *leaves], np.tile(np.eye(4), (25, 1, 1)))
    play = sim.FallingLeaves(doubled, 24, device=device)
    assert 0 < play.count <= 12


def test_as_many_leaves_as_in_the_paper():
    play = sim.falling_leaves(device="cpu")
    assert play.count == 150
    assert 38_000 < play.face_count < 42_000
