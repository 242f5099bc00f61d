"""Oriented boxes of nodes contain the faces below them."""

import numpy as np
import pytest

import abut
from abut import cases
from abut.bvh.bvh_cache import bvh_of
from abut.bvh.leaf_ranges import leaf_ranges
from shapes import moved, random_poses


def on_a_grid(shape, cells):
    """Round the vertices of a shape to a coarse grid, so that many faces have no area."""
    vertices = np.asarray(shape.vertices, dtype=np.float64)
    step = np.ptp(vertices, axis=0).max() / cells
    return np.round(vertices / step) * step, shape.faces


SHAPES = {
    "sphere": on_a_grid(cases.icosphere(320), 1e6),
    "sphere on a grid": on_a_grid(cases.icosphere(320), 4),
    "torus on a grid": on_a_grid(cases.pair("tori", faces=3000)[0], 64),
    "needles": (np.random.default_rng(0).normal(size=(90, 3)) * [1, 1e-4, 1e-9], None),
    "a line": (np.outer(np.random.default_rng(3).random(90), [0.6, 0.8, 0.1]), None),
    "a point": (np.ones((90, 3)), None),
    "segments": (
        np.random.default_rng(4).normal(size=(120, 3)),
        np.array([[k, k + 1, k] for k in range(0, 120, 2)]),
    ),
    "far away": (np.random.default_rng(1).normal(size=(90, 3)) + 1e6, None),
    # The square of its area, though not the area, is beyond float32.
    "a huge plate": cases.plane(8, 8, 2e10),
    "huge": (np.random.default_rng(2).normal(size=(90, 3)) * 1e30, None),
}


def mesh_of(name, device):
    vertices, faces = SHAPES[name]
    if faces is None:
        faces = np.arange(len(vertices)).reshape(-1, 3)
    return abut.Mesh(vertices, faces, device)


@pytest.mark.parametrize("name", SHAPES)
def test_boxes_contain_their_faces(name, device):
    mesh = mesh_of(name, device)
    tree = bvh_of(mesh, abut.Bound.OBB)
    links = tree.nodes.numpy()[0::2, 3].view(np.int32)
    rows = tree.obbs.numpy().reshape(-1, 4, 4).astype(np.float64)
    corners = mesh.points.numpy()[mesh.faces.numpy()] - tree.origin

    def check(slot):
        if links[slot] < 0:
            below = corners[-1 - links[slot]]
        else:
            below = np.concatenate([check(2 * links[slot]), check(2 * links[slot] + 1)])
        centre, half = rows[slot, 0, :3], rows[slot, :3, 3]
        u, v = rows[slot, 1, :3], rows[slot, 2, :3]
        axes = np.stack([u, v, np.cross(u, v)])
        assert np.allclose(axes @ axes.T, np.eye(3), atol=2e-6)
        assert (np.abs((below - centre) @ axes.T) <= half * (1 + 1e-6)).all()
        return below

    check(2 * mesh.face_count - 2)


@pytest.mark.parametrize("name", SHAPES)
def test_same_rows_as_with_axis_aligned_boxes(name, device):
    mesh = mesh_of(name, device)
    size = np.ptp(mesh.bounds, axis=0).max()
    angle = 0.7
    turn = np.eye(4)
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    centre = mesh.bounds.mean(axis=0)
    turn[:3, 3] = centre - turn[:3, :3] @ centre + 0.05 * size
    for pose in (None, turn):
        rows = {b: abut.collide(mesh, mesh, pose_b=pose, bound=b).pairs.numpy() for b in abut.Bound}
        truth = abut.collide(mesh, mesh, pose_b=pose, method="brute").pairs.numpy()
        assert np.array_equal(rows["aabb"], truth)
        assert np.array_equal(rows["obb"], truth)


@pytest.mark.parametrize("bound", [abut.Bound.OBB, abut.Bound.RSS])
def test_nodes_are_fitted_to_their_corners(bound, device):
    shape = cases.single("thick_knot", 3000)
    mesh = abut.Mesh(*shape, device)
    tree = bvh_of(mesh, bound)
    rows = (tree.obbs if bound is abut.Bound.OBB else tree.rss).numpy().reshape(-1, 4, 4)
    ranges = leaf_ranges(tree).numpy()
    order = -1 - tree.nodes.numpy()[0::2, 3].view(np.int32)[tree.leaf_slots.numpy()]
    corners = mesh.points.numpy()[mesh.faces.numpy()[order]]
    for slot in [*range(len(ranges))[::7], *np.argsort(-np.ptp(ranges, axis=1))[:40]]:
        first, last = ranges[slot]
        u, v = rows[slot, 1:3, :3].astype(float)
        extents = corners[first : last + 1].reshape(-1, 3) @ np.stack([u, v, np.cross(u, v)]).T
        half = rows[slot, :3, 3] if bound is abut.Bound.OBB else rows[slot, [1, 2, 0], 3]
        np.testing.assert_allclose(half, np.ptp(extents, axis=0) / 2, atol=1e-4)


def test_nodes_of_a_folded_sheet_are_thin(device):
    """Both sides of a thin plate in one node: area vectors cancel, and scatter gives the axes."""
    sheet = cases.plane(16, 16, 2.0)
    both = cases.joined(sheet, sheet.moved((0.0, 0.0, 1e-3)))
    flipped = np.where(np.arange(len(both.faces))[:, None] < len(sheet.faces), 1, 0)
    faces = np.where(flipped, both.faces[:, ::-1], both.faces)
    turned = moved(both.vertices, random_poses(1, 0.5)[0])
    tree = bvh_of(abut.Mesh(turned, faces, device), abut.Bound.OBB)
    assert tree.obbs.numpy().reshape(-1, 4, 4)[-1, 2, 3] < 1e-3
