"""DistanceField.response(per_vertex=True): shares of vertices in force and torque."""

import pickle

import numpy as np
import pytest

import abut
from abut import cases
from abut.sdf import field_plan
from shapes import moved, random_poses, shift

MATERIAL = {"stiffness": 3.0, "damping": 0.7, "friction": 0.4}
SAMPLINGS = ("dominant", "faces")


def field_of(shape, device, resolution=32):
    return abut.DistanceField(abut.Mesh(*shape, device), resolution=resolution)


def add_up(response, wrench):
    """Check the sums over vertices, to the rounding of float64."""
    for whole, parts in (("force", "vertex_force"), ("torque", "vertex_torque")):
        total, each = getattr(wrench, whole).numpy(), getattr(wrench, parts).numpy()
        size = np.abs(each).sum() + 1e-300
        np.testing.assert_allclose(each.sum(axis=-2), total, rtol=0, atol=1e-13 * size)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("material", [{"stiffness": 3.0}, MATERIAL], ids=["springs", "friction"])
def test_vertices_add_up_to_the_sums(device, sampling, material):
    field = field_of(cases.torus(24, 16), device)
    other = abut.Mesh(*cases.icosphere(320), device)
    poses = random_poses(5, 0.4)
    rng = np.random.default_rng(1)
    motions = [{}, {"velocity": rng.normal(size=6), "field_velocity": rng.normal(size=6)}]
    motions += [{"velocity": rng.normal(size=(other.vertex_count, 3)), "centre": [1.0, 2.0, 3.0]}]
    for motion in motions:
        options = {"pixels": 96, "sampling": sampling, **material, **motion}
        plain = field.response(other, poses, **options)
        got = field.response(other, poses, per_vertex=True, **options)
        assert plain.vertex_force is None and plain.on_other.vertex_torque is None
        for name, rows in plain.numpy().items():
            np.testing.assert_array_equal(got.numpy()[name], rows)
        assert got.vertex_force.shape == (5, other.vertex_count, 3)
        assert np.abs(got.vertex_force.numpy()).max() > 0
        add_up(got, got)
        add_up(got, got.on_other)
        np.testing.assert_array_equal(got.on_other.vertex_force.numpy(), -got.vertex_force.numpy())
        one = field.response(other, poses[3], per_vertex=True, **options)
        if "velocity" not in motion:
            np.testing.assert_array_equal(one.vertex_force.numpy(), got.vertex_force.numpy()[3])


@pytest.mark.parametrize("early_out", ["bound", "depth", "nothing"])
def test_early_outs_change_nothing(device, early_out):
    field, other = field_of(cases.box(), device), abut.Mesh(*cases.icosphere(80), device)
    want = field.response(other, shift(0.4, 0.3, 0.2), pixels=64, per_vertex=True)
    got = field.response(
        other, shift(0.4, 0.3, 0.2), pixels=64, per_vertex=True, early_out=early_out
    )
    for name, rows in want.numpy().items():
        np.testing.assert_array_equal(got.numpy()[name], rows)


def test_vertices_that_no_sample_touches_get_nothing(device):
    """A box whose lower half is in a larger box: its upper vertices carry what reaches them."""
    field = field_of(cases.box((4.0, 4.0, 1.0)), device)
    grid = cases.plane(6, 6, size=2.0)
    vertices = grid.vertices.copy()
    vertices[:, 2] = np.where(vertices[:, 0] < -0.1, 0.3, 3.0)  # inside; far above
    other = abut.Mesh(vertices, grid.faces, device)
    shares = field.response(other, pixels=256, per_vertex=True).vertex_force.numpy()
    corners = vertices[grid.faces]
    outside = np.unique(grid.faces[(corners[:, :, 2] > 2.0).all(axis=1)])
    inside = np.unique(grid.faces[(corners[:, :, 2] < 0.5).all(axis=1)])
    lonely = np.setdiff1d(outside, np.unique(grid.faces[(corners[:, :, 2] < 2.0).any(axis=1)]))
    assert len(lonely) and len(inside)
    assert not shares[lonely].any() and (shares[inside, 2] < 0).all()


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_flat_sheet_has_the_forces_of_its_energy(device, sampling):
    """Moved across its plane, a vertex changes the energy by its force: areas stay as they are."""
    field = field_of(cases.box((4.0, 4.0, 2.0)), device, resolution=48)
    sheet = cases.plane(3, 3, size=1.7)
    vertices = sheet.vertices + np.array([0.11, 0.07, 0.6])  # 0.4 below the top
    options = {"pixels": 2048, "stiffness": 5.0, "sampling": sampling}

    def energy(moved_vertices):
        return field.response(abut.Mesh(moved_vertices, sheet.faces, device), **options).energy

    other = abut.Mesh(vertices, sheet.faces, device)
    force = field.response(other, per_vertex=True, **options).on_other.vertex_force.numpy()
    assert (force[:, 2] > 0).all() and np.abs(force[:, :2]).max() < 1e-4 * force[:, 2].max()
    step = 1e-3
    for vertex in range(len(vertices)):
        up, down = vertices.copy(), vertices.copy()
        up[vertex, 2] += step
        down[vertex, 2] -= step
        slope = (energy(up) - energy(down)) / (2 * step)
        assert force[vertex, 2] == pytest.approx(-slope, rel=2e-3, abs=1e-4 * force[:, 2].max())


def test_a_rigid_motion_does_the_work_of_the_forces(device):
    """The energy along a rigid velocity u changes by the sum of force times u, over vertices."""
    field = field_of(cases.icosphere(1280), device, resolution=64)
    shape = cases.icosphere(320)
    pose = shift(1.1, 0.2, 0.3)
    other = abut.Mesh(*shape, device)
    options = {"pixels": 256, "sampling": "faces", "stiffness": 2.0}
    force = field.response(other, pose, per_vertex=True, **options).on_other.vertex_force.numpy()
    there, step = moved(shape.vertices, pose), 1e-3
    for axis in np.eye(3):
        turn = random_turn(axis, step)
        for motion, velocity in (
            (shift(*(step * axis)), np.broadcast_to(axis, there.shape)),
            (turn, np.cross(axis, there)),
        ):
            after, before = (
                field.response(other, way @ pose, **options).energy
                for way in (motion, np.linalg.inv(motion))
            )
            work = (force * velocity).sum()
            size = np.abs(force * velocity).sum() + 1e-9
            assert work == pytest.approx(-(after - before) / (2 * step), abs=2e-2 * size)


def random_turn(axis, angle):
    pose = np.eye(4)
    cross = np.cross(np.eye(3), -axis)
    pose[:3, :3] += np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
    return pose


def test_poses_in_chunks(device, monkeypatch):
    field, other = field_of(cases.box(), device), abut.Mesh(*cases.icosphere(80), device)
    poses = random_poses(7, 0.5)
    want = field.response(other, poses, pixels=64, per_vertex=True).numpy()
    monkeypatch.setattr(field_plan, "FACES_AT_ONCE", 200)
    got = field.response(other, poses, pixels=64, per_vertex=True).numpy()
    for name, rows in want.items():
        np.testing.assert_array_equal(got[name], rows)
    none = field.response(other, poses[:0], pixels=64, per_vertex=True)
    assert none.vertex_force.shape == (0, other.vertex_count, 3)


def test_results_are_kept_and_pickled(device, threads):
    field, other = field_of(cases.box(), device), abut.Mesh(*cases.icosphere(320), device)
    first = field.response(other, shift(0.5, 0, 0), pixels=128, per_vertex=True)
    want = first.numpy()
    field.response(other, shift(0.2, 0.3, 0), pixels=128, per_vertex=True)
    other.deform(other.vertices.numpy() * 2)
    again = pickle.loads(pickle.dumps(first))
    for name, rows in want.items():
        np.testing.assert_array_equal(first.numpy()[name], rows)
        np.testing.assert_array_equal(again.numpy()[name], rows)
    other.deform(other.vertices.numpy() / 2)
    for count in (1, 3):
        threads(count)
        same = field.response(other, shift(0.5, 0, 0), pixels=128, per_vertex=True).numpy()
        for name, rows in want.items():
            np.testing.assert_array_equal(same[name], rows)
