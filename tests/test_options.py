"""Options that a verb does not have, and what a program prints without being asked."""

import json
import subprocess
import sys

import pytest

import abut
from abut import cases

VERBS = (
    *(abut.collide, abut.self_collide, abut.within, abut.distance, abut.closest_point),
    *(abut.ccd, abut.cull, abut.signed_distance, abut.contains),
)


METHODS = [
    getattr(owner, name)
    for owner in (abut.Scene, abut.DistanceField, abut.Tracker, abut.Motion)
    for name, member in vars(owner).items()
    if callable(member) and not name.startswith("_")
]


@pytest.mark.parametrize(
    ("verb", "given", "meant"),
    [
        (abut.distance, "max_distance", "upper_bound"),
        (abut.distance, "threshold", "upper_bound"),
        (abut.distance, "tol", "tolerance"),
        (abut.distance, "pose", "pose_b"),
        (abut.distance, "poses", "pose_b"),
        (abut.within, "max_distance", "distance"),
        (abut.distance, "upper_bond", "upper_bound"),
        (abut.collide, "transform", "pose_b"),
        (abut.closest_point, "transform", "pose"),
        (abut.closest_point, "pose_b", "pose"),
        (abut.closest_point, "distance_upper_bound", "upper_bound"),
        (abut.ccd, "min_dist", "min_distance"),
        (abut.ccd, "eps", "tolerance"),
        (abut.cull, "self_collision", "self_collisions"),
        (abut.cull, "pose", "poses"),
        (abut.Scene.collide, "pose_b", "pose"),
        (abut.Scene.collide, "self_collision", "self_collisions"),
        (abut.Scene.collide, "objects", "which"),
        (abut.Scene.add, "poses", "pose"),
        (abut.Scene.move, "poses", "pose"),
        (abut.Scene.distance, "max_distance", "upper_bound"),
        (abut.Scene.distance, "k", "nearest"),
        (abut.Scene.within, "threshold", "distance"),
        (abut.Scene.ccd, "security_margin", "min_distance"),
        (abut.DistanceField, "voxel_size", "spacing"),
        (abut.DistanceField, "padding", "margin"),
        (abut.DistanceField.response, "k", "stiffness"),
        (abut.DistanceField.response, "mu", "friction"),
        (abut.DistanceField.response_on_tape, "poses", "pose"),
        (abut.DistanceField.closest, "transform", "pose"),
        (abut.Tracker.advance, "tol", "tolerance"),
        (abut.Motion, "pose", "end_pose"),
        (abut.Mesh, "devise", "device"),
        (abut.Scene, "meshes", "objects"),
        (abut.primitives.ccd_edge_edge, "tol", "tolerance"),
    ],
)
def test_a_guessed_option_names_the_right_one(verb, given, meant):
    with pytest.raises(TypeError, match=f"no option '{given}'; did you mean '{meant}'"):
        verb(None, None, **{given: 1.0})


@pytest.mark.parametrize(
    ("verb", "given", "said"),
    [
        (abut.distance, "return_points", "the result has the points"),
        (abut.collide, "max_contacts", "first=True"),
        (abut.collide, "device", "abut.Mesh"),
        (abut.closest_point, "workers", "ABUT_THREADS"),
        (abut.Scene.collide, "return_names", "name_of"),
    ],
)
def test_an_option_that_is_not_needed_is_refused_with_the_reason(verb, given, said):
    with pytest.raises(TypeError, match=f"no option '{given}'; .*{said}"):
        verb(None, None, **{given: True})


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__qualname__)
def test_methods_explain_their_options(method):
    with pytest.raises(TypeError, match=rf"{method.__qualname__}\(\) has no option 'banana'; it"):
        method(None, banana=1)


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


GEM = "import numpy as np, abut; gem = abut.Mesh(*abut.cases.gem(20)); "
SCRIPTS = [
    "abut.collide(gem, gem)",
    "abut.distance(gem, gem)",
    "abut.within(gem, gem, 0.1)",
    "abut.closest_point(gem, [[0, 0, 0]])",
    "abut.contains(gem, [[0, 0, 0]])",
    "abut.ccd(abut.Motion(gem, gem.vertices))",
    "abut.cull([gem, gem], pixels=16)",
    "scene = abut.Scene(); scene.add(gem); scene.collide()",
    "abut.DistanceField(gem, resolution=8).sample([[0, 0, 0]])",
    "abut.primitives.intersect_tri_tri(np.eye(3)[None], np.eye(3)[None])",
    "abut.sim.RigidBodies",
    "import warp as wp; at = wp.array([wp.transform_identity(wp.float64)], dtype=wp.transformd); "
    "abut.DistanceField(gem, resolution=8).response_on_tape(gem, at)",
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_prints_nothing_of_its_own(script):
    assert printed(sys.executable, "-c", GEM + script) == ""


def test_no_module_starts_warp_when_it_is_imported():
    """Warp prints its banner when it starts, unless abut starts it."""
    script = """
import importlib, pkgutil, abut, warp
for module in pkgutil.walk_packages(abut.__path__, "abut."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:  # an optional package
            assert not error.name.startswith("abut"), error
    assert warp._src.context.runtime is None, module.name
"""
    assert printed(sys.executable, "-c", script) == ""


def test_the_command_line_prints_its_report_alone(tmp_path):
    path = tmp_path / "gem.obj"
    vertices, faces = cases.gem(20)
    rows = [f"v {x} {y} {z}" for x, y, z in vertices.tolist()]
    rows += ["f " + " ".join(str(k + 1) for k in face) for face in faces.tolist()]
    path.write_text("\n".join(rows))
    report = printed(sys.executable, "-m", "abut", "self", str(path), "--json")
    assert json.loads(report)["pairs"] == []
    assert "Warp" not in printed(sys.executable, "-m", "abut", "info")


def printed(*command):
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
