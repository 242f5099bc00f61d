"""Scenes made of meshes, and their objects by name."""

import pickle

import numpy as np
import pytest
import trimesh

import abut
from abut import cases
from shapes import random_poses


def gem(device, shift=0.0):
    vertices, faces = cases.gem(20)
    return abut.Mesh(vertices + np.array([shift, 0.0, 0.0]), faces, device)


def by_hand(device, *meshes, names=()):
    scene = abut.Scene(device)
    for mesh, name in zip(meshes, names or [None] * len(meshes), strict=True):
        scene.add(mesh, name=name)
    return scene


def same(got, want):
    got, want = got.numpy(), want.numpy()
    for name in want:
        np.testing.assert_array_equal(got[name], want[name])


def test_a_scene_of_meshes(device):
    a, b = gem(device), gem(device, 0.3)
    for objects in ([a, b], (a, b), {"one": a, "two": b}, iter([a, b])):
        scene = abut.Scene(objects)
        assert len(scene) == 2 and scene.device == a.device
        same(scene.collide(), by_hand(device, a, b).collide())
    assert abut.Scene({"one": a, "two": b}).names == {"one": 0, "two": 1}
    assert len(abut.Scene(a)) == 1 and len(abut.Scene([])) == 0


def test_a_scene_of_a_device_as_before(device):
    assert len(abut.Scene(device)) == 0
    assert abut.Scene(device).device == abut.Scene(device=device).device == gem(device).device
    assert abut.Scene(gem(device).device).device == gem(device).device
    assert abut.Scene([gem(device)], device).device == gem(device).device


def test_other_arguments_are_refused(device):
    with pytest.raises(abut.OptionError, match=r"robot\.urdf is a file; abut\.Scene\.load reads"):
        abut.Scene("robot.urdf")
    with pytest.raises(abut.SceneError, match="made of meshes or a dict of them, not int"):
        abut.Scene(7)
    with pytest.raises(abut.MeshError, match=r"mesh must be an abut\.Mesh, not float"):
        abut.Scene([1.0], device)
    with pytest.raises(abut.DeviceError, match="there is no device 'gpu'"):
        abut.Scene("gpu")


def test_meshes_of_trimesh(device):
    ball = trimesh.creation.icosphere(2)
    mesh = abut.Mesh.from_trimesh(ball, device)
    want = by_hand(device, mesh, gem(device), names=("ball", "gem"))
    scene = by_hand(device, ball, gem(device), names=("ball", "gem"))
    assert scene.mesh("ball").device == mesh.device
    same(scene.collide(), want.collide())
    same(abut.Scene({"ball": ball, "gem": gem(device)}, device).collide(), want.collide())
    with pytest.raises(abut.MeshError, match=r"not Trimesh; abut\.Mesh\.from_trimesh makes one"):
        abut.collide(mesh, ball)


def test_an_object_by_name(device):
    scene = by_hand(device, gem(device), gem(device, 3.0), names=("left", "right"))
    right = scene["right"]
    assert (right.index, right.name) == (1, "right")
    assert right.mesh is scene.mesh("right")
    assert repr(right).startswith("SceneObject(1, 'right', Mesh(")
    np.testing.assert_array_equal(right.pose, np.eye(4))
    pose = random_poses(1, 0.1)[0]
    right.pose = pose
    np.testing.assert_array_equal(right.pose, pose)
    np.testing.assert_array_equal(scene.pose_of("right"), pose)
    right.pose[0, 3] = 9.0  # a copy
    np.testing.assert_array_equal(right.pose, pose)
    scene.rename(right, "other")
    assert right.name == "other" and scene["other"] == right


def test_an_object_is_a_handle(device):
    scene = by_hand(device, gem(device), gem(device, 0.3), gem(device, 9.0), names="abc")
    a, b = scene["a"], scene[1]
    assert a == 0 and b == scene["b"] and a != b and {a, b} == {0, 1}
    hits = scene.collide(which=a, against=[b, "c"])
    same(hits, scene.collide(which=0, against=[1, 2]))
    assert (hits.objects.numpy() == [a.index, b.index]).all()
    scene.ignore(a, b)
    assert len(scene.collide()) == 0
    scene.move(b, np.eye(4))
    scene.remove(a)
    assert "a" not in scene and 0 not in scene and "b" in scene and 1 in scene and b in scene
    with pytest.raises(abut.SceneError, match="no object 0"):
        scene[a]
    with pytest.raises(abut.SceneError, match="no object named 'a'"):
        scene["a"]
    assert [one.name for one in scene] == ["b", "c"]
    assert [one.name for one in pickle.loads(pickle.dumps(scene))] == ["b", "c"]


def test_objects_compare_with_columns_of_results(device):
    scene = by_hand(device, gem(device), gem(device, 0.3), names="ab")
    rows = scene.collide().objects.numpy()
    assert ((rows == scene["b"]) == (rows == 1)).all()
    assert scene.name_of(rows[0]).tolist() == ["a", "b"]
    assert 7 not in scene and "c" not in scene and None not in scene
    with pytest.raises(abut.OptionError, match=r"pose is that of a mesh, against=mesh; poses="):
        scene.collide(pose=np.eye(4))
