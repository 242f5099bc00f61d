"""Build a distance field once and query it millions of times."""

import time

import numpy as np

import abut
from abut import cases

knot = cases.pair("knot")[0]
mesh = abut.Mesh(*knot)
field = abut.DistanceField(mesh, resolution=96)
cell = field.box.spacing
print(f"{field}: {field.nbytes / 1e6:.0f} MB, inside by {field.sign}")

points = np.random.default_rng(0).uniform(field.box.lower, field.box.upper, size=(200_000, 3))


def timed(what, ask):
    """Run twice: the first run compiles kernels."""
    ask()
    start = time.perf_counter()
    answer = ask()
    print(f"{what}: {(time.perf_counter() - start) * 1e3:.1f} ms")
    return answer


def exact():
    """Exact distances."""
    return abut.closest_point(mesh, points, signed=True).numpy()["distance"]


def sampled():
    """Sampled distances."""
    return field.sample(points).numpy()


true = timed("closest_point", exact)
found = timed("sample", sampled)

# Between samples the field is linear: less accurate at creases of the distance.
error = np.abs(found["distance"] - true) / cell
print(f"off by {np.median(error):.4f} of a cell, at most {error.max():.2f}")

# Move points inside to the surface, along the direction of the field.
inside = found["distance"] < 0
way = -found["distance"][inside, None] * found["direction"][inside]
left = abut.closest_point(mesh, points[inside] + way).distance.numpy() / cell
print(f"{inside.sum():,} points put on the surface, {np.median(left):.4f} of a cell beside it")

# A narrow band is enough for contact, and faster to build.
band = timed("band", lambda: abut.DistanceField(mesh, resolution=96, band=4 * cell))
print(f"cut off at {band.distance.numpy().max() / cell:.1f} cells")
