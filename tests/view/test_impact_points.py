"""Places of impacts."""

import numpy as np

import abut
from abut import cases
from abut.view.page.impact_points import impact_points


def test_balls_touch_between_them(device):
    """Two balls that approach each other along x touch near the plane halfway between them."""
    a, b = cases.icosphere(320), cases.icosphere(320).turned("z", 20.0).turned("y", 7.0)
    whole = cases.joined(a, b.moved((3.0, 0.0, 0.0)))
    end = np.concatenate([a.moved((0.6, 0, 0)).vertices, b.moved((2.4, 0, 0)).vertices])
    mesh = abut.Mesh(*whole, device=device)
    impacts = abut.ccd(abut.Motion(mesh, end=end))
    assert len(impacts) > 0
    points = impact_points(mesh, end, impacts)
    assert points.shape == (len(impacts), 3)
    first = points[np.argmin(impacts.time.numpy())]
    np.testing.assert_allclose(first, [1.5, 0, 0], atol=0.2)
    assert (np.abs(points[:, 0] - 1.5) < 0.25).all()


def test_crossing_edges():
    """Edges that meet in the origin at half of the step."""
    start = np.array([[-1, 0, 1], [1, 0, 1], [0, 3, 9], [0, -1, 0], [0, 1, 0], [3, 0, -9.0]])
    end = start.copy()
    end[:3, 2] -= 2
    mesh = abut.Mesh(start, [[0, 1, 2], [3, 4, 5]], device="cpu")
    impacts = abut.ccd(abut.Motion(mesh, end=end))
    points = impact_points(mesh, end, impacts)
    edges = impacts.kind.numpy() == abut.ImpactKind.EDGE_EDGE
    assert edges.any()
    np.testing.assert_allclose(points[edges][0], 0.0, atol=1e-4)
