"""One name for one thing: poses among the arguments, distances in the results."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import abut
from abut import cases

VERBS = [abut.collide, abut.distance, abut.within, abut.closest_point, abut.contains]
VERBS += [abut.signed_distance, abut.self_collide, abut.cull, abut.ccd]
OWNERS = (abut.Scene, abut.DistanceField, abut.Tracker, abut.Motion)
METHODS = [
    member
    for owner in OWNERS
    for name, member in vars(owner).items()
    if inspect.isfunction(member) and not name.startswith("_")
]
PAGES = sorted((Path(__file__).parents[1] / "docs").glob("*.md"))


@pytest.mark.parametrize("call", [*VERBS, *METHODS], ids=lambda call: call.__qualname__)
def test_poses_have_one_name(call):
    """``pose_a`` and ``pose_b`` of two operands, ``pose`` of one, ``poses`` of all objects."""
    names = list(inspect.signature(call).parameters)
    right = {"pose"}
    if names[:2] == ["a", "b"]:
        right = {"pose_a", "pose_b"}
    elif call is abut.cull or call.__qualname__.startswith("Scene."):
        right = {"pose", "poses"}
    assert {name for name in names if "pose" in name} <= right


def gem(device, shift=0.0):
    vertices, faces = cases.gem(20)
    return abut.Mesh(vertices + np.array([shift, 0.0, 0.0]), faces, device)


def results(device):
    a, b = gem(device), gem(device, 3.0)
    scene = abut.Scene(device)
    scene.add(a)
    scene.add(b)
    field = abut.DistanceField(a, resolution=16)
    poses = np.tile(np.eye(4), (2, 1, 1))
    yield from (abut.distance(a, b), abut.distance(a, b, pose_b=poses), abut.within(a, b, 4.0))
    yield abut.closest_point(a, [[3.0, 0.0, 0.0]])
    yield from (scene.distance(), scene.least_distance(), scene.within(4.0))
    yield from (field.sample([[3.0, 0.0, 0.0]]), field.closest(b), field.closest(b, poses))


def test_distances_have_one_name(device):
    for result in results(device):
        plain = np.asarray(result.distance if np.ndim(result.distance) == 0 else 0)
        assert np.all(plain >= 0) and "distance" in result.numpy(), type(result)


def test_the_value_of_a_distance_is_the_distance(device):
    near = abut.distance(gem(device), gem(device, 3.0))
    assert near.value == near.distance == near.numpy()["value"] == near.numpy()["distance"] > 0
    inside = abut.DistanceField(gem(device), resolution=16).closest(gem(device))
    assert inside.value == inside.distance == inside.numpy()["value"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_speak_of_distances(page):
    assert not re.search(r"\w\)?\.value\b", page.read_text())
