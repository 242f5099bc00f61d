"""SRDF files: groups, states, end effectors and disabled pairs, read and written."""

from pathlib import Path

import numpy as np
import pytest

import abut
from abut.scene.files.robot_description import EndEffector, JointGroup, LinkPair

URDF = """<robot name="arm">
  <link name="base"><collision><geometry><box size="1 1 1"/></geometry></collision></link>
  <link name="upper"><collision><geometry><box size="1 1 1"/></geometry></collision></link>
  <link name="wrist"/>
  <link name="left"><collision><geometry><box size="1 1 1"/></geometry></collision></link>
  <link name="right"><collision><geometry><box size="1 1 1"/></geometry></collision></link>
  <joint name="lift" type="prismatic"><parent link="base"/><child link="upper"/>
    <axis xyz="0 0 1"/><limit lower="0" upper="3"/></joint>
  <joint name="mount" type="fixed"><parent link="upper"/><child link="wrist"/></joint>
  <joint name="open" type="prismatic"><parent link="wrist"/><child link="left"/>
    <axis xyz="0 1 0"/><limit lower="0" upper="1"/></joint>
  <joint name="follow" type="prismatic"><parent link="wrist"/><child link="right"/>
    <axis xyz="0 -1 0"/><mimic joint="open"/></joint>
</robot>
"""
SRDF = """<robot name="arm">
  <virtual_joint name="world_joint" type="fixed" parent_frame="world" child_link="base"/>
  <group name="arm"><chain base_link="base" tip_link="wrist"/></group>
  <group name="hand"><link name="left"/><joint name="open"/><passive_joint name="follow"/></group>
  <group name="all"><group name="arm"/><group name="hand"/></group>
  <group_state name="up" group="arm"><joint name="lift" value="2.5"/></group_state>
  <group_state name="home" group="arm"><joint name="lift" value="1.5"/></group_state>
  <group_state name="home" group="hand"><joint name="open" value="0.25"/>
    <joint name="follow" value="0.25"/></group_state>
  <end_effector name="gripper" group="hand" parent_link="wrist" parent_group="arm"/>
  <disable_collisions link1="base" link2="upper" reason="Adjacent"/>
  <disable_collisions link1="left" link2="base" reason="Never"/>
</robot>
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF)
    (tmp_path / "arm.srdf").write_text(SRDF)
    return tmp_path


def load(folder, srdf=True):
    return abut.Scene.load(folder / "arm.urdf", "cpu", srdf=srdf)


def ignored(scene):
    names = scene.name_of(scene.ignored_pairs).reshape(-1, 2).tolist()
    return {frozenset(pair) for pair in names}


def test_what_an_srdf_says(folder):
    robot = load(folder).robot
    assert robot.joints == ["lift", "open"]
    assert robot.groups["arm"] == JointGroup(["lift"], ["base", "upper", "wrist"])
    assert robot.groups["hand"] == JointGroup(["open"], ["left", "right"])
    assert robot.groups["all"].joints == ["lift", "open"]
    assert robot.states == {
        "up": {"lift": 2.5},
        "arm/home": {"lift": 1.5},
        "hand/home": {"open": 0.25},
    }
    assert robot.end_effectors == {"gripper": EndEffector("hand", "wrist", "arm")}


def test_disabled_pairs_replace_those_of_the_tree(folder):
    """As in MoveIt: what the SRDF does not disable is tested."""
    pairs = {frozenset(("base", "upper")), frozenset(("left", "base"))}
    assert ignored(load(folder)) == pairs
    plain = ignored(load(folder, srdf=None))
    assert frozenset(("upper", "left")) in plain and frozenset(("left", "base")) not in plain


def test_default_collisions(folder):
    (folder / "arm.srdf").write_text(
        '<robot name="arm"><disable_default_collisions link="left"/>'
        '<enable_collisions link1="base" link2="left"/></robot>'
    )
    assert ignored(load(folder)) == {frozenset(("left", "upper")), frozenset(("left", "right"))}


def test_states_are_values(folder):
    robot = load(folder).robot
    assert robot.values("up").tolist() == [2.5, 0.0]
    assert robot.values({**robot.states["up"], **robot.states["hand/home"]}).tolist() == [2.5, 0.25]
    assert np.array_equal(robot.poses("up"), robot.poses([2.5, 0.0]))
    assert robot.valid("up") == robot.valid([2.5, 0.0])
    assert robot.values({"lift": np.linspace(0, 1, 3), "open": 0.5}).tolist() == [
        [0, 0.5],
        [0.5, 0.5],
        [1, 0.5],
    ]
    assert robot.values({}).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ("upp", "did you mean 'up'"),
        ({"lif": 1.0}, "no joint 'lif'; did you mean 'lift'"),
        ({"follow": 1.0}, "no joint 'follow'"),
        ({"open": np.nan}, "joint open is nan"),
        ([1.0, np.inf], "joint open is inf"),
        ([[1.0, 0.0], [np.nan, 0]], "joint lift of configuration 1 is nan"),
        ([1.0], "2 joints"),
        ({"lift": [1, 2], "open": [1, 2, 3]}, "do not go together"),
        ({"lift": [[1, 2]]}, "a number or have shape"),
    ],
)
def test_values_that_are_refused(folder, values, message):
    robot = load(folder).robot
    asked = [robot.values, robot.poses, robot.valid]
    for ask in asked:
        with pytest.raises(abut.SceneError, match=message):
            ask(values)


def test_limits_on_demand(folder):
    robot = load(folder).robot
    assert robot.values([4.0, 0.0]).tolist() == [4.0, 0.0]
    with pytest.raises(abut.SceneError, match=r"lift is 4, outside its limits 0 to 3"):
        robot.values([4.0, 0.0], limits="refuse")
    with pytest.warns(UserWarning, match=r"open of configuration 1 is -1, outside"):
        robot.values([[1.0, 0.0], [1, -1]], limits="warn")
    with pytest.raises(abut.OptionError, match="limits must be one of"):
        robot.values([1.0, 0.0], limits="yes")


def test_written_files_say_the_same(folder):
    scene = load(folder)
    scene.robot.write_srdf(folder / "copy.srdf")
    copy = load(folder, folder / "copy.srdf")
    for name in ("groups", "states", "end_effectors", "pairs"):
        assert getattr(copy.robot, name) == getattr(scene.robot, name)
    assert ignored(copy) == ignored(scene)


def test_written_pairs_are_those_that_are_not_tested(folder):
    """Those of the tree, of ``ignore`` and of ``allow``, not only those that files name."""
    scene = load(folder, srdf=None)
    assert LinkPair("base", "upper", "Adjacent") in scene.robot.pairs
    scene.ignore("base", "right")
    assert LinkPair("base", "right", "User") in scene.robot.pairs
    scene.robot.write_srdf(folder / "copy.srdf")
    copy = load(folder, folder / "copy.srdf")
    assert ignored(copy) == ignored(scene) and copy.robot.pairs == scene.robot.pairs
    states = np.random.default_rng(2).uniform(*scene.robot.limits.T, (200, 2))
    free = scene.robot.valid(states).numpy()
    assert np.array_equal(copy.robot.valid(states).numpy(), free) and 0 < free.sum() < len(free)

    scene = load(folder)
    scene.allow("left", "base")
    assert [pair[:2] for pair in scene.robot.pairs] == [("base", "upper")]


def test_written_pairs_of_links_without_objects_stay(folder):
    text = SRDF.replace("</robot>", '<disable_collisions link1="wrist" link2="left"/></robot>')
    (folder / "arm.srdf").write_text(text)
    assert LinkPair("wrist", "left") in load(folder).robot.pairs


def test_attached_objects_have_no_part_in_pairs(folder):
    scene = load(folder)
    before = scene.robot.pairs
    scene.add(abut.Mesh(*abut.cases.box((1, 1, 1))), name="part")
    scene.robot.attach("part", "left")
    assert scene.robot.pairs == before


def test_pairs_of_links_with_several_objects(tmp_path):
    """An SRDF has no words for a part of the objects of a link."""
    pytest.importorskip("mujoco")
    (tmp_path / "arm.xml").write_text(
        '<mujoco><worldbody><body name="a"><joint type="hinge"/><geom size="1"/><geom size="1"/>'
        '</body><body name="b"><joint type="hinge"/><geom size="1"/></body><body name="c">'
        '<joint type="hinge"/><geom size="1" contype="0"/></body></worldbody>'
        '<contact><exclude body1="a" body2="c"/></contact></mujoco>'
    )
    scene = abut.Scene.load(tmp_path / "arm.xml", "cpu")
    scene.ignore("a/0", "b")
    assert [pair[:2] for pair in scene.robot.pairs] == [("a", "c")]


def test_which_file_is_beside(folder):
    (folder / "arm.srdf").rename(folder / "other.srdf")
    assert "up" in load(folder).robot.states
    (folder / "third.srdf").write_text(SRDF)
    with pytest.raises(abut.FileError, match="2 SRDF files beside"):
        load(folder)
    with pytest.raises(abut.FileError, match="no file"):
        load(folder, folder / "none.srdf")


FAULTS = {
    "cut": ("</robot>", ""),
    "another root": ('<robot name="arm">', "<model>"),
    "unknown link": ('tip_link="wrist"', 'tip_link="wris"'),
    "chain upside down": (
        'base_link="base" tip_link="wrist"',
        'base_link="wrist" tip_link="base"',
    ),
    "unknown joint": ('<joint name="open"/>', '<joint name="ope"/>'),
    "unknown group": ('<group name="hand"/>', '<group name="hands"/>'),
    "group in itself": ('<group name="hand"/>', '<group name="all"/>'),
    "state of no group": ('name="up" group="arm"', 'name="up" group="none"'),
    "state of words": ('value="2.5"', 'value="far"'),
    "state of nan": ('value="2.5"', 'value="nan"'),
    "state without value": (' value="2.5"', ""),
    "state without name": ('group_state name="up"', "group_state"),
    "state of no joint": ('<joint name="lift" value="2.5"/>', '<joint name="x" value="2.5"/>'),
    "pair of one": (' link2="upper"', ""),
    "pair of another": ('link2="upper"', 'link2="uppr"'),
    "effector of no link": ('parent_link="wrist"', 'parent_link="wrst"'),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_damaged_files_are_one_line(folder, fault):
    before, after = FAULTS[fault]
    assert SRDF.count(before) == 1
    text = SRDF.replace(before, after)
    if fault == "another root":
        text = text.replace("</robot>", "</model>")
    (folder / "arm.srdf").write_text(text)
    with pytest.raises(abut.FileError, match=r"arm\.srdf") as error:
        load(folder)
    assert "\n" not in str(error.value)


def test_an_srdf_is_for_a_urdf(folder):
    (folder / "arm.xml").write_text("<mujoco/>")
    with pytest.raises(abut.OptionError, match="srdf is for URDF"):
        abut.Scene.load(folder / "arm.xml", "cpu", srdf=True)


def test_panda(data):
    path = Path(data, "robots", "mbm_panda", "panda.urdf")
    if not path.is_file():
        pytest.skip("there are no such robots in the data folder")
    scene = abut.Scene.load(path, "cpu", srdf=True)
    robot = scene.robot
    assert {"ready", "extended", "transport", "open", "close"} <= set(robot.states)
    assert len(robot.groups["panda_arm"].joints) == 7
    assert LinkPair("panda_link0", "panda_link1", "Adjacent") in robot.pairs
    assert robot.valid("ready") and not robot.valid({"panda_joint2": 1.7, "panda_joint4": -3.05})
