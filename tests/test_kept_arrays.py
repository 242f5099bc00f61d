"""abut copies the arrays it keeps: answers are about what was given when they were asked for."""

import copy
import pickle

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases
from shapes import random_poses, shift

BALL = cases.icosphere(320)
FLOOR = cases.plane(7, 7, size=3.0)
TORUS = cases.torus(24, 16)
STEP = np.array([0.03, 0.01, -0.2])
KINDS = ["numpy", "warp", "vectors", "torch"]


class Given:
    """An array of another owner, who goes on writing into it."""

    def __init__(self, values, kind, device):
        self.kind = kind
        if kind == "numpy":
            self.array = np.array(values)
        elif kind == "torch":
            torch = pytest.importorskip("torch")
            self.array = torch.tensor(values, device=device)
        else:
            scalar = {"f4": wp.float32, "f8": wp.float64, "i4": wp.int32}[values.dtype.str[1:]]
            vector = {"f4": wp.vec3f, "f8": wp.vec3d, "i4": wp.vec3i}[values.dtype.str[1:]]
            dtype = vector if kind == "vectors" else scalar
            self.array = wp.array(values, dtype=dtype, device=device)

    def write(self, values):
        """Write new values into the same memory."""
        if self.kind == "numpy":
            self.array[:] = values
        elif self.kind == "torch":
            torch = pytest.importorskip("torch")
            self.array.copy_(torch.tensor(np.ascontiguousarray(values)))
        else:
            self.array.assign(np.ascontiguousarray(values))


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(params=[np.float32, np.float64])
def dtype(request):
    return request.param


def plain(answer):
    """All of a lazily computed answer."""
    found = answer.numpy()
    for name in ("segments", "coplanar"):
        if hasattr(answer, name):
            found[name] = getattr(answer, name).numpy()
    if hasattr(answer, "curves"):
        found["curves"] = np.array([len(curve) for curve in answer.curves()])
    if hasattr(answer, "on_other"):
        found |= {"push": answer.on_other.force.numpy(), "turn": answer.on_other.torque.numpy()}
    return found


def same(got, want):
    got, want = plain(got), plain(want)
    assert got.keys() == want.keys()
    for name in want:
        np.testing.assert_array_equal(got[name], want[name], err_msg=name)


POSE, AWAY = random_poses(1, 0.1)[0], shift(0, 0, 3)
LAZY = {
    "collide": abut.collide,
    "collide_posed": lambda a, b: abut.collide(a, b, pose_a=POSE),
    "self_collide": lambda a, b: abut.self_collide(a),
    "within": lambda a, b: abut.within(a, b, 0.4),
    "within_posed": lambda a, b: abut.within(a, b, 0.4, pose_b=POSE),
    "within_itself": lambda a, b: abut.within(a, None, 0.05),
    "distance": lambda a, b: abut.distance(a, b, pose_a=AWAY),
    "distance_posed": lambda a, b: abut.distance(a, b, pose_a=np.stack([AWAY @ POSE, AWAY])),
    "closest_point": lambda a, b: abut.closest_point(a, FLOOR.vertices),
    "cull": lambda a, b: abut.cull([a, b], pixels=64),
    "far": lambda a, b: abut.collide(a, b, method="far"),
    "kdop": lambda a, b: abut.collide(a, b, method="kdop"),
    "response": lambda a, b: abut.DistanceField(b, resolution=16).response(a, pixels=64),
    "closest": lambda a, b: abut.DistanceField(b, resolution=16).closest(a, pixels=64),
    "ccd": lambda a, b: abut.ccd(abut.Motion(a, end_pose=POSE), abut.Motion(b, b.vertices)),
}


def shapes_of(dtype):
    """The ball on its way through the torus."""
    start = BALL.vertices * 0.6 + [0, 0, 0.5]
    return [(start + k * STEP).astype(dtype) for k in range(4)]


@pytest.mark.parametrize("verb", LAZY)
def test_answers_read_after_the_array_was_written(verb, kind, dtype, device):
    """An array is changed in place and passed again; results are read at the end."""
    ask, shapes = LAZY[verb], shapes_of(dtype)
    other = abut.Mesh(*TORUS, device)
    given = Given(shapes[0], kind, device)
    mesh = abut.Mesh(given.array, BALL.faces, device)
    answers = [ask(mesh, other)]
    for shape in shapes[1:]:
        given.write(shape)
        mesh.deform(given.array)
        answers.append(ask(mesh, other))
    given.write(shapes[0] + dtype(50))
    for shape, answer in zip(shapes, answers, strict=True):
        same(answer, ask(abut.Mesh(shape.copy(), BALL.faces, device), other))


def test_the_loop_of_a_simulation():
    """Reported: only the last of the curves were right."""
    floor, v = abut.Mesh(*FLOOR, "cpu"), BALL.moved((0, 0, 1.1)).vertices
    mesh, hits, shapes = abut.Mesh(v, BALL.faces, "cpu"), [], []
    for _ in range(3):
        v -= [0, 0, 0.2]
        mesh.deform(v)
        shapes.append(v.copy())
        hits.append(abut.collide(mesh, floor))
    for shape, found in zip(shapes, hits, strict=True):
        assert len(found.curves()) > 0
        same(found, abut.collide(abut.Mesh(shape, BALL.faces, "cpu"), floor))


def test_points_are_as_far_apart_as_the_distance_says(kind, dtype, device):
    shape = shapes_of(dtype)[0]
    given = Given(shape, kind, device)
    a, b = abut.Mesh(given.array, BALL.faces, device), abut.Mesh(*FLOOR.moved((0, 0, -2)), device)
    near, rows = abut.distance(a, b), abut.within(a, b, 2.0)
    given.write(shape + dtype(10))
    p, q = near.points.numpy()
    np.testing.assert_allclose(np.linalg.norm(p - q), near.value)
    apart = np.linalg.norm(np.diff(rows.points.numpy(), axis=1)[:, 0], axis=1)
    np.testing.assert_allclose(apart, rows.distance.numpy())


def test_a_mesh_is_what_it_was_given(kind, dtype, device):
    """Vertices and faces, and all that is made of them later."""
    shape = BALL.vertices.astype(dtype)
    vertices = Given(shape, kind, device)
    faces = Given(BALL.faces.astype(np.int32), kind, device)
    mesh = abut.Mesh(vertices.array, faces.array, device)
    vertices.write(shape * 0)
    faces.write(BALL.faces * 0)
    for one in (mesh, mesh.to("cpu"), copy.copy(mesh), pickle.loads(pickle.dumps(mesh))):
        assert one.vertices.numpy().dtype == dtype and one.watertight
        np.testing.assert_array_equal(one.vertices.numpy(), shape)
        np.testing.assert_array_equal(one.faces.numpy(), BALL.faces)
    fresh, other = abut.Mesh(shape, BALL.faces, device), abut.Mesh(*TORUS, device)
    same(abut.collide(mesh, other, solid=True), abut.collide(fresh, other, solid=True))
    np.testing.assert_array_equal(mesh.edges.numpy(), fresh.edges.numpy())


@pytest.mark.parametrize("view", ["strided", "read-only", "sliced"])
def test_views_are_copied_too(view, device):
    base = np.zeros((2, *BALL.vertices.shape))
    base[:] = BALL.vertices
    given = {"strided": base.transpose(1, 0, 2)[:, 0], "sliced": base[1]}.get(view, base[0])
    given.flags.writeable = view != "read-only"
    mesh = abut.Mesh(given, BALL.faces, device)
    mesh.deform(given)
    base *= 0
    np.testing.assert_array_equal(mesh.vertices.numpy(), BALL.vertices)


def test_vertices_handed_out_are_a_copy(dtype, device):
    """Writing into them changes the mesh only when they are given to deform."""
    shapes = shapes_of(dtype)
    mesh, other = abut.Mesh(shapes[0].copy(), BALL.faces, device), abut.Mesh(*TORUS, device)
    before, held = abut.collide(mesh, other), mesh.vertices
    held.assign(shapes[1])
    np.testing.assert_array_equal(mesh.vertices.numpy(), shapes[0])
    same(abut.collide(mesh, other), before)
    mesh.deform(held)
    same(abut.collide(mesh, other), abut.collide(abut.Mesh(shapes[1], BALL.faces, device), other))
    for k in (2, 3, 0, 2):
        mesh.deform(shapes[k])
    np.testing.assert_array_equal(held.numpy(), shapes[1])


def test_a_refused_shape_leaves_vertices_as_they_were(kind, dtype, device):
    shape = shapes_of(dtype)[0]
    mesh, bad = abut.Mesh(shape, BALL.faces, device), shape * 2
    bad[7, 1] = np.inf
    with pytest.raises(abut.MeshError, match=r"vertices\[7\] is \[.* inf .*\]"):
        mesh.deform(Given(bad, kind, device).array)
    np.testing.assert_array_equal(mesh.vertices.numpy(), shape)


def test_a_motion_keeps_what_it_was_given(kind, dtype, device):
    start, end = shapes_of(dtype)[0], shapes_of(dtype)[3]
    other = abut.Motion(abut.Mesh(*TORUS, device), end_pose=np.eye(4))
    fresh = abut.ccd(abut.Motion(abut.Mesh(start, BALL.faces, device), end=end), other)
    assert len(fresh)
    first, last = Given(start, kind, device), Given(end, kind, device)
    mesh = abut.Mesh(first.array, BALL.faces, device)
    motion = abut.Motion(mesh, end=last.array)
    last.write(end + dtype(50))
    first.write(start - dtype(50))
    same(abut.ccd(motion, other), fresh)
    mesh.deform(first.array)
    abut.Motion(mesh, end=first.array)
    same(abut.ccd(motion, other), fresh)
    same(abut.ccd(pickle.loads(pickle.dumps(motion)), other), fresh)


def test_a_motion_keeps_its_poses(device):
    poses = random_poses(2, 0.4)
    start, end = poses.copy()
    mesh, other = abut.Mesh(*BALL, device), abut.Motion(abut.Mesh(*TORUS, device), end_pose=POSE)
    motion = abut.Motion(mesh, start_pose=start, end_pose=end)
    start[:3, 3] += 9
    end[:3, 3] += 9
    same(
        abut.ccd(motion, other),
        abut.ccd(abut.Motion(mesh, start_pose=poses[0], end_pose=poses[1]), other),
    )


def test_poses_may_be_written_before_answers_are_read(device):
    a, b = abut.Mesh(*BALL, device), abut.Mesh(*TORUS, device)
    field = abut.DistanceField(b, resolution=16)
    verbs = {
        "collide": lambda p: abut.collide(a, b, pose_a=p),
        "within": lambda p: abut.within(a, b, 0.2, pose_b=p),
        "distance": lambda p: abut.distance(a, b, pose_a=p),
        "response": lambda p: field.response(a, p, pixels=64),
    }
    for ask in verbs.values():
        pose = POSE.copy()
        answer = ask(pose)
        pose[:3, 3] += 9
        same(answer, ask(POSE))


def test_points_may_be_written_before_answers_are_read(kind, dtype, device):
    mesh, points = abut.Mesh(*TORUS, device), shapes_of(dtype)[0]
    field = abut.DistanceField(mesh, resolution=16)
    for ask in (lambda p: abut.closest_point(mesh, p, signed=True), field.sample):
        given = Given(points, kind, device)
        answer = ask(given.array)
        given.write(points + dtype(9))
        same(answer, ask(points))


def test_a_field_is_of_the_mesh_as_it_was(kind, dtype, device):
    shape = shapes_of(dtype)[0]
    given = Given(shape, kind, device)
    mesh = abut.Mesh(given.array, BALL.faces, device)
    field = abut.DistanceField(mesh, resolution=16)
    given.write(shape * dtype(2))
    mesh.deform(given.array)
    fresh = abut.DistanceField(abut.Mesh(shape, BALL.faces, device), resolution=16)
    same(field.sample(TORUS.vertices), fresh.sample(TORUS.vertices))


@pytest.mark.parametrize("method", ["bvh", "front"])
def test_a_tracker(method, kind, dtype, device):
    shapes, other = shapes_of(dtype), abut.Mesh(*TORUS, device)
    given = Given(shapes[0], kind, device)
    mesh = abut.Mesh(given.array, BALL.faces, device)
    tracker, answers = abut.Tracker((mesh, other), method=method), []
    for shape in shapes:
        given.write(shape)
        answers.append(tracker.step(given.array))
    given.write(shapes[0] + dtype(50))
    for shape, answer in zip(shapes, answers, strict=True):
        same(answer, abut.collide(abut.Mesh(shape, BALL.faces, device), other))
    assert len(tracker.advance(shapes[0]))
    given.write(shapes[3])
    there = tracker.advance(given.array)
    given.write(shapes[3] + dtype(50))
    still = abut.Motion(other, other.vertices)
    start = abut.Mesh(shapes[0], BALL.faces, device)
    same(there, abut.ccd(abut.Motion(start, shapes[3]), still))
    np.testing.assert_array_equal(mesh.vertices.numpy(), shapes[3])


def test_a_scene(kind, dtype, device):
    shapes, torus = shapes_of(dtype), abut.Mesh(*TORUS, device)
    given, pose = Given(shapes[0], kind, device), POSE.copy()
    scene, want = abut.Scene(device), abut.Scene(device)
    scene.add(abut.Mesh(given.array, BALL.faces, device), pose)
    want.add(abut.Mesh(shapes[0], BALL.faces, device), POSE)
    for each in (scene, want):
        each.add(torus)
    given.write(shapes[2])
    pose[:3, 3] += 9
    same(scene.collide(), want.collide())
    near, gaps = scene.distance(), scene.within(0.1)
    scene.deform(0, given.array)
    given.write(shapes[0] + dtype(50))
    same(near, want.distance())
    same(gaps, want.within(0.1))
    want.deform(0, shapes[2])
    same(scene.collide(), want.collide())
    end = Given(shapes[3], kind, device)
    impacts = scene.ccd(vertices={0: end.array})
    end.write(shapes[0])
    same(impacts, want.ccd(vertices={0: shapes[3]}))
    labels = np.arange(len(BALL.faces), dtype=np.int32) // 80
    given = labels.copy()
    scene.split(0, given)
    given[:] = 0
    want.split(0, labels)
    same(scene.collide(), want.collide())


def test_a_scene_follows_a_mesh_that_deforms(kind, dtype, device):
    """By what the mesh was given, not by what its array holds when the scene looks."""
    shapes, torus = shapes_of(dtype), abut.Mesh(*TORUS, device)
    given = Given(shapes[0], kind, device)
    mesh, scene = abut.Mesh(given.array, BALL.faces, device), abut.Scene(device)
    scene.add(mesh)
    scene.add(torus)
    first = scene.collide()
    given.write(shapes[1])
    mesh.deform(given.array)
    given.write(shapes[1] + dtype(50))
    for shape, found in ((shapes[0], first), (shapes[1], scene.collide())):
        want = abut.Scene(device)
        want.add(abut.Mesh(shape, BALL.faces, device))
        want.add(torus)
        try:
            same(found, want.collide())
        except abut.SceneError:  # the scene has deformed since, and says so
            assert found is first


@pytest.mark.parametrize("shared", [False, True])
def test_contacts_of_objects_that_were_removed(shared, device):
    """Others take their place: answers are right, or refused."""
    ball, torus = abut.Mesh(*BALL, device), abut.Mesh(*TORUS, device)
    scene, want = abut.Scene(device), abut.Scene(device)
    for each in (scene, want):
        each.add(ball)
        each.add(torus)
        if shared:
            each.add(ball, shift(0, 0, 9))
    hits = scene.collide()
    scene.remove(0)
    scene.add(abut.Mesh(BALL.vertices * 0.8 + 0.1, BALL.faces, device))
    scene.collide()
    try:
        same(hits, want.collide())
    except abut.SceneError as error:
        assert "since" in str(error)
    kept = scene.collide()
    scene.add(ball, shift(0, 0, 30))  # which touches nothing that was there
    scene.collide()
    assert len(kept.segments) == len(kept.pairs)
