"""abut.sim.RigidBodies: known motions, conserved quantities, and rest."""

import numpy as np
import pytest

import abut
from abut import cases, sim
from abut.geometry.mass import centre_of_mass, solid_of
from abut.sim import rigid_step
from shapes import moved, random_poses, shift


def world(device, **options):
    return sim.RigidBodies(**{"stiffness": 1e4, "pixels": 32, "device": device} | options)


def block(device, size=(1.0, 1.0, 1.0)):
    return abut.Mesh(*cases.box(size), device)


def ground(bodies, device):
    return bodies.add(block(device, (6.0, 6.0, 1.0)), shift(0, 0, -0.5), static=True, field=32)


def momenta(bodies, mass, inertia):
    """Linear and angular momentum (about the origin) of all bodies."""
    state = bodies.state()
    rotations = bodies.poses[:, :3, :3]
    world_inertia = rotations @ inertia @ rotations.transpose(0, 2, 1)
    own = np.einsum("nij,nj->ni", world_inertia, state["spin"])
    linear = mass[:, None] * state["velocity"]
    return linear.sum(axis=0), (own + np.cross(state["position"], linear)).sum(axis=0)


def test_solids():
    box = cases.box((1.0, 2.0, 3.0))
    pose = random_poses(1, 5.0, seed=1)[0]
    solid = solid_of(moved(box.vertices, pose), box.faces)
    rotation = pose[:3, :3]
    want = 6.0 / 12 * np.diag([4 + 9, 1 + 9, 1 + 4])
    np.testing.assert_allclose(solid.volume, 6.0)
    np.testing.assert_allclose(solid.centre, pose[:3, 3], atol=1e-12)
    np.testing.assert_allclose(solid.inertia, rotation @ want @ rotation.T, atol=1e-11)
    ball = cases.icosphere(20000, radius=2.0)
    solid = solid_of(ball.vertices + 7.0, ball.faces)
    np.testing.assert_allclose(solid.volume, 4 / 3 * np.pi * 8, rtol=1e-3)
    np.testing.assert_allclose(solid.centre, 7.0)
    np.testing.assert_allclose(
        solid.inertia, 0.4 * solid.volume * 4 * np.eye(3), rtol=1e-3, atol=1e-6
    )


def test_solids_with_holes():
    ball = cases.icosphere(8000)
    solid = solid_of(ball.vertices, ball.faces)
    middles = ball.vertices[ball.faces].mean(axis=1)
    kept = (middles @ [0, 0, 1] < 0.99) & (middles @ [1, 0, 0] < 0.995)
    holed = solid_of(ball.vertices, ball.faces[kept])
    np.testing.assert_allclose(holed.volume, solid.volume, rtol=1e-3)
    np.testing.assert_allclose(holed.centre, 0, atol=1e-3)
    assert solid_of(ball.vertices, ball.faces[:, ::-1]) is None
    sheet = cases.plane(5, 5)
    assert solid_of(sheet.vertices, sheet.faces) is None
    np.testing.assert_allclose(centre_of_mass(sheet.vertices, sheet.faces), 0, atol=1e-12)


def test_free_fall_and_spin(device):
    bodies = world(device)
    brick = block(device, (1.0, 2.0, 0.5))
    bodies.add(brick, shift(0, 0, 5), density=2.0, velocity=[1, 0, 3, 0.3, 4.0, 0.2])
    mass, inertia = np.array([2.0]), 2.0 / 12 * np.diag([4.25, 1.25, 5.0])[None]
    _, before = momenta(bodies, mass, inertia)
    kinetic = bodies.energy().kinetic
    bodies.step(0.5, 500)
    state = bodies.state()
    seconds, step = 0.5, 1e-3
    height = 5 + 3 * seconds - 9.81 / 2 * seconds * (seconds + step)
    np.testing.assert_allclose(state["position"][0], [0.5, 0, height], atol=1e-9)
    np.testing.assert_allclose(state["velocity"][0], [1, 0, 3 - 9.81 * seconds], atol=1e-9)
    own = momenta(bodies, mass, inertia)[1] - np.cross(
        state["position"][0], mass[0] * state["velocity"][0]
    )
    start = before - np.cross([0, 0, 5], mass[0] * np.array([1.0, 0, 3]))
    np.testing.assert_allclose(own, start, atol=1e-9)  # it tumbles, its momentum does not
    assert abs(np.linalg.norm(state["rotation"][0]) - 1) < 1e-12
    spinning = bodies.energy().kinetic - 0.5 * mass[0] * (state["velocity"][0] ** 2).sum()
    np.testing.assert_allclose(spinning, kinetic - 0.5 * mass[0] * 10.0, rtol=0.01)


def test_energy_does_not_grow_in_a_frictionless_drop(device):
    bodies = world(device, stiffness=2e4, pixels=48)
    ground(bodies, device)
    bodies.add(abut.Mesh(*cases.icosphere(320, 0.5), device), shift(0, 0, 1.0), field=48)
    start, height, energy = bodies.energy().total, [], []
    for _ in range(90):
        bodies.step(0.02, 20)
        height.append(bodies.state()["position"][1, 2])
        energy.append(bodies.energy().total)
    tops = [k for k in range(1, 89) if height[k - 1] < height[k] >= height[k + 1]]
    assert len(tops) == 2 and min(height) < 0.5
    assert all(abs(energy[k] / start - 1) < 1e-3 for k in tops)
    assert max(energy) < 1.03 * start  # at impact, where the step shows


def test_damping_takes_energy(device):
    bodies = world(device, stiffness=2e4, damping=50.0, pixels=48)
    ground(bodies, device)
    bodies.add(abut.Mesh(*cases.icosphere(320, 0.5), device), shift(0, 0, 1.0), field=48)
    start = bodies.energy().total
    bodies.step(0.7, 700)
    assert bodies.energy().total < 0.9 * start


@pytest.mark.parametrize("tangential_stiffness", [0.0, 5e3])
def test_momentum_is_conserved_in_a_collision(tangential_stiffness, device):
    """Friction and damping included; two bodies far from anything else."""
    friction = {"friction": 0.5, "slip": 1e-3, "tangential_stiffness": tangential_stiffness}
    bodies = world(device, gravity=(0, 0, 0), damping=20.0, **friction)
    gem, brick = cases.gem(320, radius=0.5), block(device)
    bodies.add(
        abut.Mesh(*gem, device), shift(-0.9, 0.2, 0.1), velocity=[2, 0, 0, 1, 2, 3], field=40
    )
    bodies.add(brick, shift(0.9, 0, 0), velocity=[-2, 0, 0.1, 0, 0, -2], field=40)
    solids = [solid_of(gem.vertices, gem.faces), solid_of(*cases.box())]
    mass = np.array([solid.volume for solid in solids])
    inertia = np.array([solid.inertia for solid in solids])
    before = momenta(bodies, mass, inertia)
    speed = bodies.state()["velocity"]
    bodies.step(0.4, 400)
    after = momenta(bodies, mass, inertia)
    assert np.abs(bodies.state()["velocity"] - speed).max() > 1.0  # they met
    np.testing.assert_allclose(after[0], before[0], atol=1e-10)
    # Forces act at the beginning of a step and levers are those of then: first order in the step.
    np.testing.assert_allclose(after[1], before[1], atol=1e-2)


def stack(device, overhang=0.0, count=3, **options):
    bodies = world(device, **{"damping": 100.0, "slip": 0.1} | options)
    ground(bodies, device)
    brick = block(device)
    sunk = np.cumsum([9.81 * (count - k) / 1e4 for k in range(count)])
    at = [shift(overhang * k, 0, 0.5 + k - sunk[k]) for k in range(count)]
    bodies.add(brick, np.stack(at), field=32)
    return bodies


FRICTION = {
    "none": {},
    "dynamic": {"friction": 0.4},
    "static": {"friction": 0.4, "tangential_stiffness": 1e4},
}


@pytest.mark.parametrize(
    "friction, seconds",
    [
        ("none", 0.5),  # no longer: without friction the stack is an unstable equilibrium
        ("dynamic", 0.5),
        ("static", 0.5),
        pytest.param("dynamic", 10.0, marks=pytest.mark.slow),
        pytest.param("static", 10.0, marks=pytest.mark.slow),
    ],
)
def test_a_stack_stays_at_rest(friction, seconds, device):
    bodies = stack(device, **FRICTION[friction])
    start = bodies.state()
    for _ in range(round(seconds / 0.1)):
        bodies.step(0.1, 50)
    state = bodies.state()
    assert np.abs(state["position"] - start["position"]).max() < 2e-3
    tilt = 2 * np.linalg.norm(state["rotation"][:, :3], axis=1)
    assert tilt.max() < 2e-3
    if seconds > 5:
        assert np.abs(state["velocity"]).max() < 1e-5
        assert np.abs(state["spin"]).max() < 1e-5


@pytest.mark.slow
def test_an_overhanging_stack_comes_to_rest(device):
    """Fields lean outwards at the edges; static friction holds the bodies there."""
    bodies = stack(device, overhang=0.02, **FRICTION["static"] | {"damping": 200.0})
    bodies.step(10.0, 10000)
    start = bodies.state()["position"]
    bodies.step(2.0, 2000)
    state = bodies.state()
    assert np.abs(state["velocity"]).max() < 1e-5 and np.abs(state["spin"]).max() < 1e-5
    assert np.abs(state["position"] - start).max() < 1e-5


def on_a_slope(device, degrees, friction):
    """A flat block on level ground, and gravity that leans."""
    angle = np.radians(degrees)
    gravity = 9.81 * np.array([np.sin(angle), 0.0, -np.cos(angle)])
    bodies = world(
        device, gravity=tuple(gravity), damping=100.0, friction=friction, tangential_stiffness=3e4
    )
    ground(bodies, device)
    flat = block(device, (1.0, 1.0, 0.2))
    bodies.add(flat, shift(-1, 0, 0.1 - 9.81 * 0.2 / 1e4), field=40)
    return bodies, angle


def test_static_friction_holds_on_a_slope(device):
    bodies, _ = on_a_slope(device, 20.0, friction=0.4)  # tan 20 degrees is 0.364
    bodies.step(0.5, 500)
    start = bodies.state()["position"]
    bodies.step(0.5, 500)
    state = bodies.state()
    assert np.abs(state["velocity"][1]).max() < 1e-5
    assert np.abs(state["position"] - start).max() < 1e-5


def test_a_steep_slope_overcomes_static_friction(device):
    bodies, angle = on_a_slope(device, 30.0, friction=0.4)
    bodies.step(0.3, 300)
    before = bodies.state()["velocity"][1, 0]
    bodies.step(0.2, 200)
    gained = bodies.state()["velocity"][1, 0] - before
    want = 9.81 * (np.sin(angle) - 0.4 * np.cos(angle))
    np.testing.assert_allclose(gained / 0.2, want, rtol=0.03)


def test_friction_slows_a_sliding_block(device):
    bodies = world(device, stiffness=1e4, damping=300.0, friction=0.3, slip=1e-3)
    ground(bodies, device)
    flat = block(device, (1.0, 1.0, 0.2))
    depth = 9.81 * 0.2 / 1e4
    bodies.add(flat, shift(-1, 0, 0.1 - depth), velocity=[2, 0, 0, 0, 0, 0], field=40)
    bodies.step(0.3, 300)
    np.testing.assert_allclose(bodies.state()["velocity"][1, 0], 2 - 0.3 * 9.81 * 0.3, rtol=0.02)


def test_a_waving_floor(device):
    """Heights and speeds follow the waves; a ball on it goes up and down with it."""
    sheet = abut.Mesh(*cases.plane(41, 41, size=4.0), device)
    floor = sim.WavingFloor(sheet, height=(0.2, 0.0), length=(1e6, 1e6), period=(2.0, 1.0))
    bodies = world(device, stiffness=2e3, damping=100.0)
    i = bodies.add_floor(floor)
    bodies.add(abut.Mesh(*cases.icosphere(320, 0.5), device), shift(0, 0, 0.49), field=32)
    heights = []
    for _ in range(20):
        bodies.step(0.1, 100)
        heights.append(bodies.state()["position"][1, 2])
        z = bodies.mesh(i).points.numpy()[:, 2]
        np.testing.assert_allclose(z, -0.2 * np.sin(np.pi * (bodies.time - 1e-3)), atol=1e-4 + 2e-3)
        assert floor.bounds[0, 2] <= z.min() and z.max() <= floor.bounds[1, 2]
    assert min(heights) < 0.36 and max(heights) > 0.62


@pytest.mark.parametrize("tangential_stiffness", [0.0, 5e3])
def test_the_same_bytes_on_every_run(tangential_stiffness, device):
    def run():
        friction = {"friction": 0.3, "tangential_stiffness": tangential_stiffness}
        bodies = world(device, damping=20.0, **friction)
        ground(bodies, device)
        gem = abut.Mesh(*cases.gem(320, radius=0.5), device)
        bodies.add(
            gem, np.stack([shift(0.4 * k, 0.1 * k, 0.8 + 0.6 * k) for k in range(3)]), field=24
        )
        bodies.step(0.6, 150)
        return bodies.state()

    one, two = run(), run()
    for name, value in one.items():
        np.testing.assert_array_equal(two[name], value)


def test_queues_grow_without_loss(device, monkeypatch):
    def run():
        bodies = stack(device, **FRICTION["static"])
        bodies.step(0.02, 10)
        bodies.step(0.1, 20)
        return bodies.state(), bodies.energy()

    want = run()
    monkeypatch.setattr(rigid_step, "FIRST_PAIRS", 1)
    monkeypatch.setattr(rigid_step, "FIRST_KEYS", 4)
    monkeypatch.setattr(rigid_step, "FIRST_SPRINGS", 1)
    got = run()
    for name, value in want[0].items():
        np.testing.assert_array_equal(got[0][name], value)
    assert got[1] == want[1]


def test_bodies_may_come_later(device):
    bodies = world(device)
    brick = block(device)
    bodies.add(brick, shift(0, 0, 5), velocity=[1, 0, 0, 0, 0, 1], field=16)
    bodies.step(0.1, 10)
    state = bodies.state()
    assert bodies.add(brick, shift(9, 0, 0)).tolist() == [1]
    for name, value in bodies.state().items():
        np.testing.assert_allclose(value[0], state[name][0], atol=1e-15)
    assert len(bodies) == 2 and abs(bodies.time - 0.1) < 1e-12


def test_springs_outlast_new_bodies(device):
    """A block that static friction holds stays where it is when another body comes."""
    bodies, _ = on_a_slope(device, 20.0, friction=0.4)
    bodies.step(0.5, 500)
    start = bodies.state()["position"][1]
    bodies.add(block(device), shift(9, 0, 9), field=16)
    bodies.step(0.1, 100)
    assert np.abs(bodies.state()["position"][1] - start).max() < 1e-5


def test_bad_input_is_refused(device):
    bodies = world(device)
    with pytest.raises(abut.MeshError, match="encloses no volume"):
        bodies.add(abut.Mesh(*cases.plane(), device))
    with pytest.raises(abut.OptionError, match="density must be above 0"):
        bodies.add(block(device), density=0, field=8)
    with pytest.raises(abut.OptionError, match="velocity must have shape"):
        bodies.add(block(device), velocity=[1, 2, 3], field=8)
    with pytest.raises(abut.OptionError, match="stiffness must be a number"):
        world(device, stiffness=-1)
    with pytest.raises(abut.OptionError, match="sampling must be one of"):
        world(device, sampling="random")
    with pytest.raises(abut.OptionError, match="static friction needs"):
        world(device, tangential_stiffness=1.0, sampling="dominant")
    with pytest.raises(abut.PoseError):
        bodies.add(block(device), 2 * np.eye(4), field=8)
