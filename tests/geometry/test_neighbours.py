"""Faces of one mesh that share corners, against rational arithmetic."""

import numpy as np
import pytest

import abut
import awkward
import oracle


def neighbours(family, count, seed=0):
    """Pairs of triangles (count, 2, 3, 3) with 0 to 3 common corners, in any order."""
    rng = np.random.default_rng(seed)
    points = family(rng, count, 6).reshape(count, 2, 3, 3)
    for i in range(count):
        for k in rng.permutation(3)[: i % 4]:
            points[i, 1, k] = points[i, 0, k]
        points[i] = points[i][:, rng.permutation(3)] if i % 2 else points[i]
        points[i, 1] = points[i, 1, rng.permutation(3)]
    return points


def met(pairs, device, weld, method):
    """For each pair, whether its two faces meet; all pairs are put into one mesh."""
    mesh = abut.Mesh(pairs.reshape(-1, 3), np.arange(6 * len(pairs)).reshape(-1, 3), device)
    rows = abut.self_collide(mesh, weld=weld, method=method).pairs.numpy()
    rows = rows[(rows[:, 0] % 2 == 0) & (rows[:, 1] == rows[:, 0] + 1)]
    return np.isin(np.arange(len(pairs)), rows[:, 0] // 2)


@pytest.mark.parametrize("method", ["brute", "bvh"])
@pytest.mark.parametrize("family", awkward.FAMILIES, ids=awkward.name)
def test_welded_neighbours(family, method, device):
    pairs = neighbours(family, 120)
    want = np.array([oracle.intersect_neighbours(*pair) for pair in pairs])
    wrong = np.flatnonzero(met(pairs, device, True, method) != want)
    assert len(wrong) == 0, f"{len(wrong)} wrong, first {pairs[wrong[0]].tolist()}"
    assert 5 < want.sum() < 115, "a family should have pairs of both kinds"


@pytest.mark.parametrize("family", awkward.FAMILIES, ids=awkward.name)
def test_unwelded_copies_are_strangers(family, device):
    """Without weld, corners with vertices of their own share nothing."""
    pairs = neighbours(family, 100, seed=1)
    want = [oracle.intersect_tri_tri(*pair) for pair in pairs]
    assert met(pairs, device, False, "bvh").tolist() == want


@pytest.mark.parametrize("weld", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_random_faces_over_few_vertices(weld, seed, device):
    """Faces with corners in common by index, by position, twice in one face, or not at all."""
    rng = np.random.default_rng(seed)
    vertices = rng.integers(-1, 2, size=(30, 3)).astype(float)
    faces = rng.integers(0, 30, size=(60, 3))
    rows = abut.self_collide(abut.Mesh(vertices, faces, device), weld=weld).pairs.numpy()
    assert [tuple(row) for row in rows.tolist()] == oracle.pairs_within(vertices, faces, weld)


@pytest.mark.parametrize(
    ("third", "folded"),
    [
        ([0.5, -1, 0], False),  # flat
        ([0.5, 0, 1], False),  # a right angle
        ([0.5, 1, 1e-300], False),  # almost shut
        ([0.5, 1, 0], True),
        ([0.5, 1e-300, 0], True),
        ([3, 0, 0], False),  # a zero-area face along the edge
    ],
)
def test_shared_edge(third, folded, device):
    mesh = abut.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], third], [[0, 1, 2], [1, 0, 3]], device)
    assert bool(abut.self_collide(mesh)) is folded


def test_a_corner_close_above_its_neighbour(device):
    """Faces with a common corner, the next corner of one just off the plane of the other."""
    a = [[-0.45772583, 0.22019512, -1.00961818], [0.0, 0.0, 0.0], [1.42139977, -1.1, 1.28]]
    b = [a[0], [-0.20917557, -0.15922501, 0.54084558], [0.21465912, 0.35537271, -0.65382861]]
    middle = np.array(a[0]) * 0.4 + np.array(b[1]) * 0.3 + np.array(b[2]) * 0.3
    for tip in (np.nextafter(middle, -9), middle, np.nextafter(middle, 9)):
        pair = np.array([[a[0], tip, a[2]], b])
        assert met(pair[None], device, True, "bvh")[0] == oracle.intersect_neighbours(*pair)
