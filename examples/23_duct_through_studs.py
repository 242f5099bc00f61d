"""Check the parts of a model against each other by rules: verdicts, depths and groups."""

import abut
from abut import cases


def block(size, at):
    vertices, faces = cases.box(size)
    return abut.Mesh(vertices - vertices.min(axis=0) + at, faces)


parts = {f"stud {k}": block((0.05, 0.1, 2.5), (0.6 * k, 0, 0)) for k in range(6)}
parts |= {
    "sill": block((3.2, 0.1, 0.05), (-0.05, 0, -0.05)),  # the studs stand on it
    "duct": block((4, 0.06, 0.2), (-0.3, 0.02, 1)),  # passes through all studs
    "pipe": block((4, 0.03, 0.03), (-0.3, 0.12, 1.5)),  # passes 20 mm before them
    "box": block((0.08, 0.06, 0.1), (0.61, 0.02, 2)),  # reaches into a stud by 40 mm
}
rules = {
    "tolerance": 0.001,
    "sets": {"frame": {"name": ["stud *", "sill"]}, "services": {"name": ["duct", "pipe", "box"]}},
    "checks": [{"a": "services", "b": "frame", "clearance": 0.05}, {"a": "frame"}],
}

found = abut.clash(abut.Scene(parts), rules)
print(found)
for row in found:
    size = f"{1e3 * row['depth']:.0f} mm deep"
    if row["verdict"] == abut.Verdict.ENCROACH:
        size = f"{1e3 * row['distance']:.0f} mm apart"
    print(f"group {row['group']}: {row['a']}, {row['b']}: {row['verdict']}, {size}")

# Touching parts are no clash unless a rule asks for them.
print(abut.clash(abut.Scene(parts), rules | {"touch": True}))
