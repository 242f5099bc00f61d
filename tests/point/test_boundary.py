"""Winding numbers of open meshes by a ray and the boundary."""

import numpy as np
import pytest
import warp as wp
from hypothesis import given
from hypothesis import strategies as st

import abut
from abut import cases
from abut.core.launch import launch
from abut.point import enclosure
from abut.point.boundary import boundary_loops
from abut.point.enclosure import Enclosure, enclosure_of, estimate_enclosed, is_enclosed
from shapes import soup

wp.set_module_options({"enable_backward": False, "fuse_fp": False})


@wp.kernel
def enclosed_kernel(
    # in
    span: wp.vec3i,
    points: wp.array[wp.vec3d],
    mesh: Enclosure,
    # out
    exact_out: wp.array[wp.int32],
    estimate_out: wp.array[wp.int32],
):
    """Both answers for every point."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        exact_out[i] = wp.where(is_enclosed(points[i], mesh), 1, 0)
        estimate_out[i] = estimate_enclosed(points[i], mesh)


def enclosed(shape, points, device):
    """((n,) of float64, (n,) of float32: 0, 1 or -1 for unsure)."""
    mesh = abut.Mesh(*shape, device)
    out = [wp.empty(len(points), dtype=wp.int32, device=device) for _ in range(2)]
    rows = wp.array(points, dtype=wp.vec3d, device=device)
    launch(enclosed_kernel, len(points), [rows, enclosure_of(mesh), *out], mesh.device)
    return [array.numpy() for array in out]


def winding(shape, points):
    """Generalised winding numbers by definition, face after face."""
    total = np.zeros(len(points))
    for corners in np.asarray(shape.vertices, float)[shape.faces]:
        a, b, c = (corner - points for corner in corners)
        la, lb, lc = (np.linalg.norm(v, axis=1) for v in (a, b, c))
        volume = np.einsum("ni,ni->n", a, np.cross(b, c))
        spread = la * lb * lc + sum(
            np.einsum("ni,ni->n", u, v) * w for u, v, w in ((a, b, lc), (b, c, la), (c, a, lb))
        )
        total += np.arctan2(volume, spread)
    return total / (2 * np.pi)


def check(shape, points, device, unsure=0.02):
    """Both answers agree with the definition, wherever that is not one half."""
    number = np.abs(winding(shape, points))
    clear = np.abs(number - 0.5) > 1e-9
    exact, estimate = enclosed(shape, points, device)
    np.testing.assert_array_equal(exact[clear], number[clear] > 0.5)
    sure = estimate >= 0
    np.testing.assert_array_equal(estimate[sure], exact[sure])
    assert sure.mean() >= 1.0 - unsure


def around(shape, count, seed=0):
    low, high = shape.vertices.min(axis=0), shape.vertices.max(axis=0)
    return np.random.default_rng(seed).uniform(
        1.2 * low - 0.2 * high, 1.2 * high - 0.2 * low, (count, 3)
    )


def without(shape, faces):
    return cases.Shape(shape.vertices, np.delete(shape.faces, faces, axis=0))


def open_shapes():
    ball, knot, torus = cases.icosphere(320), cases.pair("knot", 900)[0], cases.torus(24, 12)
    random = np.random.default_rng(5)
    turned = random.random((len(knot.faces), 1)) < 0.1
    mixed = np.where(turned, knot.faces[:, ::-1], knot.faces)
    return {
        "hole": without(ball, range(20)),
        "many holes": without(knot, random.permutation(len(knot.faces))[:100]),
        "strips": without(torus, range(0, len(torus.faces), 5)),
        "soup": soup(cases.Shape(ball.vertices, ball.faces[::2])),
        "inconsistent": cases.Shape(knot.vertices, mixed),
        "doubled": cases.Shape(ball.vertices, np.concatenate([ball.faces, ball.faces[:150]])),
        "far away": without(ball, range(30)).moved((1e4, -1e4, 1e4)),
    }  # fmt: skip


OPEN = open_shapes()


@pytest.mark.parametrize("name", OPEN)
def test_against_the_definition(name, device):
    loose = {"far away": 1.0, "inconsistent": 0.05}.get(name, 0.02)
    check(OPEN[name], around(OPEN[name], 1500), device, loose)


@pytest.mark.parametrize("name", OPEN)
def test_near_the_boundary(name, device):
    """Points close to the surface and to its boundary edges."""
    shape, random = OPEN[name], np.random.default_rng(2)
    corners = shape.vertices[shape.faces[random.integers(len(shape.faces), size=1000)]]
    on = np.einsum("nk,nkx->nx", random.dirichlet([0.2, 0.2, 0.2], size=1000), corners)
    check(
        shape,
        on + 10.0 ** random.uniform(-7, -2, (1000, 1)) * random.normal(size=(1000, 3)),
        device,
        1.0,
    )


integers = st.integers(0, 3)


@given(
    st.lists(st.tuples(*[integers] * 9), min_size=1, max_size=6),
    st.lists(st.tuples(*[st.integers(-1, 7)] * 3), min_size=1, max_size=20),
)
def test_rays_through_corners_and_edges(device, triangles, halves):
    """Faces and points on a lattice: rays meet corners and edges, and run along faces."""
    vertices = np.array(triangles, float).reshape(-1, 3)
    shape = cases.Shape(vertices, np.arange(len(vertices)).reshape(-1, 3))
    points = np.array(halves, float) / 2
    distance = abut.closest_point(abut.Mesh(*shape, device), points).distance.numpy()
    if (distance > 0).any():
        check(shape, points[distance > 0], device, 1.0)


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("side", range(2))
def test_half_a_turn_is_outside(axis, side, device):
    """Everywhere in the plane of a missing side of a box the winding number is one half."""
    box = cases.box((2.0, 2.0, 2.0))
    at = 2.0 * side - 1.0
    missing = (box.vertices[box.faces][:, :, axis] == at).all(axis=1)
    shape = cases.Shape(box.vertices, box.faces[~missing])
    points = np.random.default_rng(0).uniform(-0.99, 0.99, (200, 3))
    points[:20] = np.round(points[:20])
    points[:, axis] = at
    points = points[np.abs(points).max(axis=1) <= 1.0]
    points = points[(np.abs(points) == 1.0).sum(axis=1) == 1]
    number = winding(shape, points)
    np.testing.assert_allclose(np.abs(number), 0.5, atol=1e-12)
    exact, estimate = enclosed(shape, points, device)
    assert not exact.any()
    assert (estimate <= 0).all()


@given(st.lists(st.tuples(*[st.integers(0, 8)] * 3), min_size=1, max_size=40))
def test_loops_hold_every_boundary_edge_once(triangles):
    vertices = np.random.default_rng(0).random((9, 3))
    edges = abut.Mesh(vertices, np.array(triangles), "cpu").topology.boundary
    loops = boundary_loops(edges)
    found = [pair for loop in loops for pair in zip(loop, [*loop[1:], loop[0]], strict=True)]
    assert sorted(found) == sorted(map(tuple, edges.tolist()))


def test_long_boundaries_are_summed_over_the_tree(monkeypatch, device):
    shape, points = OPEN["many holes"], around(OPEN["many holes"], 500)
    by_boundary = enclosed(shape, points, device)[0]
    monkeypatch.setattr(enclosure, "LONG_BOUNDARY", 0)
    mesh = abut.Mesh(*shape, device)
    assert enclosure_of(mesh).dipoles.shape[0] > 0
    by_dipoles = abut.closest_point(mesh, points, signed="winding").distance.numpy() < 0
    np.testing.assert_array_equal(by_dipoles, by_boundary == 1)
