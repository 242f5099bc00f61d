"""abut.FieldContact: equal and opposite to the bit, the mean of both fields, static friction."""

import numpy as np
import pytest

import abut
from abut import cases
from shapes import random_poses, shift

MATERIAL = {"stiffness": 3.0, "damping": 0.7, "friction": 0.4}
OPTIONS = {"pixels": 64, **MATERIAL}


def pair(device, **options):
    """A gem and a ring in contact in both orders, with the same fields."""
    gem, ring = abut.Mesh(*cases.gem(500), device), abut.Mesh(*cases.torus(32, 16), device)
    fields = [abut.DistanceField(mesh, resolution=32) for mesh in (gem, ring)]
    one = abut.FieldContact(gem, ring, field_a=fields[0], field_b=fields[1], **OPTIONS | options)
    two = abut.FieldContact(ring, gem, field_a=fields[1], field_b=fields[0], **OPTIONS | options)
    return one, two


@pytest.mark.parametrize("options", [{}, {"sampling": "dominant"}, {"tangential_stiffness": 2.0}])
def test_equal_and_opposite_to_the_bit(options, device):
    """Also when a and b are exchanged, whatever the poses and velocities."""
    one, two = pair(device, **options)
    twists = np.random.default_rng(1).normal(size=(2, 6))
    poses = random_poses(8, 0.5, seed=4)
    found = 0
    for a, b in zip(poses[::2], poses[1::2], strict=True):
        here = one.response(a, b, velocity_a=twists[0], velocity_b=twists[1])
        there = two.response(b, a, velocity_a=twists[1], velocity_b=twists[0])
        found += here.fragment_count
        for name in ("force", "torque"):
            mine, theirs = getattr(here.on_a, name), getattr(here.on_b, name)
            np.testing.assert_array_equal(mine.numpy(), getattr(there.on_b, name).numpy())
            np.testing.assert_array_equal(theirs.numpy(), getattr(there.on_a, name).numpy())
        np.testing.assert_array_equal(here.on_a.force.numpy(), -here.on_b.force.numpy())
        assert (here.area_a, here.energy) == (there.area_b, there.energy)
    assert found > 1000


def test_mean_of_both_fields(device):
    one, _ = pair(device, sampling="faces")
    (gem, ring), (of_gem, of_ring) = zip(*((s.mesh, s.field) for s in one._sides), strict=True)
    pose, twist = random_poses(1, 0.5, seed=3)[0], np.arange(6.0)
    options = {**OPTIONS, "sampling": "faces"}
    by_gem = of_gem.response(ring, pose, velocity=twist, **options)
    back = np.linalg.inv(pose)
    turned = np.concatenate([back[:3, :3] @ twist[:3], back[:3, :3] @ twist[3:]])
    by_ring = of_ring.response(gem, back, field_velocity=turned, **options)
    got = one.response(None, pose, velocity_b=twist)
    want = 0.5 * (by_gem.force.numpy() - pose[:3, :3] @ by_ring.force.numpy())
    size = np.linalg.norm(want)
    np.testing.assert_allclose(got.on_a.force.numpy(), want, atol=1e-6 * size)
    np.testing.assert_allclose(got.area_a, by_gem.area, rtol=1e-9)
    np.testing.assert_allclose(got.area_b, by_ring.area, rtol=1e-9)
    np.testing.assert_allclose(got.energy, 0.5 * (by_gem.energy + by_ring.energy), rtol=1e-6)
    about_origin = got.on_a.torque.numpy() + np.cross(
        one._sides[0].centre(), got.on_a.force.numpy()
    )
    centre = pose[:3, :3] @ one._sides[1].centre() + pose[:3, 3]
    other = got.on_b.torque.numpy() + np.cross(centre, got.on_b.force.numpy())
    np.testing.assert_allclose(other, -about_origin, atol=1e-12 * size)


def test_deep_contact(device):
    """Each field alone gives another force; the mean is the slope of the energy of both."""
    ball, slab = cases.icosphere(2000), cases.box((3.0, 3.0, 0.8))
    a, b = abut.Mesh(*ball, device), abut.Mesh(*slab, device)
    contact = abut.FieldContact(a, b, field_a=64, field_b=64, pixels=128)
    pose = shift(0.1, 0.0, 0.75)
    by_ball = contact._sides[0].field.response(b, pose, pixels=128, sampling="faces")
    by_slab = contact._sides[1].field.response(a, shift(-0.1, 0, -0.75), pixels=128)
    alone = by_ball.force.numpy()[2], -by_slab.force.numpy()[2]
    assert abs(alone[0] - alone[1]) > 0.2 * abs(alone[0])
    step = 0.02
    energies = [
        contact.response(None, pose @ shift(0, 0, way)).energy for way in (-step, 0.0, step)
    ]
    push = contact.response(None, pose).on_b.force.numpy()[2]
    np.testing.assert_allclose(push, (energies[0] - energies[2]) / (2 * step), rtol=0.05)


def test_a_batch_equals_its_single_poses(device):
    one, _ = pair(device)
    poses = random_poses(5, 0.5, seed=2)
    together = one.response(None, poses).numpy()
    for k, pose in enumerate(poses):
        for name, value in one.response(None, pose).numpy().items():
            np.testing.assert_allclose(together[name][k], value, rtol=1e-12, atol=1e-12)


def blocks(device, **options):
    ground, brick = abut.Mesh(*cases.box((3.0, 3.0, 1.0)), device), abut.Mesh(*cases.box(), device)
    stuck = {"stiffness": 1e4, "friction": 0.4, "tangential_stiffness": 5e3, "pixels": 48}
    return abut.FieldContact(ground, brick, field_a=40, field_b=40, **stuck | options)


def test_a_tangential_spring_stretches_slides_and_turns_back(device):
    """A block is drawn along the ground and back: elastic, then at the Coulomb cap."""
    contact, depth = blocks(device), 0.01
    at = [0.0, 0.002, 0.004, 0.012, 0.02, 0.018, 0.016, 0.0]
    pushes = [contact.response(None, shift(0, x, 1 - depth)).on_a.force.numpy() for x in at]
    normal, along = -np.array(pushes)[:, 2], np.array(pushes)[:, 1]
    cap, slope = 0.4 * normal[0], 5e3
    np.testing.assert_allclose(normal, normal[0], rtol=0.05)
    want = [0.0, 0.002 * slope, 0.004 * slope, cap, cap, cap - 0.002 * slope, cap - 0.004 * slope]
    np.testing.assert_allclose(along, [*want, -cap], atol=0.05 * cap)
    contact.reset()
    rested = contact.response(None, shift(0, 0.0, 1 - depth)).on_a.force.numpy()
    np.testing.assert_allclose(rested, pushes[0], atol=1e-9)


def test_springs_twist(device):
    """A block turned on the ground is turned back, within the cap of each sample."""
    contact, angle = blocks(device), 0.002
    turn = shift(0, 0, 0.99)
    contact.response(None, turn)
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    torque = contact.response(None, turn).on_b.torque.numpy()
    np.testing.assert_allclose(torque[2], -5e3 * angle / 6, rtol=0.05)  # polar moment 1/6
    assert np.abs(torque[:2]).max() < 0.05 * abs(torque[2])


def test_trial_calls_leave_springs_as_they_were(device):
    contact = blocks(device)
    contact.response(None, shift(0, 0, 0.99))
    trials = [
        contact.response(None, shift(0, x, 0.99), advance=False).on_a.force.numpy()
        for x in (0.003, 0.05, 0.003)
    ]
    np.testing.assert_array_equal(trials[0], trials[2])
    last = contact.response(None, shift(0, 0.003, 0.99)).on_a.force.numpy()
    np.testing.assert_array_equal(trials[0], last)


def test_springs_grow_without_loss(device, monkeypatch):
    from abut.sdf import static_friction_plan

    def run():
        contact = blocks(device, damping=3.0)
        way = [(0.0, 0.999), (0.001, 0.98), (0.003, 0.9), (0.004, 0.85)]
        return [contact.response(None, shift(0, x, z)).numpy() for x, z in way]

    want = run()
    monkeypatch.setattr(static_friction_plan, "LEAST_KEYS", 1)
    for one, two in zip(want, run(), strict=True):
        for name, value in one.items():
            np.testing.assert_array_equal(two[name], value)


def test_bad_input_is_refused(device):
    box = abut.Mesh(*cases.box(), device)
    with pytest.raises(abut.OptionError, match="static friction needs"):
        abut.FieldContact(
            box, box, field_a=8, field_b=8, sampling="dominant", tangential_stiffness=1
        )
    with pytest.raises(abut.OptionError, match="tangential_stiffness must be"):
        abut.FieldContact(box, box, field_a=8, field_b=8, tangential_stiffness=-1)
    contact = abut.FieldContact(box, box, field_a=8, field_b=8, tangential_stiffness=1)
    with pytest.raises(abut.OptionError, match="ask for a single pose"):
        contact.response(None, np.stack([np.eye(4)] * 2))
    free = abut.FieldContact(box, box, field_a=8, field_b=8)
    with pytest.raises(abut.PoseError, match="2 and 3 poses"):
        free.response(np.stack([np.eye(4)] * 2), np.stack([np.eye(4)] * 3))
    with pytest.raises(abut.PoseError):
        free.response(2 * np.eye(4))
    empty = abut.Mesh(np.zeros((3, 3)), np.zeros((0, 3), int), device)
    with pytest.raises(abut.MeshError, match="no faces"):
        abut.FieldContact(box, empty)
