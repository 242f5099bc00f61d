"""The nearest two objects of scenes that change, beside brute force and a fresh scene."""

import numpy as np
import pytest

import abut
from abut.cases import box, icosphere, torus
from abut.scene.least_search import MOST_SWEPT, LeastSearch
from shapes import random_poses

SHAPES = (icosphere(20), torus(5, 4), box())


def agree(got, want):
    """The same two objects and distance; the same faces where they are apart."""
    assert got.value == want.value
    np.testing.assert_array_equal(got.objects.numpy(), want.objects.numpy())
    if 0 < got.value < np.inf:
        np.testing.assert_array_equal(got.faces.numpy(), want.faces.numpy())
        np.testing.assert_allclose(got.points.numpy(), want.points.numpy(), rtol=1e-9, atol=1e-9)
        between = np.linalg.norm(np.diff(got.points.numpy(), axis=0))
        np.testing.assert_allclose(between, got.value, rtol=1e-9, atol=1e-12)


def same_point(scene, near):
    """Of objects that meet, both points are one that lies on both faces."""
    p, q = near.points.numpy()
    np.testing.assert_array_equal(p, q)
    for i, face in zip(near.objects.numpy(), near.faces.numpy(), strict=True):
        mesh, pose = scene.mesh(int(i)), scene.pose_of(int(i))
        one = abut.Mesh(mesh.vertices.numpy(), mesh.faces.numpy()[face : face + 1], mesh.device)
        there = np.linalg.inv(pose) @ [*p, 1.0]
        assert abut.closest_point(one, there[None, :3]).distance.numpy()[0] < 1e-9


def edit(scene, rng, extent):
    """Change a scene in one of all ways, as often as not many objects."""
    rows = scene.indices
    some = rng.permutation(rows)[: rng.integers(1, len(rows))]
    other = some[:1] if len(some) == 1 else some[1:2]
    what = rng.integers(8)
    if what == 0:
        scene.move(some, random_poses(len(some), extent, int(rng.integers(1000))))
    elif what == 1 and len(rows) > 4:
        scene.remove(some[:2])
    elif what == 2:
        shape = SHAPES[rng.integers(3)]
        mesh = abut.Mesh(shape.vertices * rng.uniform(0.3, 1.5), shape.faces, device=scene.device)
        scene.add(mesh, random_poses(2, extent, int(rng.integers(1000))), static=bool(what % 2))
    elif what == 3 and other[0] != some[0]:
        scene.ignore(int(some[0]), int(other[0]))
    elif what == 4:
        scene.set(some, static=bool(rng.integers(2)), group=int(rng.integers(1, 4)), mask=1)
    elif what == 5:
        points = scene.mesh(int(some[0])).vertices.numpy()
        scene.deform(int(some[0]), points * rng.uniform(0.5, 1.5, 3))
    elif what == 6:
        scene.poses.numpy()  # a caller may write into them from now on
        scene.poses.assign(random_poses(len(scene.poses), extent, int(rng.integers(1000))))
    else:
        scene.set(some, static=False, group=1, mask=-1)


def fresh(scene):
    """A scene of the same objects, without a past."""
    out, at = abut.Scene(scene.device), {}
    for i in scene.indices.tolist():
        row = scene._objects
        filters = {name: int(getattr(row, name)[i]) for name in ("static", "group", "mask")}
        at[i] = out.add(scene.mesh(i), scene.pose_of(i), **filters)
    for i, j in scene._objects.ignored.pairs.tolist():
        out.ignore(at[i], at[j])
    return out, list(at)


@pytest.mark.parametrize("extent", [0.5, 3.0, 9.0])
def test_edits(device, extent):
    rng, scene = np.random.default_rng(int(extent * 10)), abut.Scene(device)
    for shape in SHAPES:
        scene.add(abut.Mesh(*shape, device=device), random_poses(4, extent, int(rng.integers(9))))
    for step in range(16):
        edit(scene, rng, extent)
        near = scene.least_distance()
        agree(near, scene.least_distance(method="brute"))
        if near.value == 0:
            same_point(scene, near)
        other, rows = fresh(scene)
        again = other.least_distance()
        assert again.value == near.value
        assert [rows[i] for i in again.objects.numpy() if i >= 0] == [
            i for i in near.objects.numpy() if i >= 0
        ]
        if step % 4 == 0:
            part = {"which": rng.permutation(scene.indices)[:3], "against": scene.indices[::2]}
            agree(scene.least_distance(**part), scene.least_distance(**part, method="brute"))
            outside = {"which": scene.indices[:3], "against": other}
            agree(scene.least_distance(**outside), scene.least_distance(**outside, method="brute"))


def served(monkeypatch):
    """What LeastSearch answers from now on."""
    answers, find = [], LeastSearch.find
    monkeypatch.setattr(LeastSearch, "find", lambda *of: answers.append(find(*of)) or answers[-1])
    return answers


@pytest.mark.parametrize("spread", [2.0, 20.0])
def test_one_search_answers_on_the_cpu(spread, monkeypatch):
    answers, scene = served(monkeypatch), abut.Scene("cpu")
    scene.add(abut.Mesh(*torus(6, 5), device="cpu"), random_poses(14, spread, 3))
    for k in range(3):
        scene.move(k, random_poses(1, spread, 50 + k)[0])
        agree(scene.least_distance(), scene.least_distance(method="brute"))
    assert all(answers)
    assert len(answers) == 3


def test_exact_contacts_are_left_to_another_search(monkeypatch):
    answers, scene = served(monkeypatch), abut.Scene("cpu")
    poses = np.tile(random_poses(1, 1.0, 7)[0], (30, 1, 1))
    poses[:, :3, 3] += np.arange(30)[:, None] * poses[0, :3, 0]  # boxes in a row, side to side
    scene.add(abut.Mesh(*box(), device="cpu"), poses)
    want = scene.least_distance(method="brute")
    for _ in range(20):
        agree(scene.least_distance(), want)
    assert not any(answers)


def test_other_searches_serve_far_objects_bad_poses_and_large_scenes(monkeypatch):
    answers, scene = served(monkeypatch), abut.Scene("cpu")
    poses = random_poses(3, 1e3, 1)
    scene.add(abut.Mesh(*icosphere(20), device="cpu"), poses)
    agree(scene.least_distance(), scene.least_distance(method="brute"))
    assert answers == [None]
    scene.poses.numpy()[1, 0, 0] += 0.5
    with pytest.raises(abut.PoseError, match="object 1"):
        scene.least_distance()
    many = abut.Scene("cpu")
    poses = np.tile(np.eye(4), (MOST_SWEPT + 1, 1, 1))
    poses[:, 0, 3] = 2.0 * np.arange(MOST_SWEPT + 1)
    many.add(abut.Mesh(*box(), device="cpu"), poses)
    answers.clear()
    assert many.least_distance().value == 1.0
    assert answers == [None]
    many.move(1, many.pose_of(0))
    near = many.least_distance()
    assert near.value == 0.0
    assert near.objects.numpy().tolist() == [0, 1]
    assert answers[-1] is near
