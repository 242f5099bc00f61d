"""What was once wrong, found by random inputs: each case as small as it gets."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import abut
from abut import cases
from abut.core import launch
from shapes import random_poses

SHAPE = cases.box()


def test_flat_meshes_beyond_float32_are_searched_to_the_end(device):
    """Boxes are infinite and flat then, and have no size by which to choose the one to open."""
    vertices = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * 1e300
    flat = abut.Mesh(vertices, [[0, 1, 2], [0, 2, 3], [1, 2, 3]], device)
    box = abut.Mesh(*SHAPE, device)
    truth = abut.collide(flat, box, method="brute").pairs.numpy()
    assert len(truth)
    for bound in abut.Bound:
        np.testing.assert_array_equal(abut.collide(flat, box, bound=bound).pairs.numpy(), truth)
        assert abut.collide(flat, box, bound=bound, first=True)


@pytest.mark.parametrize("method", ["bvh", "brute"])
@pytest.mark.parametrize("bound", [0.0, 1e-18, 1e-16, 1e-12])
def test_points_on_the_surface_are_within_any_bound(bound, method, device):
    """Also those whose computed foot is a rounding away."""
    vertices, faces = cases.icosphere(320)
    vertices = vertices.astype(np.float32)
    mesh = abut.Mesh(vertices, faces, device)
    rng = np.random.default_rng(0)
    weights = rng.multinomial(64, [0.4, 0.3, 0.3], 2000) / 64  # exactly on the faces
    corners = vertices[faces[rng.integers(0, 320, 2000)]].astype(float)
    points = np.einsum("nk,nkx->nx", weights, corners)
    free = abut.closest_point(mesh, points).numpy()
    got = abut.closest_point(mesh, points, upper_bound=bound, method=method).numpy()
    near = free["distance"] <= bound
    assert near.sum() > 1900
    np.testing.assert_array_equal(got["distance"], np.where(near, free["distance"], np.inf))
    np.testing.assert_array_equal(got["face"], np.where(near, free["face"], -1))


def test_distances_beyond_float64_are_infinite(device):
    away = np.eye(4)
    away[:2, 3] = 1.7e308
    mesh = abut.Mesh(*SHAPE, device)
    assert np.isinf(abut.closest_point(mesh, [[0.0, 0, 0]], pose=away).distance.numpy()).all()


RAGGED = [[0, 0, 0], [1, 0]]


@pytest.mark.parametrize("arrays", [(RAGGED, SHAPE.faces), (SHAPE.vertices, RAGGED)])
def test_rows_of_different_lengths_are_refused(arrays, device):
    with pytest.raises(abut.MeshError, match="must have shape"):
        abut.Mesh(*arrays, device)


def test_arrays_of_the_other_byte_order(device):
    mesh = abut.Mesh(SHAPE.vertices.astype(">f8"), SHAPE.faces.astype(">i4"), device)
    np.testing.assert_array_equal(mesh.vertices.numpy(), SHAPE.vertices)


@pytest.mark.parametrize("pose", ["here", RAGGED, np.eye(4) * (1 + 0j), np.full((4, 4), "1")])
def test_poses_that_are_not_numbers_are_refused(pose, device):
    mesh = abut.Mesh(*SHAPE, device)
    with pytest.raises(abut.PoseError):
        abut.collide(mesh, mesh, pose_b=pose)


@pytest.mark.parametrize("length", [None, "far", [1], 10**400, 1j])
def test_lengths_that_are_not_numbers_are_refused(length, device):
    mesh = abut.Mesh(*SHAPE, device)
    asks = (
        lambda: abut.within(mesh, mesh, length),
        lambda: abut.closest_point(mesh, [[0.0, 0, 0]], upper_bound=length),
        lambda: abut.cull([mesh], distance=length),
    )
    for ask in asks:
        with pytest.raises(abut.OptionError):
            ask()


@pytest.mark.parametrize("about", [{"group": 0.5}, {"mask": "all"}, {"group": 2**40}, {"name": 3}])
def test_an_object_that_is_refused_is_not_in_the_scene(about, device):
    scene = abut.Scene(device)
    with pytest.raises(abut.SceneError):
        scene.add(abut.Mesh(*SHAPE, device), **about)
    assert len(scene) == 0
    assert scene.add(abut.Mesh(*SHAPE, device), name="box") == 0


def test_a_file_with_a_bad_mesh_is_named(tmp_path, device):
    path = tmp_path / "bad.obj"
    path.write_text("v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    with pytest.raises(abut.MeshError, match=r"bad\.obj: vertices\[0\]"):
        abut.Mesh.load(path, device)


def test_distances_beyond_float32_keep_everything(device):
    meshes = [
        abut.Mesh(vertices, SHAPE.faces, device) for vertices in (SHAPE.vertices, SHAPE[0] + 9)
    ]
    assert len(abut.cull(meshes, distance=1e300).faces) == 2 * len(SHAPE.faces)


def test_threads_ask_one_scene_at_once(device):
    """Their answers were mixed up: a scene has one set of buffers."""
    scene = abut.Scene(device)
    scene.add(abut.Mesh(*cases.gem(320), device), random_poses(12, 1.5))
    asks = (scene.collide, scene.distance, lambda: scene.within(0.1))

    def listed(hits):
        rows = hits.numpy()
        return {name: rows[name].tolist() for name in rows if name != "points"}

    alone = [listed(ask()) for ask in asks]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda i: asks[i % 3](), range(24)))
    assert [listed(hits) for hits in together] == alone * 8


def test_after_an_interrupt_nothing_runs_on(monkeypatch):
    """Slices went on in other threads, into the buffers of the next query."""
    running, begun = [], threading.Event()

    class Slice:
        def __call__(self):
            if threading.current_thread() is threading.main_thread():
                begun.wait(5)
                raise KeyboardInterrupt
            running.append(self)
            begun.set()
            time.sleep(0.1)
            running.remove(self)

    monkeypatch.setattr(launch, "thread_count", lambda: 3)
    with pytest.raises(KeyboardInterrupt):
        launch.run_parallel([Slice() for _ in range(8)])
    assert not running


def test_velocities_that_are_not_numbers_are_refused(device):
    mesh = abut.Mesh(*SHAPE, device)
    field = abut.DistanceField(mesh, resolution=8)
    with pytest.raises(abut.OptionError, match="numbers"):
        field.response(mesh, velocity="fast")


@pytest.mark.parametrize("method", ["bvh", "brute"])
def test_vertices_of_no_face_touch_nothing(method, device):
    """Files of scanned models have some; they are not part of the surface."""
    loose = np.concatenate([[[0, 0, 1.5]], SHAPE.vertices, [[0.1, 0.2, 1.7]]])
    mesh = abut.Mesh(loose, SHAPE.faces + 1, device)
    wall = abut.Mesh([[-9.0, -9, 2], [9, -9, 2], [0, 9, 2]], [[0, 1, 2]], device)
    still = abut.Motion(wall, end=wall.vertices)
    for far, touches in ((1.4, False), (1.6, True)):
        move = abut.Motion(mesh, end=loose + np.array([0, 0, far]))
        for pair in ((move, still), (still, move)):
            assert bool(abut.ccd(*pair, method=method)) == touches
            assert bool(abut.ccd(*pair, method=method, solver="cubic")) == touches
    through = loose.copy()
    through[[0, -1], 2] = -9.0
    assert not abut.ccd(abut.Motion(mesh, end=through), method=method)


def test_impacts_of_pieces_name_their_own_vertices(device):
    """A piece of a broken object shares the points of the whole, and was hit where it is not."""
    scene, whole = abut.Scene(device), abut.Mesh(*cases.torus(10, 8), device)
    scene.add(abut.Mesh(*cases.gem(80), device), random_poses(1, 1.5)[0])
    pieces = scene.split(scene.add(whole), np.arange(whole.face_count) // 60)
    ends = scene.poses.numpy().copy()
    ends[0, :3, 3] *= 0.3
    found = scene.ccd(ends).numpy()
    ball = abut.Motion(scene.mesh(0), start_pose=scene.poses.numpy()[0], end_pose=ends[0])
    met = 0
    for piece in pieces.tolist():
        mine = (found["objects"] == [0, piece]).all(axis=1)
        want = abut.ccd(ball, abut.Motion(scene.mesh(piece), end=scene.mesh(piece).vertices))
        for name in ("kind", "features"):
            np.testing.assert_array_equal(found[name][mine], want.numpy()[name])
        met += mine.any()
    assert met > 1


@pytest.mark.parametrize("method", ["bvh", "front", "far", "brute"])
def test_an_object_touches_itself_in_its_own_frame(method, device):
    """Where its pose puts it, coordinates are rounded: what touched is apart, or more meets."""
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.3, 0.3, 0], [1, 1, -1]])
    mesh = abut.Mesh(corners, [[0, 1, 2], [3, 4, 5], [0, 4, 3]], device)
    want = abut.self_collide(mesh, method="brute").pairs.numpy()
    scene, poses = abut.Scene(device), random_poses(20, 1e9)
    assert len(scene.collide(self_collisions=True, method=method)) == 0
    scene.add(mesh, poses)
    found = scene.collide(self_collisions=True, method=method).numpy()
    assert len(want)
    np.testing.assert_array_equal(found["pairs"], np.tile(want, (20, 1)))
    np.testing.assert_array_equal(found["objects"][:, 0], np.repeat(np.arange(20), len(want)))


@pytest.mark.parametrize("scale", [1e-30, 1e-21, 1e25])
def test_the_nearest_of_tiny_and_huge_objects(scale, device):
    """Squares of their sizes are nothing in float32, or beyond it."""
    scene = abut.Scene(device)
    poses = random_poses(12, 4.0)
    poses[:, :3, 3] *= scale
    scene.add(abut.Mesh(SHAPE.vertices * scale, SHAPE.faces, device), poses)
    got, want = scene.distance().numpy(), scene.distance(method="brute").numpy()
    assert len(want["value"]) == 12 and (want["value"] > 0).any()
    for name in ("objects", "value"):
        np.testing.assert_array_equal(got[name], want[name])


@pytest.mark.parametrize("bound", ["aabb", "obb", "rss"])
@pytest.mark.parametrize("scale", [1e17, 1e19, 1e20, 1e30, 1e37, 1e40])
def test_distances_of_huge_meshes(scale, bound, device):
    """Spheres and boxes were fitted beyond float32, and what meets was told to be apart."""
    a, b = ((np.asarray(v, float), f) for v, f in cases.pair("tori", 60))
    near = abut.Mesh(a[0] * scale, a[1], device), abut.Mesh(b[0] * scale, b[1], device)
    assert abut.distance(*near, bound=bound).value == 0
    far = near[0], abut.Mesh((b[0] + 9) * scale, b[1], device)
    want = abut.distance(*far, method="brute").value
    assert abut.distance(*far, bound=bound).value == want
    pose = np.eye(4)
    pose[:3, 3] = 9 * scale
    assert np.isclose(abut.distance(*near, pose_b=pose, bound=bound).value, want, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-285, 1.0, 1e155, 1e300])
def test_turning_meshes_of_any_size(scale, device):
    """The square of their reach is more than float64 holds: everything touched at once."""
    ball = abut.Mesh(cases.icosphere(80).vertices * scale, cases.icosphere(80).faces, device)
    wall = np.array([[-0.4, -0.4, 0], [0.4, -0.4, 0], [0, 0.4, 0]]) * scale
    wall = abut.Mesh(wall, [[0, 1, 2]], device)
    up = abut.Motion(wall, end=wall.points.numpy() + np.array([0, 0, scale]))
    hits = abut.ccd(abut.Motion(ball, end_pose=random_poses(1, 0.0)[0]), up)
    assert 0.7 < hits.first < 1


def test_fields_are_of_the_surface(device):
    """A vertex of no face, far away, took their resolution."""
    plain = abut.Mesh(*SHAPE, device)
    stray = np.concatenate([SHAPE.vertices, [[1e6, 0, 0]]])
    meshes = plain, abut.Mesh(stray, SHAPE.faces, device)
    fields = [abut.DistanceField(mesh, resolution=9) for mesh in meshes]
    np.testing.assert_array_equal(*(field.distance.numpy() for field in fields))
    assert fields[0].box.spacing == fields[1].box.spacing
