"""Robots that no robot can be, and files that change under the same name."""

import os

import pytest
import trimesh

import abut
from abut.cases import box, icosphere

ROBOT = """<robot name="r">
  <link name="a"><collision><geometry><box size="1 1 1"/></geometry></collision></link>
  <link name="b"><collision><geometry><sphere radius="1"/></geometry></collision></link>
  <link name="c"><collision><geometry><cylinder radius="1" length="2"/></geometry>
    </collision></link>
  <link name="d"><collision><geometry><mesh filename="ball.stl" scale="1 1 1"/></geometry>
    </collision></link>
  <joint name="one" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1"/></joint>
  <joint name="two" type="prismatic"><parent link="b"/><child link="c"/>
    <mimic joint="one" multiplier="2" offset="0"/></joint>
  <joint name="three" type="fixed"><parent link="c"/><child link="d"/><origin xyz="0 0 1"/></joint>
</robot>
"""

FAULTS = {
    "unknown type": ('type="fixed"', 'type="screw"'),
    "floating": ('type="fixed"', 'type="floating"'),
    "missing child": ('<child link="d"/>', '<child link="e"/>'),
    "missing parent": ('<parent link="c"/>', '<parent link="e"/>'),
    "two parents": ('<child link="d"/>', '<child link="b"/>'),
    "cycle": ('<parent link="a"/><child link="b"/>', '<parent link="d"/><child link="b"/>'),
    "own parent": ('<parent link="c"/><child link="d"/>', '<parent link="d"/><child link="d"/>'),
    "duplicate link": ('<link name="b">', '<link name="a">'),
    "duplicate joint": ('<joint name="two"', '<joint name="one"'),
    "nameless link": ('<link name="b">', "<link>"),
    "mimic of nothing": ('<mimic joint="one"', '<mimic joint="none"'),
    "mimic of itself": ('<mimic joint="one"', '<mimic joint="two"'),
    "mimic of a fixed joint": ('<mimic joint="one"', '<mimic joint="three"'),
    "box of two sizes": ('<box size="1 1 1"/>', '<box size="1 1"/>'),
    "negative box": ('<box size="1 1 1"/>', '<box size="1 -1 1"/>'),
    "box without size": ('<box size="1 1 1"/>', "<box/>"),
    "flat box": ('<box size="1 1 1"/>', '<box size="1 0 1"/>'),
    "negative radius": ('<sphere radius="1"/>', '<sphere radius="-1"/>'),
    "radius of words": ('<sphere radius="1"/>', '<sphere radius="one"/>'),
    "infinite radius": ('<sphere radius="1"/>', '<sphere radius="inf"/>'),
    "no length": ('<cylinder radius="1" length="2"/>', '<cylinder radius="1"/>'),
    "negative length": ('length="2"', 'length="-2"'),
    "no filename": (' filename="ball.stl"', ""),
    "empty filename": ('filename="ball.stl"', 'filename=""'),
    "no file": ('filename="ball.stl"', 'filename="none.stl"'),
    "scale of two": ('scale="1 1 1"', 'scale="1 1"'),
    "scale of zero": ('scale="1 1 1"', 'scale="1 0 1"'),
    "no axis": ('<axis xyz="0 0 1"/>', '<axis xyz="0 0 0"/>'),
    "axis of nan": ('<axis xyz="0 0 1"/>', '<axis xyz="nan 0 1"/>'),
    "limits in reverse": ('lower="-1" upper="1"', 'lower="1" upper="-1"'),
    "origin of two": ('<origin xyz="0 0 1"/>', '<origin xyz="0 0"/>'),
    "origin of nan": ('<origin xyz="0 0 1"/>', '<origin xyz="0 0 nan"/>'),
    "cut": ("</robot>", ""),
    "unknown shape": ('<sphere radius="1"/>', '<cone radius="1"/>'),
}


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("yourdfpy")
    trimesh.Trimesh(*icosphere(80), process=False).export(tmp_path / "ball.stl")
    return tmp_path


def test_a_good_robot(folder):
    (folder / "robot.urdf").write_text(ROBOT)
    scene = abut.Scene.load(folder / "robot.urdf", "cpu")
    assert scene.robot.joints == ["one"] and len(scene) == 4


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_urdf(folder, fault):
    """Regressions: raw errors, or robots that were read as something else."""
    before, after = FAULTS[fault]
    assert ROBOT.count(before) == 1
    (folder / "robot.urdf").write_text(ROBOT.replace(before, after))
    with pytest.raises(abut.AbutError, match=r"robot\.urdf") as error:
        abut.Scene.load(folder / "robot.urdf", "cpu")
    assert "\n" not in str(error.value)


MODEL = """<mujoco><asset><mesh name="m" file="part.stl"/></asset>
  <worldbody><body>{joint}<geom type="mesh" mesh="m"/></body></worldbody></mujoco>
"""


def test_mjcf_joints_that_cannot_be_read(tmp_path):
    pytest.importorskip("mujoco")
    trimesh.Trimesh(*icosphere(80)).export(tmp_path / "part.stl")
    (tmp_path / "robot.xml").write_text(MODEL.format(joint="<freejoint/>"))
    with pytest.raises(abut.FileError, match=r"robot\.xml: joint .* neither a hinge nor a slide"):
        abut.Scene.load(tmp_path / "robot.xml", "cpu")


def test_a_mesh_that_was_replaced_at_once(tmp_path):
    """Regression: MuJoCo keeps meshes by path and time."""
    pytest.importorskip("mujoco")
    (tmp_path / "robot.xml").write_text(MODEL.format(joint=""))
    counts = []
    for shape in (icosphere(80), box(), icosphere(320)):
        trimesh.Trimesh(*shape, process=False).export(tmp_path / "part.stl")
        os.utime(tmp_path / "part.stl", (1e9, 1e9))
        counts.append(abut.Scene.load(tmp_path / "robot.xml", "cpu").mesh(0).face_count)
    assert counts == [80, 12, 320]
