"""Distances of objects: nearest ones, given pairs and the nearest two are those of brute force."""

import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import abut
from abut.cases import box, icosphere, torus
from shapes import random_poses

SHAPES = (icosphere(20), torus(6, 5), box())
SLOW = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def same(got, want):
    """Same rows; of faces that meet, any are named."""
    got, want = got.numpy(), want.numpy()
    assert got.keys() == want.keys()
    apart = np.asarray(want["value"]) > 0
    for name in want:
        if name == "points":
            np.testing.assert_allclose(got[name][apart], want[name][apart], rtol=1e-9, atol=1e-9)
        elif name == "faces":
            np.testing.assert_array_equal(got[name][apart], want[name][apart])
        else:
            np.testing.assert_array_equal(got[name], want[name])


@st.composite
def scenes(draw):
    """A scene of touching, nested, far, tiny and huge objects, as a function of the device."""
    count = draw(st.integers(2, 9))
    seed = draw(st.integers(0, 10**6))
    spread = draw(st.sampled_from([0.0, 0.6, 2.0, 6.0, 1e3]))
    snap = draw(st.booleans())
    sizes = draw(
        st.lists(st.sampled_from([1.0, 1.0, 0.3, 1e-4, 20.0]), min_size=count, max_size=count)
    )
    ignored = draw(st.lists(st.tuples(*[st.integers(0, count - 1)] * 2), max_size=3))

    def make(device):
        scene = abut.Scene(device)
        poses = random_poses(count, spread, seed)
        if snap:  # faces, edges and corners touch
            poses[:, :3, :3], poses[:, :3, 3] = np.eye(3), np.round(poses[:, :3, 3])
        for k, (pose, size) in enumerate(zip(poses, sizes, strict=True)):
            vertices, faces = SHAPES[k % 3]
            scene.add(abut.Mesh(vertices * size, faces, device=device), pose, static=k % 5 == 4)
        for i, j in ignored:
            if i != j:
                scene.ignore(i, j)
        return scene

    return make


@SLOW
@given(scenes(), st.integers(1, 4), st.sampled_from([None, 0.0, 0.7, 5.0]))
def test_the_nearest_of_each(device, make, nearest, bound):
    scene, how = make(device), {"nearest": nearest, "upper_bound": bound}
    same(scene.distance(**how), scene.distance(**how, method="brute"))


@SLOW
@given(scenes())
def test_the_nearest_two(device, make):
    scene = make(device)
    same(scene.least_distance(), scene.least_distance(method="brute"))


@SLOW
@given(scenes(), st.data(), st.sampled_from([None, 0.0, 0.7]))
def test_given_pairs(device, make, data, bound):
    scene = make(device)
    row = st.tuples(*[st.integers(0, len(scene) - 1)] * 2).filter(lambda pair: pair[0] != pair[1])
    pairs = data.draw(st.lists(row, min_size=1, max_size=8))
    got = scene.distance(pairs=pairs, upper_bound=bound)
    same(got, scene.distance(pairs=pairs, upper_bound=bound, method="brute"))
    assert got.objects.numpy().tolist() == [list(pair) for pair in pairs]
    poses, most = scene.poses.numpy(), np.inf if bound is None else bound
    for k, pair in enumerate(pairs):
        i, j = sorted(pair)
        about = {"pose_a": poses[i], "pose_b": poses[j], "upper_bound": most}
        assert got.value.numpy()[k] == abut.distance(scene.mesh(i), scene.mesh(j), **about).value


@SLOW
@given(scenes(), st.data(), st.integers(1, 3))
def test_a_part(device, make, data, nearest):
    scene = make(device)
    some = st.lists(st.integers(0, len(scene) - 1), min_size=1, max_size=4)
    part = {"which": data.draw(some), "against": data.draw(st.none() | some)}
    for ask in (
        lambda **how: scene.distance(nearest=nearest, **part, **how),
        lambda **how: scene.distance(upper_bound=2.0, **part, **how),
        lambda **how: scene.least_distance(**part, **how),
    ):
        same(ask(), ask(method="brute"))


@SLOW
@given(scenes(), scenes())
def test_external_objects(device, make, other):
    scene, outside = make(device), other(device)
    for against in (outside, outside.mesh(0)):
        for ask in (scene.distance, scene.least_distance):
            same(ask(against=against), ask(against=against, method="brute"))
        near = scene.distance(against=against)
        assert len(near) == len(scene)
        assert near.value.numpy().min() == scene.least_distance(against=against).value


@SLOW
@given(scenes(), st.integers(0, 100), st.integers(1, 2))
def test_copies(device, make, seed, nearest):
    scene = make(device)
    count = len(scene)
    poses = np.stack([random_poses(count, spread, seed) for spread in (0.0, 1.5, 4.0)])
    pairs = [(1, 0), (0, 1)]
    got = [
        scene.distance(nearest=nearest, poses=poses),
        scene.distance(upper_bound=1.0, poses=poses),
        scene.distance(pairs=pairs, poses=poses),
        scene.least_distance(poses=poses),
    ]
    same(got[0], scene.distance(nearest=nearest, poses=poses, method="brute"))
    same(got[1], scene.distance(upper_bound=1.0, poses=poses, method="brute"))
    same(got[2], scene.distance(pairs=pairs, poses=poses, method="brute"))
    same(got[3], scene.least_distance(poses=poses, method="brute"))
    assert got[3].value.shape == (3,)
    assert got[3].objects.shape == (3, 2)
    for k in range(3):
        scene.move(np.arange(count), poses[k])
        assert got[3].value.numpy()[k] == scene.least_distance().value
        mine = got[0].pose.numpy() == k
        alone = scene.distance(nearest=nearest)
        np.testing.assert_array_equal(got[0].objects.numpy()[mine], alone.objects.numpy())
        np.testing.assert_array_equal(got[0].value.numpy()[mine], alone.value.numpy())


def balls(device, places):
    scene = abut.Scene(device)
    poses = np.tile(np.eye(4), (len(places), 1, 1))
    poses[:, 0, 3] = places
    scene.add(abut.Mesh(*box(), device=device), poses)
    return scene


def test_ties_go_to_the_lowest(device):
    scene = balls(device, [0.0, 4.0, 8.0, 12.0, 40.0])
    assert scene.distance().objects.numpy().tolist() == [[0, 1], [1, 0], [2, 1], [3, 2], [4, 3]]
    near = scene.distance(nearest=2).objects.numpy().tolist()
    assert near[2:6] == [[1, 0], [1, 2], [2, 1], [2, 3]]
    assert scene.least_distance().objects.numpy().tolist() == [0, 1]
    touching = balls(device, [9.0, 4.0, 3.0, 2.0, 30.0])
    assert touching.least_distance().objects.numpy().tolist() == [1, 2]
    assert touching.least_distance().value == 0.0
    assert touching.distance(nearest=2).value.numpy()[4:6].tolist() == [0.0, 0.0]


def test_shapes_of_the_least_distance(device):
    scene = balls(device, [0.0, 4.0, 9.0])
    near = scene.least_distance()
    assert isinstance(near.value, float)
    assert near.value == 3.0
    assert near.points.shape == (2, 3)
    assert near.faces.shape == (2,)
    assert near.objects.shape == (2,)
    again = pickle.loads(pickle.dumps(near))
    assert again.value == 3.0
    np.testing.assert_array_equal(again.points.numpy(), near.points.numpy())


def test_results_stay_when_objects_move(device):
    scene = balls(device, [0.0, 4.0, 9.0])
    near, least = scene.distance(), scene.least_distance()
    scene.move(1, np.diag([1.0, 1.0, 1.0, 1.0]) + np.eye(4, k=3) * 50.0)
    np.testing.assert_allclose(near.points.numpy()[0, :, 0], [0.5, 3.5])
    np.testing.assert_allclose(least.points.numpy()[:, 0], [0.5, 3.5])


def test_nothing_to_measure(device):
    scene = abut.Scene(device)
    for _ in range(2):
        near = scene.least_distance()
        assert near.value == np.inf
        assert near.objects.numpy().tolist() == [-1, -1]
        assert near.faces.numpy().tolist() == [-1, -1]
        assert np.isnan(near.points.numpy()).all()
        assert len(scene.distance(nearest=3)) == 0
        assert len(scene.distance(pairs=[])) == 0
        scene.add(abut.Mesh(*box(), device=device))
    empty = scene.add(abut.Mesh(np.zeros((0, 3)), np.zeros((0, 3), np.int32), device=device))
    assert scene.distance(pairs=[(0, empty)]).value.numpy().tolist() == [np.inf]
    assert len(scene.distance(which=empty)) == 0
    assert scene.least_distance(which=empty).value == np.inf


def test_ignored_pairs_can_be_given(device):
    scene = balls(device, [0.0, 4.0])
    scene.ignore(0, 1)
    assert scene.least_distance().value == np.inf
    assert scene.distance(pairs=[(1, 0)]).value.numpy().tolist() == [3.0]


def test_refused(device):
    scene = balls(device, [0.0, 4.0])
    for bad in ({"nearest": 0}, {"nearest": 1.5}, {"pairs": [(0, 1)], "nearest": 1}):
        with pytest.raises(abut.OptionError):
            scene.distance(**bad)
    with pytest.raises(abut.OptionError, match="shape"):
        scene.distance(pairs=[0, 1])
    with pytest.raises(abut.SceneError, match="itself"):
        scene.distance(pairs=[(0, 1), (1, 1)])
    with pytest.raises(abut.SceneError, match="no object 7"):
        scene.distance(pairs=[(0, 7)])


def test_no_copies(device):
    scene, none = balls(device, [0.0, 4.0]), np.empty((0, 2, 4, 4))
    assert scene.least_distance(poses=none).value.shape == (0,)
    assert len(scene.distance(poses=none)) == 0
    assert len(scene.distance(poses=none, pairs=[(0, 1)])) == 0


def test_swept_spheres_follow_the_shapes(device):
    """Searches fit volumes to trees and keep them: they must not outlive the trees."""
    scene, shape = abut.Scene(device), icosphere(320)
    rng = np.random.default_rng(0)
    mesh = abut.Mesh(*shape, device=device)
    for pose in random_poses(6, 2.5, 5):
        scene.add(mesh, pose)
    for step in range(4):
        same(scene.distance(nearest=2), scene.distance(nearest=2, method="brute"))
        if step == 0:
            scene.deform(2, shape.vertices * [0.3, 2.0, 1.0])
        elif step == 1:
            scene.split(3, np.arange(len(shape.faces)) // 100)
        elif step == 2:
            scene.remove([0, 2])
            larger = shape.vertices * rng.uniform(0.5, 2.0, 3)
            scene.add(abut.Mesh(larger, shape.faces, device=device), random_poses(1, 2.5, 9)[0])
            mesh.deform(shape.vertices * 1.3)
