"""Arrays of other libraries: read in the order of their streams, copied to be kept, or refused."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases
from shapes import random_poses

BALL = cases.icosphere(320)
POINTS = np.random.default_rng(0).uniform(-1.5, 1.5, (2000, 3))
POSES = random_poses(4, 0.5)
LONG = 200_000_000  # clock ticks: about a tenth of a second


class Foreign:
    """A minimal array with the DLPack protocol."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **_):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.fixture(params=["torch", "cupy"])
def brought(request, device):
    """Brings a NumPy array to the device, in another library."""
    library = pytest.importorskip(request.param)
    if request.param == "torch":
        return lambda array: library.tensor(array, device=device)
    if device == "cpu":
        pytest.skip("CuPy has no arrays on the CPU")
    return library.asarray


@pytest.fixture
def torch():
    """PyTorch with CUDA."""
    library = pytest.importorskip("torch")
    if not (library.cuda.is_available() and wp.is_cuda_available()):
        pytest.skip("there is no CUDA device for both PyTorch and Warp")
    return library


def pointer_of(array):
    return array.data_ptr() if hasattr(array, "data_ptr") else array.data.ptr


def same(got, want):
    got, want = got.numpy(), want.numpy()
    assert got.keys() == want.keys()
    for name in want:
        np.testing.assert_array_equal(got[name], want[name])


def test_the_first_array_of_a_process():
    """Nothing of Warp has run yet."""
    code = (
        "import numpy as np, abut; from test_foreign_arrays import Foreign\n"
        "faces = np.arange(3, dtype=np.int32)[None]\n"
        "print(abut.Mesh(Foreign(np.eye(3)), Foreign(faces)))"
    )
    here = Path(__file__).parent
    paths = os.pathsep.join([str(here), str(here.parent)])
    how = {"capture_output": True, "text": True, "env": {**os.environ, "PYTHONPATH": paths}}
    done = subprocess.run([sys.executable, "-c", code], check=False, **how)
    assert "Mesh(3 vertices, 1 faces, cpu)" in done.stdout, done.stderr


def test_what_cannot_be_shared_is_refused(device):
    torch = pytest.importorskip("torch")
    for odd in (torch.eye(3).to_sparse(), torch.empty((3, 3), device="meta")):
        with pytest.raises(abut.DeviceError, match=r"torch\.Tensor cannot be read"):
            abut.Mesh(odd, [[0, 1, 2]], device)
    with pytest.raises(abut.MeshError, match="float32 or float64"):
        abut.Mesh(torch.eye(3).half(), [[0, 1, 2]], device)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_meshes_copy(brought, dtype, device):
    shape = BALL.vertices.astype(dtype)
    vertices, faces = brought(shape), brought(BALL.faces.astype(np.int32))
    mesh = abut.Mesh(vertices, faces)
    assert mesh.device == wp.get_device(device)
    wide = brought(BALL.faces.astype(np.int64))
    np.testing.assert_array_equal(abut.Mesh(vertices, wide).faces.numpy(), BALL.faces)
    vertices *= 0.5
    faces *= 0
    np.testing.assert_array_equal(mesh.vertices.numpy(), shape)
    np.testing.assert_array_equal(mesh.faces.numpy(), BALL.faces)
    mesh.deform(vertices)
    vertices *= 0
    np.testing.assert_array_equal(mesh.vertices.numpy(), BALL.vertices.astype(dtype) / 2)


def test_strided_arrays_are_read_right(brought):
    across = brought(np.ascontiguousarray(BALL.vertices.T)).T
    mesh = abut.Mesh(across, brought(BALL.faces))
    np.testing.assert_array_equal(mesh.vertices.numpy(), BALL.vertices)
    near = abut.closest_point(mesh, brought(np.ascontiguousarray(POINTS.T)).T)
    same(near, abut.closest_point(mesh, POINTS))


def test_every_verb_answers_as_for_numpy(brought, device):
    other = BALL.vertices * 0.8 + 0.3
    a, b = abut.Mesh(*BALL, device), abut.Mesh(other, BALL.faces, device)
    x, y = abut.Mesh(*map(brought, BALL)), abut.Mesh(brought(other), brought(BALL.faces))
    same(abut.collide(x, y, pose_b=brought(POSES)), abut.collide(a, b, pose_b=POSES))
    same(abut.distance(x, y, pose_a=brought(POSES)), abut.distance(a, b, pose_a=POSES))
    same(
        abut.within(x, y, 0.05, pose_b=brought(POSES[0])), abut.within(a, b, 0.05, pose_b=POSES[0])
    )
    for kind in (np.float32, np.float64):
        points = POINTS.astype(kind)
        same(abut.closest_point(x, brought(points)), abut.closest_point(a, points))
    end = BALL.vertices * 1.2
    same(abut.ccd(abut.Motion(x, end=brought(end)), abut.Motion(y, end_pose=brought(POSES[1]))),
         abut.ccd(abut.Motion(a, end=end), abut.Motion(b, end_pose=POSES[1])))  # fmt: skip
    field = abut.DistanceField(a, resolution=24)
    same(field.sample(brought(POINTS)), field.sample(POINTS))
    same(field.response(y, brought(POSES[2])), field.response(b, POSES[2]))


def test_scenes_answer_as_for_numpy(brought, device):
    scenes = abut.Scene(device), abut.Scene(device)
    for scene, give in zip(scenes, (brought, np.asarray), strict=True):
        rows = scene.add(abut.Mesh(give(BALL.vertices), give(BALL.faces), device), give(POSES))
        scene.move(rows[:1], give(POSES[:1] @ POSES[1]))
        scene.deform(int(rows[2]), give(BALL.vertices * 0.7))
        scene.split(int(rows[3]), give(np.arange(len(BALL.faces)) // 160))
    here = np.stack([scenes[1].poses.numpy()] * 2)
    same(scenes[0].collide(), scenes[1].collide())
    same(scenes[0].collide(poses=brought(here)), scenes[1].collide(poses=here))
    same(scenes[0].ccd(brought(here[0][::-1].copy())), scenes[1].ccd(here[0][::-1].copy()))


def test_answers_are_shared(brought, device):
    a, b = abut.Mesh(*BALL, device), abut.Mesh(BALL.vertices + 0.2, BALL.faces, device)
    hits, near = abut.collide(a, b), abut.closest_point(a, brought(POINTS))
    library = sys.modules[type(brought(POINTS)).__module__.split(".")[0]]
    for array in (hits.pairs, hits.segments, near.distance, near.point, near.face):
        taken = library.from_dlpack(array)
        assert pointer_of(taken) == array.ptr and tuple(taken.shape) == array.shape


# ---- streams: PyTorch's own do not wait for others, unlike the default one


def late(torch, values, nothing):
    """A tensor that is filled on the current stream, but not yet."""
    tensor = torch.full(values.shape, nothing, dtype=torch.float64, device="cuda:0")
    ready = torch.tensor(values, device="cuda:0")
    torch.cuda.synchronize()
    torch.cuda._sleep(LONG)
    return tensor.copy_(ready, non_blocking=True)


def test_what_torch_has_yet_to_write_is_waited_for(torch):
    faces = torch.tensor(BALL.faces, device="cuda:0")
    still = abut.Mesh(*BALL, "cuda:0")
    with torch.cuda.stream(torch.cuda.Stream()):
        mesh = abut.Mesh(late(torch, BALL.vertices, 0.0), faces)
        np.testing.assert_array_equal(mesh.points.numpy(), BALL.vertices)
        mesh.deform(late(torch, BALL.vertices * 2, 0.0))
        np.testing.assert_array_equal(mesh.bounds, still.bounds * 2)
        near = abut.closest_point(still, late(torch, POINTS, 0.0))
        same(near, abut.closest_point(still, POINTS))
        motion = abut.Motion(still, end=late(torch, BALL.vertices * 3, 0.0))
        assert len(abut.ccd(motion, abut.Motion(mesh, end=mesh.vertices)))


@pytest.mark.parametrize("verb", ["closest_point", "sample"])
def test_points_may_be_overwritten_when_the_call_returns(torch, verb):
    """By their owner, or by a later tensor that torch puts in the same place."""
    mesh = abut.Mesh(*cases.torus(60, 40), "cuda:0")
    field = abut.DistanceField(mesh, resolution=32)
    ask = field.sample if verb == "sample" else lambda p: abut.closest_point(mesh, p)
    given = np.random.default_rng(1).uniform(-1.5, 1.5, (4_000_000, 3))
    truth = ask(given).distance.numpy()
    with torch.cuda.stream(torch.cuda.Stream()):
        points = torch.tensor(given, device="cuda:0")
        for _ in range(3):
            found = ask(points).distance
            points.fill_(9.0)
            np.testing.assert_array_equal(found.numpy(), truth)
            points.copy_(torch.tensor(given))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("verb", ["Mesh", "deform", "Motion", "Tracker", "Scene.deform"])
def test_vertices_may_be_overwritten_when_the_call_returns(torch, verb, dtype):
    shape = cases.icosphere(1_310_720)
    given, start = (shape.vertices * 1.5).astype(dtype), abut.Mesh(*shape, "cuda:0")
    faces = torch.tensor(shape.faces, device="cuda:0")
    scene, tracker = abut.Scene("cuda:0"), abut.Tracker((start, abut.Mesh(*BALL, "cuda:0")))
    scene.add(abut.Mesh(*shape, "cuda:0"))
    with torch.cuda.stream(torch.cuda.Stream()):
        vertices = torch.tensor(given, device="cuda:0")
        if verb == "Mesh":
            keeps = abut.Mesh(vertices, faces)
        elif verb == "deform":
            start.deform(vertices)
        elif verb == "Motion":
            keeps = abut.Motion(start, vertices)
        elif verb == "Tracker":
            tracker.step(vertices)
        else:
            scene.deform(0, vertices)
        vertices.fill_(9.0)
        if verb == "Motion":
            keeps.arrive()
        elif verb == "Scene.deform":
            start = scene.mesh(0)
        elif verb == "Mesh":
            start = keeps
        np.testing.assert_array_equal(start.points.numpy(), given)
        np.testing.assert_array_equal(start.faces.numpy(), shape.faces)


def test_torch_waits_for_answers(torch):
    mesh = abut.Mesh(*cases.torus(60, 40), "cuda:0")
    points = np.random.default_rng(2).uniform(-1.5, 1.5, (4_000_000, 3))
    there = wp.array(points, dtype=wp.vec3d, device="cuda:0")
    truth = abut.closest_point(mesh, points).distance.numpy()
    with torch.cuda.stream(torch.cuda.Stream()):
        taken = torch.from_dlpack(abut.closest_point(mesh, there).distance).clone()
        np.testing.assert_array_equal(taken.cpu().numpy(), truth)
