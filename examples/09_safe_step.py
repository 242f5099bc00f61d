"""Find the safe step and the first contact of a cloth that folds through itself."""

import numpy as np

import abut
from abut import cases

GAP = 1e-3

cloth = cases.plane(40, 40)
start = cloth.vertices - cloth.vertices.mean(axis=0)
reach = np.abs(start[:, 0]).max()

# the right half swings over and through the left half
end = start.copy()
right = end[:, 0] > 0
end[right, 0] *= -0.8
end[right, 2] -= 0.3 * reach
start[:, 2] += 0.5 * np.maximum(start[:, 0], 0.0)

mesh = abut.Mesh(start, cloth.faces)
move = abut.Motion(mesh, end)
step = abut.ccd(move, min_distance=GAP, first=True)
kind = abut.ImpactKind(int(step.kind.numpy()[0])).name
print(f"safe step: {step.safe_step:.4f} ({kind} {step.features.numpy()[0].tolist()})")

hits = abut.ccd(move, min_distance=GAP)
times = hits.time.numpy()
print(f"impacts: {len(hits)}, half of them by {np.median(times):.3f} of the step")

# up to the safe step nothing touches
mesh.deform((1 - step.safe_step) * start + step.safe_step * end)
print(f"pairs of faces that meet then: {len(abut.self_collide(mesh))}")
