"""DistanceField.rebuild: the bytes of a new field, without new memory; answers follow."""

import numpy as np
import pytest

import abut
from abut import cases
from shapes import bowl, shift


def waving(shape, time):
    """The shape, wrung along y."""
    angle = 0.3 * np.sin(time) * shape.vertices[:, 1]
    x, y, z = shape.vertices.T
    turned = [x * np.cos(angle) - z * np.sin(angle), y, x * np.sin(angle) + z * np.cos(angle)]
    return np.stack(turned, axis=1)


@pytest.mark.parametrize("band", [None, 0.15])
@pytest.mark.parametrize("inverted", [False, True])
def test_same_bytes_as_a_new_field(inverted, band, device):
    knot = cases.torus_knot(64, 10)
    faces = knot.faces[:, ::-1] if inverted else knot.faces
    options = {"resolution": 40, "margin": 0.5, "band": band, "sign": "winding"}
    mesh = abut.Mesh(knot.vertices, faces, device)
    field = abut.DistanceField(mesh, **options)
    for time in (0.5, 1.0, 2.0):
        mesh.deform(waving(knot, time))
        field.rebuild(mesh)
        fresh = abut.DistanceField.__new__(abut.DistanceField)
        fresh.__setstate__(field.__getstate__())
        again = abut.DistanceField(abut.Mesh(mesh.vertices, faces, device), **options)
        if (again.box.lower == field.box.lower).all() and again.box.shape == field.box.shape:
            np.testing.assert_array_equal(field.distance.numpy(), again.distance.numpy())
            np.testing.assert_array_equal(field.grid.gradient.numpy(), again.grid.gradient.numpy())
        points = np.random.default_rng(0).uniform(-1, 1, size=(500, 3))
        exact = abut.closest_point(mesh, points, signed="winding").distance.numpy()
        limit = np.inf if band is None else band
        reach = 0.87 * field.box.spacing
        off = field.sample(points).distance.numpy() - np.clip(exact, -limit, limit)
        assert np.abs(off).max() < reach


def test_most_frames_take_no_memory(monkeypatch, device):
    knot = cases.torus_knot(64, 10)
    mesh = abut.Mesh(*knot, device)
    field = abut.DistanceField(mesh, resolution=32, margin=0.5, band=0.2)
    taken, frames = [], []
    kind = type(mesh.device.get_allocator())
    allocate = kind.allocate

    def counted(allocator, size, *args):
        taken.append(size)
        return allocate(allocator, size, *args)

    for k in range(10):
        mesh.deform(waving(knot, 0.01 * k))
        taken.clear()
        with monkeypatch.context() as patch:
            patch.setattr(kind, "allocate", counted)
            field.rebuild(mesh)
        frames.append(sum(size for size in taken if size > 256))  # arguments are smaller
    assert frames[0] > 0  # what counts does count
    assert frames[2:].count(0) >= 5  # in the others the hierarchy was built anew


@pytest.mark.parametrize("early_out", abut.EarlyOut)
def test_answers_follow(early_out, device):
    """Plans that were made before a rebuild give the answers of a new field."""
    gem, ring = cases.gem(500), abut.Mesh(*cases.torus(32, 16), device)
    mesh, pose = abut.Mesh(*gem, device), shift(0.9, 0.1, 0.0)
    field = abut.DistanceField(mesh, resolution=32, margin=0.6)
    for scale in (1.0, 1.3, 0.8):
        mesh.deform(gem.vertices * [scale, 1.0, 1.0])
        field.rebuild(mesh)
        fresh = abut.DistanceField.__new__(abut.DistanceField)
        fresh.__setstate__(field.__getstate__())
        options = {"pixels": 128, "early_out": early_out, "stiffness": 2.0}
        got, want = (f.response(ring, pose, **options).numpy() for f in (field, fresh))
        for name, value in want.items():
            np.testing.assert_array_equal(got[name], value)
        assert got["area"] > 0
        assert field.closest(ring, pose).distance == fresh.closest(ring, pose).distance
        np.testing.assert_array_equal(field.centre, fresh.centre)


def test_both_bodies_may_deform(device):
    """Contact follows two fields that are rebuilt; momentum stays balanced to the bit."""
    gem, torus = cases.gem(500), cases.torus(24, 12)
    a, b = abut.Mesh(*gem, device), abut.Mesh(*torus, device)
    fields = [abut.DistanceField(m, resolution=32, margin=0.5, band=0.5) for m in (a, b)]
    contact = abut.FieldContact(a, b, field_a=fields[0], field_b=fields[1], pixels=64)
    for scale in (1.0, 1.2):
        a.deform(gem.vertices * scale)
        b.deform(torus.vertices * [1.0, scale, 1.0])
        for field, mesh in zip(fields, (a, b), strict=True):
            field.rebuild(mesh)
        got = contact.response(None, shift(1.9, 0.1, 0)).numpy()
        new = [abut.DistanceField(m, resolution=40, margin=0.5, band=0.5) for m in (a, b)]
        fresh = abut.FieldContact(a, b, field_a=new[0], field_b=new[1], pixels=64)
        want = fresh.response(None, shift(1.9, 0.1, 0)).numpy()
        np.testing.assert_array_equal(got["force_a"], -got["force_b"])
        size = np.linalg.norm(want["force_a"])
        np.testing.assert_allclose(got["force_a"], want["force_a"], atol=0.1 * size)


def test_bad_meshes_are_refused(device):
    gem = abut.Mesh(*cases.gem(100), device)
    field = abut.DistanceField(gem, resolution=16)
    with pytest.raises(abut.MeshError, match="leaves the field's box"):
        field.rebuild(abut.Mesh(*cases.gem(100, radius=3.0), device))
    with pytest.raises(abut.MeshError, match="closed, oriented"):
        field.rebuild(abut.Mesh(*bowl(), device))
    with pytest.raises(abut.MeshError, match="closed, oriented"):
        abut.DistanceField(abut.Mesh(*bowl(), device), resolution=16).rebuild(gem)
