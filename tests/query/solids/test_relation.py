"""The relation of two solids, against sets of tetrahedra and rational volumes."""

import numpy as np
import pytest

import abut
from abut import cases
from abut.query.solids.closed_surface import closed_surface_of
from abut.query.solids.relation import RELATIONS, relations
from rational_tets import relation_of_tets, volume
from solid_complexes import keys, random_tets, refined, relation_of, surface


def shifts(low, high):
    """(B, 4, 4) translations by all integer vectors of a cube."""
    axis = np.arange(low, high)
    rows = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    poses = np.tile(np.eye(4), (len(rows), 1, 1))
    poses[:, :3, 3] = rows
    return rows, poses


def clean(points, faces, device):
    return closed_surface_of(abut.Mesh(points, faces, device), "mesh").mesh


def check_shifted(tets_a, tets_b, scale, shear, device):
    """Compare all integer shifts of b with the sets; b lies in a grid ``scale`` as coarse."""
    coarse = scale * tets_b
    set_a, fine = keys(tets_a), refined(coarse, scale)
    rows, poses = shifts(-1 - coarse.max(), 2 + tets_a.max())
    poses[:, :3, 3] = rows @ shear.T
    a, b = (
        clean(points @ shear.T, faces, device)
        for points, faces in (surface(tets_a), surface(coarse))
    )
    found = [RELATIONS[k] for k in relations(a, b, None, poses)]
    for row, relation in zip(rows, found, strict=True):
        assert relation == relation_of(set_a, keys(fine + row)), row
    swapped = [RELATIONS[k] for k in relations(b, a, poses, None)]
    other = {"a_in_b": "b_in_a", "b_in_a": "a_in_b"}
    assert [other.get(r, r) for r in swapped] == found


def shear_of(rng):
    """A random integer matrix with determinant 1, which keeps all relations."""
    out = np.eye(3, dtype=int)
    for _ in range(rng.integers(3)):
        i, j = rng.permutation(3)[:2]
        step = np.eye(3, dtype=int)
        step[i, j] = rng.integers(-2, 3)
        out = out @ step
    return out


def check_sets(seed, device):
    rng = np.random.default_rng(seed)
    scale = (1, 2, 4)[seed % 3]
    a = random_tets(rng, rng.integers(1, 4), rng.choice([0.1, 0.4, 0.8]))
    b = random_tets(rng, 1 if scale == 4 else rng.integers(1, 3), rng.choice([0.1, 0.5, 1.0]))
    check_shifted(a, b, scale, shear_of(rng), device)
    if scale == 1:
        check_shifted(a, a, 1, shear_of(rng), device)


@pytest.mark.parametrize("seed", range(12))
def test_sets_of_tetrahedra(device, seed):
    check_sets(seed, device)


def integer_tets(rng, size, high):
    """Tetrahedra with small integer corners: a random one, or some of a distorted grid."""
    while True:
        if size == 0:
            tets = rng.integers(0, high, (1, 4, 3))
        else:
            tets = random_tets(rng, size, 0.3)[:6] @ rng.integers(-1, 3, (3, 3))
        if all(volume(tet) for tet in tets.tolist()):
            return tets


def check_rational(rng, device):
    a, b = (integer_tets(rng, rng.choice([0, 0, 1, 2]), 5) for _ in range(2))
    rows = rng.integers(-3, 4, (8, 3))
    poses = np.tile(np.eye(4), (len(rows), 1, 1))
    poses[:, :3, 3] = rows
    meshes = [clean(*surface(tets), device) for tets in (a, b)]
    found = relations(*meshes, None, poses)
    for row, code in zip(rows, found, strict=True):
        assert RELATIONS[code] == relation_of_tets(a.tolist(), (b + row).tolist()), (a, b, row)


@pytest.mark.parametrize("seed", range(40))
def test_integer_tetrahedra(device, seed):
    check_rational(np.random.default_rng(seed), device)


PIT = np.array(
    [[x, y, z] for z in (-4, 4) for y in (-4, 4) for x in (-4, 4)]
    + [[-1, -1, 4], [1, -1, 4], [1, 1, 4], [-1, 1, 4], [0, 0, 0]]
)
PIT_FACES = [
    *[(0, 2, 3), (0, 3, 1), (0, 1, 5), (0, 5, 4), (2, 6, 7), (2, 7, 3)],
    *[(0, 4, 6), (0, 6, 2), (1, 3, 7), (1, 7, 5)],
    *[(4, 5, 9), (4, 9, 8), (5, 7, 10), (5, 10, 9), (7, 6, 11), (7, 11, 10), (6, 4, 8), (6, 8, 11)],
    *[(8, 9, 12), (9, 10, 12), (10, 11, 12), (11, 8, 12)],
]
TET_FACES = [(0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)]


@pytest.mark.parametrize(
    ("tip", "relation"),
    [
        ([[1, 0, -2], [0, 1, -2], [-1, -1, -2]], "b_in_a"),  # below the pit
        ([[2, 0, 1], [2, 1, 1], [2, 0, 0]], "b_in_a"),  # beside it
        ([[4, -1, 2], [4, 1, 2], [4, 0, 1]], "b_in_a"),  # up to a face
        ([[5, -1, 2], [5, 1, 2], [5, 0, 1]], "crossing"),
        ([[0, 0, 8], [1, 1, 8], [1, 0, 8]], "touching"),  # in the pit
        ([[1, 1, 4], [1, -1, 4], [0, 0, 4]], "touching"),  # along its side
        ([[1, 1, 4], [1, -1, 4], [2, 0, 4]], "b_in_a"),  # behind its side
        ([[2, 1, 4], [2, -1, 4], [0, 0, 4]], "crossing"),
    ],
)
def test_tips_at_the_bottom_of_a_pit(device, tip, relation):
    for seed in range(4):
        shear = shear_of(np.random.default_rng(seed))
        pit = clean(PIT @ shear.T.astype(float), np.array(PIT_FACES), device)
        corners = np.array([[0, 0, 0], *tip]) @ shear.T.astype(float)
        tet = clean(corners, np.array(TET_FACES), device)
        assert RELATIONS[relations(pit, tet)[0]] == relation
        other = {"b_in_a": "a_in_b"}
        assert RELATIONS[relations(tet, pit)[0]] == other.get(relation, relation)


@pytest.mark.parametrize("exponent", [-1060, -1000, -400, 400, 900])
def test_any_size(device, exponent):
    rng = np.random.default_rng(5)
    solids = [surface(random_tets(rng, 2, 0.4)) for _ in range(2)]
    poses = np.tile(np.eye(4), (20, 1, 1))
    shift = rng.integers(-2, 3, (20, 3)).astype(float)
    poses[:, :3, 3] = shift
    a, b = (clean(*solid, device) for solid in solids)
    expected = relations(a, b, None, poses)
    poses[:, :3, 3] = np.ldexp(shift, exponent)
    a, b = (clean(np.ldexp(points, exponent), faces, device) for points, faces in solids)
    assert relations(a, b, None, poses).tolist() == expected.tolist()
    assert len(set(expected)) > 1


def test_corners_of_faces_that_are_not_shared(device):
    points, faces = surface(random_tets(np.random.default_rng(3), 2, 0.4))
    loose = points[faces].reshape(-1, 3), np.arange(3 * len(faces)).reshape(-1, 3)
    _, poses = shifts(-3, 4)
    whole, apart = clean(points, faces, device), clean(*loose, device)
    expected = relations(whole, whole, None, poses)
    assert relations(whole, apart, None, poses).tolist() == expected.tolist()


def test_turned_solids_are_their_rounded_corners(device):
    rng = np.random.default_rng(4)
    points, faces = surface(random_tets(rng, 2, 0.4))
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn *= np.sign(np.linalg.det(turn))
    pose = np.eye(4)
    pose[:3, :3] = turn
    mesh = clean(points, faces, device)
    assert RELATIONS[relations(mesh, mesh, pose[None], pose[None])[0]] == "equal"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 900))
def test_many_sets_of_tetrahedra(device, seed):
    """More than a million relations on each device."""
    check_sets(seed, device)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 3000))
def test_many_integer_tetrahedra(device, seed):
    check_rational(np.random.default_rng(seed), device)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_solid_that_touches_an_inner_face_alone_is_not_outside(device, swapped):
    """Two boxes of one mesh overlap; a third one lies in one of them, on a face of the other."""
    vertices, faces = cases.box((2, 2, 2))
    corners = np.concatenate([vertices, vertices + np.array([1.0, 0.25, 0.25])])
    both = abut.Mesh(corners, np.concatenate([faces, faces + len(vertices)]), device)
    small = abut.Mesh(*cases.box((0.25, 0.5, 0.5)), device)
    for x, touches in ((-0.125, True), (-0.5, False)):
        pose = np.eye(4)
        pose[:3, 3] = x, 0.0, 0.0
        assert bool(abut.collide(both, small, pose_b=pose)) == touches
        found = (
            abut.overlap(small, both, pose_a=pose)
            if swapped
            else abut.overlap(both, small, pose_b=pose)
        )
        assert found.relation not in ("touching", "apart") and found.overlapping
        scene = abut.Scene(device=device)
        scene.add(both)
        scene.add(small, pose)
        assert scene.overlap().overlapping.numpy().all()
    outside = np.eye(4)
    outside[0, 3] = 2.125
    assert abut.overlap(both, small, pose_b=outside).relation == "touching"
