"""sampling="vertices": against sums over vertices in NumPy."""

import numpy as np
import pytest

import abut
from abut import cases
from shapes import moved, random_poses, shift

MATERIAL = {"stiffness": 3.0, "damping": 0.7, "friction": 0.4, "sampling": "vertices"}


def gem_field(device, resolution=32):
    return abut.DistanceField(abut.Mesh(*cases.gem(500), device), resolution=resolution)


def vertex_areas(shape, vertices):
    a, b, c = (vertices[shape.faces[:, k]] for k in range(3))
    areas = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 6
    return np.bincount(shape.faces.ravel(), np.repeat(areas, 3), len(vertices))


@pytest.mark.parametrize("seed", range(3))
def test_response_sums_over_vertices(seed, device):
    field, ring = gem_field(device), cases.torus(48, 24)
    pose, twist = random_poses(1, 0.6, seed=seed)[0], np.random.default_rng(seed).normal(size=6)
    got = field.response(abut.Mesh(*ring, device), pose, velocity=twist, **MATERIAL)
    p, area = moved(ring.vertices, pose), vertex_areas(ring, ring.vertices)
    found = field.sample(p).numpy()
    inside = (found["distance"] < 0) & (p >= field.box.lower).all(axis=1)
    inside &= (p <= field.box.upper).all(axis=1)
    d, way = found["distance"][inside, None].astype(float), -found["gradient"][inside]
    q = p[inside] + d * way
    rel = twist[:3] + np.cross(twist[3:], p[inside] - pose[:3, 3])
    along = (rel * way).sum(axis=1, keepdims=True)
    push = -3.0 * d + 0.7 * along
    slide = rel - along * way
    slide /= np.linalg.norm(slide, axis=1, keepdims=True)
    force = area[inside, None] * (push * way + 0.4 * np.abs(push) * slide)
    size = np.linalg.norm(force.sum(axis=0))
    np.testing.assert_allclose(got.force.numpy(), force.sum(axis=0), atol=1e-4 * size)
    torque = np.cross(q - field.centre, force).sum(axis=0)
    np.testing.assert_allclose(got.torque.numpy(), torque, atol=1e-4 * size)
    np.testing.assert_allclose(got.area, area[inside].sum(), rtol=1e-6)
    energy = 1.5 * (area[inside] * d[:, 0] ** 2).sum()
    np.testing.assert_allclose(got.energy, energy, rtol=1e-5)
    assert got.fragment_count == inside.sum() > 100


def test_closest_is_the_closest_vertex(device):
    field, ring = gem_field(device), cases.torus(48, 24)
    other, poses = abut.Mesh(*ring, device), random_poses(6, 1.5, seed=2)
    together = field.closest(other, poses, sampling="vertices").numpy()
    for k, pose in enumerate(poses):
        placed = moved(ring.vertices, pose)
        d = field.sample(placed).distance.numpy()
        np.testing.assert_allclose(together["distance"][k], d.min(), atol=1e-6)
        np.testing.assert_allclose(together["points"][k, 1], placed[d.argmin()], atol=1e-9)
        assert d.argmin() in ring.faces[together["face"][k]]


def test_batches_deformation_and_unused_vertices(device):
    """One plan serves all; a vertex without a face has no area and is not the closest."""
    field, ring = gem_field(device), cases.torus(24, 12)
    vertices = np.vstack([ring.vertices, [[0.0, 0.0, 0.0]]])
    other, poses = abut.Mesh(vertices, ring.faces, device), random_poses(5, 1.0, seed=7)
    plain = abut.Mesh(*ring, device)
    for scale in (1.0, 0.7):
        other.deform(vertices * scale)
        plain.deform(ring.vertices * scale)
        together = field.response(other, poses, **MATERIAL)
        near = field.closest(other, poses, sampling="vertices")
        for k, pose in enumerate(poses):
            alone = field.response(plain, pose, **MATERIAL)
            np.testing.assert_array_equal(together.force.numpy()[k], alone.force.numpy())
            assert together.area.numpy()[k] == alone.area
            one = field.closest(plain, pose, sampling="vertices")
            assert near.distance.numpy()[k] == one.distance


def test_large_faces_stay_exact(device):
    """A face many times the field's box: its vertices' areas are capped, sums do not overflow."""
    field = gem_field(device)
    corners = np.array([[0.0, 0, 0], [1e6, 0, 0], [0, 1e6, 0]])
    got = field.response(abut.Mesh(corners, np.array([[0, 1, 2]]), device), sampling="vertices")
    assert got.fragment_count == 1 and np.isfinite(got.force.numpy()).all()


def test_shares_of_vertices_are_refused(device):
    with pytest.raises(abut.OptionError, match="sampling='vertices' has none"):
        gem_field(device, 16).response(
            abut.Mesh(*cases.box(), device), shift(0, 0, 0), sampling="vertices", per_vertex=True
        )
