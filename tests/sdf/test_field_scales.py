"""Distance fields of any size that is accepted, and points far outside their boxes."""

import numpy as np
import pytest

import abut
from abut import cases
from abut.errors import MeshError


def field_at(scale, device, resolution=16):
    vertices, faces = cases.icosphere(80)
    mesh = abut.Mesh(vertices.astype(np.float64) * scale, faces, device)
    return abut.DistanceField(mesh, resolution=resolution, margin=0.25 * scale)


def pose_at(shift, scale):
    pose = np.eye(4)
    pose[:3, 3] = np.array(shift) * scale
    return pose


@pytest.mark.parametrize("exponent", [-50, -30, 30, 48])
def test_answers_do_not_depend_on_the_scale(device, exponent):
    scale = 2.0**exponent
    unit, scaled = field_at(1.0, device), field_at(scale, device)
    points = np.random.default_rng(0).uniform(-3.0, 3.0, size=(500, 3))
    points[:20] *= 2.0**40
    one, other = unit.sample(points), scaled.sample(points * scale)
    assert np.array_equal(one.distance.numpy(), other.distance.numpy() / np.float32(scale))
    assert np.array_equal(one.direction.numpy(), other.direction.numpy())
    vertices, faces = cases.torus(12, 6)
    vertices = vertices.astype(np.float64)
    rings = [abut.Mesh(vertices * size, faces, device) for size in (1.0, scale)]
    for shift in ([0.5, 0.25, 0.0], [2.5, 0.5, 0.25], [2.0**40, 0.0, 0.0]):
        near = unit.closest(rings[0], pose_at(shift, 1.0), pixels=64)
        far = scaled.closest(rings[1], pose_at(shift, scale), pixels=64)
        assert (near.value, near.face) == (far.value / scale, far.face)
    push = unit.response(rings[0], pose_at([0.5, 0.25, 0.0], 1.0), pixels=64)
    pull = scaled.response(rings[1], pose_at([0.5, 0.25, 0.0], scale), pixels=64)
    assert push.area > 0.0
    assert np.isclose(push.area, pull.area / scale**2, rtol=1e-6)
    assert np.allclose(push.force.numpy(), pull.force.numpy() / scale**3, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("scale", [1e-17, 1e17, 1e300])
def test_boxes_out_of_range_are_refused(device, scale):
    with pytest.raises(MeshError, match="from 1e-15 to 1e\\+15 long"):
        field_at(scale, device)


@pytest.mark.parametrize("reach", [1e3, 1e18, 1e20, 1e30])
def test_points_far_away(device, reach):
    field = field_at(1.0, device)
    points = np.random.default_rng(1).normal(size=(50, 3))
    points *= reach / np.linalg.norm(points, axis=1)[:, None]
    found = field.sample(points)
    assert np.allclose(found.distance.numpy(), reach, rtol=2.1 / reach + 1e-6, atol=0.0)
    assert np.allclose(found.direction.numpy(), -points / reach, atol=4.0 / reach + 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_distances_outside_are_at_most_three_cells_too_small(device, seed):
    rng = np.random.default_rng(seed)
    corners = rng.uniform(-1.0, 1.0, size=(8, 1, 3)) + rng.normal(size=(8, 3, 3)) * 0.2
    mesh = abut.Mesh(corners.reshape(-1, 3), np.arange(24).reshape(-1, 3), device)
    field = abut.DistanceField(mesh, resolution=12)
    points = rng.uniform(-3.0, 3.0, size=(4000, 3))
    beyond = np.maximum(field.box.lower - points, points - field.box.upper).max(axis=1)
    points = points[beyond > 0.0]
    truth = abut.closest_point(mesh, points).distance.numpy()
    found = field.sample(points).distance.numpy()
    size = np.linalg.norm(np.ptp(mesh.bounds, axis=0))
    assert (found > truth - 3.0 * field.box.spacing).all()
    assert (found < truth + size + 3.0 * field.box.spacing).all()
