"""abut.closest_point: nearest faces, distances, bounds, poses, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest
import warp as wp

import abut
import abut.query.closest_point as closest
import awkward
import oracle
from abut import cases
from abut.bvh.bvh_cache import bvh_of
from abut.operands.posed_mesh import make_posed_mesh
from abut.point.nearest_face import NO_FACE
from shapes import moved, random_poses, shift, soup, strips

GRID = np.stack(np.meshgrid(*[np.linspace(-1.5, 1.5, 13)] * 3), axis=-1).reshape(-1, 3)


def around(shape, count=2000, seed=0, reach=1.3):
    """Points about a shape: in its box, near its faces, and on its corners."""
    rng = np.random.default_rng(seed)
    corners = shape.vertices[shape.faces]
    low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    middle, half = (low + high) / 2, (high - low) / 2 + 1e-3 * np.abs(high - low).max()
    wide = middle + rng.uniform(-reach, reach, size=(count, 3)) * half
    on = corners[rng.integers(len(corners), size=count)]
    on = np.einsum("nk,nkx->nx", rng.dirichlet(np.ones(3), size=count), on)
    near = on + 10.0 ** rng.uniform(-12, -1, size=(count, 1)) * rng.normal(size=(count, 3))
    return np.concatenate([wide, on, near, corners.reshape(-1, 3)[:count]])


def same_rows(a, b):
    a, b = a.numpy(), b.numpy()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def triangles_of(family, count=60, seed=3):
    points = family(np.random.default_rng(seed), count, 3)
    return cases.Shape(points.reshape(-1, 3), np.arange(3 * count, dtype=np.int32).reshape(-1, 3))


SHAPES = {
    "knot": cases.pair("knot", 3000)[0],
    "cloth": cases.folded_cloth(30, 20),
    "needles": cases.needles(200),
    "box": cases.box(),
    "soup": soup(cases.gem(800)),
    "strips": strips(150),
    "one face": cases.Shape(np.eye(3), np.array([[0, 1, 2]], np.int32)),
    "twice": cases.Shape(np.eye(3), np.array([[0, 1, 2]] * 40, np.int32)),
    "far": cases.gem(800).moved((1e6, -1e6, 1e6)),
    "small": cases.Shape(cases.gem(800).vertices * 1e-9, cases.gem(800).faces),
    "a point": cases.Shape(np.ones((1, 3)), np.array([[0, 0, 0]], np.int32)),
    **{awkward.name(f): triangles_of(f) for f in awkward.FAMILIES},
}


@pytest.mark.parametrize("name", SHAPES)
def test_same_rows_as_brute_force(name, device):
    shape = SHAPES[name]
    mesh = abut.Mesh(*shape, device)
    with np.errstate(all="ignore"):
        points = around(shape, 300)
    points = points[np.isfinite(points).all(axis=1)]
    fast, slow = (abut.closest_point(mesh, points, method=m) for m in ("bvh", "brute"))
    same_rows(fast, slow)
    assert (fast.face.numpy() >= 0).all()


@pytest.mark.parametrize("name", ["box", "one face", "grid", "flat", "on_a_line", "needles"])
def test_minimum_against_fractions(name, device):
    shape = SHAPES[name]
    corners = shape.vertices[shape.faces][:40]
    mesh = abut.Mesh(shape.vertices, shape.faces[:40], device)
    points = around(shape, 30)
    got = abut.closest_point(mesh, points).numpy()
    reach = np.abs(corners).max() + np.abs(points).max()
    for p, distance in zip(points, got["distance"], strict=True):
        truth = min(oracle.squared_distance_to_triangle(p, t) for t in corners)
        d, e = Fraction(float(distance)), Fraction(float(2.0**-49 * reach))
        assert max(d - e, 0) ** 2 <= truth <= (d + e) ** 2
        assert (truth == 0) <= (distance == 0)


@pytest.mark.parametrize("height", [0.0, 1e-170, 3e-160, 1e-155, 1e-150, 1e-140, 1e-130])
def test_a_face_that_is_hardly_there(height, device):
    """Squares of its area are subnormal or nothing; corners are still found, and its length."""
    mesh = abut.Mesh(np.array([[0.0, 0, 0], [1, 0, 0], [0.5, height, 0]]), [[0, 1, 2]], device)
    points = [[0.0, 0, 0], [1, 0, 0], [0.5, height, 0], [0.5, 0, 1], [0.75, 0, 0], [0.5, -3, 4]]
    got = abut.closest_point(mesh, points).numpy()
    np.testing.assert_array_equal(got["distance"], [0, 0, 0, 1, 0, 5])


def test_huge_and_tiny_coordinates(device):
    """Distances whose squares float64 cannot hold."""
    for scale in (1e-300, 1e-170, 1e-60, 1e60, 1e170, 1e300):
        ball = cases.icosphere(80)
        mesh = abut.Mesh(ball.vertices * scale, ball.faces, device)
        got = abut.closest_point(mesh, GRID * scale, signed=True).numpy()
        plain = abut.closest_point(abut.Mesh(*ball, device), GRID, signed=True).numpy()
        np.testing.assert_allclose(got["distance"], plain["distance"] * scale, 1e-9, 1e-14 * scale)
        inside = np.linalg.norm(GRID, axis=1) < 0.8
        assert (got["distance"][inside] < 0).all()


def test_posed_far_away(device):
    """A pose that moves so far that squares overflow."""
    ball = abut.Mesh(*cases.icosphere(80), device)
    got = abut.closest_point(ball, [[0.0, 0, 0], [1e200, 2, 0]], pose=shift(1e200, 0, 0)).numpy()
    np.testing.assert_allclose(got["distance"], [1e200, 1e200 * 0], atol=1e185)


def test_lowest_of_equal_faces(device):
    """The middle of a box is equally far from all faces; a corner belongs to several."""
    box = cases.box((2, 2, 2))
    mesh = abut.Mesh(*box, device)
    corners = [np.flatnonzero((box.faces == v).any(axis=1)).min() for v in range(8)]
    assert abut.closest_point(mesh, [[0.0, 0, 0]]).face.numpy()[0] == 0
    np.testing.assert_array_equal(abut.closest_point(mesh, box.vertices).face.numpy(), corners)
    beyond = abut.closest_point(mesh, 3 * box.vertices)
    np.testing.assert_array_equal(beyond.face.numpy(), corners)
    np.testing.assert_array_equal(beyond.point.numpy(), box.vertices)


def test_exactly_zero_on_the_surface(device):
    box = cases.box((2, 2, 2)).turned("x", 0)
    rng = np.random.default_rng(0)
    on = rng.integers(-64, 65, size=(500, 3)) / 64
    on[np.arange(500), rng.integers(3, size=500)] = rng.choice([-1.0, 1.0], size=500)
    got = abut.closest_point(abut.Mesh(*box, device), on, signed=True).numpy()
    assert (got["distance"] == 0).all()
    np.testing.assert_array_equal(got["point"], on)
    slanted = abut.Mesh(np.array([[0.0, 0, 0], [3, 1, 2], [1, 5, 2]]), [[0, 1, 2]], device)
    middle = np.array([[2.0, 3, 2], [1.5, 0.5, 1], [1, 1.5, 1]])  # edges' middles, and inside
    assert (abut.closest_point(slanted, middle).distance.numpy() == 0).all()


def test_upper_bound(device):
    ball = cases.icosphere(320)
    mesh = abut.Mesh(*ball, device)
    free = abut.closest_point(mesh, GRID).numpy()
    for bound in (0.0, 0.2, float(free["distance"][100]), 5.0):
        for method in ("bvh", "brute"):
            got = abut.closest_point(mesh, GRID, upper_bound=bound, method=method).numpy()
            within = free["distance"] <= bound
            for name in free:
                np.testing.assert_array_equal(got[name][within], free[name][within])
            assert (got["distance"][~within] == np.inf).all()
            assert (got["face"][~within] == -1).all()
            assert np.isnan(got["point"][~within]).all()
            assert np.isnan(got["barycentric"][~within]).all()
    signed = abut.closest_point(mesh, GRID, upper_bound=0.2, signed=True).distance.numpy()
    assert ((signed == np.inf) == (free["distance"] > 0.2)).all()


def test_poses(device):
    knot = SHAPES["knot"]
    mesh = abut.Mesh(*knot, device)
    points = around(knot, 200)
    poses = random_poses(4, 1.0)
    batch = abut.closest_point(mesh, points, pose=poses, signed=True).numpy()
    assert batch["distance"].shape == (4, len(points))
    assert batch["point"].shape == batch["barycentric"].shape == (4, len(points), 3)
    for k, pose in enumerate(poses):
        one = abut.closest_point(mesh, points, pose=pose, signed=True).numpy()
        there = abut.Mesh(moved(knot.vertices, pose), knot.faces, device)
        for name, rows in abut.closest_point(there, points, signed=True).numpy().items():
            np.testing.assert_array_equal(one[name], batch[name][k])
            np.testing.assert_array_equal(one[name], rows)
    still = abut.closest_point(mesh, points, pose=np.eye(4), signed=True)
    same_rows(still, abut.closest_point(mesh, points, signed=True))


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_poses_of_brute_force(offset, device):
    """Single-precision poses are rigid only roughly; nothing may be lost for that."""
    mesh = abut.Mesh(*SHAPES["soup"].moved((offset, 0, 0)), device)
    poses = random_poses(20, 1.0, seed=4).astype(np.float32)
    for pose in poses:
        points = around(cases.Shape(moved(mesh.points.numpy(), pose), mesh.faces.numpy()), 30)
        same_rows(
            abut.closest_point(mesh, points, pose=pose),
            abut.closest_point(mesh, points, pose=pose, method="brute"),
        )


def test_kinds_of_arrays(device):
    mesh = abut.Mesh(*cases.gem(320), device)
    points = GRID.astype(np.float32)
    want = abut.closest_point(mesh, points.astype(np.float64))
    same_rows(abut.closest_point(mesh, points), want)
    same_rows(abut.closest_point(mesh, points.tolist()), want)
    for dtype in (wp.vec3f, wp.vec3d):
        same_rows(abut.closest_point(mesh, wp.array(points, dtype=dtype, device=device)), want)
    same_rows(abut.closest_point(mesh, wp.array(points, dtype=wp.float32, device=device)), want)
    same_rows(
        abut.closest_point(mesh, GRID[:, ::-1].round()),
        abut.closest_point(mesh, GRID[:, ::-1].round().astype(int)),
    )


def test_torch_points():
    torch = pytest.importorskip("torch")
    mesh = abut.Mesh(*cases.gem(320), "cpu")
    same_rows(abut.closest_point(mesh, torch.tensor(GRID)), abut.closest_point(mesh, GRID))


def test_no_points(device):
    mesh = abut.Mesh(*cases.box(), device)
    for empty in ([], np.zeros((0, 3)), np.zeros((0, 3), np.float32)):
        got = abut.closest_point(mesh, empty, signed=True)
        assert len(got) == 0
        assert got.point.shape == got.barycentric.shape == (0, 3)
    assert abut.closest_point(mesh, [], pose=random_poses(3, 1.0)).distance.shape == (3, 0)
    assert abut.closest_point(mesh, GRID, pose=np.zeros((0, 4, 4))).distance.shape[0] == 0


def test_after_deform(device):
    gem = cases.gem(800)
    mesh = abut.Mesh(*gem, device)
    abut.closest_point(mesh, GRID, signed=True)
    for k in range(5):
        vertices = gem.vertices * [1, 1 + 0.1 * k, 1 - 0.05 * k]
        mesh.deform(vertices)
        fresh = abut.Mesh(vertices, gem.faces, device)
        same_rows(
            abut.closest_point(mesh, GRID, signed=True),
            abut.closest_point(fresh, GRID, signed=True),
        )


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"points": [[0, 0, 0], [0, np.nan, 0]]}, abut.PointError, r"points\[1\] is .*finite"),
        ({"points": np.full((2, 3), np.inf)}, abut.PointError, r"points\[0\]"),
        ({"points": np.zeros((3, 2))}, abut.PointError, r"shape \(n, 3\), not \(3, 2\)"),
        ({"points": np.zeros(3)}, abut.PointError, r"not \(3,\)"),
        ({"points": np.zeros((1, 3), complex)}, abut.PointError, "float32 or float64"),
        ({"upper_bound": -1.0}, abut.OptionError, "from 0 up"),
        ({"upper_bound": np.nan}, abut.OptionError, "from 0 up"),
        ({"method": "magic"}, abut.OptionError, "method must be one of"),
        ({"signed": "magic"}, abut.OptionError, "signed must be one of"),
        ({"pose": np.diag([2.0, 1, 1, 1])}, abut.PoseError, "not a rigid motion"),
    ],
)
def test_refusals(options, error, message, device):
    mesh = abut.Mesh(*cases.box(), device)
    given = {"points": [[0.0, 0, 0]]} | options
    with pytest.raises(error, match=message):
        abut.closest_point(mesh, **given)


def test_refused_meshes(device):
    with pytest.raises(abut.MeshError, match="no faces"):
        abut.closest_point(abut.Mesh(np.eye(3), [], device), GRID)
    with pytest.raises(abut.MeshError, match=r"must be an abut.Mesh"):
        abut.closest_point("bunny", GRID)


def test_points_on_another_device(device):
    if device == "cpu":
        pytest.skip("needs two devices")
    mesh = abut.Mesh(*cases.box(), device)
    with pytest.raises(abut.DeviceError, match="live on"):
        abut.closest_point(mesh, wp.zeros(3, dtype=wp.vec3d, device="cpu"))


@pytest.mark.parametrize("name", ["armadillo_86k", "bunny_69k", "cow_5k", "horse_97k"])
def test_models_against_libigl(name, data, device):
    igl = pytest.importorskip("igl")
    mesh = abut.Mesh.load(data / "models" / f"{name}.ply", device)
    shape = cases.Shape(mesh.points.numpy(), mesh.faces.numpy())
    points = around(shape, 1000)
    squared, _, _ = igl.point_mesh_squared_distance(points, *shape)
    got = abut.closest_point(mesh, points).numpy()
    size = np.ptp(shape.vertices, axis=0).max()
    assert np.abs(got["distance"] - np.sqrt(squared)).max() <= 1e-9 * size  # theirs near zero
    assert (got["distance"] <= np.sqrt(squared) + 1e-15 * size).all()


def test_shift_is_exact(device):
    """Far from the origin a mesh has the same answers as near it."""
    gem = cases.gem(800)
    vertices = np.round(gem.vertices * 2**20) / 2**20
    points = np.round(GRID * 2**20) / 2**20
    here = abut.closest_point(abut.Mesh(vertices, gem.faces, device), points).numpy()
    there = abut.Mesh(vertices + 2.0**20, gem.faces, device)
    far = abut.closest_point(there, points + 2.0**20).numpy()
    moved_back = abut.closest_point(there, points, pose=shift(*[-(2.0**20)] * 3)).numpy()
    for name in ("distance", "face", "barycentric"):
        np.testing.assert_array_equal(here[name], far[name])
        np.testing.assert_array_equal(here[name], moved_back[name])


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("posed", [False, True])
@pytest.mark.parametrize("at_once", [1 << 21, 192])
def test_lanes_together_find_the_same_faces(name, posed, at_once, device, monkeypatch):
    """The kernels that CUDA takes for many points, also where a thread is alone."""
    if not 1e-6 < np.abs(SHAPES[name].vertices).max() < 1e9:
        pytest.skip("such sizes are scaled before")
    monkeypatch.setattr(closest, "AT_ONCE", at_once)
    mesh = abut.Mesh(*SHAPES[name], device=device)
    points = around(SHAPES[name], 200)
    size = np.ptp(points, axis=0).max()
    poses = random_poses(2, 0.1 * size, seed=4) if posed else None
    want = abut.closest_point(mesh, points, pose=poses, upper_bound=0.7 * size).face.numpy()
    rows = wp.empty((2 if posed else 1, len(points)), dtype=wp.int32, device=device)
    cloud = wp.array(points, dtype=wp.vec3d, device=device)
    order = wp.array(np.random.default_rng(0).permutation(len(points)), wp.int32, device=device)
    side = make_posed_mesh(mesh.points, mesh.faces, poses)
    bound = wp.float64((0.7 * size) ** 2)
    closest._search_together(mesh, bvh_of(mesh), cloud, order, side, bound, rows)
    found = rows.numpy().reshape(want.shape)
    np.testing.assert_array_equal(np.where(found == NO_FACE, -1, found), want)
