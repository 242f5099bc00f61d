"""Certified bounds of a field: the truth, found without the field, never leaves them."""

import numpy as np
import pytest

import abut
from abut import cases
from abut.sdf.tape import subdivided_samples
from shapes import bowl, moved, random_poses, shift

SHAPES = {
    "gem": cases.gem(320),
    "box": cases.box((2.0, 1.0, 0.3)),
    "torus": cases.torus(32, 16),
    "knot": cases.torus_knot(64, 8),
}
OTHERS = {"torus": cases.torus(24, 12), "slab": cases.box((3.0, 0.4, 0.05))}


def truth(mesh, other, pose, pixel, centre, stiffness):
    """Least signed distance and penalty integrals by exact closest points of dense samples."""
    points, areas = subdivided_samples(moved(other.vertices, pose), other.faces, pixel)
    found = abut.closest_point(mesh, points, signed=True).numpy()
    inside = found["distance"] < 0
    p, q, area = points[inside], found["point"][inside], areas[inside]
    force = stiffness * (p - q) * area[:, None]
    torque = np.cross(q - centre, force)
    energy = 0.5 * stiffness * (area * found["distance"][inside] ** 2).sum()
    sums = {"force": force.sum(axis=0), "torque": torque.sum(axis=0)}
    return found["distance"].min(), sums | {"area": area.sum(), "energy": energy}


@pytest.mark.parametrize("resolution", [12, 40])
@pytest.mark.parametrize("name", SHAPES)
def test_truth_stays_within(name, resolution, device):
    """Of distance, depth, force, torque, area and energy, at random poses."""
    shape, pixels = SHAPES[name], 4 * resolution
    mesh = abut.Mesh(*shape, device)
    field = abut.DistanceField(mesh, resolution=resolution)
    assert field.certain
    pixel = field.box.spacing * (max(field.box.shape) - 1) / pixels
    centre, met = np.array([0.1, 0.2, -0.3]), 0
    for k, other in enumerate(OTHERS.values()):
        partner = abut.Mesh(*other, device)
        for pose in [*random_poses(3, 0.6, seed=k), *random_poses(3, 2.5, seed=9 + k)]:
            low, high = field.closest_bounds(partner, pose, pixels=pixels).numpy()
            options = {"pixels": pixels, "stiffness": 2.0, "centre": centre}
            got = field.response_bounds(partner, pose, **options).numpy()
            least, sums = truth(mesh, other, pose, pixel / 2, centre, 2.0)
            assert low <= least and least - 2 * pixel <= high
            exact = abut.distance(mesh, partner, pose_b=pose).value
            assert low <= 0 if exact == 0 else low <= exact <= high
            if high < field.margin:  # the nearest point is in the field's box
                assert high - low <= 2.0 * field.box.spacing + 2 * pixel
            for column, value in sums.items():
                assert (got[column][0] <= value).all() and (value <= got[column][1]).all(), column
            met += sums["area"] > 0
            if low > 0:
                assert all((value == 0).all() for value in got.values())
    assert 4 <= met


def test_bounds_tighten(device):
    """Where a surface is flat, distance and normal force to second order in the spacing."""
    box, sheet = cases.box((2.0, 2.0, 2.0)), cases.plane(4, 4, size=0.5)
    mesh, other = abut.Mesh(*box, device), abut.Mesh(*sheet, device)
    widths, forces = [], []
    for resolution in (16, 32, 64):
        field = abut.DistanceField(mesh, resolution=resolution)
        low, high = field.closest_bounds(other, shift(0, 0, 0.61), pixels=256).numpy()
        assert low <= -0.39 <= high
        widths.append(high - low)
        push = field.response_bounds(other, shift(0, 0, 0.61), pixels=256).numpy()["force"][:, 2]
        assert push[0] <= -0.39 * 0.25 <= push[1]
        forces.append(np.ptp(push) / (0.39 * 0.25))
    assert widths[2] < 0.15 * field.box.spacing and widths[2] < 0.4 * widths[0]
    assert forces[2] < 0.1 and forces[2] < 0.4 * forces[0]


def test_bounds_hold_samples_that_closest_finds(device):
    """The estimate of ``closest`` is within a cell and a pixel of both bounds."""
    field = abut.DistanceField(abut.Mesh(*cases.gem(320), device), resolution=32)
    ring = abut.Mesh(*cases.torus(24, 12), device)
    poses = random_poses(6, 1.2, seed=2)
    bounds = field.closest_bounds(ring, poses, pixels=128).numpy()
    found = field.closest(ring, poses, pixels=128).numpy()["distance"]
    reach = field.box.spacing * (1 + 31 / 128)
    assert (bounds[:, 0] - reach <= found).all() and (found <= bounds[:, 1] + reach).all()


@pytest.mark.parametrize("scale, offset", [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e6)])
def test_any_size_anywhere(scale, offset, device):
    gem, ring = cases.gem(320), cases.torus(24, 12)
    mesh = abut.Mesh(gem.vertices * scale + offset, gem.faces, device)
    field = abut.DistanceField(mesh, resolution=24)
    other = abut.Mesh(ring.vertices * scale, ring.faces, device)
    for pose in random_poses(4, 2.0, seed=1):
        pose[:3, 3] = scale * pose[:3, 3] + offset
        low, high = field.closest_bounds(other, pose, pixels=64).numpy()
        exact = abut.distance(mesh, other, pose_b=pose).value
        assert low <= 0 if exact == 0 else low <= exact <= high
        assert high - low < 2.5 * field.box.spacing


def test_a_band_has_no_bounds_beyond_it(device):
    mesh, other = abut.Mesh(*cases.gem(320), device), abut.Mesh(*cases.box(), device)
    whole = abut.DistanceField(mesh, resolution=40)
    band = abut.DistanceField(mesh, resolution=40, band=0.1)
    near = shift(1.45, 0.0, 0.0)  # the box is 0.5 to the left of its middle
    for pose in (near, shift(1.9, 0, 0), np.eye(4)):
        low, high = band.closest_bounds(other, pose, pixels=64).numpy()
        of_whole = whole.closest_bounds(other, pose, pixels=64).numpy()
        assert low <= of_whole[1] and of_whole[0] <= high
    assert np.isinf(band.closest_bounds(other, shift(1.9, 0, 0), pixels=64).numpy()[1])
    assert np.isfinite(whole.closest_bounds(other, shift(1.9, 0, 0), pixels=64).numpy()).all()


def test_saved_fields_keep_their_certificate(tmp_path, device):
    field = abut.DistanceField(abut.Mesh(*cases.gem(320), device), resolution=16)
    ring = abut.Mesh(*cases.torus(24, 12), device)
    field.save(tmp_path / "gem.npz")
    again = abut.DistanceField.load(tmp_path / "gem.npz", device)
    bounds = [f.closest_bounds(ring, shift(1.4, 0, 0)).numpy() for f in (field, again)]
    np.testing.assert_array_equal(*bounds)


def test_open_meshes_are_refused(device):
    field = abut.DistanceField(abut.Mesh(*bowl(), device), resolution=16)
    box = abut.Mesh(*cases.box(), device)
    for ask in (field.closest_bounds, field.response_bounds):
        with pytest.raises(abut.MeshError, match="sign changes at the surface alone"):
            ask(box)
