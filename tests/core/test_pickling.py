"""Results and operands survive pickling and give the same answers afterwards."""

import copy
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases
from abut.core import pickling
from shapes import random_poses, shift

BALL, TORUS = cases.icosphere(80), cases.torus(10, 8)
POSES = random_poses(3, 0.4)


def sent(thing):
    return pickle.loads(pickle.dumps(thing))


def meshes(device):
    return abut.Mesh(*BALL, device), abut.Mesh(*TORUS, device)


def crowd(device):
    scene = abut.Scene(device)
    a, b = meshes(device)
    scene.add(a, POSES)
    scene.add(b, name="ring", static=True, mask=3)
    return scene


def field_of(device):
    return abut.DistanceField(meshes(device)[0], resolution=16)


ANSWERS = {
    "collide": lambda d: abut.collide(*meshes(d)),
    "poses": lambda d: abut.collide(*meshes(d), pose_b=POSES, solid=True),
    "self": lambda d: abut.self_collide(abut.Mesh(*cases.single("thick_knot", 300), d)),
    "distance": lambda d: abut.distance(*meshes(d), pose_b=shift(4, 0, 0)),
    "distances": lambda d: abut.distance(*meshes(d), pose_b=POSES, upper_bound=0.01),
    "within": lambda d: abut.within(*meshes(d), 0.1, pose_b=POSES),
    "closest": lambda d: abut.closest_point(meshes(d)[0], POSES[:, :3, 3], signed=True),
    "ccd": lambda d: abut.ccd(*map(abut.Motion, meshes(d), (BALL.vertices + 1, TORUS.vertices))),
    "cull": lambda d: abut.cull(meshes(d), pixels=32),
    "scene": lambda d: crowd(d).collide(),
    "scene poses": lambda d: crowd(d).collide(poses=np.stack([[*POSES, np.eye(4)]] * 2)),
    "scene within": lambda d: crowd(d).within(0.1),
    "scene distance": lambda d: crowd(d).distance(),
    "scene ccd": lambda d: crowd(d).ccd(np.stack([*POSES[::-1], np.eye(4)])),
    "sample": lambda d: field_of(d).sample(POSES[:, :3, 3]),
    "field closest": lambda d: field_of(d).closest(meshes(d)[1]),
    "response": lambda d: field_of(d).response(meshes(d)[1], POSES),
}  # fmt: skip


def public(thing):
    return [name for name in dir(type(thing)) if not name.startswith("_")]


def alike(got, want):
    if isinstance(want, wp.array):
        assert got.device == want.device and got.dtype == want.dtype
        np.testing.assert_array_equal(got.numpy(), want.numpy())
    elif hasattr(want, "__dataclass_fields__"):
        functions = {"_make_segments", "_measure", "_pair", "_other_centre"}
        for name in vars(want).keys() - functions - {"_device"}:
            public = name.removeprefix("_")  # rows may be numbers until they are read
            known = public if hasattr(want, public) else name
            alike(getattr(got, known), getattr(want, known))
    elif isinstance(want, tuple | list):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            alike(one, other)
    else:
        np.testing.assert_equal(got, want)


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name, device):
    want = ANSWERS[name](device)
    got = sent(want)
    assert type(got) is type(want)
    for member in public(want):
        there, here = getattr(got, member), getattr(want, member)
        if member in ("numpy", "curves", "rescaled_step"):
            there, here = (None, None) if name in ("poses", "scene poses") else (there(), here())
        alike(there, here)
    alike(sent(got), want)


def test_answers_of_another_shape_say_so(device):
    scene = crowd(device)
    hits = scene.collide()
    scene.deform("ring", TORUS.vertices * 2)
    kept = sent(hits)
    np.testing.assert_array_equal(kept.pairs.numpy(), hits.pairs.numpy())
    with pytest.raises(abut.AbutError, match="deformed"):
        _ = kept.segments


MOTIONS = {
    "end": lambda m: abut.Motion(m, end=m.vertices.numpy() * 0.5 + 0.2),
    "poses": lambda m: abut.Motion(m, start_pose=POSES[0], end_pose=POSES[1]),
    "still": lambda m: abut.Motion(m, end=m.vertices),
    "still at a pose": lambda m: abut.Motion(m, start_pose=POSES[0], end_pose=POSES[0]),
}


@pytest.mark.parametrize("deforms", [False, True])
@pytest.mark.parametrize("name", MOTIONS)
def test_motions(name, deforms, device):
    mesh, other = abut.Mesh(BALL.vertices.astype(np.float32), BALL.faces, device), meshes(device)[1]
    move, way = MOTIONS[name](mesh), abut.Motion(other, end_pose=POSES[2])
    want = abut.ccd(move, way).numpy()
    assert len(want["time"])
    if deforms:
        mesh.deform(BALL.vertices * 9)
    for copied in (sent(move), copy.deepcopy(move)):
        got = abut.ccd(copied, sent(way)).numpy()
        for key in want:
            np.testing.assert_array_equal(got[key], want[key])


def test_scenes(device):
    scene = crowd(device)
    ring = scene.add(abut.Mesh(*TORUS, device), POSES[0])
    pieces = scene.split(ring, np.arange(len(TORUS.faces)) // 60)
    scene.deform(1, BALL.vertices * 1.2)
    scene.remove([0, int(pieces[0])])
    scene.ignore("ring", 2)
    scene.collide()
    other = sent(scene)
    assert other.indices.tolist() == scene.indices.tolist() and other.names == scene.names
    assert other.mesh(2) is not other.mesh(1) and repr(other) == repr(scene)
    for one in (scene, other):
        one.move(2, POSES[1])
        assert one.add(abut.Mesh(*BALL, device), name="new") == 0  # the lowest that is free
        one.deform("ring", TORUS.vertices * 1.1)
    alike(other.collide(), scene.collide())
    alike(other.ccd(), scene.ccd())
    alike(other.distance().value, scene.distance().value)  # of faces that meet any is named
    alike(other.within(0.05, self_collisions=True), scene.within(0.05, self_collisions=True))
    assert len(sent(abut.Scene(device))) == 0


def test_a_scene_and_its_mesh_stay_together(device):
    mesh = meshes(device)[0]
    scene = abut.Scene(device)
    scene.add(mesh, POSES)
    mesh, scene = sent((mesh, scene))
    assert scene.mesh(0) is mesh and scene.mesh(2) is mesh
    mesh.deform(BALL.vertices * 0.01)
    assert len(scene.collide()) == 0


def test_trackers(device):
    tracker = abut.Tracker(meshes(device), method="front")
    tracker.step(None, TORUS.vertices * 0.9)
    other = sent(tracker)
    for k in range(3):
        alike(
            other.step(BALL.vertices * (1 - 0.1 * k)), tracker.step(BALL.vertices * (1 - 0.1 * k))
        )


def contacts_at(work):
    a, b, pose = work
    return abut.collide(a, b, pose_b=pose)


def test_work_for_processes():
    """As with joblib: meshes go there, answers come back."""
    a, b = meshes("cpu")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(contacts_at, [(a, b, pose) for pose in POSES]))
    for hits, pose in zip(found, POSES, strict=True):
        want = abut.collide(a, b, pose_b=pose)
        alike(hits, want)
        np.testing.assert_array_equal(hits.segments.numpy(), want.segments.numpy())


def test_without_the_device_all_is_on_the_cpu(monkeypatch):
    """A pickle of a machine with more devices than this one."""
    things = [*meshes("cpu"), ANSWERS["distance"]("cpu"), field_of("cpu"), crowd("cpu")]
    frozen = pickle.dumps(things).replace(b"\x8c\x03cpu", b"\x8c\x03tpu")
    assert b"tpu" in frozen
    mesh, _, near, field, scene = pickle.loads(frozen)
    assert {str(x) for x in (mesh.device, near.points.device, field.device, scene.device)} == {
        "cpu"
    }
    assert len(scene.collide()) > 0
    assert pickling.device_or_cpu("tpu").is_cpu


def test_a_pickle_is_the_first_thing_a_process_reads(tmp_path):
    path = tmp_path / "hits.pickle"
    path.write_bytes(pickle.dumps(ANSWERS["collide"]("cpu")))
    code = f"import pickle; print(len(pickle.load(open({str(path)!r}, 'rb'))))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(done.stdout.splitlines()[-1]) == len(ANSWERS["collide"]("cpu"))
