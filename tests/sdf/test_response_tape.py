"""DistanceField.response_on_tape: the same numbers as response, and derivatives that are right."""

import numpy as np
import pytest
import warp as wp

import abut
from abut import cases

MOVING = {
    "stiffness": 3.0,
    "damping": 0.2,
    "friction": 0.3,
    "slip": 0.5,
    "velocity": [0.3, -0.2, 0.1, 0.2, 0.1, -0.3],
    "field_velocity": [0.1, 0.0, 0.2, -0.1, 0.3, 0.2],
}
PENALTY = {"stiffness": 3.0}


def transforms(seed, count=1):
    """(count, 7) positions and unit quaternions, each a mesh partly inside."""
    rng = np.random.default_rng(seed)
    turns = rng.normal(size=(count, 4))
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    ways = rng.normal(size=(count, 3))
    ways *= rng.uniform(1.3, 1.7, size=(count, 1)) / np.linalg.norm(ways, axis=1, keepdims=True)
    return np.concatenate([ways, turns], axis=1)


def matrix(transform):
    pose = np.eye(4)
    x, y, z, w = transform[3:]
    pose[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    pose[:3, 3] = transform[:3]
    return pose


def scene(device):
    field = abut.DistanceField(abut.Mesh(*cases.gem(500), device), resolution=40)
    return field, abut.Mesh(*cases.torus(24, 12), device)


@pytest.mark.parametrize("law", [PENALTY, MOVING])
def test_tape_equals_response(law, device):
    field, other = scene(device)
    rows = transforms(1, 3)
    poses = wp.array(rows, dtype=wp.transformd, device=device)
    got = field.response_on_tape(other, poses, pixels=64, **law)
    want = field.response(
        other, np.stack([matrix(row) for row in rows]), pixels=64, sampling="faces", **law
    )
    size = np.abs(want.force.numpy()).max()
    assert size > 0.01
    np.testing.assert_allclose(got.force.numpy(), want.force.numpy(), atol=2e-4 * size)
    np.testing.assert_allclose(got.torque.numpy(), want.torque.numpy(), atol=2e-4 * size)
    np.testing.assert_allclose(got.energy.numpy(), want.energy.numpy(), rtol=1e-3)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("law", [PENALTY, MOVING])
@pytest.mark.parametrize("what", ["force", "torque"])
def test_against_finite_differences(what, law, seed, device):
    """The derivative of a random combination of components along a random change of the pose."""
    field, other = scene(device)
    rng = np.random.default_rng(seed)
    row, weights, change = transforms(seed)[0], rng.normal(size=3), rng.normal(size=7)

    def value(step):
        moved = wp.array([row + step * change], dtype=wp.transformd, device=device)
        got = field.response_on_tape(other, moved, pixels=48, **law)
        return getattr(got, what).numpy()[0] @ weights

    poses = wp.array([row], dtype=wp.transformd, device=device, requires_grad=True)
    tape = wp.Tape()
    with tape:
        got = getattr(field.response_on_tape(other, poses, pixels=48, **law), what)
    seed_of = wp.array([weights], dtype=wp.vec3d, device=device)
    tape.backward(grads={got: seed_of})
    slope = poses.grad.numpy()[0] @ change
    steps = (value(1e-7) - value(-1e-7)) / 2e-7
    assert abs(slope) > 1e-3
    np.testing.assert_allclose(slope, steps, rtol=2e-3, atol=1e-4)


def test_energy_falls_along_the_force(device):
    """Without damping and friction, minus the energy's derivative is the force on the mesh."""
    ball = abut.Mesh(*cases.icosphere(2000), device)  # no creases, where blends lose depth
    field, other = abut.DistanceField(ball, resolution=48), ball
    row = np.array([1.2, 1.0, 0.4, 0, 0, 0, 1])
    poses = wp.array([row], dtype=wp.transformd, device=device, requires_grad=True)
    tape = wp.Tape()
    with tape:
        got = field.response_on_tape(other, poses, pixels=96, **PENALTY)
    ones = wp.array([1.0], dtype=wp.float64, device=device)
    tape.backward(grads={got.energy: ones})
    force = got.force.numpy()[0]
    np.testing.assert_allclose(poses.grad.numpy()[0, :3], force, atol=0.01 * np.linalg.norm(force))


def test_the_same_bytes_on_every_run(device):
    field, other = scene(device)
    poses = wp.array(transforms(2, 2), dtype=wp.transformd, device=device)
    one, two = (field.response_on_tape(other, poses, **MOVING) for _ in range(2))
    np.testing.assert_array_equal(one.force.numpy(), two.force.numpy())


def test_only_differentiable_kernels_are_on_the_tape(device):
    """The centre of mass is found when first asked for: by a kernel without backward code."""
    field = abut.DistanceField(abut.Mesh(*cases.box(), device), resolution=8)
    other = abut.Mesh(*cases.box(), device)
    poses = wp.array(transforms(2), dtype=wp.transformd, device=device, requires_grad=True)
    tape = wp.Tape()
    with tape:
        field.response_on_tape(other, poses, pixels=8)
    assert {launch[0].module.name for launch in tape.launches} == {"abut.sdf.tape"}


def test_bad_input_is_refused(device):
    field, other = scene(device)
    with pytest.raises(abut.OptionError, match="pose must be a Warp array"):
        field.response_on_tape(other, np.eye(4))
    poses = wp.array(transforms(0), dtype=wp.transformd, device=device)
    with pytest.raises(abut.OptionError, match="velocity must have shape"):
        field.response_on_tape(other, poses, velocity=[1.0])
