"""Separating planes against rational arithmetic, and what the filter leaves undecided."""

import numpy as np
import pytest
import warp as wp

import awkward
import oracle
from abut.geometry.common_corners import SHARED_BY_POSITION
from abut.geometry.intersect_tri_tri import UNDECIDED, classify_tri_tri
from abut.geometry.separating_plane import separated_at_corner, separated_by_plane

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def separated_kernel(
    # in
    a: wp.array[wp.mat33d],
    b: wp.array[wp.mat33d],
    at_corner: wp.bool,
    # out
    separated_out: wp.array[wp.bool],
):
    """Whether a plane is found between two triangles, or through their common first corner."""
    i = wp.tid()
    if at_corner:
        separated_out[i] = separated_at_corner(a[i], b[i])
    else:
        separated_out[i] = separated_by_plane(a[i], b[i])


@wp.kernel
def verdict_kernel(
    # in
    a: wp.array[wp.mat33d],
    b: wp.array[wp.mat33d],
    # out
    verdict_out: wp.array[wp.int32],
):
    """The verdict of the filter."""
    i = wp.tid()
    verdict_out[i] = classify_tri_tri(a[i], b[i], SHARED_BY_POSITION, wp.vec3i(), wp.vec3i())


def separated(pairs, at_corner, device):
    """For each pair of triangles (n, 2, 3, 3), whether a plane is found between them."""
    a, b = (wp.array(pairs[:, k].copy(), dtype=wp.mat33d, device=device) for k in (0, 1))
    out = wp.zeros(len(pairs), dtype=wp.bool, device=device)
    wp.launch(separated_kernel, len(pairs), [a, b, at_corner], [out], device=device)
    return out.numpy()


def on_the_verge(rng, count, at_corner):
    """Pairs that touch in a rounded point of the first, from which the second leads away.

    With ``at_corner`` they also have the first corner in common.
    """
    a = rng.normal(size=(count, 3, 3))
    weights = rng.dirichlet(np.ones(3), size=count)
    point = (weights[:, :, None] * a).sum(axis=1)
    normal = np.cross(a[:, 1] - a[:, 0], a[:, 2] - a[:, 0])
    away = rng.normal(size=(count, 2, 3))
    away *= np.sign((away * normal[:, None]).sum(axis=2, keepdims=True))
    b = np.stack([point, point + away[:, 0], point + away[:, 1]], axis=1)
    if at_corner:
        b[:, 2] = b[:, 0]
        b[:, 0] = a[:, 0]
        b[:, 1] = a[:, 0] + away[:, 0]
    return np.stack([a, b], axis=1)


@pytest.mark.parametrize("family", awkward.FAMILIES, ids=awkward.name)
def test_separated_triangles_are_disjoint(family, device):
    pairs = family(np.random.default_rng(3), 400, 6).reshape(-1, 2, 3, 3)
    for pair in pairs[separated(pairs, False, device)]:
        assert not oracle.intersect_tri_tri(*pair), pair.tolist()


@pytest.mark.parametrize("family", awkward.FAMILIES, ids=awkward.name)
def test_separated_neighbours_meet_in_their_corner_only(family, device):
    pairs = family(np.random.default_rng(4), 400, 6).reshape(-1, 2, 3, 3)
    pairs[:, 1, 0] = pairs[:, 0, 0]
    for pair in pairs[separated(pairs, True, device)]:
        assert not oracle.intersect_neighbours(*pair, "xyz", "xuv"), pair.tolist()


@pytest.mark.parametrize("at_corner", [False, True])
def test_planes_on_the_verge(at_corner, device):
    """Pairs that touch or miss each other by a rounding are never called separated wrongly."""
    pairs = on_the_verge(np.random.default_rng(5), 3000, at_corner)
    for pair in pairs[separated(pairs, at_corner, device)]:
        met = oracle.intersect_neighbours(*pair, "xyz", "xuv")
        assert not (met if at_corner else oracle.intersect_tri_tri(*pair)), pair.tolist()


def fan(count):
    """Triangles around one point of a tilted plane."""
    angle = np.linspace(0.0, 2.0 * np.pi, count + 1)
    rim = np.cos(angle)[:, None] * [1.0, 0.25, 0.5] + np.sin(angle)[:, None] * [-0.25, 1.0, 0.125]
    return np.stack([np.zeros((count, 3)), rim[:-1], np.roll(rim[:-1], -1, axis=0)], axis=1)


def sheet(count):
    """A square of count x count cells, two triangles each, in an axis-aligned plane."""
    x, y = np.meshgrid(np.arange(count), np.arange(count), indexing="ij")
    cells = np.stack([x, y, np.full_like(x, 3)], axis=-1).reshape(-1, 1, 3) / 8.0
    corners = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 0], [0, 1, 0]]) / 8.0
    return (cells + corners).reshape(-1, 3, 3)


@pytest.mark.parametrize(
    "triangles", [fan(40), sheet(6), sheet(6) @ np.linalg.qr(np.eye(3) + 1)[0]]
)
def test_flat_neighbours_need_no_exact_arithmetic(triangles, device):
    """Of coplanar faces that do not overlap, the filter leaves none undecided."""
    i, j = np.triu_indices(len(triangles), 1)
    a, b = (wp.array(triangles[k], dtype=wp.mat33d, device=device) for k in (i, j))
    out = wp.zeros(len(i), dtype=wp.int32, device=device)
    wp.launch(verdict_kernel, len(i), [a, b], [out], device=device)
    assert not (out.numpy() == UNDECIDED).any()
