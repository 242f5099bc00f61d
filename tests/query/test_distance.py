"""abut.distance: every method and bound finds the true minimum, and where it is."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

import abut
import oracle
from abut import cases
from shapes import moved, random_poses, shift, strips

BOUNDS = [bound for bound in abut.Bound if bound is not abut.Bound.KDOP]


def check_same(near, other):
    """Two results that are equal to the last bit."""
    for name, value in other.numpy().items():
        np.testing.assert_array_equal(near.numpy()[name], value)


def check_against_brute(a, b, **options):
    """Every bound gives what brute force does, which is returned."""
    truth = abut.distance(a, b, method="brute", **options)
    for bound in BOUNDS:
        check_same(abut.distance(a, b, bound=bound, **options), truth)
    return truth


def meshes(name, faces, device):
    return [abut.Mesh(*shape, device) for shape in cases.pair(name, faces)]


def check_witness(near, a, b):
    """The points lie on the faces named, as far apart as said."""
    p, q = near.points.numpy()
    np.testing.assert_allclose(np.linalg.norm(q - p), near.value, rtol=1e-12, atol=1e-15)
    for point, mesh, face in zip((p, q), (a, b), near.faces.numpy(), strict=True):
        corners = mesh.points.numpy()[mesh.faces.numpy()[face]]
        assert (
            oracle.squared_distance_point_tri(point, corners) < (1e-13 * np.ptp(mesh.bounds)) ** 2
        )


@pytest.mark.parametrize("name", cases.PAIRS)
def test_scenes_against_brute_force(name, device):
    a, b = meshes(name, 1000, device)
    near = check_against_brute(a, b)
    assert (near.value == 0) is bool(abut.collide(a, b))
    assert (near.value > 0) is (name in ("apart", "nested"))
    check_witness(near, a, b)


@pytest.mark.parametrize("name", ["apart", "nested", "stacked_boxes", "knot"])
def test_small_scenes_against_fractions(name, device):
    a, b = cases.pair(name, 20)
    near = check_against_brute(abut.Mesh(*a, device), abut.Mesh(*b, device))
    squares = [
        oracle.squared_distance_tri_tri(a.vertices[f], b.vertices[g])
        for f in a.faces
        for g in b.faces
    ]
    if oracle.pairs_between(*a, *b):
        assert near.value == 0
    else:
        np.testing.assert_allclose(near.value, float(min(squares)) ** 0.5, rtol=1e-14)


def test_swapping_the_meshes_swaps_the_answer(device):
    a, b = meshes("apart", 500, device)
    pose = random_poses(1, 3.0, seed=2)[0]
    one, other = abut.distance(a, b, pose_b=pose), abut.distance(b, a, pose_a=pose)
    np.testing.assert_allclose(other.value, one.value, rtol=1e-14)
    np.testing.assert_allclose(other.points.numpy()[::-1], one.points.numpy(), atol=1e-13)


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_batch_is_its_single_poses(bound, device):
    a, b = meshes("tori", 800, device)
    poses = random_poses(40, 2.5)
    together = abut.distance(a, b, pose_a=poses[::-1], pose_b=poses, bound=bound)
    value, faces, points = (together.numpy()[k] for k in ("value", "faces", "points"))
    assert 4 < (value == 0).sum() < 36
    for k in range(40):
        alone = abut.distance(a, b, pose_a=poses[39 - k], pose_b=poses[k], bound=bound)
        assert alone.value == value[k]
        if alone.value > 0:
            np.testing.assert_array_equal(alone.faces.numpy(), faces[k])
            np.testing.assert_array_equal(alone.points.numpy(), points[k])


def test_poses_against_moved_vertices(device):
    a, b = cases.pair("apart", 600)
    poses = random_poses(6, 3.0)
    mesh_a, mesh_b = abut.Mesh(*a, device), abut.Mesh(*b, device)
    value = check_against_brute(mesh_a, mesh_b, pose_b=poses).value.numpy()
    for k, pose in enumerate(poses):
        placed = abut.Mesh(moved(b.vertices, pose), b.faces, device)
        assert abut.distance(mesh_a, placed).value == value[k]


MODELS = ("armadillo_86k", "bunny_69k", "cow_5k", "dragon_202k", "fertility_60k", "hand_cgal")
MODELS += ("horse_97k",)
SMALL = {("cow_5k", "hand_cgal")}


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(names, marks=[] if names in SMALL else pytest.mark.slow, id="-".join(names))
        for names in combinations_with_replacement(MODELS, 2)
    ],
)
def test_models_against_peers(names, data):
    """All pairs of models in random poses."""
    fcl = pytest.importorskip("fcl", reason="needs python-fcl")
    coal = pytest.importorskip("coal", reason="needs Coal")
    first, other = (abut.Mesh.load(data / "models" / f"{name}.ply", "cpu") for name in names)
    size = np.ptp(first.bounds)
    scaled = abut.Mesh(other.points.numpy() * size / np.ptp(other.bounds), other.faces, "cpu")
    poses = random_poses(30, size)
    value = abut.distance(first, scaled, pose_b=poses).value.numpy()
    theirs = {
        "fcl": _fcl(fcl, first, scaled, poses),
        "coal": _coal(coal, first, scaled, poses),
    }
    apart = value > 0
    assert apart.sum() > 5
    for want in theirs.values():
        np.testing.assert_allclose(value[apart], want[apart], rtol=1e-9, atol=1e-13 * size)
        assert (want[~apart] <= 1e-9 * size).all()


def _fcl(fcl, a, b, poses):
    objects = []
    for mesh in (a, b):
        model = fcl.BVHModel()
        model.beginModel(mesh.vertex_count, mesh.face_count)
        model.addSubModel(mesh.points.numpy(), mesh.faces.numpy())
        model.endModel()
        objects.append(fcl.CollisionObject(model))
    found = []
    for pose in poses:
        objects[1].setTransform(fcl.Transform(pose[:3, :3], pose[:3, 3]))
        found.append(fcl.distance(*objects, fcl.DistanceRequest(), fcl.DistanceResult()))
    return np.array(found)


def _coal(coal, a, b, poses):
    models = []
    for mesh in (a, b):
        model = coal.BVHModelOBBRSS()
        model.beginModel(mesh.face_count, mesh.vertex_count)
        model.addVertices(mesh.points.numpy())
        model.addTriangles(mesh.faces.numpy().astype(np.int64))
        model.endModel()
        models.append(model)
    found = []
    for pose in poses:
        result = coal.DistanceResult()
        placed = coal.Transform3s(pose[:3, :3], pose[:3, 3])
        coal.distance(
            models[0], coal.Transform3s(), models[1], placed, coal.DistanceRequest(), result
        )
        found.append(result.min_distance)
    return np.array(found)


def test_touching_is_zero_and_a_hair_is_not(device):
    box = abut.Mesh(*cases.box(), device)
    size = np.ptp(box.bounds[:, 0])
    for gap, meets in ((0.0, True), (2.0**-52, False), (-(2.0**-53), True)):
        near = abut.distance(box, box, pose_b=shift(size + gap, 0, 0))
        assert (near.value == 0) is meets
        assert near.value <= 2.0**-50


def test_a_tie_goes_to_the_lowest_faces(device):
    """Two flat grids face each other: every pair of opposite faces is as near as any."""
    grid = strips(30)
    a = abut.Mesh(*grid, device)
    near = check_against_brute(a, a, pose_b=shift(0, 0, 0.5))
    assert near.value == 0.5
    assert near.faces.numpy().tolist() == [0, 0]


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e6, 1e12])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_any_size_anywhere(scale, offset, device):
    a, b = cases.pair("apart", 400)
    a, b = (abut.Mesh(s.vertices * scale + offset * scale, s.faces, device) for s in (a, b))
    near = check_against_brute(a, b)
    np.testing.assert_allclose(near.value / scale, 0.01, rtol=1e-9 if offset == 0 else 1e-7)


@pytest.mark.parametrize("scale", [1e-30, 1e-150, 1e30, 1e150, 1e300])
def test_beyond_single_precision(scale, device):
    a, b = cases.pair("apart", 60)
    a, b = (abut.Mesh(s.vertices * scale, s.faces, device) for s in (a, b))
    assert check_against_brute(a, b).value > 0


def test_faces_without_area(device):
    rng = np.random.default_rng(0)
    corners = rng.normal(size=(40, 3, 3))
    corners[:10, 1] = corners[:10, 0]
    corners[10:20] = corners[10:20, :1]
    faces = np.arange(120).reshape(-1, 3)
    a = abut.Mesh(corners.reshape(-1, 3), faces, device)
    b = abut.Mesh(corners[::-1].reshape(-1, 3) + np.array([9, 0, 0]), faces, device)
    check_against_brute(a, b)
    check_against_brute(a, b, pose_b=random_poses(5, 4.0))


def test_one_face_each(device):
    a = abut.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], device)
    b = abut.Mesh([[0.2, 0.2, 3], [1, 0, 4], [0, 1, 4]], [[0, 1, 2]], device)
    near = check_against_brute(a, b)
    assert near.value == 3
    assert near.points.numpy().tolist() == [[0.2, 0.2, 0], [0.2, 0.2, 3]]


def test_an_upper_bound(device):
    a, b = meshes("apart", 500, device)
    near = abut.distance(a, b)
    check_same(check_against_brute(a, b, upper_bound=near.value), near)
    missed = check_against_brute(a, b, upper_bound=np.nextafter(near.value, 0))
    assert missed.value == np.inf
    assert missed.faces.numpy().tolist() == [-1, -1]
    assert np.isnan(missed.points.numpy()).all()
    poses = np.stack([shift(x, 0, 0) for x in (0.0, 5.0, -0.2)])
    value = check_against_brute(a, b, pose_b=poses, upper_bound=0.1).value.numpy()
    assert value[0] == near.value and value[1] == np.inf and value[2] == 0


@pytest.mark.parametrize("tolerance", [1e-3, 0.5, np.inf])
def test_a_tolerance(tolerance, device):
    a, b = meshes("apart", 2000, device)
    poses = random_poses(30, 2.0)
    true = abut.distance(a, b, pose_b=poses).value.numpy()
    near = abut.distance(a, b, pose_b=poses, tolerance=tolerance)
    got = near.value.numpy()
    assert ((got == 0) == (true == 0)).all()
    assert (got >= true).all() and (got <= true + tolerance).all()
    p, q = near.points.numpy().transpose(1, 0, 2)
    np.testing.assert_allclose(np.linalg.norm(q - p, axis=1), got, atol=1e-12)


def test_a_deformed_mesh(device):
    ball = cases.icosphere(800)
    a, b = abut.Mesh(*ball, device), abut.Mesh(*ball.moved((2.5, 0, 0)), device)
    check_against_brute(a, b)
    for size in (1.1, 0.5, 1.4):
        a.deform(ball.vertices * [size, 1, 1])
        near = check_against_brute(a, b)
        check_same(
            near, abut.distance(abut.Mesh(ball.vertices * [size, 1, 1], ball.faces, device), b)
        )


def test_points_are_of_the_shape_that_was_asked_about(device):
    ball = cases.icosphere(80)
    a, b = abut.Mesh(*ball, device), abut.Mesh(*ball.moved((3, 0, 0)), device)
    near, want = abut.distance(a, b), abut.distance(a, b).points.numpy()
    a.deform(ball.vertices * 1.2)
    np.testing.assert_array_equal(near.points.numpy(), want)


def test_a_large_batch_is_the_same(device):
    a, b = meshes("spheres", 300, device)
    poses = random_poses(300, 3.0)
    for _ in range(2):  # until trees are improved: the faces named where meshes meet are any
        whole = abut.distance(a, b, pose_b=poses)
    check_same(whole, abut.distance(a, b, pose_b=poses, bound="aabb"))
    part = abut.distance(a, b, pose_b=poses[:7]).value.numpy()
    np.testing.assert_array_equal(whole.value.numpy()[:7], part)


def test_no_poses_at_all(device):
    a, b = meshes("apart", 60, device)
    near = abut.distance(a, b, pose_b=np.zeros((0, 4, 4)))
    assert near.value.shape == (0,) and near.faces.shape == (0, 2)
    assert near.points.shape == (0, 2, 3)


def test_bad_input_is_refused(device):
    a, b = meshes("apart", 60, device)
    empty = abut.Mesh(np.zeros((3, 3)), np.zeros((0, 3), int), device)
    with pytest.raises(abut.MeshError, match="b has no faces"):
        abut.distance(a, empty)
    for bad in (-1.0, np.nan):
        with pytest.raises(abut.OptionError, match="upper_bound must be a length"):
            abut.distance(a, b, upper_bound=bad)
        with pytest.raises(abut.OptionError, match="tolerance must be a length"):
            abut.distance(a, b, tolerance=bad)
    with pytest.raises(abut.OptionError, match="bound must be one of"):
        abut.distance(a, b, bound="sphere")
    with pytest.raises(abut.PoseError):
        abut.distance(a, b, pose_a=2 * np.eye(4))


@pytest.mark.parametrize("method", ["bvh", "brute"])
def test_an_upper_bound_of_nothing(method, device):
    a, b = meshes("apart", 100, device)
    assert abut.distance(a, b, upper_bound=0.0, method=method).value == np.inf
    assert abut.distance(a, a, upper_bound=0.0, method=method).value == 0
    poses = np.stack([np.eye(4), shift(9, 0, 0)])
    near = abut.distance(a, a, pose_b=np.tile(poses, (8, 1, 1)), upper_bound=0.0, method=method)
    np.testing.assert_array_equal(near.value.numpy(), np.tile([0, np.inf], 8))
    assert (near.faces.numpy()[1::2] == -1).all() and (near.faces.numpy()[::2] >= 0).all()
