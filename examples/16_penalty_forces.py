"""Compute penalty forces of two overlapping solids, and their derivatives."""

import numpy as np
import warp as wp

import abut
from abut import cases

gem = abut.Mesh(*cases.gem(2000))
ring = abut.Mesh(*cases.torus(48, 24, thick=0.25))
field = abut.DistanceField(gem, resolution=64, margin=0.5)

# The ring approaches along x and rotates. One call answers all its poses.
shifts = np.linspace(2.4, 1.0, 8)
poses = np.tile(np.eye(4), (8, 1, 1))
poses[:, 0, 3] = shifts
near = field.closest(ring, poses, pixels=256)
push = field.response(
    ring,
    poses,
    pixels=256,
    stiffness=100.0,
    damping=2.0,
    friction=0.3,
    velocity=[-1.0, 0, 0, 0, 0.5, 0],  # of the ring: towards the gem, rotating about y
)
print("shift   distance   area inside   force on the gem")
for x, d, area, force in zip(
    shifts, near.distance.numpy(), push.area.numpy(), push.force.numpy(), strict=True
):
    print(f"{x:5.2f}   {d:8.4f}   {area:11.4f}   {np.round(force, 3).tolist()}")
back = push.on_other.force.numpy() + push.force.numpy()
print("action and reaction add up to", float(np.abs(back).max()))

# Slide the ring out: descend the gradient of the energy with respect to its pose.
at = wp.array(
    [wp.transformd(wp.vec3d(1.0, 0.2, 0.1), wp.quatd(0.0, 0.0, 0.0, 1.0))],
    dtype=wp.transformd,
    device=field.device,
    requires_grad=True,
)
one = wp.array([1.0], dtype=wp.float64, device=field.device)
for step in range(200):
    tape = wp.Tape()
    with tape:
        held = field.response_on_tape(ring, at, pixels=64)
    energy = float(held.energy.numpy()[0])
    if step % 40 == 0 or energy < 1e-6:
        print(f"step {step:3d}: energy {energy:.6f}")
    if energy < 1e-6:
        break
    tape.backward(grads={held.energy: one})
    row = at.numpy()[0]
    row[:3] -= 0.2 * at.grad.numpy()[0, :3]
    at.assign([row])
out = np.eye(4)
out[:3, 3] = at.numpy()[0, :3]
print("slid out to", out[:3, 3].round(3).tolist())
print("still colliding:", bool(abut.collide(gem, ring, pose_b=out)))
