"""Options that a verb does not have, and what a program prints without being asked."""

import subprocess
import sys

import numpy as np
import pytest

import abut
from abut import cases

VERBS = (
    *(abut.collide, abut.self_collide, abut.within, abut.distance, abut.closest_point),
    *(abut.ccd, abut.cull, abut.signed_distance, abut.contains),
)


@pytest.mark.parametrize(
    ("verb", "given", "meant"),
    [
        (abut.distance, "max_distance", "upper_bound"),
        (abut.within, "max_distance", "distance"),
        (abut.distance, "upper_bond", "upper_bound"),
        (abut.collide, "transform", "pose_b"),
        (abut.closest_point, "transform", "pose"),
        (abut.ccd, "min_dist", "min_distance"),
        (abut.cull, "self_collision", "self_collisions"),
    ],
)
def test_a_guessed_option_names_the_right_one(verb, given, meant):
    with pytest.raises(TypeError, match=f"no option '{given}'; did you mean '{meant}'"):
        verb(None, None, **{given: 1.0})


@pytest.mark.parametrize("verb", VERBS)
def test_an_unknown_option_lists_those_there_are(verb):
    with pytest.raises(TypeError, match=r"no option 'banana'; it takes .*method"):
        verb(None, None, banana=1)


def test_other_type_errors_stay():
    with pytest.raises(TypeError, match="positional argument"):
        abut.distance()
    gem = abut.Mesh(*cases.gem(20), "cpu")
    with pytest.raises(TypeError, match="multiple values"):
        abut.distance(gem, gem, b=gem)


def test_a_script_prints_nothing_of_its_own():
    script = "import abut; abut.collide(*[abut.Mesh(*abut.cases.gem(20))] * 2)"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_gradients_are_not_lost_silently(device):
    torch = pytest.importorskip("torch")
    vertices, faces = cases.gem(20)
    with pytest.raises(abut.DeviceError, match="detach"):
        abut.Mesh(torch.tensor(vertices, requires_grad=True), faces, device)
    mesh = abut.Mesh(torch.tensor(vertices, requires_grad=True).detach(), faces, device)
    with pytest.raises(abut.DeviceError, match="detach"):
        abut.distance(mesh, mesh, pose_b=torch.tensor(np.eye(4), requires_grad=True))
