"""Where pairs meet: segments and curves."""

import numpy as np
import pytest

import abut
import awkward
import oracle
from abut import cases
from shapes import shift, strips


def corners_of(mesh, faces):
    return mesh.points.numpy()[mesh.faces.numpy()[faces]]


def distance_to_faces(points, corners):
    """How far points are from closed triangles, at most: plane distance plus overhang."""
    a, b, c = corners.transpose(1, 0, 2)
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    worst = np.abs(np.einsum("ij,ij->i", points - a, normal))
    for p, q in ((a, b), (b, c), (c, a)):
        out = np.cross(q - p, normal)
        out /= np.linalg.norm(out, axis=1, keepdims=True)
        worst = np.maximum(worst, np.einsum("ij,ij->i", points - p, out))
    return worst


def check_segments(a, b, hits, tolerance):
    """All ends lie on both faces."""
    segments, pairs = hits.segments.numpy(), hits.pairs.numpy()
    assert segments.shape == (len(hits), 2, 3) and segments.dtype == np.float64
    for side, mesh in enumerate((a, b)):
        for end in range(2):
            away = distance_to_faces(segments[:, end], corners_of(mesh, pairs[:, side]))
            assert away.max() <= tolerance


@pytest.mark.parametrize("name", ["spheres", "tori", "knot", "terrain", "stacked_boxes", "twins"])
def test_ends_lie_on_both_faces(name, device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair(name, 1500))
    check_segments(a, b, abut.collide(a, b), 1e-13)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_ends_of_small_and_large_meshes(scale, device):
    shapes = [cases.Shape(s.vertices * scale, s.faces) for s in cases.pair("spheres", 500)]
    a, b = (abut.Mesh(*shape, device) for shape in shapes)
    check_segments(a, b, abut.collide(a, b), 1e-13 * scale)


def test_ends_far_away(device):
    a, b = (abut.Mesh(*s.moved((1e6, 1e6, 1e6)), device) for s in cases.pair("spheres", 500))
    check_segments(a, b, abut.collide(a, b), 1e-8)


@pytest.mark.parametrize("exponent", [-500, -200, 200, 500, 1000])
def test_ends_at_any_scale(exponent, device):
    """Powers of two scale exactly: so do the segments, if nothing overflows on the way."""
    shapes = cases.pair("spheres", 100)
    plain = abut.collide(*(abut.Mesh(*s, device) for s in shapes)).segments.numpy()
    scaled = [abut.Mesh(np.ldexp(s.vertices, exponent), s.faces, device) for s in shapes]
    got = np.ldexp(abut.collide(*scaled).segments.numpy(), -exponent)
    np.testing.assert_allclose(np.sort(got, axis=1), np.sort(plain, axis=1), atol=1e-12)


@pytest.mark.parametrize("family", [awkward.grid, awkward.random], ids=awkward.name)
def test_segments_against_fractions(family, device):
    """Pairs that meet in a segment or a point meet where rational arithmetic says."""
    points = family(np.random.default_rng(1), 300, 6).reshape(-1, 2, 3, 3)
    faces = np.arange(900).reshape(-1, 3)
    a, b = (abut.Mesh(points[:, k].reshape(-1, 3), faces, device) for k in (0, 1))
    hits = abut.collide(a, b, method="brute")
    mine = hits.pairs.numpy()[:, 0] == hits.pairs.numpy()[:, 1]
    checked = 0
    for row in np.flatnonzero(mine & ~hits.coplanar.numpy()):
        part = oracle.common_part(*points[hits.pairs.numpy()[row, 0]])
        ends = np.array([min(part), max(part)], float)
        got = hits.segments.numpy()[row]
        got = got[np.lexsort(got.T[::-1])]
        far = [np.abs(got - order).max() for order in (ends, ends[::-1])]
        assert min(far) < 1e-9, (part, got)
        checked += 1
    assert checked > 20


def test_faces_in_one_plane(device):
    """They meet in an area: marked, with a segment across it, and left out of curves."""
    a, b = abut.Mesh(*strips(5), device), abut.Mesh(*strips(5, along=1), device)
    hits = abut.collide(a, b)
    assert hits.coplanar.numpy().all() and hits.curves() == []
    check_segments(a, b, hits, 1e-15)
    assert (np.ptp(hits.segments.numpy(), axis=1).max(axis=1) > 0).all()


def test_touching_in_a_point(device):
    a = abut.Mesh([[0, 0, 0], [4, 0, 0], [0, 4, 0]], [[0, 1, 2]], device)
    b = abut.Mesh([[1, 1, 0], [1, 1, 3], [2, 1, 3]], [[0, 1, 2]], device)
    hits = abut.collide(a, b)
    assert hits.segments.numpy().tolist() == [[[1, 1, 0], [1, 1, 0]]]
    assert hits.coplanar.numpy().tolist() == [False] and hits.curves() == []


def curve_lengths(curves):
    return [np.linalg.norm(np.diff(curve, axis=0), axis=1).sum() for curve in curves]


def test_two_spheres_meet_in_a_circle(device):
    """Radius 1, centres 1.2 apart: a circle of radius 0.8."""
    ball = cases.icosphere(1280)
    a, b = abut.Mesh(*ball, device), abut.Mesh(*ball, device)
    (curve,) = abut.collide(a, b, pose_b=shift(1.2, 0.1, 0.05)).curves()
    np.testing.assert_array_equal(curve[0], curve[-1])
    assert abs(curve_lengths([curve])[0] - 2 * np.pi * 0.8) < 0.1


@pytest.mark.parametrize("name", ["tori", "spheres", "knot"])
def test_closed_meshes_meet_in_closed_curves(name, device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair(name, 1500))
    hits = abut.collide(a, b)
    curves = hits.curves()
    assert curves
    for curve in curves:
        assert len(curve) > 3
        np.testing.assert_array_equal(curve[0], curve[-1])
    lengths = np.linalg.norm(np.diff(hits.segments.numpy(), axis=1)[:, 0], axis=1)
    assert sum(curve_lengths(curves)) == pytest.approx(lengths.sum(), rel=1e-9)


def test_self_contact_has_segments(device):
    mesh = abut.Mesh(*cases.single("thick_knot", 1500), device)
    hits = abut.self_collide(mesh)
    assert len(hits) > 50
    check_segments(mesh, mesh, hits, 1e-13)


def test_segments_of_poses(device):
    """Each pair's segment is in its own pose."""
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("spheres", 300))
    poses = np.stack([shift(0, 0, 0), shift(0.3, 0, 0)])
    batch = abut.collide(a, b, pose_b=poses)
    for i, pose in enumerate(poses):
        alone = abut.collide(a, b, pose_b=pose).segments.numpy()
        np.testing.assert_array_equal(batch.segments.numpy()[batch.pose.numpy() == i], alone)


def test_no_contact_no_segments(device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("apart", 100))
    hits = abut.collide(a, b)
    assert hits.segments.shape == (0, 2, 3) and hits.curves() == []
