"""Distance fields against closest points, brute force and libigl; signs of all kinds of meshes."""

import numpy as np
import pytest

import abut
import awkward
from abut import cases
from shapes import soup, strips

ROUNDED = 2e-6  # of the box: float32 coordinates and distances

MODELS = "armadillo_86k cow_5k dragon_202k fertility_60k hand_cgal horse_97k".split()


def positions(field):
    """Positions of the samples, (nx, ny, nz, 3)."""
    box = field.box
    axes = [box.lower[x] + box.spacing * np.arange(box.shape[x]) for x in range(3)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


def some_samples(field, count, seed=0):
    """Indices of random samples."""
    rng = np.random.default_rng(seed)
    return tuple(rng.integers(n, size=count) for n in field.box.shape)


def triangles_of(family, count=60, seed=3):
    points = family(np.random.default_rng(seed), count, 3)
    return cases.Shape(points.reshape(-1, 3), np.arange(3 * count, dtype=np.int32).reshape(-1, 3))


def flipped(shape):
    return cases.Shape(shape.vertices, shape.faces[:, ::-1].copy())


def without(shape, share):
    """A shape with holes."""
    keep = np.random.default_rng(1).random(len(shape.faces)) > share
    return cases.Shape(shape.vertices, shape.faces[keep])


def together(*shapes):
    firsts = np.cumsum([0] + [len(shape.vertices) for shape in shapes]).astype(np.int32)
    faces = [s.faces + f for s, f in zip(shapes, firsts, strict=False)]
    return cases.Shape(np.concatenate([s.vertices for s in shapes]), np.concatenate(faces))


BALL = cases.icosphere(320)
SHAPES = {
    "ball": BALL,
    "box": cases.box(),
    "knot": cases.pair("knot", 1000)[0],
    "needles": cases.needles(60),
    "far": cases.gem(320).moved((1e6, -1e6, 1e6)),
    "tiny": cases.Shape(1e-9 * cases.gem(320).vertices, cases.gem(320).faces),
    "flipped": flipped(BALL),
    "nested": together(BALL, flipped(cases.icosphere(320, 0.5))),
    "twice": together(BALL, cases.icosphere(320, 0.5)),
    "crossing": together(BALL, BALL.moved((0.9, 0.1, 0.2))),
    "two": together(BALL, BALL.moved((2.2, 0.1, 0.2))),
    "cloth": cases.folded_cloth(20, 15),
    "few holes": without(cases.icosphere(5120), 0.001),
    "many holes": without(BALL, 0.3),
    "soup": soup(without(BALL, 0.05)),
    "strips": strips(60),
    "one face": cases.Shape(np.eye(3), np.array([[0, 1, 2]], np.int32)),
    "same faces": cases.Shape(np.eye(3), np.array([[0, 1, 2]] * 40, np.int32)),
    "without area": cases.Shape(np.diag([1.0, 2.0, 0.0]), np.array([[0, 1, 1], [2, 2, 2]])),
    **{
        awkward.name(f): triangles_of(f)
        for f in awkward.FAMILIES
        if 1e-9 < np.abs(f(np.random.default_rng(3), 60, 3)).max() < 1e9
    },
}


@pytest.mark.parametrize("name", SHAPES)
def test_samples_are_closest_points(name, device):
    mesh = abut.Mesh(*SHAPES[name], device=device)
    field = abut.DistanceField(mesh, resolution=17)
    near = abut.closest_point(mesh, positions(field).reshape(-1, 3), signed=True)
    found, true = field.distance.numpy().reshape(-1), near.distance.numpy()
    assert field.sign == near.sign
    error = ROUNDED * field.box.spacing * max(field.box.shape)
    np.testing.assert_allclose(found, true, rtol=0, atol=error)
    sure = np.abs(true) > error
    np.testing.assert_array_equal(found[sure] < 0, true[sure] < 0)


@pytest.mark.parametrize("name", SHAPES)
def test_tree_equals_brute_force(name, device):
    mesh = abut.Mesh(*SHAPES[name], device=device)
    fast, slow = (abut.DistanceField(mesh, resolution=17, method=m) for m in ("bvh", "brute"))
    np.testing.assert_array_equal(fast.distance.numpy(), slow.distance.numpy())
    np.testing.assert_array_equal(fast.grid.gradient.numpy(), slow.grid.gradient.numpy())


@pytest.mark.parametrize("name", SHAPES)
def test_gradients_lead_to_closest_points(name, device):
    mesh = abut.Mesh(*SHAPES[name], device=device)
    field = abut.DistanceField(mesh, resolution=17)
    distance = field.distance.numpy().astype(np.float64)
    foot = positions(field) - distance[..., None] * field.grid.gradient.numpy() / 32767.0
    off = abut.closest_point(mesh, foot.reshape(-1, 3)).distance.numpy()
    assert off.max() < 1e-3 * field.box.spacing
    size = np.linalg.norm(field.grid.gradient.numpy() / 32767.0, axis=-1)
    assert np.abs(size[np.abs(distance) > 1e-6 * field.box.spacing] - 1).max() < 1e-4


@pytest.mark.parametrize("name", MODELS)
def test_models_against_libigl(name, device, data):
    igl = pytest.importorskip("igl")
    mesh = abut.Mesh.load(data / "models" / f"{name}.ply", device)
    field = abut.DistanceField(mesh, resolution=48, margin=0.05 * np.ptp(mesh.bounds, axis=0).max())
    at = some_samples(field, 20000)
    points = positions(field)[at]
    vertices, faces = mesh.points.numpy(), mesh.faces.numpy()
    size = field.box.spacing * max(field.box.shape)
    away = np.sqrt(igl.point_mesh_squared_distance(points, vertices, faces)[0])
    number = igl.fast_winding_number(vertices, faces, points)
    found = field.distance.numpy()[at]
    np.testing.assert_allclose(np.abs(found), away, rtol=0, atol=ROUNDED * size)
    sure = (np.abs(np.abs(number) - 0.5) > 0.05) & (away > ROUNDED * size)
    assert sure.mean() > 0.99
    np.testing.assert_array_equal((found < 0)[sure], (np.abs(number) > 0.5)[sure])


def test_a_band_clamps_distances(device):
    mesh = abut.Mesh(*cases.gem(320), device=device)
    whole = abut.DistanceField(mesh, resolution=21)
    band = 2.5 * whole.box.spacing
    cut = abut.DistanceField(mesh, resolution=21, band=band)
    near = np.abs(whole.distance.numpy()) <= band
    assert 0.1 < near.mean() < 0.9
    np.testing.assert_array_equal(cut.distance.numpy()[near], whole.distance.numpy()[near])
    gradient, wanted = cut.grid.gradient.numpy(), whole.grid.gradient.numpy()
    np.testing.assert_array_equal(gradient[near], wanted[near])
    far = np.sign(whole.distance.numpy()[~near]) * np.float32(band)
    np.testing.assert_array_equal(cut.distance.numpy()[~near], far)
    assert not gradient[~near].any()


@pytest.mark.parametrize("name", ["ball", "flipped", "twice", "crossing"])
def test_pseudonormals_of_nested_and_flipped_meshes(name, device):
    mesh = abut.Mesh(*SHAPES[name], device=device)
    field = abut.DistanceField(mesh, resolution=15, sign="pseudonormal")
    points = positions(field).reshape(-1, 3)
    near = abut.closest_point(mesh, points, signed="pseudonormal").distance.numpy()
    found = field.distance.numpy().reshape(-1)
    np.testing.assert_allclose(found, near, rtol=0, atol=ROUNDED * 15 * field.box.spacing)
    assert field.sign is abut.Sign.PSEUDONORMAL
    foot = points - found[:, None] * field.grid.gradient.numpy().reshape(-1, 3) / 32767.0
    assert abut.closest_point(mesh, foot).distance.numpy().max() < 1e-3 * field.box.spacing


def test_signs_are_chosen_by_the_mesh(device):
    closed, flipped_ball, holes = (
        abut.Mesh(*SHAPES[name], device=device) for name in ("ball", "flipped", "many holes")
    )
    assert abut.DistanceField(closed, resolution=5).sign == "pseudonormal"
    assert abut.DistanceField(flipped_ball, resolution=5).sign == "winding"
    assert abut.DistanceField(holes, resolution=5).sign == "winding"
    with pytest.raises(abut.MeshError, match=r'is open; .* take sign="winding"'):
        abut.DistanceField(holes, resolution=5, sign="pseudonormal")


def test_any_number_of_threads_gives_the_same_bytes(monkeypatch):
    mesh = abut.Mesh(*SHAPES["few holes"], device="cpu")
    many = abut.DistanceField(mesh, resolution=40)
    for threads in (1, 5):
        monkeypatch.setattr("abut.core.launch.thread_count", lambda threads=threads: threads)
        field = abut.DistanceField(mesh, resolution=40)
        np.testing.assert_array_equal(field.distance.numpy(), many.distance.numpy())
        np.testing.assert_array_equal(field.grid.gradient.numpy(), many.grid.gradient.numpy())


def test_progress_is_reported(device):
    shares = []
    mesh = abut.Mesh(*SHAPES["ball"], device=device)
    slow = abut.DistanceField(mesh, resolution=20, progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1.0 and len(shares) > 10
    fast = abut.DistanceField(mesh, resolution=20)
    np.testing.assert_array_equal(slow.distance.numpy(), fast.distance.numpy())


def test_the_grid_covers_the_mesh_and_its_margin(device):
    mesh = abut.Mesh(*cases.box((1.0, 2.0, 0.5)), device=device)
    field = abut.DistanceField(mesh, resolution=33, margin=0.25)
    assert max(field.box.shape) == 33 and field.distance.shape == field.box.shape
    assert (field.box.lower <= mesh.bounds[0] - 0.25 + 1e-12).all()
    assert (field.box.upper >= mesh.bounds[1] + 0.25 - 1e-12).all()
    assert (field.box.upper - mesh.bounds[1] - 0.25 < field.box.spacing).all()
    fine = abut.DistanceField(mesh, spacing=0.05, margin=0.25)
    assert fine.box.spacing == 0.05 and fine.box.shape == (31, 51, 21)
    assert fine.nbytes == 31 * 51 * 21 * 10
    tight = abut.DistanceField(mesh, resolution=9, margin=0.0)
    assert tight.box.shape == (5, 9, 3)
    assert not tight.distance.numpy()[0].any()  # a side of the box


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"resolution": 1}, abut.OptionError, "from 2 up, not 1"),
        ({"resolution": 20.5}, abut.OptionError, "whole number"),
        ({"resolution": 5000}, abut.CapacityError, "1024 is the most"),
        ({"resolution": 8, "spacing": 0.1}, abut.OptionError, "not both"),
        ({"spacing": 1e-6}, abut.OptionError, "spacing must be from"),
        ({"spacing": 0.0}, abut.OptionError, "spacing must be from"),
        ({"margin": -1.0}, abut.OptionError, "margin must be"),
        ({"band": 0.0}, abut.OptionError, "band must be"),
        ({"band": float("nan")}, abut.OptionError, "band must be"),
        ({"sign": "parity"}, abut.OptionError, "sign must be one of 'auto', 'pseud"),
        ({"method": "magic"}, abut.OptionError, "method must be one of"),
    ],
)
def test_bad_options_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        abut.DistanceField(abut.Mesh(*cases.box(), device="cpu"), **options)


def test_bad_meshes_are_refused():
    with pytest.raises(abut.MeshError, match="no faces"):
        abut.DistanceField(abut.Mesh(np.zeros((3, 3)), np.zeros((0, 3), np.int32), device="cpu"))
    point = abut.Mesh(np.ones((1, 3)), np.zeros((1, 3), np.int32), device="cpu")
    with pytest.raises(abut.MeshError, match="single point"):
        abut.DistanceField(point)
    field = abut.DistanceField(point, margin=1.0, resolution=9)
    assert abs(field.sample([[1.0, 1.0, 1.5]]).distance.numpy()[0] - 0.5) < 1e-6
    with pytest.raises(abut.MeshError, match="scale the mesh"):
        abut.DistanceField(abut.Mesh(1e200 * np.eye(3), [[0, 1, 2]], device="cpu"))
