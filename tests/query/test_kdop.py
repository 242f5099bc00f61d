"""Fixed-point DOPs and float32 DOPs find what brute force finds: at every width, scale and pose."""

import numpy as np
import pytest

import abut
import awkward
from abut import cases
from abut.bounds.kdop import SIDES, axis_choices, kdop_normals, normal_cones
from abut.bvh.bvh_cache import bvh_of, kdops_of
from abut.bvh.node_kdops import KdopShape
from shapes import random_poses, shift

WAYS = [{"bound": "kdop"}, *({"method": "kdop", "width": w} for w in (10, 18, 30, 31, 35))]
IDS = [str(way.get("width", "float32")) for way in WAYS]


def check(a, b, way, **options):
    truth = abut.collide(a, b, method="brute", **options).numpy()
    for name, rows in abut.collide(a, b, **way, **options).numpy().items():
        np.testing.assert_array_equal(rows, truth[name])
    return truth


@pytest.mark.parametrize("way", WAYS, ids=IDS)
@pytest.mark.parametrize("name", ["knot", "tori", "terrain", "nested", "apart"])
def test_scenes(name, way, device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair(name, 800))
    check(a, b, way)
    check(a, b, way, pose_b=random_poses(5, 0.3 * np.ptp(b.bounds)))
    check(a, b, way, pose_a=random_poses(1, 0.2)[0], pose_b=random_poses(3, 0.2, seed=1))


@pytest.mark.parametrize("way", WAYS, ids=IDS)
@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e12, 1e290])
def test_scales(way, scale, device):
    a, b = cases.pair("tori", 200)
    meshes = [abut.Mesh(np.asarray(v, float) * scale, f, device) for v, f in (a, b)]
    assert len(check(*meshes, way)["pairs"]) > 0


@pytest.mark.parametrize("way", WAYS, ids=IDS)
def test_meshes_of_different_size_far_away(way, device):
    big = cases.pair("terrain", 400)[0]
    small = cases.icosphere(80)
    at = np.array([1e6, -2e6, 3e5])
    meshes = (
        abut.Mesh(np.asarray(big.vertices) + at, big.faces, device),
        abut.Mesh(np.asarray(small.vertices) * 0.05 + at + [0, 0, 0.02], small.faces, device),
    )
    check(*meshes, way)
    check(*meshes, way, pose_b=shift(0.01, -0.2, 0.0))
    check(*meshes[::-1], way)


@pytest.mark.parametrize("way", WAYS, ids=IDS)
@pytest.mark.parametrize("family", ["grid", "flat", "on_plane", "nudged", "far_away", "subnormal"])
def test_awkward_faces(way, family, device):
    """Touching, flat and degenerate faces, where the last bit counts."""
    points = getattr(awkward, family)(np.random.default_rng(7), 40, 6)
    faces = np.arange(120).reshape(-1, 3)
    a, b = (abut.Mesh(points[:, k : k + 3].reshape(-1, 3), faces, device) for k in (0, 3))
    check(a, b, way)


@pytest.mark.parametrize("way", WAYS, ids=IDS)
def test_touching_in_many_poses(way, device):
    """A corner of one face is put onto the other face, as well as float64 can."""
    rng = np.random.default_rng(8)
    face = abut.Mesh(rng.normal(size=(3, 3)), [[0, 1, 2]], device)
    other = abut.Mesh(rng.normal(size=(3, 3)), [[0, 1, 2]], device)
    poses = touching_poses(rng, face.points.numpy(), other.points.numpy(), 2000)
    truth = check(face, other, way, pose_b=poses)
    assert 200 < truth["colliding"].sum() < 1900


def touching_poses(rng, face, other, count):
    """Poses of ``other`` with a corner on ``face``, moved by some last bits."""
    poses = random_poses(count, 0.0, seed=int(rng.integers(1 << 30)))
    share = rng.dirichlet([0.5, 0.5, 0.5], size=count)
    corner = rng.integers(0, 3, size=count)
    moved = np.einsum("nij,nj->ni", poses[:, :3, :3], other[corner])
    away = rng.integers(-2, 3, size=(count, 3)) * 2.0**-52
    poses[:, :3, 3] = share @ face - moved + away
    return poses


@pytest.mark.slow
@pytest.mark.parametrize("width", [10, 18, 35])
def test_touching_in_a_million_poses(width):
    rng = np.random.default_rng(9)
    for _ in range(100):
        face, other = (abut.Mesh(rng.normal(size=(3, 3)), [[0, 1, 2]], "cpu") for _ in range(2))
        poses = touching_poses(rng, face.points.numpy(), other.points.numpy(), 10_000)
        check(face, other, {"method": "kdop", "width": width}, pose_b=poses)


def test_deformed(device):
    mesh = abut.Mesh(*cases.pair("knot", 600)[0], device)
    other = abut.Mesh(*cases.pair("knot", 600)[1], device)
    for step in range(3):
        mesh.deform(mesh.points.numpy() * (1 + 0.3 * step) + 0.05 * step)
        for way in WAYS[:3]:
            check(mesh, other, way)


def test_first(device):
    a, b = (abut.Mesh(*shape, device) for shape in cases.pair("tori", 400))
    poses = random_poses(40, 2.0)
    truth = abut.collide(a, b, pose_b=poses).colliding.numpy()
    for way in WAYS[:3]:
        found = abut.collide(a, b, pose_b=poses, first=True, **way)
        assert np.array_equal(found.colliding.numpy(), truth)


def test_bad_widths():
    a, b = (abut.Mesh(*shape, "cpu") for shape in cases.pair("tori", 60))
    for width in (9, 36, 18.0, True):
        with pytest.raises(abut.OptionError, match="width"):
            abut.collide(a, b, method="kdop", width=width)
    with pytest.raises(abut.OptionError, match="not 'kdop'"):
        abut.self_collide(a, method="kdop")


def test_verbs_without_polytopes_say_so():
    a, b = (abut.Mesh(*shape, "cpu") for shape in cases.pair("tori", 60))
    for how in ({"method": "kdop"}, {"bound": "kdop"}):
        with pytest.raises(abut.OptionError, match="not 'kdop'"):
            abut.distance(a, b, **how)
    with pytest.raises(abut.OptionError, match="not 'kdop'"):
        abut.within(a, b, 0.1, method="kdop")
    with pytest.raises(abut.OptionError, match=r"not 'front'; fronts .*Tracker"):
        abut.collide(a, b, method="front")


@pytest.mark.parametrize("sides", SIDES)
def test_facets_cover_every_direction(sides):
    """With weights that fit: none negative, none above 1, and not much together."""
    normals = np.concatenate([kdop_normals(sides), -kdop_normals(sides)])
    triples, inverses = normal_cones(sides)
    axes = np.random.default_rng(1).normal(size=(2000, 3))
    axes = np.concatenate([axes / np.linalg.norm(axes, axis=1, keepdims=True), normals])
    weights = np.einsum("fij,nj->nfi", inverses, axes)
    best = weights.min(axis=2).argmax(axis=1)
    chosen = weights[np.arange(len(axes)), best]
    assert chosen.min() > -1e-12 and chosen.max() < 1 + 1e-12
    assert chosen.sum(axis=1).max() < np.sqrt(3) + 1e-12
    remade = np.einsum("ni,nij->nj", chosen, normals[triples[best]])
    np.testing.assert_allclose(remade, axes, atol=1e-12)


def test_axis_choices():
    assert len(axis_choices(24, 24)) == 24
    assert axis_choices(24, 24 + 144).max() == 11
    for count in (2, 169):
        with pytest.raises(abut.OptionError, match="axes"):
            axis_choices(24, count)
    with pytest.raises(abut.OptionError, match="k must be"):
        kdop_normals(8)


@pytest.mark.parametrize("width", [0, 12, 35])
def test_inner_nodes_hold_their_children(width, device):
    mesh = abut.Mesh(*cases.pair("knot", 500)[0], device)
    dops = kdops_of(mesh, bvh_of(mesh), KdopShape(24, width))
    links = dops_tree_links(mesh)
    reaches = dops.reaches()
    assert reaches.shape == (2 * mesh.face_count - 1, 24)
    inner = np.flatnonzero(links >= 0)
    children = np.maximum(reaches[2 * links[inner]], reaches[2 * links[inner] + 1])
    assert np.array_equal(reaches[inner], children)


def dops_tree_links(mesh):
    return bvh_of(mesh).nodes.numpy()[0::2, 3].view(np.int32)


@pytest.mark.parametrize("options", [{"method": "kdop"}, {"bound": "kdop"}])
def test_a_tree_that_is_improved_within_a_query(options, device):
    """The same mesh twice, asked about so often that its second tree is a better one."""
    mesh = abut.Mesh(*cases.torus(16, 8), device)
    low, high = np.triu_indices(8, 1)
    poses = random_poses(8, 1.0, seed=0)
    at = {"pose_a": poses[low], "pose_b": poses[high]}
    want = abut.collide(mesh, abut.Mesh(*cases.torus(16, 8), device), **at).pairs.numpy()
    for _ in range(3):
        np.testing.assert_array_equal(abut.collide(mesh, mesh, **at, **options).pairs.numpy(), want)
