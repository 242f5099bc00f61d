"""Distance fields against analytic distances and abut.closest_point."""

import numpy as np

import abut
from abut import cases


def positions(field):
    """Where the samples are, (nx, ny, nz, 3)."""
    box = field.box
    axes = [box.lower[x] + box.spacing * np.arange(box.shape[x]) for x in range(3)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


def test_samples_are_true_distances(device):
    mesh = abut.Mesh(*cases.icosphere(), device=device)
    field = abut.DistanceField(mesh, resolution=20)
    near = abut.closest_point(mesh, positions(field).reshape(-1, 3), signed=True)
    np.testing.assert_allclose(
        field.distance.numpy().reshape(-1), near.distance.numpy(), rtol=0, atol=2e-7
    )


def test_a_sphere_between_samples(device):
    field = abut.DistanceField(abut.Mesh(*cases.icosphere(20480), device=device), resolution=40)
    points = np.random.default_rng(0).uniform(-1.15, 1.15, size=(5000, 3))
    points = points[np.linalg.norm(points, axis=1) > 0.3]
    found = field.sample(points).numpy()
    radius = np.linalg.norm(points, axis=1)
    cell = field.box.spacing
    assert np.abs(found["distance"] - (radius - 1)).max() < 0.4 * cell**2 / 0.3 + 1e-3
    foot = points + np.abs(found["distance"])[:, None] * found["direction"]
    assert np.abs(np.linalg.norm(foot, axis=1) - 1).max() < 0.1 * cell
