"""Rectangle swept spheres of nodes contain their faces; their gaps are lower bounds."""

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases
from abut.bounds.obb import overlap_obb
from abut.bounds.relative_frame import RelativeFrame
from abut.bounds.rss import gap_rss, overlap_rss
from abut.bvh.bvh_cache import bvh_of
from abut.bvh.layout import BvhView
from abut.operands.posed_mesh import make_posed_mesh
from abut.operands.posed_pairs import MeshPairs, mesh_pairs
from abut.traversal.overlap.node_pairs import load_obb, load_rss
from abut.traversal.overlap.row_frames import frames_alone, frames_kernel_for
from shapes import moved, random_poses
from trees import links_of

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

RSS = abut.Bound.RSS


@wp.kernel
def root_distance_kernel(
    # in
    tree_a: BvhView,
    tree_b: BvhView,
    frames: wp.array[RelativeFrame],
    slots: wp.array2d[wp.int32],
    # out
    distance_out: wp.array[wp.float32],
):
    i = wp.tid()
    a = load_rss(tree_a, slots[i, 0])
    distance_out[i] = gap_rss(frames[0], a, load_rss(tree_b, slots[i, 1]))


@wp.kernel
def overlaps_kernel(
    # in
    obbs_a: BvhView,
    obbs_b: BvhView,
    rss_a: BvhView,
    rss_b: BvhView,
    frames: wp.array[RelativeFrame],
    slots: wp.array2d[wp.int32],
    # out
    hits_out: wp.array2d[wp.bool],
    gap_out: wp.array[wp.float32],
):
    i = wp.tid()
    x = slots[i, 0]
    y = slots[i, 1]
    hits_out[i, 0] = overlap_obb(frames[0], load_obb(obbs_a, x), load_obb(obbs_b, y))
    hits_out[i, 1] = overlap_rss(frames[0], load_rss(rss_a, x), load_rss(rss_b, y))
    gap_out[i] = gap_rss(frames[0], load_rss(rss_a, x), load_rss(rss_b, y))


def faces_below(tree):
    """Return the faces below every slot, and the slots from the leaves up."""
    links = links_of(tree)
    order, stack = [], [len(links) - 1]
    while stack:
        slot = stack.pop()
        order.append(slot)
        if links[slot] >= 0:
            stack += [2 * links[slot], 2 * links[slot] + 1]
    below = {}
    for slot in reversed(order):
        link = links[slot]
        below[slot] = [-1 - link] if link < 0 else below[2 * link] + below[2 * link + 1]
    return below


def check_holds(mesh):
    """Check the volumes of a mesh; see check_volumes."""
    check_volumes(mesh, bvh_of(mesh, RSS))


def check_volumes(mesh, tree):
    """Check that every corner is in the swept sphere and in the box of every node above it."""
    rows = tree.rss.numpy().reshape(-1, 4, 4).astype(float)
    points, faces = mesh.points.numpy() - tree.origin, mesh.faces.numpy()
    for slot, below in faces_below(tree).items():
        centre, radius = rows[slot, 0, :3], rows[slot, 0, 3]
        u, v = rows[slot, 1:3, :3]
        r = points[faces[below]].reshape(-1, 3) - centre
        out = np.stack([r @ u, r @ v, r @ np.cross(u, v)], axis=1)
        box = np.array([*rows[slot, 1:3, 3], radius])
        assert (np.abs(out) <= box * (1 + 1e-6)).all()
        out[:, :2] = np.maximum(np.abs(out[:, :2]) - rows[slot, 1:3, 3], 0)
        assert (np.linalg.norm(out, axis=1) <= radius).all()


SHAPES = {
    "ball": cases.icosphere(320),
    "torus": cases.torus(20, 10),
    "box": cases.box(),
    "flat": cases.plane(8, 8, 2.0),
    "needles": cases.pair("needles", 200)[0],
}


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
@pytest.mark.parametrize("offset", [0.0, 3.0, 1e6])
@pytest.mark.parametrize("name", SHAPES)
def test_volumes_contain_their_faces(name, offset, scale, device):
    shape = SHAPES[name]
    turned = moved(shape.vertices, random_poses(1, 1.0)[0])
    check_holds(abut.Mesh((turned + offset) * scale, shape.faces, device))


def test_faces_without_area(device):
    vertices = np.random.default_rng(0).normal(size=(40, 3))
    faces = np.random.default_rng(1).integers(0, 40, size=(60, 3))
    faces[:20, 1] = faces[:20, 0]
    faces[20:25] = faces[20:25, :1]
    check_holds(abut.Mesh(vertices, faces, device))


def test_after_a_deformation(device):
    mesh = abut.Mesh(*SHAPES["torus"], device)
    check_holds(mesh)
    for size in ([2, 1, 0.1], [1, 0, 1], [1, 1, 1]):
        mesh.deform(SHAPES["torus"].vertices * size)
        check_holds(mesh)


def test_flat_surfaces_have_thin_volumes(device):
    """The volumes of a rotated flat sheet have no thickness."""
    sheet = cases.plane(16, 16, 2.0)
    mesh = abut.Mesh(moved(sheet.vertices, random_poses(1, 0.5)[0]), sheet.faces, device)
    radius = bvh_of(mesh, RSS).rss.numpy().reshape(-1, 4, 4)[:, 0, 3]
    assert radius.max() < 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_gaps_are_lower_bounds(seed, device):
    """The gap of two leaves is close to the distance of their faces, and never above it."""
    rng = np.random.default_rng(seed)
    a, b = (abut.Mesh(rng.normal(size=(300, 3)) * 0.2, np.arange(300).reshape(-1, 3), device)
            for _ in range(2))  # fmt: skip
    pose = random_poses(1, 2.0, seed)
    trees = [bvh_of(mesh, RSS) for mesh in (a, b)]
    frames = wp.empty(1, dtype=RelativeFrame, device=device)
    sides = [make_posed_mesh(a.points, a.faces), make_posed_mesh(b.points, b.faces, pose)]
    views = [tree.view(RSS) for tree in trees]
    args = frames_alone(mesh_pairs(*sides, trees=views), frames)
    wp.launch(frames_kernel_for(MeshPairs), 1, [wp.vec3i(0, 1, 1), *args], device=device)
    links = [links_of(tree) for tree in trees]
    leaves = [rng.choice(np.flatnonzero(link < 0), 400) for link in links]
    slots = wp.array(np.stack(leaves, axis=1).astype(np.int32), device=device)
    bound = wp.empty(400, dtype=wp.float32, device=device)
    wp.launch(root_distance_kernel, 400, [*views, frames, slots, bound], device=device)
    corners = [
        mesh.points.numpy()[mesh.faces.numpy()[-1 - link[leaf]]]
        for mesh, link, leaf in zip((a, b), links, leaves, strict=True)
    ]
    placed = moved(corners[1].reshape(-1, 3), pose[0]).reshape(-1, 3, 3)
    true = abut.primitives.distance_tri_tri(corners[0], placed)[0].numpy()
    assert (bound.numpy() <= true).all()
    assert np.median(true - np.maximum(bound.numpy(), 0)) < 0.2 * np.median(true)


@pytest.mark.parametrize("scale", [1e308, 3e38, 1e-40, 5e-324])
def test_beyond_single_precision(scale, device):
    """No pair is lost when float32 cannot represent the corners."""
    rng = np.random.default_rng(0)
    corners = rng.integers(-1, 2, size=(60, 3)) * scale
    faces = np.arange(60).reshape(-1, 3)
    a, b = abut.Mesh(corners, faces, device), abut.Mesh(corners[::-1].copy(), faces, device)
    small = abut.Mesh(rng.normal(size=(60, 3)), faces, device)
    for other in (b, small):
        pairs = abut.collide(a, other, method="brute").pairs.numpy()
        assert len(pairs) > 0 or other is small
        np.testing.assert_array_equal(abut.collide(a, other, bound="rss").pairs.numpy(), pairs)
        want = abut.distance(a, other, method="brute").value
        assert abut.distance(a, other, bound="rss").value == want


def nodes_between(trees, posed, slots, device):
    """Whether boxes and swept spheres of pairs of slots overlap, and the gaps of the latter."""
    frames = wp.empty(1, dtype=RelativeFrame, device=device)
    views = [[tree.view(bound) for tree in trees] for bound in (abut.Bound.OBB, RSS)]
    args = frames_alone(mesh_pairs(*posed, trees=views[0]), frames)
    wp.launch(frames_kernel_for(MeshPairs), 1, [wp.vec3i(0, 1, 1), *args], device=device)
    count = len(slots)
    hits = wp.empty((count, 2), dtype=wp.bool, device=device)
    gaps = wp.empty(count, dtype=wp.float32, device=device)
    inputs = [*views[0], *views[1], frames, wp.array(slots, dtype=wp.int32, device=device)]
    wp.launch(overlaps_kernel, count, [*inputs, hits, gaps], device=device)
    return hits.numpy(), gaps.numpy()


@pytest.mark.parametrize("seed", range(4))
def test_no_looser_than_oriented_boxes_and_gaps_below_distances(seed, device):
    """Of nodes of all sizes: swept spheres are apart wherever boxes of the same axes are."""
    rng = np.random.default_rng(seed)
    shapes = [SHAPES["torus"], cases.torus(24, 12, 1.0, 0.2)]
    a, b = (abut.Mesh(shape.vertices * [1, 1, 0.3], shape.faces, device) for shape in shapes)
    pose = random_poses(1, 0.3, seed)
    trees = []
    for mesh in (a, b):
        bvh_of(mesh, abut.Bound.OBB)
        trees.append(bvh_of(mesh, RSS))
    posed = [make_posed_mesh(a.points, a.faces), make_posed_mesh(b.points, b.faces, pose)]
    slots = np.stack([rng.integers(0, 2 * m.face_count - 1, 3000) for m in (a, b)], axis=1)
    hits, gaps = nodes_between(trees, posed, slots, device)
    assert not (hits[:, 1] & ~hits[:, 0]).any()
    assert hits.any() and not hits.all()
    faces = [[np.array(below[slot]) for slot in range(len(below))] for below in
             (faces_below(tree) for tree in trees)]  # fmt: skip
    corners = [mesh.points.numpy()[mesh.faces.numpy()] for mesh in (a, b)]
    corners[1] = moved(corners[1].reshape(-1, 3), pose[0]).reshape(-1, 3, 3)
    for (x, y), gap in zip(slots[gaps > 0][:200], gaps[gaps > 0], strict=False):
        i, j = (grid.ravel() for grid in np.meshgrid(faces[0][x][:40], faces[1][y][:40]))
        near = abut.primitives.distance_tri_tri(corners[0][i], corners[1][j])[0].numpy().min()
        assert gap <= near
