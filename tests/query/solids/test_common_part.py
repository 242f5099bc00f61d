"""Volume, centroid and areas of common parts: sets of tetrahedra, rational volumes, manifold3d."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import abut
from abut.cases import shapes
from abut.geometry.poses import rotated_by
from abut.narrow.shifted_crossings import cross_faces, windings_of_vertices
from abut.operands.posed_mesh import make_posed_mesh
from abut.query.solids.closed_surface import closed_surface_of
from abut.query.solids.common_part import common_parts
from abut.query.solids.relation import RELATIONS, relations
from rational_tets import common_volume, volume
from solid_complexes import keys, random_tets, surface

NAMES = ("volume", "centroid", "area_a", "area_b")


def clean(points, faces, device):
    return closed_surface_of(abut.Mesh(points, faces, device), "mesh").mesh


def box(low, high):
    """(points, faces) of a box with exactly these corners."""
    unit, faces = shapes.box()
    return np.where(unit > 0, np.asarray(high, float), np.asarray(low, float)), faces


def translations(rows):
    poses = np.tile(np.eye(4), (len(rows), 1, 1))
    poses[:, :3, 3] = rows
    return poses


def random_poses(rng, count, reach):
    poses = translations(rng.uniform(-reach, reach, (count, 3)))
    poses[:, :3, :3] = rotated_by(poses, rng.normal(size=(count, 3)))
    return poses


def boundary(tets):
    """The outer triangles of a set of tetrahedra: sorted corners, and the tetrahedron of each."""
    found = {}
    for tet in tets:
        for k in range(4):
            found.setdefault(tet[:k] + tet[k + 1 :], []).append(tet)
    return {face: owners[0] for face, owners in found.items() if len(owners) == 1}


def area_of(face, shear):
    p, q, r = np.array(face) @ shear.T
    return np.linalg.norm(np.cross(q - p, r - p)) / 2


def truth_of_sets(a, b, shear):
    """Volume, centroid and areas of the common part of two sets of tetrahedra of a unit grid."""
    common = sorted(a & b)
    centroid = np.full(3, np.nan)
    if common:
        centroid = np.array(common).mean(axis=(0, 1)) @ shear.T
    outer = boundary(common)
    areas = [sum(area_of(f, shear) for f in outer if f in boundary(side)) for side in (a, b)]
    return len(common) / 6, centroid, *areas


@pytest.mark.parametrize("seed", range(12))
def test_sets_of_tetrahedra(device, seed):
    """Solids with coplanar faces, edges in faces, common corners and edges of four faces."""
    rng = np.random.default_rng(seed)
    shear = np.eye(3, dtype=int)
    for _ in range(seed % 3):
        i, j = rng.permutation(3)[:2]
        shear[i] += shear[j] * rng.integers(-1, 3)
    tets = [random_tets(rng, rng.integers(1, 4), rng.choice([0.2, 0.5, 0.9])) for _ in range(2)]
    a, b = (abut.Mesh(surface(t)[0] @ shear.T, surface(t)[1], device) for t in tets)
    axis = np.arange(-3, 4)
    rows = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    rows = rows[rng.random(len(rows)) < 0.5]
    found = common_parts(a, b, None, translations(rows @ shear.T))
    for i, row in enumerate(rows):
        truth = truth_of_sets(keys(tets[0]), keys(tets[1] + row), shear)
        for name, value in zip(NAMES, truth, strict=True):
            np.testing.assert_allclose(
                getattr(found, name)[i], value, rtol=1e-12, atol=1e-12, err_msg=f"{name} {row}"
            )
        assert (found.volume[i] > 0) == (truth[0] > 0)


@pytest.mark.parametrize("seed", range(6))
def test_turned_sets_of_tetrahedra(device, seed):
    """Faces that coincide but for the rounding of a rotation: volumes stay, to 1e-13."""
    rng = np.random.default_rng(seed)
    tets = [random_tets(rng, rng.integers(1, 4), rng.choice([0.2, 0.5, 0.9])) for _ in range(2)]
    a, b = (abut.Mesh(*surface(t), device) for t in tets)
    rows = rng.integers(-3, 4, (30, 3))
    motion = random_poses(rng, 30, 100.0 if seed % 2 else 1.0)
    found = common_parts(a, b, motion, motion @ translations(rows))
    for row, value, centroid, turn in zip(rows, found.volume, found.centroid, motion, strict=True):
        truth, middle, *_ = truth_of_sets(keys(tets[0]), keys(tets[1] + row), np.eye(3, dtype=int))
        assert value == pytest.approx(truth, abs=1e-11 if seed % 2 else 1e-13)
        if truth:
            at = turn[:3, :3] @ middle + turn[:3, 3]
            np.testing.assert_allclose(centroid, at, atol=1e-10 if seed % 2 else 1e-12)


@given(st.lists(st.integers(0, 4), min_size=12, max_size=12))
def test_integer_boxes(device, numbers):
    """Boxes whose faces often lie in common planes."""
    low, size = np.array(numbers).reshape(2, 2, 3)
    high = low + size % 3 + 1
    a, b = (abut.Mesh(*box(*corners), device) for corners in zip(low, high, strict=True))
    found = common_parts(a, b)
    bottom, top = low.max(axis=0), high.min(axis=0)
    edges = np.maximum(top - bottom, 0)
    if edges.prod() == 0:
        assert (
            found.volume[0] == 0
            and np.isnan(found.centroid).all()
            and found.area_a[0] == found.area_b[0] == 0
        )
        return
    np.testing.assert_allclose(found.volume[0], edges.prod(), rtol=1e-14)
    np.testing.assert_allclose(found.centroid[0], (bottom + top) / 2, rtol=1e-14)
    sides = edges.prod() // edges
    for k, area in enumerate((found.area_a[0], found.area_b[0])):
        truth = sides @ ((bottom == low[k]).astype(int) + (top == high[k]))
        np.testing.assert_allclose(area, truth, atol=1e-13)


def test_rational_volumes(device):
    rng = np.random.default_rng(0)
    for _ in range(40):
        a, b = rng.integers(0, 5, (2, 4, 3))
        if not (volume(a.tolist()) and volume(b.tolist())):
            continue
        rows = rng.integers(-2, 3, (6, 3))
        meshes = [clean(*surface(tet[None]), device) for tet in (a, b)]
        found = common_parts(*meshes, None, translations(rows))
        for row, value in zip(rows, found.volume, strict=True):
            truth = common_volume(a.tolist(), (b + row).tolist())[0] / 6
            assert abs(value - float(truth)) <= 1e-13
            assert (value > 0) == (truth > 0)


CUBE = ((0, 0, 0), (2, 2, 2))


@pytest.mark.parametrize(
    ("low", "high", "truth"),
    [
        ((1, 1, 1), (3, 3, 3), (1, (1.5, 1.5, 1.5), 3, 3)),
        ((0, 0, 0), (2, 2, 2), (8, (1, 1, 1), 24, 24)),  # equal
        ((2, 0, 0), (4, 2, 2), (0, (np.nan,) * 3, 0, 0)),  # face to face
        ((-2, 0, 0), (0, 2, 2), (0, (np.nan,) * 3, 0, 0)),  # and on the other side
        ((2, 2, 0), (3, 3, 1), (0, (np.nan,) * 3, 0, 0)),  # edge to edge
        ((0.5, 0.5, 0.5), (1, 1, 1), (0.125, (0.75, 0.75, 0.75), 0, 1.5)),  # b in a
        ((-1, -1, -1), (5, 5, 5), (8, (1, 1, 1), 24, 0)),  # a in b
        ((0, 0, 0), (1, 1, 1), (1, (0.5, 0.5, 0.5), 3, 6)),  # in a corner
        ((0, 0, 1), (2, 2, 3), (4, (1, 1, 1.5), 12, 12)),  # flush on four sides
        ((5, 5, 5), (6, 6, 6), (0, (np.nan,) * 3, 0, 0)),
    ],
)
def test_boxes(device, low, high, truth):
    a, b = clean(*box(*CUBE), device), clean(*box(low, high), device)
    found, swapped = common_parts(a, b), common_parts(b, a)
    for name, value in zip(NAMES, truth, strict=True):
        np.testing.assert_allclose(getattr(found, name)[0], value, rtol=1e-15)
    np.testing.assert_allclose(swapped.volume, found.volume)
    np.testing.assert_allclose(swapped.area_a, found.area_b)


def test_thin_and_far(device):
    """A plate of 1e-9, and solids far from the origin."""
    a = clean(*box((1e6, 1e6, 1e6), (1e6 + 2, 1e6 + 2, 1e6 + 2)), device)
    b = clean(*box((1e6 + 1, 1e6, 1e6 + 1), (1e6 + 4, 1e6 + 2, 1e6 + 4)), device)
    found = common_parts(a, b)
    np.testing.assert_allclose(found.volume, 2.0, rtol=1e-12)
    np.testing.assert_allclose(found.centroid, [[1e6 + 1.5, 1e6 + 1, 1e6 + 1.5]], rtol=1e-15)
    plate = clean(*box((0, 0, 0), (1, 1, 2.0**-30)), device)
    needle = clean(*box((0.25, 0.25, -1), (0.5, 0.5, 1)), device)
    np.testing.assert_allclose(common_parts(plate, needle).volume, 2.0**-34, rtol=1e-12)
    grain = clean(*box((-(2.0**-20),) * 3, (2.0**-20,) * 3), device)
    np.testing.assert_allclose(common_parts(plate, grain).volume, 2.0**-70, rtol=1e-9)


def solids():
    return {
        "torus": shapes.torus(24, 12),
        "sphere": shapes.icosphere(320, 0.9),
        "box": shapes.box((1.0, 0.7, 1.3)),
        "gem": shapes.gem(320),
    }


@pytest.mark.parametrize("names", [("torus", "sphere"), ("box", "torus"), ("gem", "box")])
def test_against_manifold3d(device, names):
    manifold3d = pytest.importorskip("manifold3d")
    rng = np.random.default_rng(1)
    (points_a, faces_a), (points_b, faces_b) = (solids()[name] for name in names)
    poses = random_poses(rng, 12, 0.8)
    found = common_parts(
        clean(points_a, faces_a, device), clean(points_b, faces_b, device), None, poses
    )

    def manifold(points, faces):
        rows = np.ascontiguousarray(points), faces.astype(np.uint64)
        return manifold3d.Manifold(manifold3d.Mesh64(*rows))

    for i, pose in enumerate(poses):
        moved = points_b @ pose[:3, :3].T + pose[:3, 3]
        common = manifold(points_a, faces_a) ^ manifold(moved, faces_b)
        np.testing.assert_allclose(found.volume[i], common.volume(), rtol=1e-12, atol=1e-13)
        area = found.area_a[i] + found.area_b[i]
        np.testing.assert_allclose(area, common.surface_area(), rtol=1e-11, atol=1e-11)
    assert (found.volume > 0).sum() >= 8


def subdivided(points, faces):
    """Every face cut into four."""
    corners = points[faces]
    middles = (corners + np.roll(corners, -1, axis=1)) / 2
    (a, b, c), (u, v, w) = corners.swapaxes(0, 1), middles.swapaxes(0, 1)
    rows = [[a, u, w], [u, b, v], [w, v, c], [u, v, w]]
    soup = np.array(rows).transpose(0, 2, 1, 3).reshape(-1, 3)
    return soup, np.arange(len(soup)).reshape(-1, 3)


def test_subdivision_swap_and_motion(device):
    rng = np.random.default_rng(2)
    for name in ("box", "sphere"):
        one, two = box((-0.5, -0.5, -0.5), (0.5, 0.5, 0.5)), solids()[name]
        a, b = clean(*one, device), clean(*two, device)
        poses, motion = random_poses(rng, 8, 0.6), random_poses(rng, 8, 1.0)
        found = common_parts(a, b, None, poses)
        finer = common_parts(
            clean(*subdivided(*one), device), clean(*subdivided(*two), device), None, poses
        )
        swapped = common_parts(b, a, poses, None)
        moved = common_parts(a, b, motion, motion @ poses)
        for other in (finer, swapped, moved):
            np.testing.assert_allclose(other.volume, found.volume, rtol=1e-12)
        for other in (finer, swapped):
            np.testing.assert_allclose(other.centroid, found.centroid, atol=1e-12)
        np.testing.assert_allclose(finer.area_a, found.area_a, rtol=1e-12)
        np.testing.assert_allclose(swapped.area_a, found.area_b, rtol=1e-12)
        at = np.einsum("nij,nj->ni", motion[:, :3, :3], found.centroid) + motion[:, :3, 3]
        np.testing.assert_allclose(moved.centroid, at, atol=1e-12)


def test_additivity(device):
    """Common parts with two halves of a box add up to that with the box."""
    rng = np.random.default_rng(3)
    torus = clean(*solids()["torus"], device)
    poses = random_poses(rng, 10, 0.7)
    parts = [((-1, -1, -1), (1, 1, 0.25)), ((-1, -1, 0.25), (1, 1, 1)), ((-1, -1, -1), (1, 1, 1))]
    low, high, whole = (common_parts(clean(*box(*p), device), torus, None, poses) for p in parts)
    np.testing.assert_allclose(low.volume + high.volume, whole.volume, rtol=1e-12)
    first = low.volume[:, None] * np.nan_to_num(low.centroid)
    second = high.volume[:, None] * np.nan_to_num(high.centroid)
    np.testing.assert_allclose(first + second, whole.volume[:, None] * whole.centroid, atol=1e-12)


def test_volume_follows_relation(device):
    """Boxes turned by 30 degrees that touch, cross or miss by a rounding: 0 with no interior."""
    a = clean(*box((0, 0, 0), (1, 1, 1)), device)
    turn = rotated_by(np.eye(4)[None], np.array([[0.3, 0.2, 0.5]]))[0]
    rows = [[x, 0.25, 0.25] for x in 1.0 + np.arange(-4, 5) * 2.0**-52]
    pose_a, pose_b = translations(np.zeros((len(rows), 3))), translations(np.array(rows) @ turn.T)
    pose_a[:, :3, :3] = pose_b[:, :3, :3] = turn
    found = common_parts(a, a, pose_a, pose_b)
    names = [RELATIONS[k] for k in relations(a, a, pose_a, pose_b)]
    for name, size, area in zip(names, found.volume, found.area_a, strict=True):
        assert 0 <= size < 1e-15
        if name in ("apart", "touching"):
            assert size == area == 0
    assert (np.isnan(found.centroid).all(axis=1) == (found.volume == 0)).all()


@pytest.mark.parametrize("seed", range(4))
def test_windings_by_patch_and_by_vertex(device, seed):
    """One ray for joined vertices gives the same as a ray for each."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        meshes = [abut.Mesh(*surface(random_tets(rng, 3, 0.5)), device) for _ in range(2)]
        poses = translations(rng.integers(-2, 3, (8, 3)))
    else:
        meshes = [clean(*solids()[name], device) for name in ("torus", "gem")]
        poses = random_poses(rng, 8, 0.5)
    a, b = meshes
    posed = make_posed_mesh(a.points, a.faces), make_posed_mesh(b.points, b.faces, poses)
    pairs = abut.collide(a, b, pose_b=poses)
    rows, crossed = cross_faces(*posed, pairs.pairs, pairs.pose, len(poses))
    edges = rows.edges.numpy()
    assert ((edges[:, 0] < 0) == (edges[:, 1] < 0)).all()
    for side, shift in ((0, -1), (1, 1)):
        mine, other = meshes[side], meshes[1 - side]
        both = posed[side], posed[1 - side]
        found = []
        for joined in (True, False):
            labels, windings = windings_of_vertices(mine, other, both, crossed[side], shift, joined)
            labels = labels.numpy()
            found.append(np.take_along_axis(windings.numpy(), np.maximum(labels, 0), axis=1))
            found[-1][labels < 0] = 0
        assert (found[0] == found[1]).all()
        assert set(np.unique(found[0])) == {0, 1}


def test_scales_and_threads(device, threads):
    """Powers of two scale all measures exactly; one thread and two give the same bits."""
    (points_a, faces_a), (points_b, faces_b) = solids()["torus"], solids()["gem"]
    poses = random_poses(np.random.default_rng(6), 6, 0.7)

    def measured(scale):
        moved = poses.copy()
        moved[:, :3, 3] *= scale
        a, b = (
            abut.Mesh(scale * points_a, faces_a, device),
            abut.Mesh(scale * points_b, faces_b, device),
        )
        found = common_parts(a, b, None, moved)
        return found.volume / scale**3, found.centroid / scale, found.area_a / scale**2

    one = measured(1.0)
    assert (one[0] > 0).all()
    for count, scale in ((1, 1.0), (2, 1.0), (2, 2.0**-60), (1, 2.0**60)):
        threads(count)
        for value, truth in zip(measured(scale), one, strict=True):
            np.testing.assert_array_equal(value, truth)


def test_one_pose_of_all_and_chunks(device, monkeypatch):
    a, b = (clean(*solids()[name], device) for name in ("sphere", "box"))
    poses = random_poses(np.random.default_rng(4), 7, 0.7)
    whole = common_parts(a, b, poses[:1], poses)
    monkeypatch.setattr("abut.query.solids.common_part.ROOM", 1)
    chunks = common_parts(a, b, np.repeat(poses[:1], 7, axis=0), poses)
    for name in NAMES:
        np.testing.assert_array_equal(getattr(whole, name), getattr(chunks, name))
    single = common_parts(a, b, poses[:1], poses[3:4])
    np.testing.assert_array_equal(single.volume, whole.volume[3:4])


def test_self_crossing_solids_count_twice(device):
    """Where a mesh winds twice, volumes count twice: one box in two that overlap."""
    points, faces = box((0, 0, 0), (2, 1, 1))
    beside = points + np.array([1.0, 0.0, 0.0])
    double = abut.Mesh(np.concatenate([points, beside]), np.concatenate([faces, faces + 8]), device)
    probe = clean(*box((0.5, 0.25, 0.25), (2.5, 0.75, 0.75)), device)
    np.testing.assert_allclose(common_parts(double, probe).volume, (1.5 + 1.5) * 0.25)
