"""The planner's path leaves the assembly without contact, at every time."""

import numpy as np
import pytest

import abut
from abut import cases, sim
from abut.sim import disassembly


@pytest.mark.parametrize("seed", range(3))
def test_the_path_is_free_and_leads_out(seed, device):
    part, assembly = disassembly.crank(300), disassembly.ring_frame(400)
    play = sim.Disassembly(part, assembly, seed=seed, device=device)
    path = play.plan()
    assert play.counts["poses"] > 1000
    np.testing.assert_array_equal(path[0], np.eye(4))
    out = part.vertices @ path[-1, 0, :3] + path[-1, 0, 3]
    assert out.min() > assembly.vertices[:, 0].max()
    hits = abut.collide(play.part, play.assembly, pose_a=path, method="brute")
    assert not hits.colliding.numpy().any()
    still = abut.Motion(play.assembly, play.assembly.vertices)
    for before, after in zip(path[:-1:9], path[1::9], strict=False):
        move = abut.Motion(play.part, start_pose=before, end_pose=after)
        assert not abut.ccd(move, still, first=True)


def test_the_same_seed_gives_the_same_path(device):
    made = [sim.crank_in_a_ring(600, device).plan() for _ in range(2)]
    np.testing.assert_array_equal(*made)


def test_edges_that_touch_between_their_poses_are_cut_off(device, monkeypatch):
    """With poses far apart edges pass through the assembly; the continuous test finds it."""
    monkeypatch.setattr(disassembly, "POSES", 1)
    monkeypatch.setattr(disassembly, "STEP", 1.5)
    play = sim.crank_in_a_ring(600, device)
    path = play.plan()
    assert play.counts["cut"] > 0
    assert not abut.collide(play.part, play.assembly, pose_a=path).colliding.numpy().any()


def test_a_part_that_touches_or_cannot_leave_is_refused(device, monkeypatch):
    box = cases.box()
    with pytest.raises(abut.OptionError, match="touches"):
        sim.Disassembly(box, box.moved((0.5, 0, 0)), device=device)
    monkeypatch.setattr(disassembly, "MOST_ROUNDS", 5)
    shell = cases.icosphere(320, radius=1.2)
    with pytest.raises(abut.OptionError, match="no way out in 5 rounds"):
        sim.Disassembly(cases.icosphere(80, radius=0.5), shell, device=device).plan()
