"""The exact stage at the ends of the range of float64, against rational arithmetic."""

import numpy as np
import pytest

import abut
from oracle import pairs_between


def soup(points, device):
    return abut.Mesh(points.reshape(-1, 3), np.arange(3 * len(points)).reshape(-1, 3), device)


@pytest.mark.parametrize("exponent", [-1070, -1040, -700, -350, 350, 700, 1015])
def test_pairs_of_huge_and_tiny_faces(device, exponent):
    rng = np.random.default_rng(abs(exponent))
    a, b = (rng.integers(-3, 4, size=(24, 3, 3)) * 2.0**exponent for _ in range(2))
    found = abut.collide(soup(a, device), soup(b, device)).pairs.numpy()
    faces = np.arange(72).reshape(-1, 3)
    unit = [p.reshape(-1, 3) / 2.0**exponent for p in (a, b)]
    assert found.tolist() == [list(p) for p in pairs_between(unit[0], faces, unit[1], faces)]


@pytest.mark.parametrize("seed", range(4))
def test_faces_with_huge_and_tiny_coordinates(device, seed):
    """No power of two scales such coordinates without loss."""
    rng = np.random.default_rng(seed)
    sizes = 2.0 ** rng.choice([-1060, -600, 0, 600, 1015], size=(2, 12, 3, 3))
    a, b = rng.integers(-3, 4, size=sizes.shape) * sizes
    found = abut.collide(soup(a, device), soup(b, device)).pairs.numpy()
    faces = np.arange(36).reshape(-1, 3)
    truth = pairs_between(a.reshape(-1, 3), faces, b.reshape(-1, 3), faces)
    assert found.tolist() == [list(p) for p in truth]
