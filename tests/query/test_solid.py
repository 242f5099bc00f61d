"""abut.collide(solid=True): closed meshes inside each other."""

import numpy as np
import pytest
import trimesh

import abut
from abut import cases
from shapes import flipped, octahedron, random_poses, shift, soup

OUTER = cases.box((2, 2, 2))
SMALL = cases.box((0.5, 0.5, 0.5))


def solid(a, b, device, **poses):
    """(colliding, contained), the same whichever mesh comes first."""
    a, b = abut.Mesh(*a, device), abut.Mesh(*b, device)
    hits = abut.collide(a, b, solid=True, **poses)
    swapped = {"pose_" + "ba"["ab".index(k[-1])]: pose for k, pose in poses.items()}
    other = abut.collide(b, a, solid=True, **swapped)
    for name in ("colliding", "contained"):
        np.testing.assert_array_equal(hits.numpy()[name], other.numpy()[name])
    assert bool(hits) == np.any(hits.numpy()["colliding"])
    return hits.numpy()["colliding"].tolist(), hits.numpy()["contained"].tolist()


@pytest.mark.parametrize(
    ("inner", "colliding", "contained"),
    [
        (SMALL, True, True),
        (SMALL.moved((0.1, -0.2, 0.3)), True, True),
        (SMALL.moved((3, 0, 0)), False, False),
        (SMALL.moved((-3, 0, 0)), False, False),  # the ray goes through the whole box
        (SMALL.moved((-3, 1.25, 0)), False, False),  # along its top
        (SMALL.moved((-3, 1.25, 1.25)), False, False),  # along an edge
        (SMALL.moved((0.75, 0, 0)), True, False),  # touches from inside: faces meet
        (SMALL.moved((1.25, 0, 0)), True, False),  # touches from outside
        (SMALL.moved((1, 0, 0)), True, False),
        (OUTER, True, False),
    ],
)
def test_boxes(inner, colliding, contained, device):
    assert solid(inner, OUTER, device) == (colliding, contained)
    assert solid(soup(inner), soup(OUTER), device) == (colliding, contained)


@pytest.mark.parametrize("cuts", [0, 1, 2])
@pytest.mark.parametrize("size", [0.25, 0.5, 0.75])
@pytest.mark.parametrize("y", [-0.5, 0.0, 0.5])
@pytest.mark.parametrize("z", [-0.5, 0.0, 0.25])
def test_rays_through_edges_and_corners(cuts, size, y, z, device):
    """The corners of the inner mesh line up with those of the outer one."""
    outer = trimesh.creation.box((4, 4, 4))
    for _ in range(cuts):
        outer = outer.subdivide()
    outer = cases.Shape(np.array(outer.vertices), np.array(outer.faces))
    assert solid(octahedron(size, (0, y, z)), outer, device) == (True, True)
    for x in (-5, 5):
        assert solid(octahedron(size, (x, y, z)), outer, device) == (False, False)
    for top in (-2, 2):  # rays that graze the outer mesh
        assert solid(octahedron(size, (-5, top, z)), outer, device) == (False, False)


def test_a_hollow_has_an_outside_within(device):
    shell = cases.joined(OUTER, flipped(cases.box((1, 1, 1))))
    assert solid(SMALL, shell, device) == (False, False)
    assert solid(cases.box((0.1, 0.1, 0.1)).moved((0.75, 0, 0)), shell, device) == (True, True)


def test_nested_three_deep(device):
    """Each inside the next; the middle one touches neither."""
    middle = cases.icosphere(300, 0.8)
    assert solid(SMALL, middle, device) == (True, True)
    assert solid(middle, OUTER, device) == (True, True)


def test_any_component_inside_counts(device):
    scattered = cases.joined(SMALL.moved((9, 0, 0)), SMALL.moved((0, 9, 0)), SMALL)
    assert solid(scattered, OUTER, device) == (True, True)
    outside = cases.joined(SMALL.moved((9, 0, 0)), SMALL.moved((0, 9, 0)))
    assert solid(outside, OUTER, device) == (False, False)
    islands = cases.joined(OUTER.moved((20, 0, 0)), OUTER)
    assert solid(SMALL, islands, device) == (True, True)


@pytest.mark.parametrize("turn", [flipped, lambda s: s], ids=["inside out", "as is"])
def test_orientation_does_not_matter(turn, device):
    assert solid(SMALL, turn(OUTER), device) == (True, True)
    assert solid(turn(SMALL.moved((5, 0, 0))), OUTER, device) == (False, False)


def test_faces_turned_any_way_go_by_parity(device):
    mixed = OUTER.faces.copy()
    mixed[::3] = mixed[::3, ::-1]
    mixed = cases.Shape(OUTER.vertices, mixed)
    assert solid(SMALL, mixed, device) == (True, True)
    assert solid(SMALL.moved((-4, 0, 0)), mixed, device) == (False, False)


def test_poses_of_a_ball(device):
    """A small body in many places in and about a ball, both moved and turned."""
    ball, body = cases.icosphere(1280, 1.0), octahedron(0.02)
    rng = np.random.default_rng(0)
    away = rng.normal(size=(200, 3))
    reach = np.concatenate([rng.uniform(0, 0.93, 100), rng.uniform(1.05, 2, 100)])
    away *= reach[:, None] / np.linalg.norm(away, axis=1, keepdims=True)
    pose_a = random_poses(200, 0.0)
    pose_a[:, :3, 3] = away
    colliding, contained = solid(body, ball, device, pose_a=pose_a)
    assert colliding == contained == [True] * 100 + [False] * 100
    pose_b = np.tile(shift(3, 4, 5), (200, 1, 1))
    pose_a[:, :3, 3] += [3, 4, 5]
    assert solid(body, ball, device, pose_a=pose_a, pose_b=pose_b)[1] == contained


def test_batch_of_all_kinds(device):
    poses = np.stack([shift(x, 0, 0) for x in (0, 1, 5, -5, 0.75)])
    colliding, contained = solid(SMALL, OUTER, device, pose_a=poses)
    assert colliding == [True, True, False, False, True]
    assert contained == [True, False, False, False, False]


@pytest.mark.parametrize("exponent", [-500, -30, 30, 130, 500])
def test_any_scale(exponent, device):
    inner, outer = (cases.Shape(np.ldexp(s.vertices, exponent), s.faces) for s in (SMALL, OUTER))
    assert solid(inner, outer, device) == (True, True)
    assert solid(inner.moved((np.ldexp(-4.0, exponent), 0, 0)), outer, device) == (False, False)


@pytest.mark.parametrize("offset", [1e6, -(2.0**40)])
def test_far_away(offset, device):
    inner, outer = (s.moved((offset, -offset, offset)) for s in (SMALL, OUTER))
    assert solid(inner, outer, device) == (True, True)
    assert solid(inner.moved((-4, 0, 0)), outer, device) == (False, False)


def test_open_meshes_are_refused(device):
    sheet = abut.Mesh(*cases.plane(3, 3), device)
    box = abut.Mesh(*OUTER, device)
    with pytest.raises(abut.MeshError, match="b is open"):
        abut.collide(box, sheet, solid=True)
    with pytest.raises(abut.MeshError, match="a is open"):
        abut.collide(sheet, box, solid=True)
    none = abut.Mesh(np.zeros((0, 3)), np.zeros((0, 3), int), device)
    with pytest.raises(abut.MeshError):
        abut.collide(none, box, solid=True)


def test_closing_and_opening_by_deformation(device):
    """Closedness goes by position, so it follows the vertices."""
    lid = soup(OUTER)
    mesh, small = abut.Mesh(*lid, device), abut.Mesh(*SMALL, device)
    assert abut.collide(small, mesh, solid=True).contained is True
    torn = lid.vertices.copy()
    torn[0] += 0.5
    mesh.deform(torn)
    with pytest.raises(abut.MeshError, match="b is open"):
        abut.collide(small, mesh, solid=True)


@pytest.mark.parametrize("swapped", [False, True])
def test_one_of_two_parts_of_an_object_is_inside_another(device, swapped):
    """The scene reports what ``collide`` does, though neither object is wholly inside the other."""
    vertices, faces = cases.box((0.2, 0.2, 0.2))
    both = np.concatenate([vertices, vertices + np.array([5.0, 0.0, 0.0])])
    apart = abut.Mesh(both, np.concatenate([faces, faces + len(vertices)]), device)
    meshes = [apart, abut.Mesh(*cases.box((2, 2, 2)), device)]
    meshes = meshes[::-1] if swapped else meshes
    assert abut.collide(*meshes, solid=True)
    hits = abut.Scene(meshes).collide(solid=True)
    assert hits and hits.contained.numpy().tolist() == [[0, 1]]
