"""Depths of common parts: analytic solids, certified bounds, rigid motion, subdivision."""

import numpy as np
import pytest

import abut
from abut.cases.placed_shapes import random_rotations
from abut.cases.shape import Shape, joined
from abut.cases.shapes import box, gem, icosphere, torus
from abut.query.solids import inside_depth
from abut.query.solids.depth_search import DepthSearch
from abut.query.solids.inside_depth import depth_beside, inside_depths


def moved(shape, shift=(0.0, 0.0, 0.0), rotation=None):
    vertices = np.asarray(shape.vertices, np.float64)
    if rotation is not None:
        vertices = vertices @ np.transpose(rotation)
    return Shape(vertices + shift, shape.faces)


def flipped(shape):
    return Shape(shape.vertices, np.asarray(shape.faces)[:, ::-1].copy())


def subdivided(shape, times=1):
    """Every face cut into four at the middles of its edges."""
    vertices, faces = np.asarray(shape.vertices, np.float64), np.asarray(shape.faces)
    for _ in range(times):
        edges = np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
        unique, at = np.unique(edges, axis=0, return_inverse=True)
        ab, bc, ca = (len(vertices) + at.reshape(-1, 3)).T
        vertices = np.concatenate([vertices, vertices[unique].mean(axis=1)])
        a, b, c = faces.T
        parts = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
        faces = np.concatenate([np.stack(part, axis=1) for part in parts])
    return Shape(vertices, faces.astype(np.int32))


def mesh_of(shape, device):
    return abut.Mesh(np.asarray(shape.vertices, np.float64), np.asarray(shape.faces), device)


def pose_of(rotation, shift):
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, shift
    return pose[None]


def depth(a, b, device, tolerance=1e-9):
    """The depth of two shapes without poses, with its bounds checked for consistency."""
    found = inside_depths(mesh_of(a, device), mesh_of(b, device), None, None, tolerance)
    (low, high), value = found.bounds[0], found.depth[0]
    assert low <= value <= high <= low + tolerance
    return value


def random_poses(count, rng, spread):
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = random_rotations(count, rng)
    poses[:, :3, 3] = rng.normal(size=(count, 3)) * spread
    return poses


def extruded(outline, height):
    """A prism over a star-shaped outline around its first corner."""
    count = len(outline)
    low = np.column_stack([outline, np.zeros(count)])
    fan = [(0, i, i + 1) for i in range(1, count - 1)]
    faces = [(c, b, a) for a, b, c in fan]
    faces += [(a + count, b + count, c + count) for a, b, c in fan]
    for i in range(count):
        j = (i + 1) % count
        faces += [(i, j, j + count), (i, j + count, i + count)]
    return Shape(np.concatenate([low, low + np.array([0, 0, height])]), np.array(faces, np.int32))


UNIT = box((1.0, 1.0, 1.0))
NOTCHED = extruded(np.array([[1.0, 1], [1, 2], [0, 2], [0, 0], [2, 0], [2, 1]]), 1.0)
TETRAHEDRON = Shape(
    np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32),
)
INRADIUS = 1.0 / (3.0 + np.sqrt(3.0))  # of the tetrahedron, at (r, r, r)

CASES = {
    "shifted boxes": (UNIT, moved(UNIT, (0.6, 0.1, 0.05)), 0.4),
    "the same box": (UNIT, UNIT, 0.5),
    "a small box inside": (UNIT, moved(box((0.2, 0.2, 0.2)), (0.3, 0.0, 0.0)), 0.3),
    "a large box around": (UNIT, box((3.0, 3.0, 3.0)), 0.5),
    "a box pressed into a slab": (box((4.0, 4.0, 1.0)), moved(UNIT, (0.3, 0.2, 0.8)), 0.2),
    "a slab around the middle of a box": (box((4.0, 4.0, 1.0)), box((1.0, 1.0, 9.0)), 0.5),
    "a duct through a wall": (box((4.0, 0.2, 3.0)), box((0.3, 1.1, 0.3)), 0.1),
    "a wall around a duct": (box((0.3, 1.1, 0.3)), box((4.0, 0.2, 3.0)), 0.15),
    "a tetrahedron in a box": (TETRAHEDRON, box((4.0, 4.0, 4.0)), INRADIUS),
    "apart": (UNIT, moved(UNIT, (3.0, 0.0, 0.0)), 0.0),
    "boxes overlap, solids do not": (
        TETRAHEDRON,
        moved(box((0.1, 0.1, 0.1)), (0.6, 0.6, 0.6)),
        0.0,
    ),
    "face to face": (UNIT, moved(UNIT, (1.0, 0.3, 0.0)), 0.0),
    "edge to edge": (UNIT, moved(UNIT, (1.0, 1.0, 0.0)), 0.0),
    "in a notch": (NOTCHED, moved(UNIT, (1.5, 1.5, 0.5)), 0.0),
    "barely in a notch": (NOTCHED, moved(UNIT, (1.5 - 3e-8, 1.5 - 4e-8, 0.5)), 5e-8),
    "a notch around it": (moved(UNIT, (1.5 - 3e-8, 1.5 - 4e-8, 0.5)), NOTCHED, 4e-8),
    "barely overlapping": (UNIT, moved(UNIT, (1.0 - 1e-7, 0.3, 0.0)), 1e-7),
    "a shell and its core": (
        joined(box((3.0, 3.0, 3.0)), flipped(box((2.0, 2.0, 2.0)))),
        moved(box((0.4, 0.4, 0.4)), (1.3, 0.0, 0.0)),
        0.25,
    ),
    "a core in the cavity": (
        joined(box((3.0, 3.0, 3.0)), flipped(box((2.0, 2.0, 2.0)))),
        UNIT,
        0.0,
    ),
    "two boxes in a slab": (
        box((9.0, 9.0, 1.0)),
        joined(moved(UNIT, (3.0, 0.0, 0.9)), moved(UNIT, (-3.0, 0.0, 0.7))),
        0.3,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_depths_of_analytic_solids(device, name):
    a, b, expected = CASES[name]
    assert depth(a, b, device) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "name", ["a box pressed into a slab", "a duct through a wall", "the same box"]
)
def test_depths_do_not_change_when_faces_are_subdivided(device, name):
    a, b, expected = CASES[name]
    fine_a, fine_b = subdivided(a, 3), subdivided(b, 3)
    for x, y in [(fine_a, b), (a, fine_b), (fine_a, fine_b)]:
        assert depth(x, y, device) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_few_cells_suffice_on_plateaus(device, name, monkeypatch):
    """Cells along an edge or on a plane would be 1e6 or 1e12 at this tolerance."""
    a, b, _ = CASES[name]
    bound, cells = DepthSearch.bound, []
    monkeypatch.setattr(
        DepthSearch, "bound", lambda self, x: cells.append(x.pose.shape[0]) or bound(self, x)
    )
    rotation = random_rotations(1, np.random.default_rng(1))[0]
    for x, y in [(a, b), (moved(a, rotation=rotation), moved(b, rotation=rotation))]:
        cells.clear()
        depth(x, y, device, 1e-6)
        assert sum(cells) < 10_000


def planes_of(mesh, pose):
    """Unit normals and offsets of the faces of a mesh at a pose."""
    vertices = mesh.vertices.numpy() @ pose[:3, :3].T + pose[:3, 3]
    corners = vertices[mesh.faces.numpy()]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    return normals, np.einsum("ij,ij->i", normals, corners[:, 0])


def convex_depth(a, b, pose_a, pose_b):
    """The depth of two convex solids by linear programming, negative if they are apart."""
    optimize = pytest.importorskip("scipy.optimize")
    (normals_a, offsets_a), (normals_b, offsets_b) = planes_of(a, pose_a), planes_of(b, pose_b)
    rows_a = np.column_stack([normals_a, np.ones(len(normals_a))])
    rows_b = np.column_stack([normals_b, np.zeros(len(normals_b))])
    rows, limits = np.concatenate([rows_a, rows_b]), np.concatenate([offsets_a, offsets_b])
    best = optimize.linprog([0, 0, 0, -1], rows, limits, bounds=[(None, None)] * 4)
    return -best.fun


CONVEX = [UNIT, TETRAHEDRON, box((2.0, 1.0, 0.1)), icosphere(80), icosphere(1280, 0.6)]


@pytest.mark.parametrize("few", [True, False])
def test_depths_of_convex_solids_solve_a_linear_program(device, few):
    rng = np.random.default_rng(int(few))
    for a in CONVEX:
        for b in CONVEX:
            mesh_a, mesh_b = mesh_of(a, device), mesh_of(b, device)
            count = 4 if few else 64
            pose_a, pose_b = random_poses(count, rng, 0.3), random_poses(count, rng, 0.3)
            found = inside_depths(mesh_a, mesh_b, pose_a, pose_b, 1e-7)
            for i in range(0, count, 1 if few else 16):
                truth = max(convex_depth(mesh_a, mesh_b, pose_a[i], pose_b[i]), 0.0)
                assert found.bounds[i, 0] - 1e-9 <= truth <= found.bounds[i, 1] + 1e-9
                assert np.ptp(found.bounds[i]) <= 1e-7


SHELL = joined(icosphere(320), flipped(icosphere(320, 0.7)))
CURVED = [torus(16, 8), gem(320, bump=0.3), SHELL, joined(UNIT, moved(UNIT, (1.5, 0.3, 0.2)))]


@pytest.mark.parametrize("count", [3, 64])
def test_bounds_hold_for_samples(device, count):
    """No sample is deeper than the upper bound, and the deepest point is as deep as it says."""
    rng = np.random.default_rng(count)
    shifts = range(4) if count < 64 else [1]
    for a, b in [(CURVED[k], CURVED[k - shift]) for k in range(4) for shift in shifts]:
        mesh_a, mesh_b = mesh_of(a, device), mesh_of(b, device)
        pose_a, pose_b = random_poses(count, rng, 0.4), random_poses(count, rng, 0.4)
        tolerance = 10.0 ** rng.uniform(-6, -2)
        found = inside_depths(mesh_a, mesh_b, pose_a, pose_b, tolerance)
        assert (np.diff(found.bounds) <= tolerance).all()
        for i in range(0, count, max(1, count // 3)):
            check_by_samples(mesh_a, mesh_b, pose_a[i], pose_b[i], found, i, rng)


def check_by_samples(a, b, pose_a, pose_b, found, i, rng):
    (low, high), depth, deepest = found.bounds[i], found.depth[i], found.deepest[i]
    assert low <= depth <= high
    vertices = b.vertices.numpy() @ pose_b[:3, :3].T + pose_b[:3, 3]
    points = rng.uniform(vertices.min(axis=0), vertices.max(axis=0), (20_000, 3))
    if depth > 0.0:
        near = deepest + rng.normal(size=(5_000, 3)) * 0.05 * depth
        points = np.concatenate([points, near])
    points = points[abut.contains(b, points, pose=pose_b).numpy()]
    points = np.concatenate([points, vertices])
    assert (-abut.signed_distance(a, points, pose=pose_a).numpy()).max() <= high + 1e-15
    if depth > 0.0:
        assert abut.signed_distance(b, deepest[None], pose=pose_b).numpy()[0] <= 1e-14
        near = abut.closest_point(a, deepest[None], signed=True, pose=pose_a)
        assert near.distance.numpy()[0] == pytest.approx(-depth, abs=1e-14)
        foot = deepest + depth * found.direction[i]
        np.testing.assert_allclose(foot, near.point.numpy()[0], atol=1e-13)
    else:
        assert np.isnan(deepest).all() and np.isnan(found.direction[i]).all()


def test_rigid_motion_of_both_changes_nothing(device):
    rng = np.random.default_rng(7)
    a, b = mesh_of(CURVED[1], device), mesh_of(CURVED[0], device)
    relative = random_poses(8, rng, 0.4)
    both = random_poses(8, rng, 3.0)
    still = inside_depths(a, b, None, relative, 1e-10)
    turned = inside_depths(a, b, both, both @ relative, 1e-10)
    np.testing.assert_allclose(turned.depth, still.depth, atol=1e-10)


def test_poses_rounded_to_float32_give_the_depths_of_the_moved_meshes(device):
    rng = np.random.default_rng(8)
    poses = random_poses(64, rng, 0.3).astype(np.float32).astype(np.float64)
    a, b = mesh_of(CURVED[1], device), mesh_of(UNIT, device)
    found = inside_depths(a, b, poses, None, 1e-8)
    for i in range(0, 64, 8):
        vertices = a.vertices.numpy() @ poses[i, :3, :3].T + poses[i, :3, 3]
        alone = inside_depths(abut.Mesh(vertices, a.faces.numpy(), device), b, None, None, 1e-8)
        assert found.depth[i] == pytest.approx(alone.depth[0], abs=1e-8)


@pytest.mark.parametrize("scale", [1e-12, 1e-4, 1e6, 1e14])
def test_depths_scale_with_lengths(device, scale):
    a, b = moved(UNIT, (5.0, 0.0, 0.0)), moved(UNIT, (5.6, 0.1, 0.05))
    scaled = [Shape(np.asarray(shape.vertices) * scale, shape.faces) for shape in (a, b)]
    found = depth(scaled[0], scaled[1], device, 1e-9 * scale)
    assert found == pytest.approx(0.4 * scale, rel=1e-9)


def test_a_tolerance_of_zero_ends_at_rounding(device):
    a, b = mesh_of(torus(16, 8), device), mesh_of(gem(320), device)
    found = inside_depths(a, b, None, None, 0.0)
    assert 0.0 < np.ptp(found.bounds[0]) < 1e-11


def test_answers_do_not_depend_on_threads(threads):
    rng = np.random.default_rng(9)
    a, b = mesh_of(CURVED[1], "cpu"), mesh_of(CURVED[2], "cpu")
    poses = random_poses(80, rng, 0.5)
    answers = []
    for count in (1, 2, 5):
        threads(count)
        answers.append(inside_depths(a, b, None, poses, 1e-5))
    for other in answers[1:]:
        for one, two in zip(answers[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("count", [5, 600])
def test_the_same_question_has_the_same_answer(device, count):
    a, b = mesh_of(gem(1280), device), mesh_of(torus(16, 8), device)
    poses = random_poses(count, np.random.default_rng(10), 0.5)
    first, second = (inside_depths(a, b, None, poses, 1e-3) for _ in range(2))
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_deformed_mesh_is_searched_anew(device):
    a, b = mesh_of(UNIT, device), mesh_of(box((3.0, 3.0, 3.0)), device)
    poses = np.tile(np.eye(4), (64, 1, 1))
    assert inside_depths(a, b, None, poses, 1e-9).depth == pytest.approx(0.5)
    a.deform(2.0 * a.vertices.numpy())
    assert inside_depths(a, b, None, poses, 1e-9).depth == pytest.approx(1.0)


def test_one_pose_serves_all_of_a_batch(device):
    rng = np.random.default_rng(11)
    a, b = mesh_of(UNIT, device), mesh_of(TETRAHEDRON, device)
    one, many = random_poses(1, rng, 0.3), random_poses(5, rng, 0.3)
    together = inside_depths(a, b, one, many, 1e-9)
    each = inside_depths(a, b, np.repeat(one, 5, axis=0), many, 1e-9)
    np.testing.assert_array_equal(together.depth, each.depth)
    assert inside_depths(a, b, one, many[:0], 1e-9).bounds.shape == (0, 2)
    assert inside_depths(a, b, None, many[:0], 1e-9).depth.shape == (0,)


@pytest.mark.parametrize("share", [0.2, 0.9, 1.1, 5.0])
def test_depths_are_told_from_a_limit(device, share):
    """The bounds hold the depth, and are on its side of a limit that is not just above it."""
    rng = np.random.default_rng(int(10 * share))
    for a, b in [(CURVED[k], CURVED[k - 1]) for k in range(4)]:
        mesh_a, mesh_b = mesh_of(a, device), mesh_of(b, device)
        poses = random_poses(1, rng, 0.3), random_poses(1, rng, 0.3)
        known = inside_depths(mesh_a, mesh_b, *poses, 1e-9).bounds[0]
        limit = max(share * known[1], 0.001)
        low, high = depth_beside(mesh_a, mesh_b, *poses, limit)
        assert low <= known[1] and high >= known[0]
        if known[0] > 1.5 * limit:
            assert low > limit and high == np.inf
        elif known[1] < 0.5 * limit:
            assert high <= limit
        else:
            assert high <= 1.5 * limit or high == np.inf


def test_a_surface_that_meets_itself_takes_a_bounded_number_of_cells(device, monkeypatch):
    """No level is bounded only to be given up, and the bounds hold."""
    slab = mesh_of(moved(box((6.0, 0.25, 2.5)), (3.0, 0.125, 1.25)), device)
    over = moved(box((9.0, 1.0, 9.0)), (3.5, 0.75 - 1e-13, 3.5))
    beside = moved(box((1.0, 9.0, 9.0)), (1e-13 - 0.5, 0.5, 3.5))
    corner = mesh_of(joined(over, beside), device)
    bound, cells = DepthSearch.bound, []
    monkeypatch.setattr(
        DepthSearch, "bound", lambda self, x: cells.append(x.pose.shape[0]) or bound(self, x)
    )
    for most in (2, 16, 256, 1024):
        monkeypatch.setattr(inside_depth, "USUAL_CELLS", most)
        cells.clear()
        low, high = inside_depths(corner, slab, None, None, 1e-4).bounds[0]
        assert sum(cells) <= most
        assert low <= 1e-13 <= high
    assert high < 2e-4
