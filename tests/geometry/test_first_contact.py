"""First contacts of moving features against rational arithmetic."""

import gzip
from fractions import Fraction

import numpy as np
import pytest
import warp as wp

import abut
import ccd_oracle

KINDS = ("vertex_face", "edge_edge")
FALSE_POSITIVES = {"vertex_face": 28, "edge_edge": 32}  # of 1987 near misses, some by 1e-17


def times_of(kind, start, end, device="cpu", **options):
    rows = (wp.array(np.asarray(x, dtype=np.float64), device=device) for x in (start, end))
    return getattr(abut.primitives, f"ccd_{kind}")(*rows, **options).numpy()


def grid(rng, n, size):
    return (rng.integers(-size, size + 1, (n, 4, 3)).astype(float) for _ in range(2))


def reals(rng, n, scale=1.0, offset=0.0, speed=1.0):
    start = rng.normal(size=(n, 4, 3))
    end = start + speed * rng.normal(size=(n, 4, 3))
    return start * scale + offset, end * scale + offset


def one_moves(rng, n):
    start = rng.integers(-4, 5, (n, 4, 3)).astype(float)
    end = start.copy()
    end[:, 0] += rng.integers(-6, 7, (n, 3))
    return start, end


FAMILIES = {
    "small grid": lambda rng, n: grid(rng, n, 2),
    "grid": lambda rng, n: grid(rng, n, 8),
    "one point moves": one_moves,
    "reals": reals,
    "far away": lambda rng, n: reals(rng, n, offset=1e6),
    "tiny": lambda rng, n: reals(rng, n, scale=1e-9),
    "slow": lambda rng, n: reals(rng, n, speed=0.2),
    "flat": lambda rng, n: (x * [1.0, 1.0, 1e-8] for x in reals(rng, n)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_times_against_rational_arithmetic(kind, family, device):
    start, end = FAMILIES[family](np.random.default_rng(5), 40)
    times = times_of(kind, start, end, device)
    for i, time in enumerate(times):
        truth = ccd_oracle.first_contact(kind, start[i], end[i])
        if truth is None:
            assert time == np.inf, (start[i], end[i])
        else:
            assert truth[1] - 1e-6 <= time <= truth[1], (start[i], end[i])
    assert np.isfinite(times).any()


def contact_at(kind, rng, n, flat):
    """Features on a grid that touch at the time k / 16 exactly, maybe earlier too."""
    middle = rng.integers(-8, 9, (n, 4, 3)) * 16.0
    speed = rng.integers(-4, 5, (n, 4, 3)) * 16.0
    if kind == "vertex_face":
        shares = rng.integers(0, 5, (n, 3))
        shares[:, 2] = np.maximum(4 - shares[:, 0] - shares[:, 1], 0)
        shares[shares.sum(axis=1) != 4] = (4, 0, 0)
        middle[:, 0] = (middle[:, 1:] * shares[:, :, None] / 4).sum(axis=1)
    else:
        s, r = (rng.integers(0, 3, (n, 1)) / 2 for _ in range(2))
        r = np.maximum(r, 0.5)
        meet = middle[:, 0] * (1 - s) + middle[:, 1] * s
        middle[:, 3] = middle[:, 2] + (meet - middle[:, 2]) / r  # r is 1/2 or 1
    if flat:
        middle[:, :, 2] = speed[:, :, 2] = 0.0
    k = rng.integers(0, 17, n)
    start = middle - speed * (k / 16)[:, None, None]
    return start, start + speed, k / 16


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_no_contact_is_missed_that_was_made(kind, flat, device):
    start, end, latest = contact_at(kind, np.random.default_rng(6), 4000, flat)
    assert (times_of(kind, start, end, device) <= latest).all()


@pytest.mark.parametrize("kind", KINDS)
def test_starting_in_contact_gives_zero(kind, device):
    start, end, latest = contact_at(kind, np.random.default_rng(7), 2000, False)
    at_start = latest == 0.0
    assert at_start.sum() > 50
    assert (times_of(kind, start, end, device)[at_start] == 0.0).all()


def polygons(kind, p):
    a = [p[:, i] for i in range(4)]
    if kind == "vertex_face":
        return np.stack([a[0] - a[1], a[0] - a[2], a[0] - a[3], a[0] - a[1]], axis=1)
    return np.stack([a[0] - a[2], a[1] - a[2], a[1] - a[3], a[0] - a[3]], axis=1)


def distances(x):
    """Distances of convex polygons from the origin."""
    best = np.full(len(x), np.inf)
    for k in range(4):
        p, along = x[:, k], x[:, (k + 1) % 4] - x[:, k]
        length = np.maximum((along**2).sum(axis=1), 1e-300)
        s = np.clip(-(p * along).sum(axis=1) / length, 0.0, 1.0)
        best = np.minimum(best, np.linalg.norm(p + s[:, None] * along, axis=1))
    normal = np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 1])
    sides = [(np.cross(x[:, k], x[:, (k + 1) % 4]) * normal).sum(axis=1) for k in range(4)]
    inside = (np.min(sides, axis=0) >= 0) & (np.abs(normal).max(axis=1) > 0)
    size = np.maximum(np.linalg.norm(normal, axis=1), 1e-300)
    return np.where(inside, np.abs((normal * x[:, 0]).sum(axis=1)) / size, best)


@pytest.mark.parametrize("gap", [1e-3, 0.1, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_a_gap_is_kept(kind, gap, device):
    start, end = reals(np.random.default_rng(8), 1500)
    times = times_of(kind, start, end, device, min_distance=gap)
    p, q = polygons(kind, start), polygons(kind, end)
    for s in np.linspace(0.0, 1.0, 201):
        before = s < times
        assert (distances((1 - s) * p + s * q)[before] > gap).all()
    hit = np.isfinite(times)
    t = times[hit][:, None, None]
    reached = distances((1 - t) * p[hit] + t * q[hit]) <= gap + 1e-5  # speeds are of order 1
    assert hit.sum() > 50 and reached.mean() > 0.98  # the rest has not converged, and is early


@pytest.mark.parametrize("kind", KINDS)
def test_published_queries(kind, device, data):
    surplus, count = 0, 0
    for path in sorted(data.glob(f"ccd_queries/*/{kind.replace('_', '-')}/*.csv.gz")):
        rows = [line.split(",") for line in gzip.open(path, "rt")]
        points = [[float(Fraction(int(r[i]), int(r[i + 1]))) for i in (0, 2, 4)] for r in rows]
        points = np.array(points).reshape(-1, 8, 3)
        truth = np.array([int(r[6]) for r in rows]).reshape(-1, 8)[:, 0] == 1
        found = np.isfinite(times_of(kind, points[:, :4], points[:, 4:], device))
        assert found[truth].all(), path
        surplus += int((found & ~truth).sum())
        count += len(truth)
    assert count > 1000
    assert surplus <= FALSE_POSITIVES[kind]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-110, 1e110, 1e160, 1e300])
def test_any_scale_is_conservative(kind, scale, device):
    start, end, latest = contact_at(kind, np.random.default_rng(9), 300, False)
    power = 2.0 ** np.floor(np.log2(scale / 16.0))  # contacts stay exact
    times = times_of(kind, start * power, end * power, device)
    assert (times <= latest).all()


def test_a_contact_of_the_third_order_is_early_and_says_so(device):
    """Found by a long run: the height over the face falls as the third power of the time left."""
    start = np.array([[-1.0, 0, 1], [-1, 0, 2], [1, -2, 0], [-1, 2, -1]])
    end = np.array([[2.0, 0, -2], [-2, 1, 2], [2, -1, -2], [2, 2, -2]])
    assert 0.999 < times_of("vertex_face", start[None], end[None], device)[0] <= 1.0
    apart = np.array([[9.0, 9, 9], [9, 0, 99]])
    point = abut.Mesh(np.vstack([start[:1], start[0] + apart]), [[0, 1, 2]], device)
    face = abut.Mesh(start[1:], [[0, 1, 2]], device)
    moves = abut.Motion(point, np.vstack([end[:1], end[0] + apart])), abut.Motion(face, end[1:])
    hits = abut.ccd(*moves).numpy()
    assert hits["features"][0].tolist() == [0, 0] and not hits["converged"][0]


def test_still_points(device):
    point = np.zeros((1, 4, 3))
    assert times_of("vertex_face", point, point, device)[0] == 0.0
    assert times_of("edge_edge", point, point, device)[0] == 0.0
    point[0, 0] = 1.0
    assert times_of("vertex_face", point, point, device)[0] == np.inf


def test_rows_are_checked():
    good = np.zeros((2, 4, 3))
    with pytest.raises(abut.MeshError, match=r"t0 must have shape \(n, 4, 3\)"):
        abut.primitives.ccd_edge_edge(good[:, :3], good)
    with pytest.raises(abut.MeshError, match="as many rows"):
        abut.primitives.ccd_edge_edge(good, good[:1])
    bad = good.copy()
    bad[1, 2, 0] = np.nan
    with pytest.raises(abut.MeshError, match=r"t1\[1\]"):
        abut.primitives.ccd_vertex_face(good, bad)
    with pytest.raises(abut.OptionError, match="min_distance"):
        abut.primitives.ccd_vertex_face(good, good, min_distance=-1.0)
    assert abut.primitives.ccd_vertex_face(good[:0], good[:0]).shape == (0,)
