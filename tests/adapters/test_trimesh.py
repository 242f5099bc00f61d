"""The manager has trimesh's methods and returns, and abut's answers."""

import gc
import inspect

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

import abut
from abut.adapters.trimesh import CollisionManager, scene_to_collision
from abut.errors import AbutError, PoseError
from shapes import random_poses


def at(x, y=0.0, z=0.0):
    pose = np.eye(4)
    pose[:3, 3] = x, y, z
    return pose


def balls(device, count=8, spread=1.6, seed=0):
    manager = CollisionManager(device)
    ball = trimesh.creation.icosphere(subdivisions=1)
    poses = random_poses(count, spread, seed)
    for k, pose in enumerate(poses):
        manager.add_object(f"ball {k}", ball, pose)
    return manager, ball, poses


def test_methods_are_those_of_trimesh():
    theirs = trimesh.collision.CollisionManager
    for name, method in inspect.getmembers(theirs, inspect.isfunction):
        if not name.startswith("_"):
            ours = inspect.signature(getattr(CollisionManager, name)).parameters
            for known, parameter in inspect.signature(method).parameters.items():
                assert ours[known].default == parameter.default, (name, known)
    for kind in ("ContactData", "DistanceData"):
        for name in vars(getattr(trimesh.collision, kind)):
            if not name.startswith("_"):
                assert name in vars(getattr(abut.adapters.trimesh, kind)) or name in (
                    "point",
                    "distance",
                )


def test_collisions_are_those_of_the_meshes(device):
    manager, ball, poses = balls(device)
    mesh, pose = abut.Mesh(ball.vertices, ball.faces, device), at(0.4)
    rows = [abut.collide(mesh, mesh, pose_a=poses[k], pose_b=pose) for k in range(8)]
    single = {f"ball {k}" for k, hits in enumerate(rows) if hits.colliding}
    assert manager.in_collision_single(ball, pose, return_names=True) == (True, single)
    found, names, data = manager.in_collision_single(ball, pose, True, True)
    assert found is True and names == single
    assert len(data) == sum(map(len, rows))
    start = 0
    for k, hits in enumerate(rows):
        for contact, faces, segment in zip(
            data[start:], hits.pairs.numpy(), hits.segments.numpy(), strict=False
        ):
            assert contact.names == {f"ball {k}", "__external"}
            assert [contact.index(f"ball {k}"), contact.index("__external")] == faces.tolist()
            assert np.array_equal(contact.point, segment.mean(axis=0))
        start += len(hits)
    pairs = {
        (f"ball {i}", f"ball {j}")
        for i in range(8)
        for j in range(i + 1, 8)
        if abut.collide(mesh, mesh, pose_a=poses[i], pose_b=poses[j]).colliding
    }
    assert 0 < len(pairs) < 28
    assert manager.in_collision_internal(return_names=True) == (True, pairs)
    found, data = manager.in_collision_internal(return_data=True)
    assert found and {tuple(sorted(c.names)) for c in data} == pairs


def test_managers_collide_with_each_other(device):
    (manager, *_), (other, *_) = balls(device, 5, 3.0), balls(device, 6, 3.0, 1)
    mine, theirs = ([one.scene.mesh(i) for i in one.scene.indices] for one in (manager, other))
    poses = [one.scene.poses.numpy() for one in (manager, other)]
    pairs, least = set(), np.inf
    for i, a in enumerate(mine):
        for j, b in enumerate(theirs):
            where = {"pose_a": poses[0][i], "pose_b": poses[1][j]}
            if abut.collide(a, b, **where).colliding:
                pairs.add((f"ball {i}", f"ball {j}"))
            least = min(least, abut.distance(a, b, **where).value)
    assert manager.in_collision_other(other) is bool(pairs) is True
    assert manager.in_collision_other(other, return_names=True) == (True, pairs)
    assert manager.min_distance_other(other) == least == 0.0


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_answers_are_those_of_trimesh(device, seed):
    """Of meshes that are not convex, which trimesh takes as surfaces too."""
    pytest.importorskip("fcl", reason="needs python-fcl, of abut's extras")
    ring = trimesh.creation.torus(1.0, 0.3, major_sections=12, minor_sections=8)
    poses = random_poses(14, 6.0, seed).astype(np.float32).astype(float)  # trimesh rounds them
    ours, theirs = CollisionManager(device), trimesh.collision.CollisionManager()
    others = CollisionManager(device), trimesh.collision.CollisionManager()
    for k, pose in enumerate(poses):
        for manager in (ours, theirs) if k < 9 else others:
            manager.add_object(f"ring {k}", ring, pose)
    pairs = [(ours, others[0]), (theirs, others[1])]
    for ask in (
        lambda manager, _: manager.in_collision_single(ring, return_names=True),
        lambda manager, _: manager.in_collision_internal(return_names=True),
        lambda manager, other: manager.in_collision_other(other, return_names=True),
    ):
        assert ask(*pairs[0]) == ask(*pairs[1])
        assert ask(*pairs[0])[0] is bool(ask(*pairs[0])[1])
    for ask in (
        lambda manager, _: manager.min_distance_single(ring, at(9), return_name=True),
        lambda manager, _: manager.min_distance_internal("ring 3"),
        lambda manager, other: manager.min_distance_other(other),
    ):
        (found, *name), (expected, *known) = (np.atleast_1d(ask(*pair)).tolist() for pair in pairs)
        assert name == known
        assert np.isclose(float(found), float(expected), rtol=0, atol=1e-5)


def test_distances(device):
    manager, ball, poses = balls(device, 6, 8.0)
    mesh = abut.Mesh(ball.vertices, ball.faces, device)
    values = {
        (i, j): abut.distance(mesh, mesh, pose_a=poses[i], pose_b=poses[j]).value
        for i in range(6)
        for j in range(i + 1, 6)
    }
    i, j = min(values, key=values.get)
    names = (f"ball {i}", f"ball {j}")
    assert values[i, j] > 0
    assert manager.min_distance_internal(return_names=True) == (values[i, j], names)
    of_two = {pair: value for pair, value in values.items() if 2 in pair}
    i, j = min(of_two, key=of_two.get)
    value, names, data = manager.min_distance_internal("ball 2", True, True)
    assert value == data.distance == of_two[i, j] and names == (f"ball {i}", f"ball {j}")
    assert data.names == set(names)
    between = np.linalg.norm(data.point(names[0]) - data.point(names[1]))
    assert np.isclose(between, value)
    for name in names:
        k = int(name.split()[1])
        corners = ball.triangles[data.index(name)] @ poses[k][:3, :3].T + poses[k][:3, 3]
        near = trimesh.triangles.closest_point(corners[None], data.point(name)[None])[0]
        assert np.allclose(near, data.point(name), atol=1e-9)
    value, name = manager.min_distance_single(ball, at(30), return_name=True)
    singles = [abut.distance(mesh, mesh, pose_a=pose, pose_b=at(30)).value for pose in poses]
    assert value == min(singles) and name == f"ball {int(np.argmin(singles))}"


def test_objects_come_move_and_go(device):
    manager = CollisionManager(device)
    ball = trimesh.creation.icosphere(subdivisions=1)
    nothing = manager.min_distance_internal(return_names=True, return_data=True)
    assert nothing == (np.inf, None, None)
    assert manager.in_collision_single(ball) is False
    manager.add_object("a", ball)
    manager.add_object("b", ball, at(1))
    assert manager.in_collision_internal() is True
    manager.set_transform("b", at(5))
    assert manager.in_collision_internal() is False
    manager.add_object("b", trimesh.creation.box(), at(1))  # replaces it
    assert manager.in_collision_internal(return_names=True) == (True, {("a", "b")})
    assert len(manager.scene) == 2
    manager.remove_object("a")
    assert manager.in_collision_internal() is False
    for refused in (manager.remove_object, lambda name: manager.set_transform(name, at(0))):
        with pytest.raises(ValueError, match="no object named 'a'"):
            refused("a")
    with pytest.raises(PoseError, match="4, 4"):
        manager.add_object("c", ball, np.eye(3))
    with pytest.raises(PoseError, match="rigid"):
        manager.add_object("b", ball, np.diag([2.0, 2, 2, 1]))
    assert manager.in_collision_single(ball, at(2), return_names=True)[1] == {"b"}


def test_meshes_are_kept_while_they_are_equal(device):
    manager = CollisionManager(device)
    ball = trimesh.creation.icosphere(subdivisions=1)
    manager.add_object("a", ball)
    manager.add_object("b", ball, at(9))
    assert manager.scene.mesh(0) is manager.scene.mesh(1)
    ball.apply_scale(4.0)
    assert manager.in_collision_single(ball, at(5)) is True
    assert manager.in_collision_internal() is False  # objects keep their shape
    del ball
    gc.collect()
    assert not manager._meshes


def test_other_meshes(device):
    """Primitives of trimesh, shapes of abut and its meshes; nothing that is no mesh."""
    manager, shape = CollisionManager(device), abut.cases.box()
    primitive = trimesh.primitives.Box()
    manager.add_object("primitive", primitive)
    manager.add_object("shape", shape, at(1))
    manager.add_object("mesh", abut.Mesh(*shape, device), at(2))
    names = {("mesh", "shape"), ("primitive", "shape")}
    assert manager.in_collision_internal(return_names=True) == (True, names)
    primitive.primitive.extents = [9, 9, 9]
    assert manager.in_collision_single(primitive, at(6.5), return_names=True)[1] == {"mesh"}
    with pytest.raises(AttributeError):
        manager.add_object("cloud", trimesh.PointCloud(shape.vertices))
    empty = trimesh.Trimesh()
    manager.add_object("empty", empty)
    assert manager.in_collision_single(empty) is False
    assert manager.min_distance_single(empty) == np.inf


def test_contacts_have_no_depth(device):
    manager = CollisionManager(device)
    ball = trimesh.creation.icosphere(subdivisions=1)
    manager.add_object("a", ball)
    (contact, *_) = manager.in_collision_single(ball, at(0.5), return_data=True)[1]
    for name in ("depth", "normal"):
        with pytest.raises(AbutError, match="two faces have no"):
            getattr(contact, name)


def test_a_scene_of_trimesh():
    scene = trimesh.Scene()
    scene.add_geometry(trimesh.creation.box(), node_name="box", geom_name="shape")
    scene.add_geometry(trimesh.creation.icosphere(), node_name="ball", transform=at(0.9))
    manager, objects = scene_to_collision(scene)
    assert set(objects) == {"box", "ball"}
    assert manager.in_collision_internal(return_names=True) == (True, {("ball", "box")})
