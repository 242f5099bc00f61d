"""What a newcomer types first: results on the prompt, and messages that name the way out."""

import subprocess
import sys

import numpy as np
import pytest

import abut
from abut import cases, view

KNOT, BALL = cases.pair("knot", faces=1000)
APART = np.stack([np.eye(4), np.eye(4)])
APART[1, 0, 3] = 9.0


@pytest.fixture(scope="module")
def pair():
    return abut.Mesh(*KNOT, device="cpu"), abut.Mesh(*BALL, device="cpu")


def test_results_show_how_many_rows_they_have(pair):
    """Regression: ``Contacts(pose=None, colliding=True, contained=None)``, ``Gaps(pose=None)``."""
    a, b = pair
    hits, batch = abut.collide(a, b), abut.collide(a, b, pose_b=APART)
    n = len(hits)
    assert repr(hits) == f"Contacts({n} pairs, colliding=True)"
    assert repr(batch) == f"Contacts({n} pairs, pose=int32 ({n},), colliding=bool (2,))"
    assert repr(abut.within(a, b, 0.0)) == f"Gaps({n} pairs)"
    assert repr(abut.distance(a, b)) == "Distances(distance=0.0)"
    assert repr(abut.distance(a, b, pose_b=APART)) == "Distances(distance=float64 (2,))"
    assert repr(abut.closest_point(a, np.zeros((5, 3)))) == "ClosestPoints(5 rows)"
    scene = abut.Scene({"knot": a, "ball": b}, device="cpu").collide()
    assert repr(scene) == f"SceneContacts({n} pairs, colliding=True, objects=int32 ({n}, 2))"
    culled = abut.cull([a, b], pixels=64)
    assert repr(culled) == f"Culled({len(culled):,} faces, level='face')"
    still = abut.Motion(a, end=a.vertices.numpy())
    assert repr(abut.ccd(still)) == "Impacts(0 impacts, first=inf)"
    assert repr(still) == f"Motion({a!r}, end)"
    assert repr(abut.Motion(a, start_pose=APART[0], end_pose=APART[1])).endswith(
        "start_pose, end_pose)"
    )
    assert repr(abut.Tracker([a, b])) == f"Tracker({a!r}, {b!r})"
    assert repr(view.Body(a)) == f"Body({a.vertex_count} vertices, {a.face_count:,} faces)"


def test_operands_that_are_no_mesh_say_how_to_make_one(pair):
    a, _ = pair
    wrong = {
        "abut.Mesh.load reads a file": "part.stl",
        r"abut.Mesh\(vertices, faces\) makes one": np.zeros((4, 3)),
        "abut.Mesh.from_trimesh makes one": type("Trimesh", (), {"faces": [], "vertices": []})(),
        "not NoneType; abut.self_collide": None,
    }
    for way, operand in wrong.items():
        with pytest.raises(abut.MeshError, match=way):
            abut.collide(a, operand)
    with pytest.raises(abut.MeshError, match=r"abut.Motion\(mesh, end=…\)"):
        abut.ccd(a, a)
    with pytest.raises(abut.MeshError, match=r"abut.Mesh.load reads a file"):
        abut.Mesh("part.stl")
    with pytest.raises(abut.MeshError, match=r"abut.Mesh.from_trimesh"):
        abut.Mesh(type("Trimesh", (), {"faces": [], "vertices": []})())
    with pytest.raises(abut.MeshError, match="Mesh takes vertices and faces"):
        abut.Mesh(np.zeros((4, 3)))
    with pytest.raises(abut.SceneError, match=r"one list: abut.Scene\(\[a, b\]\)"):
        abut.Scene(a, a)


def test_messages_about_one_point_and_a_mesh_at_rest(pair):
    with pytest.raises(abut.PointError, match=r"not \(3,\); \[point\] asks about one"):
        abut.contains(pair[0], [0.0, 0.0, 0.0])
    with pytest.raises(abut.OptionError, match="keeps a mesh at rest"):
        abut.Motion(pair[0])


def test_options_by_position_are_named(pair):
    """Regression: "collide() takes 2 positional arguments but 3 were given"."""
    a, b = pair
    with pytest.raises(
        TypeError, match=r"collide\(\) takes a, b by position, others by name: pose"
    ):
        abut.collide(a, b, np.eye(4))
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'b'"):
        abut.distance(a)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("intersect", "abut.collide"),
        ("colide", "abut.collide"),
        ("load", "abut.Mesh.load"),
        ("CollisionManager", "abut.Scene"),
        ("penetration_depth", "abut.overlap"),
    ],
)
def test_names_that_abut_does_not_have_suggest_one(name, meant):
    with pytest.raises(AttributeError, match=f"no '{name}'; did you mean {meant}?"):
        getattr(abut, name)
    assert not hasattr(abut, "xyzzy") and not hasattr(abut, "__wrapped__")


def test_python_without_a_gpu_says_nothing_of_it():
    """Regression: Warp wrote that it finds no CUDA driver to standard error, in every script."""
    script = "import abut; from abut import cases; abut.Mesh(*cases.gem(20))"
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert (run.stdout, run.stderr) == ("", "")
