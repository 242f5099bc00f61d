"""Simulate bricks on a waving floor: rigid bodies with contact by distance fields."""

import numpy as np

import abut
from abut import cases, sim, view

brick = abut.Mesh(*cases.box((0.5, 0.3, 0.2)))
floor = sim.WavingFloor(
    abut.Mesh(*cases.plane(60, 60, size=3.0)), height=(0.05, 0.04), length=(1.5, 2.0)
)
bodies = sim.RigidBodies(stiffness=3e5, damping=1500.0, friction=0.4, slip=0.05, pixels=48)
bodies.add_floor(floor)

rng = np.random.default_rng(0)
poses = np.tile(np.eye(4), (8, 1, 1))
for k, pose in enumerate(poses):
    angle = rng.uniform(0, np.pi)
    pose[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    pose[:3, 3] = *rng.uniform(-0.2, 0.2, 2), 0.35 + 0.3 * k
bodies.add(brick, poses, field=32, density=100.0)

film = view.Film(np.array([[-1, -1, 0], [1, 1, 2.2]]), size=(240, 180))


def look():
    """Surfaces of the current frame."""
    sheet = bodies.mesh(0)
    solids = [view.Body(cases.Shape(sheet.points.numpy(), sheet.faces.numpy()), view.SAND)]
    points, faces = brick.points.numpy(), brick.faces.numpy()
    for pose in bodies.poses[1:]:
        placed = points @ pose[:3, :3].T + pose[:3, 3]
        solids.append(view.Body(cases.Shape(placed, faces), view.CORAL))
    return solids


for _ in range(6):
    film.take(look())
    bodies.step(0.1, 100)
    energy = bodies.energy()
    print(
        f"{bodies.time:.1f} s: {bodies.pair_count} pairs near, kinetic energy {energy.kinetic:.3f}"
    )
print("drawn:", film.save_sheet("out/bricks.png"))
