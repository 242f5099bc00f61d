"""First contacts in degenerate motions: none missed, none late, and none made up.

What is reported though features pass by, or before they touch, must be nearer than float64 can
tell, or be marked as not converged.
"""

import numpy as np
import pytest
import warp as wp

import abut
import ccd_oracle
from abut.core.launch import launch
from abut.narrow.impact import first_contacts_kernel_for
from hostile_motions import FAMILIES, grid, nudged

KERNELS = {
    "vertex_face": first_contacts_kernel_for(False),
    "edge_edge": first_contacts_kernel_for(True),
}
RESOLVED = 2.0**-44  # of the size of the polygon of differences


def solved(kind, start, end, device, gap=0.0):
    """Times and whether they have converged."""
    rows = [np.ascontiguousarray(p).reshape(-1, 3) for p in (start, end)]
    points = [wp.array(p, dtype=wp.vec3d, device=device) for p in rows]
    times = wp.empty(len(start), dtype=wp.float64, device=device)
    converged = wp.empty(len(start), dtype=wp.bool, device=device)
    args = [*points, wp.float64(gap), wp.float64(1e-6), times, converged]
    launch(KERNELS[kind], len(start), args, wp.get_device(device))
    return times.numpy(), converged.numpy()


def size_of(kind, *frames):
    """Largest coordinate of the polygon of differences."""
    first, second = ((0,), (1, 2, 3)) if kind == "vertex_face" else ((0, 1), (2, 3))
    return max(np.abs(p[i] - p[j]).max() for p in frames for i in first for j in second)


def check(kind, start, end, gap, device):
    """Compare with the truth; returns contacts, false positives, and early times."""
    times, converged = solved(kind, start, end, device, gap)
    met = false = early = 0
    for p, q, time, sure in zip(start, end, times, converged, strict=True):
        truth = ccd_oracle.first_contact(kind, p, q, gap)
        if truth is None and time == np.inf:
            continue
        if truth is not None:
            assert time <= truth[1], (p, q)
            met += 1
            if time >= truth[0] - 1e-6:
                continue
        false, early = false + (truth is None), early + (truth is not None)
        if sure:
            slack = RESOLVED * (size_of(kind, p, q) + gap)
            near = ccd_oracle.first_contact(kind, p, q, gap + slack)
            assert near is not None and time >= near[0] - 1e-6, (p, q)
    return met, false, early


@pytest.mark.parametrize("count", [8, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("family", FAMILIES)
def test_degenerate_motions(kind, family, count, device):
    rng = np.random.default_rng([7, *family.encode()])
    points = FAMILIES[family](rng, count)
    _, false, _ = check(kind, *points, 0.0, device)
    assert false <= count // 8
    check(kind, *nudged(rng, points), 0.0, device)


@pytest.mark.parametrize("count", [1, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("gap", [1.0, 2.0**-10, 2.0**12])
@pytest.mark.parametrize("kind", KERNELS)
def test_degenerate_motions_with_a_gap(kind, gap, count, device):
    rng = np.random.default_rng(8)
    met = [check(kind, *make(rng, count), gap, device)[0] for make in FAMILIES.values()]
    assert sum(met) > 3


@pytest.mark.parametrize("gap", [0.0, 0.5])
@pytest.mark.parametrize("kind", KERNELS)
def test_scale_makes_no_difference(kind, gap, device):
    """Between 1e-270 and 1e300; squares and cubes of such numbers do not exist."""
    rng = np.random.default_rng(9)
    start, end = (np.concatenate(p) for p in zip(grid(rng, 200), *(
        make(rng, 20) for name, make in FAMILIES.items() if name != "grazing"
    ), strict=True))  # fmt: skip
    usual, _ = solved(kind, start, end, device, gap)
    assert np.isfinite(usual).sum() > 40
    for power in (-900, -540, -300, -270, -101, 101, 340, 512, 980):
        scale = 2.0**power
        times, _ = solved(kind, start * scale, end * scale, device, gap * scale)
        np.testing.assert_array_equal(times, usual)


@pytest.mark.parametrize("gap", [0.0, 2.0**-3])
def test_features_of_unlike_scale(gap, device):
    """An edge so short that the square of its length is 0; found by reading."""
    start = np.array([[0, 0, 1], [2.0**-600, 0, 1], [-1, -1, 0], [1, 1, 0]])
    end = start - [[0, 0, 2], [0, 0, 2], [0, 0, 0], [0, 0, 0]]
    truth = ccd_oracle.first_contact("edge_edge", start, end, gap)
    (time,), _ = solved("edge_edge", start[None], end[None], device, gap)
    assert truth[1] - 1e-6 <= time <= truth[1]


def test_contacts_in_one_plane_converge(device):
    """The vector between nearest points is too short there to be a direction."""
    for kind in KERNELS:
        start, end = FAMILIES["in_one_plane"](np.random.default_rng(3), 5000)
        times, converged = solved(kind, start, end, device)
        assert np.isfinite(times).sum() > 2000
        assert (~converged).sum() < 10


def test_a_contact_that_comes_slowly_says_so(device):
    """The distance falls as the square of the time left: 4e-6 early, and taken for settled."""
    start = np.array([[-33.0, 17, 9], [-38, 12, 14], [-36, 11, 16], [-17, 15, 17]])
    end = np.array([[-39.0, 11, 15], [-39, 11, 15], [-31, 19, 7], [-23, 15, 15]])
    (time,), (converged,) = solved("vertex_face", start[None], end[None], device)
    assert 1 - 1e-5 < time <= 1 and (time > 1 - 1e-6 or not converged)


def test_a_hair_above_a_face_that_opens(device):
    """Directions between nearest points are too coarse there, that across the plane is not."""
    start = np.array(
        [[10 - 2.0**-41, -1, -13 - 2.0**-41], [9, -7, -17], [9, -7, -17], [10, 0, -12]]
    )
    end = np.array([[13, -1 - 2.0**-41, -19 + 2.0**-41], [13, 5, -13], [9, -2, -12], [17, 6, -20]])
    assert ccd_oracle.first_contact("vertex_face", start, end) is None
    assert solved("vertex_face", start[None], end[None], device)[0][0] == np.inf


def test_a_near_miss_at_full_speed(device):
    """One end goes a million times the size of all else, and passes by at 6e-7."""
    start = np.array([[-2.0, -1, 2], [1, -2, -2], [1, 0, -1], [2, -2, 1]])
    end = np.array([[2.0, -1, 1048577], [1, 2, -1], [1, 1, 0], [2, 1, 2]])
    assert ccd_oracle.first_contact("edge_edge", start, end) is None
    assert solved("edge_edge", start[None], end[None], device)[0][0] == np.inf


def test_gaps_converge(device):
    rng = np.random.default_rng(3)
    for kind in KERNELS:
        for gap in (1e-3, 0.1, 0.5):
            start = rng.normal(size=(20000, 4, 3))
            end = start + rng.normal(size=start.shape)
            times, converged = solved(kind, start, end, device, gap)
            assert np.isfinite(times).sum() > 500 and (~converged).sum() <= 1


def separate(points):
    """Each row in a place of its own, coordinates staying exact: no two rows meet."""
    places = np.stack(np.unravel_index(np.arange(len(points)), (8, 8, 8)), axis=1)
    return points + 1024.0 * places[:, None, :]


def six_corners(shape, rng):
    """Corners of two faces for each of six rows, at both ends of the step."""
    points = rng.integers(-3, 4, (2, 6, 6, 3)).astype(float)
    if shape in ("plane", "line"):
        points[..., 2] = points[..., 0]
    if shape == "line":
        points[..., 1] = 0.0
    if shape == "no area":
        points[:, :, 5] = points[:, :, 4]
        points[:, ::2, 1] = points[:, ::2, 0]
    if shape == "still":
        points[1] = points[0]
    return [separate(p) for p in points]


@pytest.mark.parametrize("shape", ["any", "plane", "line", "no area", "still"])
@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_whole_faces(shape, gap, device):
    """Two faces for each row: vertices and edges of both, against the truth."""
    ends = six_corners(shape, np.random.default_rng(11))
    faces = np.arange(18).reshape(-1, 3)
    moves = []
    for corners in (slice(0, 3), slice(3, 6)):
        start, end = (p[:, corners].reshape(-1, 3) for p in ends)
        moves.append(abut.Motion(abut.Mesh(start, faces, device), end))
    hits = abut.ccd(*moves, min_distance=gap).numpy()
    found = {
        (k, *f): t
        for k, f, t in zip(hits["kind"], hits["features"].tolist(), hits["time"], strict=True)
    }
    edges = [move.mesh.edges.numpy() for move in moves]
    known = 0
    for row in range(6):
        for kind, one, other, key in pairs_of(row, faces, edges):
            p, q = (np.concatenate([ends[k][row][one], ends[k][row][other]]) for k in range(2))
            truth = ccd_oracle.first_contact(kind, p, q, gap)
            time = found.pop(key, np.inf)
            assert truth is None or time <= truth[1], (p, q)
            known += truth is not None
            if truth is None and time < np.inf:
                slack = RESOLVED * (size_of(kind, p, q) + gap)
                assert ccd_oracle.first_contact(kind, p, q, gap + slack), (p, q)
    assert not found and known > 0


def pairs_of(row, faces, edges):
    """Kind, corners of either side among the six of a row, and the key of the impact."""
    for corner in range(3):
        yield "vertex_face", [corner], [3, 4, 5], (0, int(faces[row, corner]), row)
        yield "vertex_face", [3 + corner], [0, 1, 2], (2, row, int(faces[row, corner]))
    own = [np.flatnonzero(np.isin(e[:, 0], faces[row])) for e in edges]
    for i in own[0]:
        for j in own[1]:
            one, other = edges[0][i] - 3 * row, edges[1][j] - 3 * row + 3
            yield "edge_edge", one.tolist(), other.tolist(), (1, int(i), int(j))
