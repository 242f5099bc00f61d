"""Robots that no robot can be, and files that change under the same name."""

import os

import numpy as np
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
    "mimic of a floating joint": ('type="fixed"', 'type="floating"><mimic joint="one"/'),
    "two roots": ('<child link="d"/>', '<child link="c"/>'),
    "capsule without length": ('<sphere radius="1"/>', '<capsule radius="1"/>'),
    "two shapes": ('<sphere radius="1"/>', '<sphere radius="1"/><sphere radius="1"/>'),
    "no shape": ('<sphere radius="1"/>', ""),
    "macros": ('radius="1" length="2"', 'radius="${r}" length="2"'),
    "macro": ('<sphere radius="1"/>', '<x:s xmlns:x="http://ros.org/wiki/xacro"/>'),
    "argument": ('filename="ball.stl"', 'filename="$(arg m)"'),
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


def test_mimics_of_mimics(tmp_path):
    """They follow the joint that has a value: scales multiply, and offsets are scaled."""
    text = ROBOT.replace("ball.stl", str(tmp_path / "ball.stl"))
    text = text.replace('name="three" type="fixed"', 'name="three" type="prismatic"')
    text = text.replace(
        '<child link="d"/>', '<child link="d"/><mimic joint="two" multiplier="-3" offset="0.25"/>'
    ).replace('multiplier="2" offset="0"', 'multiplier="2" offset="0.5"')
    trimesh.Trimesh(*icosphere(80), process=False).export(tmp_path / "ball.stl")
    (tmp_path / "robot.urdf").write_text(text)
    kinematics = abut.Scene.load(tmp_path / "robot.urdf", "cpu").robot.kinematics
    moves = {name: kinematics.moves[k] for k, name in enumerate(kinematics.links)}
    assert [(m.column, m.scale, m.shift) for m in moves["c"]] == [(0, 2.0, 0.5)]
    assert [(m.column, m.scale, m.shift) for m in moves["d"]] == [(0, -6.0, -1.25)]


def test_collision_shapes_are_read_without_the_visual_ones(tmp_path):
    """Regression: a visual that cannot be read stood in the way."""
    text = ROBOT.replace('<link name="b">', '<link name="b"><visual><geometry/></visual>')
    (tmp_path / "robot.urdf").write_text(
        text.replace('<mesh filename="ball.stl" scale="1 1 1"/>', "<box size='1 1 1'/>")
    )
    assert len(abut.Scene.load(tmp_path / "robot.urdf", "cpu")) == 4


def test_a_name_space_of_all_elements(tmp_path):
    """As files of Drake have one."""
    text = '<robot xmlns="http://drake.mit.edu" name="r"><link name="a"><collision><geometry>'
    text += '<box size="1 1 1"/></geometry></collision></link></robot>'
    (tmp_path / "robot.urdf").write_text(text)
    assert abut.Scene.load(tmp_path / "robot.urdf", "cpu").names == {"a": 0}


def test_capsules_of_a_urdf(tmp_path):
    """Their length is that of the straight part, as of Bullet, Drake and Coal."""
    (tmp_path / "robot.urdf").write_text(
        '<robot name="r"><link name="a"><collision><geometry><capsule radius="0.1" length="0.4"/>'
        "</geometry></collision></link></robot>"
    )
    part = abut.Scene.load(tmp_path / "robot.urdf", "cpu")["a"]
    low, high = part.mesh.bounds
    assert 0 < part.deviation < 1e-3
    assert ((high >= [0.1, 0.1, 0.3]) & (high <= np.add([0.1, 0.1, 0.3], part.deviation))).all()
    assert np.allclose(low, -high)


UNITS = {"": 1.0, '<unit name="millimeter" meter="0.001"/>': 0.001, '<unit name="meter"/>': 1.0}


@pytest.mark.parametrize("unit", UNITS)
def test_units_of_collada_files(tmp_path, unit):
    """Regression: millimetres were read as metres."""
    pytest.importorskip("collada")
    text = trimesh.creation.box((1, 2, 3)).export(file_type="dae")
    text = text.decode() if isinstance(text, bytes) else text
    assert "<up_axis>" in text and "<unit" not in text
    (tmp_path / "BOX.DAE").write_text(text.replace("<up_axis>", unit + "<up_axis>"))
    (tmp_path / "robot.urdf").write_text(
        '<robot name="r"><link name="a"><collision><geometry>'
        '<mesh filename="BOX.DAE" scale="2 2 2"/></geometry></collision></link></robot>'
    )
    mesh = abut.Scene.load(tmp_path / "robot.urdf", "cpu").mesh("a")
    assert np.allclose(mesh.bounds[1], np.array([1, 2, 3]) * UNITS[unit])


def test_a_macro_file(tmp_path):
    (tmp_path / "robot.urdf.xacro").write_text("<robot/>")
    with pytest.raises(abut.FileError, match=r"xacro FILE > robot\.urdf"):
        abut.Scene.load(tmp_path / "robot.urdf.xacro", "cpu")


def test_flexible_bodies_are_refused(tmp_path):
    """Regression: they were left out."""
    pytest.importorskip("mujoco")
    (tmp_path / "robot.xml").write_text(
        '<mujoco><worldbody><geom size=".1"/><flexcomp type="grid" count="3 3 1" spacing=".1 .1 .1"'
        ' name="cloth" dim="2" radius=".01"/></worldbody></mujoco>'
    )
    with pytest.raises(abut.FileError, match=r"robot\.xml has a flexible body"):
        abut.Scene.load(tmp_path / "robot.xml", "cpu")


def test_pairs_that_a_model_names(tmp_path):
    """Regression: MuJoCo tests them whatever else excludes them, also shapes of no other pair."""
    pytest.importorskip("mujoco")
    off = 'contype="0" conaffinity="0"'
    (tmp_path / "robot.xml").write_text(
        f'<mujoco><worldbody><body name="a"><joint/><geom name="a" size="1" {off}/>'
        f'<geom name="c" size="1"/></body><body name="b"><joint/><geom name="b" size="1" {off}/>'
        '<geom name="d" size="1"/></body></worldbody><contact><exclude body1="a" body2="b"/>'
        '<pair geom1="a" geom2="b"/></contact></mujoco>'
    )
    scene = abut.Scene.load(tmp_path / "robot.xml", "cpu")
    hits = scene.collide(first=True).object_pairs.numpy()
    named = {frozenset(scene.name_of(k) for k in pair) for pair in hits.tolist()}
    assert named == {frozenset("ab")} and not scene.robot.valid([0, 0])


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
