"""Regions of contact: analytic solids, complexes of tetrahedra, manifold3d, invariance."""

import pickle

import numpy as np
import pytest

import abut
from abut.cases import shapes
from abut.geometry.poses import rotated_by
from abut.query.solids.contact_regions import contact_regions
from abut.query.solids.deepest_points import deepest_points
from solid_complexes import keys, kuhn_tets, random_tets, surface


def box(low, high):
    """(points, faces) of a box with exactly these corners."""
    unit, faces = shapes.box()
    return np.where(unit > 0, np.asarray(high, float), np.asarray(low, float)), faces


def mesh(solid, device):
    return abut.Mesh(*solid, device)


def translation(row):
    pose = np.eye(4)[None]
    pose[0, :3, 3] = row
    return pose


def random_pose(rng, reach):
    pose = translation(rng.uniform(-reach, reach, 3))
    pose[:, :3, :3] = rotated_by(pose, rng.normal(size=(1, 3)))
    return pose


def pipe(cells=3, height=2):
    """A square pipe of unit walls on the grid, upright."""
    ring = [
        (x, y, z)
        for x in range(cells)
        for y in range(cells)
        for z in range(height)
        if x in (0, cells - 1) or y in (0, cells - 1)
    ]
    return surface(kuhn_tets(ring))


def table(height=2):
    """Two legs under a plate."""
    cells = [(x, y, height) for x in range(5) for y in range(2)]
    cells += [(x, y, z) for x in (0, 4) for y in range(2) for z in range(height)]
    return surface(kuhn_tets(cells))


def subdivided(points, faces):
    """Every face cut into four."""
    corners = points[faces]
    middles = (corners + np.roll(corners, -1, axis=1)) / 2
    (a, b, c), (u, v, w) = corners.swapaxes(0, 1), middles.swapaxes(0, 1)
    rows = np.array([[a, u, w], [u, b, v], [w, v, c], [u, v, w]])
    soup = rows.transpose(0, 2, 1, 3).reshape(-1, 3)
    return soup, np.arange(len(soup)).reshape(-1, 3)


CUBE = box((0, 0, 0), (2, 2, 2))
SLAB = box((-50, -50, -1), (50, 50, 0))
INVERSE_ROOTS = 1 / np.sqrt(np.arange(1, 4))


@pytest.mark.parametrize(
    ("low", "high", "area", "centroid"),
    [
        ((0.5, 0.5, 2), (1.5, 1.75, 3), (0, 0, 1.25), (1, 1.125, 2)),
        ((0.5, 0.5, -1), (1.5, 1.75, 0), (0, 0, -1.25), (1, 1.125, 0)),
        ((2, 0.5, 0.5), (3, 3, 3), (2.25, 0, 0), (2, 1.25, 1.25)),
        ((-1, 0.5, 0.5), (0, 3, 3), (-2.25, 0, 0), (0, 1.25, 1.25)),
        ((0, 2, 0), (2, 4, 2), (0, 4, 0), (1, 2, 1)),
        ((0, -2, 0), (2, 0, 2), (0, -4, 0), (1, 0, 1)),
    ],
)
def test_boxes_face_to_face(device, low, high, area, centroid):
    a, b = mesh(CUBE, device), mesh(box(low, high), device)
    for first, second, sign in ((a, b, 1), (b, a, -1)):
        found = contact_regions(first, second)
        assert len(found) == 1 and found.touching.all()
        np.testing.assert_allclose(found.area_vector[0], np.multiply(sign, area), atol=1e-15)
        np.testing.assert_allclose(
            found.normal[0], np.multiply(sign, area) / np.linalg.norm(area), atol=1e-15
        )
        np.testing.assert_allclose(found.centroid[0], centroid, atol=1e-15)
        assert found.depth[0] == 0
        (curve,) = found.curves[0]
        assert (curve[0] == curve[-1]).all()
        around = 0.5 * np.cross(curve[:-1], curve[1:]).sum(axis=0)
        np.testing.assert_allclose(around, np.multiply(sign, area), atol=1e-14)
        corners = found.points(4)[0]
        assert len(corners) == 4 and len(found.points(3)[0]) == 3
        rectangle = np.abs(corners - centroid)
        np.testing.assert_allclose(rectangle, np.broadcast_to(rectangle[0], (4, 3)), atol=1e-15)


@pytest.mark.parametrize(
    ("low", "high", "normal", "centroid", "lines"),
    [
        ((2, 2, 0), (3, 3, 1), (1, 1, 0), (2, 2, 0.5), 1),  # parallel edges
        ((2, 2, 2), (3, 3, 3), (1, 1, 1), (2, 2, 2), 0),  # corners
        ((2, -1, -3), (3, 3, 0), (1, 0, -1), (2, 1, 0), 1),
    ],
)
def test_edges_and_corners(device, low, high, normal, centroid, lines):
    a, b = mesh(CUBE, device), mesh(box(low, high), device)
    for first, second, sign in ((a, b, 1), (b, a, -1)):
        found = contact_regions(first, second)
        assert len(found) == 1 and found.touching.all() and not found.area_vector.any()
        unit = np.multiply(sign, normal) / np.linalg.norm(normal)
        np.testing.assert_allclose(found.normal[0], unit, atol=1e-15)
        np.testing.assert_allclose(found.centroid[0], centroid, atol=1e-15)
        assert len(found.points(4)[0]) == 1 + lines


def test_crossed_edges(device):
    """Two roofs, one upside down and turned by 90 degrees, ridge on ridge."""
    corners = [[-2, -1, -1], [2, -1, -1], [2, 1, -1], [-2, 1, -1], [-2, 0, 0], [2, 0, 0]]
    faces = [[0, 3, 2], [0, 2, 1], [0, 1, 5], [0, 5, 4], [2, 3, 4], [2, 4, 5], [0, 4, 3], [1, 2, 5]]
    roof = np.array(corners, float), np.array(faces)
    over = roof[0][:, [1, 0, 2]] * [1, 1, -1], roof[1]
    found = contact_regions(mesh(roof, device), mesh(over, device))
    assert len(found) == 1 and found.touching.all()
    np.testing.assert_allclose(found.normal[0], [0, 0, 1], atol=1e-15)
    np.testing.assert_allclose(found.centroid[0], 0, atol=1e-15)


def test_tip_on_face(device):
    tip = np.array([[0.3, 0.2, 0], [1, 0, 1], [0, 1, 1], [-1, -1, 1]], float)
    tet = tip, np.array([[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]])[:, ::-1]
    for first, second, sign in ((SLAB, tet, 1), (tet, SLAB, -1)):
        found = contact_regions(mesh(first, device), mesh(second, device))
        assert len(found) == 1 and found.touching.all()
        np.testing.assert_array_equal(found.normal[0], [0, 0, sign])
        np.testing.assert_array_equal(found.points(4)[0], tip[:1])
    lower = contact_regions(mesh(SLAB, device), mesh(tet, device), None, translation((0, 0, -0.25)))
    assert not lower.touching.any()
    np.testing.assert_allclose(lower.depth, 0.25)
    np.testing.assert_allclose(lower.deepest, [[0.3, 0.2, -0.25]])
    np.testing.assert_array_equal(lower.normal, [[0, 0, 1]])


def test_corner_in_box(device):
    a, b = mesh(CUBE, device), mesh(box((1, 1, 1), (3, 3, 3)), device)
    found = contact_regions(a, b)
    np.testing.assert_allclose(found.area_vector, [[1, 1, 1]])
    np.testing.assert_allclose(found.normal, [[INVERSE_ROOTS[2]] * 3])
    assert found.depth[0] == 1 and len(found.curves[0]) == 1


@pytest.mark.parametrize("fine", [False, True])
def test_duct_through_wall(device, fine):
    wall, duct = SLAB, box((3, 1, -3), (5, 2, 3))
    if fine:
        wall, duct = subdivided(*wall), subdivided(*subdivided(*duct))
    for solids, sign in (((wall, duct), 1), ((duct, wall), -1)):
        found = contact_regions(*(mesh(s, device) for s in solids))
        assert len(found) == 2 and [len(c) for c in found.curves] == [1, 1]
        order = np.argsort(found.centroid[:, 2])
        truth = np.array([[0, 0, -2.0], [0, 0, 2.0]]) * sign
        np.testing.assert_allclose(found.area_vector[order], truth, atol=1e-12)
        np.testing.assert_allclose(found.centroid[order], [[4, 1.5, -1], [4, 1.5, 0]], atol=1e-12)
        # the faces of the wall inside the duct are 0.5 from its sides, and so is half the wall
        assert (found.depth <= 0.5).all() and (found.depth >= 0.4).all()


@pytest.mark.parametrize("at", [(3, 20), (20, 3), (-1, -1)])
@pytest.mark.parametrize("fine", [False, True])
def test_pipe_into_slab(device, at, fine):
    """A ring in one face, or across edges of faces, is one region of two curves."""
    slab = subdivided(*SLAB) if fine else SLAB
    low = (*at, -0.5)
    for solids, poses, sign in (
        ((slab, pipe()), (None, translation(low)), 1),
        ((pipe(), slab), (translation(low), None), -1),
    ):
        found = contact_regions(*(mesh(s, device) for s in solids), *poses)
        assert len(found) == 1 and len(found.curves[0]) == 2
        np.testing.assert_allclose(found.area_vector, [[0, 0, 8.0 * sign]], atol=1e-12)
        middle = np.array([[at[0] + 1.5, at[1] + 1.5, 0]])
        np.testing.assert_allclose(found.centroid, middle, atol=1e-12)
        np.testing.assert_allclose(found.depth, 0.5)


def test_pipe_through_slab_and_rod_in_pipe(device):
    """Four bands bound the common ring, and no two curves the same two; a rod with room: none."""
    pose = translation((3, 20, -1.5))
    found = contact_regions(mesh(SLAB, device), mesh(pipe(height=3), device), None, pose)
    assert [len(c) for c in found.curves] == [1] * 4
    np.testing.assert_allclose(np.sort(found.area_vector[:, 2]), [-9, -1, 1, 9], atol=1e-12)
    rod = mesh(box((1.25, 1.25, -1), (1.75, 1.75, 5)), device)
    assert len(contact_regions(mesh(pipe(), device), rod)) == 0


def test_legs_of_a_table(device):
    for depth, touching in ((0, True), (0.5, False)):
        pose = translation((3, 20, -depth))
        found = contact_regions(mesh(SLAB, device), mesh(table(), device), None, pose)
        assert len(found) == 2 and (found.touching == touching).all()
        np.testing.assert_allclose(found.area_vector, [[0, 0, 2.0]] * 2, atol=1e-12)
        order = np.argsort(found.centroid[:, 0])
        np.testing.assert_allclose(found.centroid[order], [[3.5, 21, 0], [7.5, 21, 0]], atol=1e-12)
        np.testing.assert_allclose(found.depth, depth)


def test_sphere_in_plane(device):
    """The region is the section of the polyhedron."""
    sphere = shapes.icosphere(1280)
    pose = translation((1, 2, 0.6))
    found = contact_regions(mesh(SLAB, device), mesh(sphere, device), None, pose)
    assert len(found) == 1
    (curve,) = found.curves[0]
    flat = 0.5 * np.cross(curve[:-1], curve[1:]).sum(axis=0)
    np.testing.assert_allclose(found.area_vector[0], flat, atol=1e-12)
    np.testing.assert_allclose(found.normal[0], [0, 0, 1], atol=1e-14)
    assert abs(found.area_vector[0, 2] / (np.pi * 0.64) - 1) < 0.02
    low = sphere.vertices[np.argmin(sphere.vertices[:, 2])] + pose[0, :3, 3]
    assert found.depth[0] == pytest.approx(-low[2], abs=1e-12)
    points = found.points(4)[0]
    assert len(points) == 4 and (points[0] == found.deepest[0]).all()
    np.testing.assert_allclose(points[1:, 2], 0, atol=1e-12)


def outer_faces(tets):
    """The outer triangles of a set of tetrahedra, each with its tetrahedron."""
    owners = {}
    for tet in tets:
        for k in range(4):
            owners.setdefault(tet[:k] + tet[k + 1 :], []).append(tet)
    return {face: own[0] for face, own in owners.items() if len(own) == 1}


def components_of_contact(a, b):
    """Connected components of the common boundary of two sets of tetrahedra, as sets of points."""
    sides = [outer_faces(a), outer_faces(b)]
    edges = [{(f[i], f[j]) for f in faces for i, j in ((0, 1), (0, 2), (1, 2))} for faces in sides]
    points = [{p for f in faces for p in f} for faces in sides]
    groups = [{p} for p in points[0] & points[1]]
    for edge in edges[0] & edges[1]:
        joined = [g for g in groups if g & set(edge)]
        groups = [g for g in groups if not g & set(edge)] + [set().union(*joined)]
    return groups


def area_of_contact(a, b, points):
    """The area vector of the contact of two sets of tetrahedra, over a's faces at some points."""
    in_b = {}
    for tet in b:
        for k in range(4):
            in_b.setdefault(tet[:k] + tet[k + 1 :], []).append(tet)
    total = np.zeros(3)
    for face, own in outer_faces(a).items():
        if points is not None and not set(face) <= points:
            continue
        others = in_b.get(face, [])
        within, beyond = own in others, any(tet != own for tet in others)
        p, q, r = np.array(face)
        normal = np.cross(q - p, r - p) / 2
        (apex,) = set(own) - set(face)
        outward = np.sign(normal @ (p - np.array(apex)))
        total += (1.0 if beyond else 0.5 if within else 0.0) * normal * outward
    return total


def sorted_rows(rows):
    rows = np.round(rows, 9) + 0.0
    return rows[np.lexsort(rows.T)]


@pytest.mark.parametrize("seed", range(10))
def test_sets_of_tetrahedra(device, seed):
    """Sums of area vectors, and for solids that only touch, all regions."""
    rng = np.random.default_rng(seed)
    tets = [random_tets(rng, rng.integers(1, 4), rng.choice([0.1, 0.3, 0.7])) for _ in range(2)]
    a, b = (mesh(surface(t), device) for t in tets)
    touched = crossed = 0
    for row in rng.permutation(list(np.ndindex(7, 7, 7))) - 3:
        set_a, set_b = keys(tets[0]), keys(tets[1] + row)
        groups = components_of_contact(set_a, set_b)
        touches = not set_a & set_b
        if not groups or (touched if touches else crossed) >= 6:
            continue
        found = contact_regions(a, b, None, translation(row))
        swapped = contact_regions(b, a, translation(row), None)
        truth = area_of_contact(set_a, set_b, None)
        np.testing.assert_allclose(found.area_vector.sum(axis=0), truth, atol=1e-12)
        np.testing.assert_allclose(swapped.area_vector.sum(axis=0), -truth, atol=1e-12)
        touched, crossed = touched + touches, crossed + (not touches)
        if not touches:
            assert len(found) <= len(groups) and not found.touching.all()
            continue
        assert found.touching.all() and not found.depth.any()
        areas = [area_of_contact(set_a, set_b, group) for group in groups]
        np.testing.assert_array_equal(sorted_rows(found.area_vector), sorted_rows(areas))
        np.testing.assert_array_equal(sorted_rows(-swapped.area_vector), sorted_rows(areas))
        for group in groups:
            if len(group) == 1:
                assert (found.centroid == np.array(*group)).all(axis=1).sum() == 1
    assert touched == 6 and crossed


@pytest.mark.parametrize("seed", [0, 1, 2, 357])
def test_turned_sets_of_tetrahedra(device, seed):
    """Faces that coincide but for rounding; in the last case a hole lies at the edge of a face."""
    rng = np.random.default_rng(seed)
    a, b = (mesh(surface(random_tets(rng, 2, 0.5)), device) for _ in range(2))
    motion = random_pose(rng, 1.0)
    pose = motion @ translation(rng.integers(-1, 2, 3))
    for found in (contact_regions(a, b, motion, pose), contact_regions(b, a, pose, motion)):
        assert len(found) > 0 and (found.depth >= 0).all()
        assert np.isfinite(found.centroid).all() and np.isfinite(found.deepest).all()
        for region in found:
            closed = region.curves if region.area_vector.any() else []
            assert all((curve[0] == curve[-1]).all() for curve in closed)


def area_of_piece(points_a, faces_a, points_b, faces_b):
    """The integral of a's normal over its surface in b, from a boolean of manifold3d."""
    manifold3d = pytest.importorskip("manifold3d")

    def solid(points, faces):
        rows = np.ascontiguousarray(points), faces.astype(np.uint64)
        return manifold3d.Manifold(manifold3d.Mesh64(*rows)).as_original()

    a, b = solid(points_a, faces_a), solid(points_b, faces_b)
    out = (a ^ b).to_mesh64()
    total = np.zeros(3)
    for k, name in enumerate(out.run_original_id):
        if name == a.original_id():
            rows = out.tri_verts[out.run_index[k] // 3 : out.run_index[k + 1] // 3]
            p, q, r = out.vert_properties[rows][:, :, :3].swapaxes(0, 1)
            total += np.cross(q - p, r - p).sum(axis=0) / 2
    return total


@pytest.mark.parametrize("seed", range(6))
def test_random_solids(device, seed):
    """Sums against manifold3d; swap, subdivision and motion."""
    rng = np.random.default_rng(seed)
    one, two = shapes.torus(24, 12), shapes.icosphere(320) if seed % 2 else shapes.torus(20, 10)
    pose, motion = random_pose(rng, 0.7), random_pose(rng, 1.0)
    a, b = mesh(one, device), mesh(two, device)
    found = contact_regions(a, b, None, pose)
    moved = two.vertices @ pose[0, :3, :3].T + pose[0, :3, 3]
    truth = area_of_piece(one.vertices, one.faces, moved, two.faces)
    np.testing.assert_allclose(found.area_vector.sum(axis=0), truth, atol=1e-11)
    for region in found:
        around = sum(0.5 * np.cross(c[:-1], c[1:]).sum(axis=0) for c in region.curves)
        np.testing.assert_allclose(region.area_vector, around, atol=1e-12)
        assert region.depth > 0
    swapped = contact_regions(b, a, pose, None)
    finer = contact_regions(*(mesh(subdivided(*solid), device) for solid in (one, two)), None, pose)
    turned = contact_regions(a, b, motion, motion @ pose)
    turn, shift = motion[0, :3, :3], motion[0, :3, 3]

    def matched(other, sign, turn, shift):
        assert len(other) == len(found)
        for region in found:
            at = turn @ region.centroid + shift
            nearest = int(np.argmin(np.linalg.norm(other.centroid - at, axis=1)))
            area = sign * turn @ region.area_vector
            np.testing.assert_allclose(other.centroid[nearest], at, atol=1e-9)
            np.testing.assert_allclose(other.area_vector[nearest], area, atol=1e-11)
            assert len(other.curves[nearest]) == len(region.curves)

    matched(swapped, -1, np.eye(3), np.zeros(3))
    matched(finer, 1, np.eye(3), np.zeros(3))
    matched(turned, 1, turn, shift)
    np.testing.assert_allclose(np.sort(swapped.depth), np.sort(found.depth), rtol=1e-12)


def test_deepest_points_of_sets(device):
    """The farthest of each set, as brute force finds it, and the lowest of equal ones."""
    rng = np.random.default_rng(5)
    solid = mesh(shapes.gem(320, 1.0), device)
    points = rng.uniform(-0.5, 0.5, (3000, 3))
    sets = rng.integers(0, 5, 3000) * 7
    pose = random_pose(rng, 0.2)[0]
    names, found, distance = deepest_points(solid, pose, points, sets)
    every = abut.closest_point(solid, points, pose=pose).distance.numpy()
    for name, point, far in zip(names, found, distance, strict=True):
        rows = np.flatnonzero(sets == name)
        best = rows[np.argmax(every[rows])]
        assert far == every[best] and (point == points[best]).all()
    cube = mesh(box((-1, -1, -1), (1, 1, 1)), device)
    grid = np.array(list(np.ndindex(5, 5, 5))) / 8 - 0.25
    same = grid[np.abs(grid).max(axis=1) == 0.25]
    _, found, distance = deepest_points(cube, None, same[::-1], np.zeros(len(same), int))
    assert distance.tolist() == [0.75] and found.tolist() == [[-0.25, -0.25, -0.25]]


def test_points_of_a_region(device):
    """Four points of a disc span nearly as much as a square in it, and come one by one."""
    angle = np.linspace(0, 2 * np.pi, 25)[:-1]
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points = np.concatenate([np.column_stack([ring, np.full(24, z)]) for z in (-0.5, 2.0)])
    points = np.concatenate([points, [[0, 0, -0.5], [0, 0, 2.0]]])
    i, n = np.arange(24), (np.arange(24) + 1) % 24
    caps = [np.stack([n, i, i * 0 + 48], axis=1), np.stack([i + 24, n + 24, i * 0 + 49], axis=1)]
    sides = [np.stack([i, n, n + 24], axis=1), np.stack([i, n + 24, i + 24], axis=1)]
    prism = mesh((points, np.concatenate(caps + sides)), device)
    found = contact_regions(mesh(SLAB, device), prism, None, translation((10, 20, 0)))
    assert len(found) == 1 and len(found[0].points(1)) == 1
    chosen = found.points(4)[0]
    assert (chosen[0] == found.deepest[0]).all() and len(chosen) == 4
    for count in (1, 2, 3):
        np.testing.assert_array_equal(found[0].points(count), chosen[:count])
    x, y = (chosen - found.centroid)[:, :2].T
    order = np.argsort(np.arctan2(y, x))
    area = (x[order] @ np.roll(y[order], -1) - y[order] @ np.roll(x[order], -1)) / 2
    assert area == pytest.approx(2.0, rel=0.1)


def test_list_and_pickle(device):
    found = contact_regions(mesh(CUBE, device), mesh(box((1, 1, 1), (3, 3, 3)), device))
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.area_vector, found.area_vector)
    assert len(list(found)) == 1 and found[-1].depth == found[0].depth == 1.0
    with pytest.raises(IndexError):
        found[1]
    inside = contact_regions(mesh(CUBE, device), mesh(box((0.5,) * 3, (1,) * 3), device))
    assert len(inside) == 0 and inside.points(4) == [] and inside.area_vector.shape == (0, 3)
