"""Rigid bodies fall, hit and rest; objects break, and their pieces take part at once."""

import numpy as np
import pytest

from abut import cases, sim
from abut.cases.placed_shapes import rotations_of_quaternions
from abut.sim.impulse_solver import contact_points
from abut.sim.rigid_state import quaternions_of

DOWN = np.array([0.0, 0.0, -9.81])


def at(*places):
    poses = np.tile(np.eye(4), (len(places), 1, 1))
    poses[:, :3, 3] = places
    return poses


def momentum(bodies):
    """Linear momentum, and angular momentum about the origin, of bodies that move."""
    mass = 1 / bodies.inverse_mass[:, None]
    rotations = rotations_of_quaternions(bodies.rotation)
    inertia = np.linalg.inv(
        np.einsum("nij,njk,nlk->nil", rotations, bodies.inverse_inertia, rotations)
    )
    own = np.einsum("nij,nj->ni", inertia, bodies.spin)
    around = np.cross(bodies.position, mass * bodies.velocity) + own
    return np.concatenate([(mass * bodies.velocity).sum(axis=0), around.sum(axis=0)])


def kinetic_energy(bodies):
    """Kinetic energy of bodies that all move."""
    rotations = rotations_of_quaternions(bodies.rotation)
    local = np.einsum("nji,nj->ni", rotations, bodies.spin)
    rotating = np.einsum("ni,nij,nj->", local, np.linalg.inv(bodies.inverse_inertia), local)
    return 0.5 * (((bodies.velocity**2).sum(axis=1) / bodies.inverse_mass).sum() + rotating)


def test_masses_of_a_box():
    bodies = sim.RigidState.of([cases.box((1, 2, 3)).moved((5, 0, 0))], at((0, 0, 1)), density=2.0)
    assert bodies.inverse_mass == pytest.approx(1 / 12)
    assert bodies.position[0] == pytest.approx([5, 0, 1])
    inertia = np.linalg.inv(bodies.inverse_inertia[0])
    assert inertia == pytest.approx(np.diag([13.0, 10.0, 5.0]), abs=1e-6)
    assert bodies.poses()[0] == pytest.approx(at((0, 0, 1))[0])


def test_open_shapes_weigh_as_their_box():
    bodies = sim.RigidState.of([cases.plane(4, 4, 2.0)], at((0, 0, 0)))
    assert bodies.inverse_mass == pytest.approx(1 / (2 * 2 * 2e-3))


def test_quaternions_come_back():
    q = np.random.default_rng(0).normal(size=(500, 4))
    q = np.concatenate([q, np.eye(4), np.eye(4) + 1e-9])
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    assert np.abs((quaternions_of(rotations_of_quaternions(q)) * q).sum(axis=1)) == pytest.approx(
        np.ones(508)
    )


def test_bodies_rotate_by_their_spin():
    bodies = sim.RigidState.of([cases.box()], at((0, 0, 0)))
    bodies.spin[0] = [0, 0, np.pi / 2]
    for _ in range(1000):
        bodies.integrate(1e-3)
    rotation = bodies.poses()[0, :3, :3]
    assert rotation == pytest.approx(np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]]), abs=1e-3)


def test_a_hit_keeps_momentum_and_loses_energy(device):
    ball = cases.icosphere(320)
    solver = sim.ImpulseSolver([ball, ball], at((0, 0, 0), (1.9, 0.5, 0.1)), device=device)
    solver.bodies.velocity[1] = [-3, 0, 0]
    solver.bodies.spin[0] = [1, 2, 3]
    before, energy = momentum(solver.bodies), kinetic_energy(solver.bodies)
    hits = solver.step(1e-9, np.zeros(3))
    assert len(hits) > 0
    assert momentum(solver.bodies) == pytest.approx(before, abs=1e-6)
    assert solver.bodies.velocity[0, 0] < -0.5
    assert kinetic_energy(solver.bodies) < energy


def test_balls_exchange_velocities_head_on(device):
    ball = cases.icosphere(1280)
    look = sim.Surfaces(bounce=1.0, friction=0.0)
    solver = sim.ImpulseSolver(
        [ball, ball], at((0, 0, 0), (1.98, 0, 0)), surfaces=look, device=device
    )
    solver.bodies.velocity[:, 0] = [1.0, -1.0]
    solver.step(1e-9, np.zeros(3))
    assert solver.bodies.velocity[:, 0] == pytest.approx([-1.0, 1.0], abs=0.02)


def test_a_box_comes_to_rest_on_the_floor(device):
    shapes = [cases.box(), cases.box((10, 10, 1))]
    solver = sim.ImpulseSolver(
        shapes, at((0, 0, 0.6), (0, 0, -0.5)), fixed=np.array([False, True]), device=device
    )
    for _ in range(200):
        solver.step(0.005, DOWN)
    assert solver.bodies.position[0] == pytest.approx([0, 0, 0.5], abs=0.05)
    assert np.abs(solver.bodies.velocity[0]).max() < 0.3
    assert np.array_equal(solver.bodies.position[1], [0, 0, -0.5])
    assert rotations_of_quaternions(solver.bodies.rotation)[0] == pytest.approx(np.eye(3), abs=0.1)


def test_friction_stops_a_sliding_box(device):
    def slid(friction):
        look = sim.Surfaces(bounce=0.0, friction=friction)
        options = {"fixed": np.array([False, True]), "surfaces": look, "device": device}
        shapes = [cases.box(), cases.box((20, 20, 1))]
        solver = sim.ImpulseSolver(shapes, at((0, 0, 0.5), (0, 0, -0.5)), **options)
        solver.bodies.velocity[0, 0] = 2.0
        for _ in range(100):
            solver.step(0.005, DOWN)
        return solver.bodies.velocity[0, 0]

    assert slid(0.0) == pytest.approx(2.0, abs=0.05)
    assert abs(slid(0.8)) < 0.3


def test_contact_points_are_the_outermost():
    """The outermost points of a grid are chosen, with the mean normal."""
    x, y = (c.ravel() for c in np.meshgrid(np.arange(5.0), np.arange(3.0)))
    places = np.stack([x, y, 0 * x], axis=1)
    segments = np.stack([places, places + 1e-3], axis=1)
    found = contact_points(
        np.tile([[2, 7]], (15, 1)), segments, np.tile([[0.0, 0.0, 2.0]], (15, 1))
    )
    assert found.normal == pytest.approx(np.tile([0.0, 0.0, 1.0], (4, 1)))
    assert set(found.a.tolist()) == {2} and set(found.b.tolist()) == {7}
    low, high = found.point.min(axis=0), found.point.max(axis=0)
    assert (high - low)[:2] == pytest.approx([4, 2])


def test_splitting_a_body(device):
    pieces = cases.shattered(cases.box(), np.array([[-0.3, 0, 0], [0.3, 0, 0]]), 1e-3)
    whole = cases.joined(*pieces)
    labels = np.repeat([0, 1], [len(piece.faces) for piece in pieces])
    shapes = [cases.icosphere(80), whole, cases.box()]
    solver = sim.ImpulseSolver(shapes, at((9, 0, 0), (0, 0, 5), (0, 0, -9)), device=device)
    before = solver.placed()[0]
    new = solver.split(1, labels)
    assert new.tolist() == [2, 3]
    assert len(solver.scene) == len(solver.shapes) == 4
    assert solver.bodies.position[new] == pytest.approx(
        np.array([[-0.25, 0, 5], [0.25, 0, 5]]), abs=1e-3
    )
    after = solver.placed()[0]
    assert np.sort(after.vertices, axis=0) == pytest.approx(np.sort(before.vertices, axis=0))
    assert len(solver.rows("bvh")) == 0


@pytest.mark.parametrize("method", ["brute", "joined", "far"])
def test_rows_by_every_method(device, method):
    placed_shapes = cases.boxes(40, room=1.3)
    solver = sim.ImpulseSolver(placed_shapes.shapes, placed_shapes.poses, device=device)
    rows = solver.rows("bvh")
    assert len(rows) > 100
    assert np.array_equal(solver.rows(method), rows)


def test_an_object_breaks_under_another(device):
    play = sim.breaking_object(1500, device)
    solver, count = play.solver, len(np.unique(play.labels))
    assert len(solver.scene) == 3
    seen = [sum(len(thing.shape.faces) for thing in play.seen())]
    for _ in range(12):
        counts = play.advance()
        seen.append(sum(len(thing.shape.faces) for thing in play.seen()))
    assert play.broken
    assert len(solver.scene) == counts["bodies"] == count + 2
    assert len(set(seen)) == 1
    assert counts["objects"] > 3
    pieces = solver.bodies.position[2:]
    assert np.linalg.norm(solver.bodies.velocity[2:], axis=1).max() > 0.1
    assert np.isfinite(pieces).all()


def test_pieces_are_hit_in_the_frame_of_the_split(device, monkeypatch):
    play = sim.breaking_object(1500, device)
    solver, found = play.solver, []
    right = solver.respond

    def respond(hits):
        found.append((len(solver.shapes), hits.object_pairs.numpy().max(initial=0)))
        right(hits)

    monkeypatch.setattr(solver, "respond", respond)
    while not play.broken:
        play.advance()
    bodies, highest = next((n, o) for n, o in found if n > 3)
    assert highest > 2 and bodies == len(np.unique(play.labels)) + 2
    assert all(n == 3 and o < 3 for n, o in found if n == 3)


def test_the_swarm_contracts_and_collides(device):
    play = sim.swarm_of_balls(16 * 320, device)
    spread = np.linalg.norm(play.solver.bodies.position, axis=1).mean()
    pairs = [play.advance()["pairs"] for _ in range(12)]
    assert max(pairs) > 0
    assert np.linalg.norm(play.solver.bodies.position, axis=1).mean() < spread
    assert np.array_equal(play.rows("bvh"), play.rows("brute"))
