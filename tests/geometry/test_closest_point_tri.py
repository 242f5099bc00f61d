"""Closest points of single triangles against rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import warp as wp

import awkward
import oracle
from abut.core.launch import launch
from abut.operands.posed_mesh import make_posed_mesh
from abut.point.signed_distance import closest_points_kernel

TAME = [
    awkward.random,
    awkward.grid,
    awkward.flat,
    awkward.on_a_line,
    awkward.on_plane,
    awkward.nudged,
    awkward.nearly_whole,
    awkward.far_away,
    awkward.small,
    awkward.two_scales,
]


def slivers(rng, count, size):
    """Triangles a hundred million times longer than wide; the point near them or far."""
    points = rng.normal(size=(count, size, 3))
    share = rng.uniform(size=(count, 1))
    width = 10.0 ** rng.uniform(-12, -4, size=(count, 1))
    points[:, 1] = points[:, 0] + share * (points[:, 2] - points[:, 0]) + width * points[:, 1]
    near = rng.random(count) < 0.7
    weights = rng.dirichlet(np.ones(3), size=count)
    on = np.einsum("nk,nkx->nx", weights, points[:, :3])
    off = 10.0 ** rng.uniform(-14, 0, size=(count, 1)) * rng.normal(size=(count, 3))
    points[near, 3] = (on + off)[near]
    return points


def feet(p, triangles, device):
    """Distance, point and weights of p[i] on triangles[i]."""
    count = len(p)
    points = wp.array(p, dtype=wp.vec3d, device=device)
    corners = wp.array(triangles.reshape(-1, 3), dtype=wp.vec3d, device=device)
    faces = np.arange(3 * count, dtype=np.int32).reshape(-1, 3)
    side = make_posed_mesh(corners, wp.array(faces, dtype=wp.vec3i, device=device))
    face = wp.array(np.arange(count, dtype=np.int32)[None], device=device)
    outs = [wp.empty((1, count), dtype=t, device=device) for t in (wp.float64, wp.vec3d, wp.vec3d)]
    inf = wp.float64(np.inf)
    launch(closest_points_kernel, count, [points, side, inf, face, *outs], wp.get_device(device))
    return [out.numpy()[0] for out in outs]


@pytest.mark.parametrize("family", [*TAME, slivers], ids=awkward.name)
def test_against_fractions(family, device):
    rng = np.random.default_rng(5)
    groups = family(rng, 300, 4)
    triangles, p = groups[:, :3], groups[:, 3]
    distance, point, weights = feet(p, triangles, device)
    size = np.abs(triangles - p[:, None]).max(axis=(1, 2))
    for i in range(len(p)):
        truth = oracle.squared_distance_to_triangle(p[i], triangles[i])
        # |d - t| <= e, without a root: (d - e)^2 <= t^2 <= (d + e)^2
        d, e = Fraction(float(distance[i])), Fraction(float(2.0**-50 * size[i]))
        assert max(d - e, 0) ** 2 <= truth <= (d + e) ** 2
        assert (distance[i] == 0) or truth > 0
        assert (truth == 0) <= (distance[i] == 0)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-15)
    again = np.einsum("nk,nkx->nx", weights, triangles)
    reach = np.abs(groups).max(axis=(1, 2))[:, None]
    assert (np.abs(again - point) <= 4e-16 * reach).all()
    gap = np.linalg.norm(p - point, axis=1)
    assert (np.abs(gap - distance) <= 2e-15 * reach[:, 0]).all()


def test_corners_and_edges_have_whole_weights(device):
    t = np.array([[0.0, 0, 0], [4, 0, 0], [0, 3, 0]])
    p = np.array(
        [[-1.0, -1, 5], [9, 0, 0], [-2, 9, 1], [1, -2, 0], [-3, 2, 1], [1, 1, 7], [4, 3, 0]]
    )
    _, point, weights = feet(p, np.tile(t, (len(p), 1, 1)), device)
    np.testing.assert_array_equal(weights[:3], np.eye(3))
    np.testing.assert_array_equal(point[:3], t)
    np.testing.assert_array_equal(weights[3], [0.75, 0.25, 0])
    assert weights[4, 1] == 0
    assert (weights[5] > 0).all()
    assert weights[6, 0] == 0


def test_both_faces_of_an_edge_agree(device):
    """From either side and in any order of corners, the distance of an edge is the same number."""
    rng = np.random.default_rng(1)
    a, b, p = rng.normal(size=(3, 200, 3))
    middle = 0.5 * (a + b)
    away = middle - p
    c, d = (middle + k * away + 0.1 * rng.normal(size=(200, 3)) for k in (1.0, 2.0))
    first = feet(p, np.stack([a, b, c], axis=1), device)
    second = feet(p, np.stack([d, b, a], axis=1), device)
    both = (first[2][:, 2] == 0) & (second[2][:, 0] == 0)
    assert both.sum() > 100
    np.testing.assert_array_equal(first[0][both], second[0][both])
