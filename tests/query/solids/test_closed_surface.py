"""The boundary of the solid inside a closed mesh."""

import numpy as np
import pytest
import trimesh

import abut
import solid_complexes
from abut.query.solids.closed_surface import closed_surface_of
from solid_complexes import random_tets

BOX = trimesh.creation.box()


def surface_of(vertices, faces, device):
    return closed_surface_of(
        abut.Mesh(np.asarray(vertices, float), np.asarray(faces), device), "it"
    )


def volume(surface):
    corners = surface.mesh.points.numpy()[surface.mesh.faces.numpy()]
    return np.linalg.det(corners).sum() / 6


def joined(*parts):
    vertices = np.concatenate([v for v, _ in parts])
    starts = np.cumsum([0, *(len(v) for v, _ in parts)])
    return vertices, np.concatenate([f + s for (_, f), s in zip(parts, starts, strict=False)])


def scaled(factor, shift=(0, 0, 0), flip=False):
    faces = BOX.faces[:, ::-1] if flip else BOX.faces
    return factor * BOX.vertices + shift, np.asarray(faces)


def test_a_clean_mesh_is_its_own_surface(device):
    mesh = abut.Mesh.from_trimesh(BOX, device)
    surface = closed_surface_of(mesh, "it")
    assert surface.mesh is mesh and surface.size == pytest.approx(np.sqrt(3))
    assert surface.source_face.tolist() == list(range(12))
    assert closed_surface_of(mesh, "it") is surface
    mesh.deform(2 * BOX.vertices)
    assert closed_surface_of(mesh, "it").size == pytest.approx(2 * np.sqrt(3))


def test_faces_are_turned_outward(device):
    mixed = np.array(BOX.faces)
    mixed[[1, 4, 5, 9]] = mixed[[1, 4, 5, 9]][:, ::-1]
    for faces in (BOX.faces[:, ::-1], mixed, mixed[:, ::-1]):
        assert volume(surface_of(BOX.vertices, faces, device)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("flips", "expected", "faces"),
    [
        ((False, True), 1 - 0.125, 24),  # a cavity
        ((True, False), 1 - 0.125, 24),  # the same, inverted
        ((False, False), 1, 12),  # wound twice: the inner shell bounds nothing
        ((True, True), 1, 12),
    ],
)
def test_shells_in_shells(device, flips, expected, faces):
    vertices, corners = joined(scaled(1, flip=flips[0]), scaled(0.5, flip=flips[1]))
    surface = surface_of(vertices, corners, device)
    assert volume(surface) == pytest.approx(expected)
    assert surface.mesh.face_count == faces


def test_shells_of_unoriented_meshes_alternate(device):
    parts = [scaled(s) for s in (1, 0.8, 0.6)]
    vertices, faces = joined(*parts)
    faces[::3] = faces[::3, ::-1]
    assert volume(surface_of(vertices, faces, device)) == pytest.approx(1 - 0.8**3 + 0.6**3)


def test_faces_that_cancel_or_repeat_are_removed(device):
    mirrored = BOX.vertices * [-1, 1, 1] + [1, 0, 0], np.asarray(BOX.faces[:, ::-1])
    vertices, faces = joined(scaled(1), mirrored)  # a wall between both
    surface = surface_of(vertices, faces, device)
    assert surface.mesh.face_count == 20 and volume(surface) == pytest.approx(2)
    vertices, faces = joined(scaled(1), scaled(1))
    surface = surface_of(vertices, faces, device)
    assert surface.mesh.face_count == 12 and volume(surface) == pytest.approx(1)


def test_faces_without_area_are_removed(device):
    """T-junctions on one edge of a tetrahedron, one, two and nested."""
    corners = [[0, 0, 0], [4, 0, 0], [0, 4, 0], [0, 0, 4], [1, 0, 0], [2, 0, 0], [3, 0, 0]]
    rest = [(0, 3, 2), (1, 2, 3)]
    plain = [(0, 2, 1)]
    cases = [
        [*plain, (0, 4, 3), (4, 1, 3), (0, 1, 4)],
        [*plain, (0, 4, 3), (4, 5, 3), (5, 1, 3), (0, 1, 4), (4, 1, 5)],
        [*plain, (0, 4, 3), (4, 5, 3), (5, 6, 3), (6, 1, 3), (0, 1, 5), (0, 5, 4), (5, 1, 6)],
    ]
    for faces in cases:
        surface = surface_of(corners, faces + rest, device)
        assert volume(surface) == pytest.approx(4**3 / 6)
        points = surface.mesh.points.numpy()[surface.mesh.faces.numpy()]
        areas = np.linalg.norm(
            np.cross(points[:, 1] - points[:, 0], points[:, 2] - points[:, 0]), axis=1
        )
        assert (areas > 0.1).all() and surface.mesh.oriented
        whole = surface_of(corners[:4], [*plain, (0, 1, 3), *rest], device)
        assert abut.overlap(surface.mesh, whole.mesh).relation == "equal"


def test_refusals(device):
    with pytest.raises(abut.MeshError, match="it is open"):
        surface_of(BOX.vertices, BOX.faces[1:], device)
    with pytest.raises(abut.MeshError, match="cancel"):
        surface_of(np.eye(3), [(0, 1, 2), (2, 1, 0)], device)
    flat = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]) * 0.1
    with pytest.raises(abut.MeshError, match="volume is 0"):
        surface_of(flat, [(0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)], device)
    moebius = [(i, (i + 1) % 7, (i + 2) % 7) for i in range(7)]
    doubled = moebius + [(j, i, 7) for i, j in _boundary(moebius)]
    with pytest.raises(abut.MeshError, match="cannot be oriented"):
        surface_of(np.random.default_rng(1).normal(size=(8, 3)), doubled, device)


def _boundary(faces):
    edges = [(f[k], f[(k + 1) % 3]) for f in faces for k in range(3)]
    count = {}
    for i, j in edges:
        count[frozenset((i, j))] = count.get(frozenset((i, j)), 0) + 1
    return [(i, j) for i, j in edges if count[frozenset((i, j))] == 1]


@pytest.mark.parametrize("seed", range(30))
def test_cavities_that_touch_the_outer_shell(device, seed):
    """Of sets of tetrahedra some cavities have all vertices on the outer shell."""
    tets = random_tets(np.random.default_rng(seed), 3, 0.9)
    points, faces = solid_complexes.surface(tets)
    assert volume(surface_of(points, faces, device)) == pytest.approx(len(tets) / 6)
