"""What the sieve in front of the exact test lets fall are pairs that do not meet."""

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases
from abut.bvh.lbvh import build_lbvh
from abut.bvh.leaf_corners import leaf_corner_rows, leaf_corners_kernel
from abut.core.launch import launch
from abut.core.pair_queue import KeyLayout, PairQueues
from abut.narrow.plane_filter import plane_filter_kernel
from shapes import soup


def sifted(mesh):
    """Pairs of faces, of all there are, that the sieve keeps."""
    tree = build_lbvh(mesh.points, mesh.faces, mesh.bounds)
    count, device = mesh.face_count, mesh.device
    layout = KeyLayout.of(count, count)
    i, j = np.triu_indices(count, 1)
    queues = PairQueues(device, leaves=max(len(i), 1), left=max(len(i), 1))
    queues["leaves"].keys.assign(i.astype(np.int64) << layout.bits_b | j)
    queues["leaves"].count.fill_(len(i))
    view, rows = tree.view(), leaf_corner_rows(tree)
    args = [mesh.points, mesh.faces, view.origin, view.nodes, view.leaf_slots, rows]
    launch(leaf_corners_kernel, count, args, device)
    args = [view, rows, layout.bits, queues["leaves"], queues["left"]]
    launch(plane_filter_kernel, len(i), args, device, grain=1000)
    keys = np.sort(queues["left"].keys.numpy()[: queues.read()["left"]])
    return np.stack([keys >> layout.bits_b, keys & ((1 << layout.bits_b) - 1)], axis=1)


def require_kept(mesh, weld):
    """All pairs that meet are kept; returns how many are."""
    kept = sifted(mesh)
    met = abut.self_collide(mesh, weld=weld, method="brute").pairs.numpy()
    rows = set(map(tuple, kept.tolist()))
    assert len(rows) == len(kept)
    assert rows >= set(map(tuple, met.tolist()))
    return len(kept), len(met)


def crumpled(seed, size=0.3, shape=None):
    shape = shape or cases.icosphere(320)
    noise = np.random.default_rng(seed).normal(size=shape.vertices.shape)
    return shape.vertices + size * noise, shape.faces


@pytest.mark.parametrize("weld", [True, False])
@pytest.mark.parametrize("scale", [1e-30, 1e-9, 1.0, 1e6, 1e18, 1e30])
def test_scales(scale, weld, device):
    vertices, faces = crumpled(1)
    kept, met = require_kept(abut.Mesh(vertices * scale, faces, device), weld)
    assert met > 100
    if 1e-8 < scale < 1e8:
        assert kept < met + 0.2 * len(faces) ** 2 / 2


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_offsets_and_kinds(kind, offset, device):
    vertices, faces = crumpled(2)
    mesh = abut.Mesh((vertices + offset).astype(kind), faces, device)
    assert require_kept(mesh, True)[1] > 100


@pytest.mark.parametrize("grid", [2, 4, 64])
@pytest.mark.parametrize("weld", [True, False])
def test_faces_that_touch_on_a_grid(grid, weld, device):
    vertices, faces = crumpled(3, 0.5)
    mesh = abut.Mesh(np.round(vertices * grid) / grid, faces, device)
    require_kept(mesh, weld)
    if grid > 2:
        require_kept(abut.Mesh(*soup(cases.Shape(mesh.vertices.numpy(), faces)), device), weld)


def touching(rng, count, power):
    """Pairs of faces far apart from each other; a corner of one lies in the other, exactly."""
    size = 2**power
    b = rng.integers(-size, size, (count, 3, 3)) * 4
    u, v = b[:, 1] - b[:, 0], b[:, 2] - b[:, 0]
    a = b[:, :1] + rng.integers(-size, size, (count, 3, 3))
    a[:, 0] = b[:, 0] + u // 4 * rng.integers(0, 3, (count, 1)) + v // 4
    return np.stack([a, b], axis=1).astype(np.float64)


@pytest.mark.parametrize("power", [3, 12, 19])
def test_touching_faces_with_large_coordinates(power, device):
    """Products need 60 bits: a rounded determinant says little about a corner in the plane."""
    corners = touching(np.random.default_rng(4), 200, power).reshape(-1, 3, 3)
    for scale in (1.0, 1.0 / 3.0):  # the latter is not exact in float32, nor exactly touching
        points = corners.reshape(-1, 3) * scale
        faces = np.arange(len(points), dtype=np.int32).reshape(-1, 3)
        mesh = abut.Mesh(points, faces, device)
        kept = set(map(tuple, sifted(mesh).tolist()))
        met = abut.self_collide(mesh, method="brute").pairs.numpy()
        assert kept >= set(map(tuple, met.tolist()))
        if scale == 1.0:
            assert all((2 * k, 2 * k + 1) in kept for k in range(200))


def test_duplicates_folds_and_points(device):
    shape = cases.icosphere(80)
    faces = np.concatenate([shape.faces, shape.faces[:7], shape.faces[:5, [0, 0, 1]]])
    faces = np.concatenate([faces, [[0, 0, 0]]]).astype(np.int32)
    for weld in (True, False):
        require_kept(abut.Mesh(shape.vertices, faces, device), weld)
    flat = cases.plane(6, 6)
    folded = flat.vertices * [1, 1, 0]
    folded[:, 0] = np.abs(folded[:, 0])
    assert require_kept(abut.Mesh(folded, flat.faces, device), True)[1] > 10


def test_most_pairs_of_a_plain_mesh_fall_through(device):
    shape = cases.icosphere(1280)
    for kind in (np.float32, np.float64):
        mesh = abut.Mesh(shape.vertices.astype(kind), shape.faces, device)
        assert len(sifted(mesh)) < 0.02 * 1280**2 / 2
    assert isinstance(mesh.points, wp.array)
