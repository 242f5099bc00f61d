"""A field between its samples, in textures, in files."""

import pickle

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases
from abut.sdf.grid import FieldGrid, sample_field

STEP = 1.0 / 32767.0


@pytest.fixture(scope="module")
def ball(device):
    return abut.DistanceField(abut.Mesh(*cases.icosphere(81920), device=device), resolution=48)


def inside_of(field, count=4000, seed=0):
    rng = np.random.default_rng(seed)
    return field.box.lower + rng.random((count, 3)) * (field.box.upper - field.box.lower)


def by_hand(field, points):
    """(distance, gradient before normalisation) by NumPy."""
    at = (points - field.box.lower) / field.box.spacing
    first = np.minimum(at.astype(int), np.array(field.box.shape) - 2)
    rest = at - first
    distance, gradient = field.distance.numpy(), field.grid.gradient.numpy() * STEP
    out = np.zeros((len(points), 4))
    for corner in np.ndindex(2, 2, 2):
        share = np.prod(np.where(corner, rest, 1 - rest), axis=1)
        i, j, k = (first + corner).T
        out[:, 0] += share * distance[i, j, k]
        out[:, 1:] += share[:, None] * gradient[i, j, k]
    return out


def spread_of(field, points):
    """Return the spread of the samples of each point's cell."""
    at = (points - field.box.lower) / field.box.spacing
    first = np.minimum(at.astype(int), np.array(field.box.shape) - 2)
    corners = [field.distance.numpy()[tuple((first + c).T)] for c in np.ndindex(2, 2, 2)]
    return np.ptp(corners, axis=0)


def test_samples_are_interpolated_linearly(ball):
    points = inside_of(ball)
    found, wanted = ball.sample(points).numpy(), by_hand(ball, points)
    np.testing.assert_allclose(found["distance"], wanted[:, 0], rtol=0, atol=1e-6)
    size = np.linalg.norm(wanted[:, 1:], axis=1)
    clear = size > 0.1
    assert clear.mean() > 0.99
    gradient = wanted[clear, 1:] / size[clear, None]
    np.testing.assert_allclose(found["gradient"][clear], gradient, rtol=0, atol=1e-4)
    side = np.where(found["distance"] < 0, 1.0, -1.0)[:, None]
    np.testing.assert_array_equal(found["direction"], side * found["gradient"])


def test_samples_are_reproduced_exactly(ball):
    at = np.stack(np.unravel_index(np.arange(0, ball.distance.size, 97), ball.box.shape), axis=1)
    points = ball.box.lower + ball.box.spacing * at
    found = ball.sample(points).distance.numpy()
    np.testing.assert_allclose(found, ball.distance.numpy()[tuple(at.T)], rtol=0, atol=1e-6)


def test_a_sphere_to_second_order(device):
    """Away from the centre the error is h^2 / (8 r) an axis across, and that of the facets."""
    mesh = abut.Mesh(*cases.icosphere(81920), device=device)
    worst = []
    for resolution in (16, 32, 64):
        field = abut.DistanceField(mesh, resolution=resolution, margin=0.2)
        points = inside_of(field, 20000)
        radius = np.linalg.norm(points, axis=1)
        points, radius = points[radius > 0.5], radius[radius > 0.5]
        error = np.abs(field.sample(points).distance.numpy() - (radius - 1.0)).max()
        assert error < 2 * field.box.spacing**2 / (8 * (0.5 - field.box.spacing)) + 2e-4
        worst.append(error)
    assert worst[0] > 3.4 * worst[1] > 3.4 * 2.5 * worst[2]


def test_a_box_is_exact_beside_its_sides(device):
    """Beside a side the distance is linear; everywhere it is within half a cell's diagonal."""
    mesh = abut.Mesh(*cases.box((2.0, 2.0, 2.0)), device=device)
    field = abut.DistanceField(mesh, resolution=40, margin=0.5)
    points = inside_of(field, 20000)
    q = np.abs(points) - 1.0
    true = np.linalg.norm(np.maximum(q, 0), axis=1) + np.minimum(q.max(axis=1), 0)
    found = field.sample(points).distance.numpy()
    cell = field.box.spacing
    assert np.abs(found - true).max() < 0.87 * cell
    second, most = np.sort(q, axis=1)[:, 1:].T
    smooth = ((most > 0) & (second < -cell)) | ((most < 0) & (most - second > 2 * cell))
    assert smooth.mean() > 0.3
    np.testing.assert_allclose(found[smooth], true[smooth], rtol=0, atol=1e-6)


def test_closest_points_within_a_tenth_of_a_cell(ball):
    """16 bits of direction: the foot of every sample, and between them away from the centre."""
    points = inside_of(ball)
    points = points[np.linalg.norm(points, axis=1) > 0.4]
    found = ball.sample(points).numpy()
    foot = points + np.abs(found["distance"])[:, None] * found["direction"]
    true = points / np.linalg.norm(points, axis=1)[:, None]
    assert np.linalg.norm(foot - true, axis=1).max() < 0.1 * ball.box.spacing


def test_sixteen_bits_are_enough_for_the_largest_field():
    """A direction is off by at most half a step an axis: far below a tenth of a cell."""
    farthest = np.sqrt(3) * 1023  # cells: no sample of the finest field is farther
    assert np.sqrt(3) / 2 * STEP * farthest < 0.1


def test_outside_the_box_is_a_distance_of_the_surface(ball):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(2000, 3))
    points *= rng.uniform(2.2, 50, size=(2000, 1)) / np.linalg.norm(points, axis=1)[:, None]
    found = ball.sample(points).numpy()
    true = np.linalg.norm(points, axis=1) - 1.0
    assert (found["distance"] > true - 0.1 * ball.box.spacing).all()
    assert (found["distance"] < true + 0.9).all()  # of the box's corner
    foot = points + found["distance"][:, None] * found["direction"]
    assert np.abs(np.linalg.norm(foot, axis=1) - 1).max() < 0.1 * ball.box.spacing


def test_outside_the_box_of_a_band(device):
    mesh = abut.Mesh(*cases.icosphere(1280), device=device)
    field = abut.DistanceField(mesh, resolution=24, margin=1.0, band=0.2)
    found = field.sample([[5.0, 0.0, 0.0]]).numpy()
    np.testing.assert_allclose(found["distance"], 5.0 - field.box.upper[0] + 0.2, atol=1e-6)
    np.testing.assert_allclose(found["direction"], [[-1, 0, 0]], atol=1e-6)


def test_textures_interpolate_alike(ball):
    points = np.concatenate([inside_of(ball), 3.0 * inside_of(ball, 500)])
    plain, hardware = ball.sample(points).numpy(), ball.sample(points, texture=True).numpy()
    weights = 7 / 256 if ball.device.is_cuda else 1e-5  # all eight together, see sample.py
    off = np.abs(plain["distance"] - hardware["distance"])
    assert (off[:4000] <= weights / 2 * spread_of(ball, points[:4000]) + 1e-6).all()
    error = weights / 2 * np.sqrt(3)
    assert off.max() < 4 * error * ball.box.spacing
    clear = np.linalg.norm(by_hand(ball, points[:4000])[:, 1:], axis=1) > 0.5
    off = np.linalg.norm(plain["gradient"] - hardware["gradient"], axis=1)[:4000]
    assert off[clear].max() < 4 * error


def test_saved_and_loaded(ball, tmp_path):
    ball.save(tmp_path / "ball.npz")
    again = abut.DistanceField.load(tmp_path / "ball.npz", ball.device)
    points = inside_of(ball, 100)
    found, wanted = again.sample(points).numpy(), ball.sample(points).numpy()
    for name in wanted:
        np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)
    assert (again.sign, again.band, again.box.shape) == (ball.sign, ball.band, ball.box.shape)
    assert repr(again) == repr(ball)
    copy = pickle.loads(pickle.dumps(ball))
    np.testing.assert_array_equal(copy.distance.numpy(), ball.distance.numpy())
    assert ball.to(ball.device) is ball


def test_bad_files_are_refused(ball, tmp_path):
    with pytest.raises(abut.FileError, match="no file"):
        abut.DistanceField.load(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(abut.FileError, match=r"text\.npz cannot be read as a distance field"):
        abut.DistanceField.load(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", a=1)
    with pytest.raises(abut.FileError, match="no distance field"):
        abut.DistanceField.load(tmp_path / "other.npz")
    ball.save(tmp_path / "ball.npz")
    with np.load(tmp_path / "ball.npz") as archive:
        parts = {name: archive[name] for name in archive.files if name != "gradient"}
    np.savez(tmp_path / "part.npz", **parts)
    with pytest.raises(abut.FileError, match="parts missing"):
        abut.DistanceField.load(tmp_path / "part.npz")
    with pytest.raises(abut.FileError, match="should end in"):
        ball.save(tmp_path / "ball.stl")
    with pytest.raises(abut.FileError, match="cannot be written"):
        ball.save(tmp_path / "no folder" / "ball.npz")


@wp.kernel
def push_out_kernel(grid: FieldGrid, points: wp.array[wp.vec3d]):
    i = wp.tid()
    found = sample_field(grid, points[i])
    if found[0] < 0.0:
        out = wp.vec3d(wp.float64(found[1]), wp.float64(found[2]), wp.float64(found[3]))
        points[i] = points[i] - wp.float64(found[0]) * out


def test_user_kernels_can_sample(ball):
    points = inside_of(ball)
    points = points[np.linalg.norm(points, axis=1) > 0.4]
    cloud = wp.array(points, dtype=wp.vec3d, device=ball.device)
    wp.launch(push_out_kernel, len(points), [ball.grid, cloud], device=ball.device)
    radius = np.linalg.norm(cloud.numpy(), axis=1)
    assert radius.min() > 1.0 - 0.1 * ball.box.spacing
    outside = np.linalg.norm(points, axis=1) > 1.0
    np.testing.assert_array_equal(cloud.numpy()[outside], points[outside])


@wp.kernel
def lookup_kernel(volume: wp.uint64, points: wp.array[wp.vec3f], out: wp.array[wp.float32]):
    i = wp.tid()
    at = wp.volume_world_to_index(volume, points[i])
    out[i] = wp.volume_sample_f(volume, at, wp.Volume.LINEAR)


def test_nanovdb_holds_the_same_distances(ball, tmp_path):
    ball.save(tmp_path / "ball.nvdb")
    with (tmp_path / "ball.nvdb").open("rb") as file:
        volume = wp.Volume.load_from_nvdb(file, device="cpu")
    points = inside_of(ball, 1000)
    out = wp.empty(1000, dtype=wp.float32, device="cpu")
    at = wp.array(points, dtype=wp.vec3f, device="cpu")
    wp.launch(lookup_kernel, 1000, [volume.id, at, out], device="cpu")
    found = ball.sample(points).distance.numpy()
    np.testing.assert_allclose(out.numpy(), found, rtol=0, atol=1e-3 * ball.box.spacing)
