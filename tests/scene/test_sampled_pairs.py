"""Pairs of links that need no test, found by sampling; keyframes of MJCF files."""

from pathlib import Path

import numpy as np
import pytest

import abut
from abut import cases
from abut.scene.files.robot_description import LinkPair
from abut.scene.robots.kinematics import Joint, Kinematics

LINK = (
    '<link name="{}"><collision><origin xyz="{}"/><geometry><box size="{}"/></geometry>'
    "</collision></link>"
)
JOINT = (
    '<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/><origin xyz="{}"/>'
    '<axis xyz="0 0 1"/><limit lower="-3" upper="3"/></joint>'
)


def write(folder):
    """A turntable: the arm meets the post at times, and the lamp is far."""
    cube = "0.4 0.4 0.4"
    parts = [
        LINK.format("base", "0 0 0", cube),
        LINK.format("arm", "1 0 0.5", "1.5 0.2 0.2"),
        '<link name="bare"/>',
        LINK.format("shell", "1.5 0 1.5", cube),
        LINK.format("pearl", "1.5 0 1.5", "0.1 0.1 0.1"),
        LINK.format("post", "-1 0 0.5", "0.3 0.3 0.6"),
        LINK.format("lamp", "0 0 5", cube),
        JOINT.format("turn", "revolute", "base", "arm", "0 0 0"),
        JOINT.format("mount", "fixed", "arm", "bare", "0 0 0"),
        JOINT.format("spin", "revolute", "bare", "shell", "0 0 0"),
        JOINT.format("hold", "fixed", "base", "post", "0 0 0"),
        JOINT.format("roll", "revolute", "base", "lamp", "0 0 0"),
        JOINT.format("ride", "revolute", "lamp", "middle", "0 0 0"),
        LINK.format("middle", "0 0 7", cube),
        JOINT.format("carry", "fixed", "shell", "inner", "0 0 0"),
        '<link name="inner"/>',
        JOINT.format("slip", "prismatic", "inner", "core", "0 0 0").replace('"3"', '"-2.99"'),
        '<link name="core"/>',
        JOINT.format("last", "revolute", "core", "pearl", "0 0 3"),
    ]
    path = folder / "table.urdf"
    path.write_text('<robot name="table">' + "".join(parts) + "</robot>")
    return path


@pytest.fixture
def robot(tmp_path):
    return abut.Scene.load(write(tmp_path), "cpu").robot


def test_reasons(robot):
    pairs = {frozenset(pair[:2]): pair.reason for pair in robot.allowed_pairs(500)}
    assert pairs[frozenset(("base", "arm"))] == "Adjacent"
    assert pairs[frozenset(("arm", "shell"))] == "Adjacent"  # only a bare link between them
    assert pairs[frozenset(("shell", "pearl"))] == "Adjacent"
    assert pairs[frozenset(("arm", "lamp"))] == "Never"
    assert frozenset(("arm", "post")) not in pairs


def test_the_same_seed_gives_the_same_pairs(robot):
    assert robot.allowed_pairs(300, seed=3) == robot.allowed_pairs(300, seed=3)
    fewer = {pair[:2] for pair in robot.allowed_pairs(4) if pair.reason == "Never"}
    assert {pair[:2] for pair in robot.allowed_pairs(500) if pair.reason == "Never"} <= fewer
    with pytest.raises(abut.OptionError, match="samples"):
        robot.allowed_pairs(0)


NESTED = """<mujoco><worldbody><body name="shell"><joint name="s" axis="0 0 1"/>
  <geom type="box" size="1 1 1"/><body name="stick"><joint name="t" axis="0 0 1"/>
  <geom type="box" size="0.01 0.01 0.01" pos="3 0 0"/><body name="pearl">
  <joint name="u" axis="0 0 1"/>
  <geom type="sphere" size="0.1"/></body></body></body></worldbody>
  <keyframe><key name="up" qpos="0 1 0.5"/><key qpos="1 1 1"/></keyframe></mujoco>
"""


def test_contained_links_are_in_contact(tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "nested.xml").write_text(NESTED)
    robot = abut.Scene.load(tmp_path / "nested.xml", "cpu").robot
    pairs = {frozenset(pair[:2]): pair.reason for pair in robot.allowed_pairs(50)}
    assert pairs[frozenset(("shell", "pearl"))] == "Default"


def test_a_part_of_a_link_inside_another_is_in_contact():
    """Regression: only the part with the first face was looked at."""
    cube = cases.box((0.2, 0.2, 0.2))
    kit = cases.joined(cube.moved((9.0, 0.0, 0.0)), cube)
    scene = abut.Scene("cpu")
    shapes = [cases.icosphere(80, 1.0), cube.moved((0.0, 0.0, 20.0)), kit]
    rows = [scene.add(abut.Mesh(*shape, "cpu")) for shape in shapes]
    moves = [[], [Joint(np.array([0.0, 0, 1]), False, np.zeros(3), 0)], []]
    parts, frames = [(k, np.eye(4)) for k in range(3)], np.stack([np.eye(4)] * 3)
    names, limits = ["shell", "arm", "kit"], np.array([[-0.1, 0.1]])
    kinematics = Kinematics(["lift"], names, [-1, 0, 1], frames, moves, parts, limits)
    scene.set_robot(kinematics, rows)
    pairs = {frozenset(pair[:2]): pair.reason for pair in scene.robot.allowed_pairs(20)}
    assert pairs[frozenset(("shell", "kit"))] == "Default"


def test_keyframes_are_states(tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "nested.xml").write_text(NESTED)
    robot = abut.Scene.load(tmp_path / "nested.xml", "cpu").robot
    assert robot.states == {"up": {"s": 0, "t": 1, "u": 0.5}, "key1": {"s": 1, "t": 1, "u": 1}}
    assert robot.values("up").tolist() == [0, 1, 0.5]


def test_pairs_are_set_and_written(robot, tmp_path):
    robot.set_allowed_pairs([("arm", "post"), LinkPair("base", "arm", "Adjacent")])
    scene = robot.scene
    found = {frozenset(pair) for pair in scene.name_of(scene.ignored_pairs).tolist()}
    assert found == {frozenset(("arm", "post")), frozenset(("base", "arm"))}
    robot.write_srdf(tmp_path / "table.srdf")
    other = abut.Scene.load(tmp_path / "table.urdf", "cpu", srdf=True)
    assert other.robot.pairs == robot.pairs
    assert other.ignored_pairs.tolist() == scene.ignored_pairs.tolist()
    with pytest.raises(abut.SceneError, match="did you mean 'arm'"):
        robot.set_allowed_pairs([("arn", "post")])


def test_slides_need_limits(tmp_path):
    text = write(tmp_path).read_text().replace('<limit lower="-3" upper="-2.99"/>', "")
    (tmp_path / "table.urdf").write_text(text)
    with pytest.raises(abut.SceneError, match="slip slides without limits"):
        abut.Scene.load(tmp_path / "table.urdf", "cpu").robot.allowed_pairs(10)


def test_pairs_of_a_real_robot(data):
    """All pairs that the SRDF of others calls adjacent, and none that meets in a sample."""
    path = Path(data, "robots", "mbm_panda", "panda.urdf")
    if not path.is_file():
        pytest.skip("there are no such robots in the data folder")
    scene = abut.Scene.load(path, "cpu", srdf=True)
    theirs = {frozenset(p[:2]) for p in scene.robot.pairs if p.reason == "Adjacent"}
    mine = {frozenset(p[:2]): p.reason for p in scene.robot.allowed_pairs(300)}
    assert {pair for pair in theirs if "panda_link8" not in pair} <= set(mine)
    folded = {pair for pair, reason in mine.items() if reason == "Default"}
    assert folded and all("panda_link5" in pair for pair in folded)  # at zero, which limits allow
