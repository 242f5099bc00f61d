"""``abut robot``."""

import json

import pytest
import trimesh

from abut.cli import main

URDF = """<robot name="arm">
  <link name="base"><collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
  <link name="bare"/>
  <link name="tool"><collision><origin xyz="1 0 0"/><geometry><box size="0.2 0.2 0.2"/></geometry>
    </collision></link>
  <joint name="push" type="prismatic"><parent link="base"/><child link="bare"/>
    <axis xyz="1 0 0"/><limit lower="-2" upper="2"/></joint>
  <joint name="lift" type="prismatic"><parent link="bare"/><child link="tool"/>
    <axis xyz="0 0 1"/><limit lower="0" upper="1"/></joint>
</robot>
"""
SRDF = """<robot name="arm"><group name="all"><joint name="push"/><joint name="lift"/></group>
  <group_state name="out" group="all"><joint name="push" value="1.5"/></group_state></robot>
"""
SHELF = """world: {collision_objects: [{id: shelf,
  primitives: [{type: box, dimensions: [1, 1, 0.1]}],
  primitive_poses: [{position: [2.5, 0, 0.5], orientation: [0, 0, 0, 1]}]}]}
"""


@pytest.fixture
def ask(tmp_path, capsys, monkeypatch):
    """Run the command and return its status and its report."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(URDF)
    (tmp_path / "arm.srdf").write_text(SRDF)
    (tmp_path / "shelf.yaml").write_text(SHELF)
    trimesh.creation.box((0.2, 0.2, 0.2)).apply_translation((2, 0, 0)).export("post.stl")

    def run(*words):
        status = main(["robot", "arm.urdf", *map(str, words), "--device", "cpu"])
        told = capsys.readouterr()
        return status, json.loads(told.out) if "--json" in words else told.out + told.err

    return run


def test_configurations(ask):
    status, found = ask("post.stl", "--json")
    assert status == 0 and found["free"] and found["contacts"] == []
    status, found = ask("post.stl", "--joints", "1", "0.1", "--json")
    assert status == 1 and found["contacts"] == [["tool", "post"]]
    status, found = ask("post.stl", "--joints", "push=-1", "--json")
    assert status == 1 and found["contacts"] == [["base", "tool"]]
    status, found = ask("--joints", "-3", "0", "--json")
    assert status == 0 and found["outside_limits"] == ["push"]


def test_an_srdf_beside_a_robot_that_touches_itself_is_named(ask):
    status, told = ask("--joints", "push=-1")
    assert status == 1 and "--srdf reads arm.srdf" in told
    assert "--srdf" not in ask("--joints", "push=-1", "--srdf")[1]
    assert "--srdf" not in ask("--joints", "push=1")[1]


def test_joints_of_several_values(ask, tmp_path):
    text = URDF.replace('type="prismatic"', 'type="floating"', 1)
    (tmp_path / "arm.urdf").write_text(text)
    status, found = ask("post.stl", "--joints", "push=1,0,0.1,1,0,0,0", "--json")
    assert status == 1 and found["contacts"] == [["tool", "post"]]
    assert found["outside_limits"] == [] and len(found["joints"]) == 8
    status, found = ask("post.stl", "--joints", "push/trans_x=-3", "--sample", 20, "--json")
    assert status == 0 and found["sample"]["configurations"] == 20
    status, told = ask("--joints", "push=1,0,0.1")
    assert status == 2 and "push has 7 values, x y z w x y z" in told


def test_motions_and_states(ask):
    status, found = ask("post.stl", "--srdf", "--to", "out", "--json")
    assert status == 1 and found["free"]
    assert found["motion"]["time"] == pytest.approx(0.8 / 1.5, abs=1e-4)
    assert found["motion"]["objects"] == ["tool", "post"]
    status, told = ask("--srdf", "arm.srdf", "--joints", "out", "--to", "push=0")
    assert status == 0 and "free all the way" in told


def test_planning_scenes_and_samples(ask):
    pytest.importorskip("yaml")
    status, found = ask("shelf.yaml", "--joints", "push=1.5", "lift=0.45", "--json")
    assert status == 1 and found["contacts"] == [["tool", "shelf"]]
    status, found = ask("shelf.yaml", "--sample", "400", "--seed", "3", "--json")
    assert status == 0 and 100 < found["sample"]["free"] < 395
    assert (
        found["sample"]
        == ask("shelf.yaml", "--sample", "400", "--seed", "3", "--json")[1]["sample"]
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--joints", "up"], "there are: none; --srdf reads those of an SRDF"),
        (["--joints", "push=far"], "neither numbers"),
        (["--joints", "pull=1"], "no joint 'pull'"),
        (["--joints", "1"], "2 joints"),
        (["--joints", "push=nan"], "joint push is nan"),
        (["nothing.stl"], "no file"),
        (["--srdf", "none.srdf"], "no file"),
    ],
)
def test_errors_are_one_line(ask, words, message):
    status, told = ask(*words)
    assert status == 2 and message in told and len(told.splitlines()) == 1


def test_a_file_that_is_no_robot(ask, capsys):
    assert main(["robot", "post.stl", "--device", "cpu"]) == 2
    assert "is no robot" in capsys.readouterr().err


def test_a_picture(ask, tmp_path):
    status, _ = ask("post.stl", "--picture", "arm.png", "--size", "60x40")
    assert status == 0 and (tmp_path / "arm.png").stat().st_size > 100
