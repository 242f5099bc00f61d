"""Take parts as solids: touching or clashing, how deep, and how to part them."""

import numpy as np

import abut
from abut import cases


def block(size, at):
    vertices, faces = cases.box(size)
    return abut.Mesh(vertices - vertices.min(axis=0) + at, faces)


house = abut.Scene(
    {
        "slab": block((6, 4, 0.2), (0, 0, -0.2)),
        "wall": block((6, 0.25, 2.5), (0, 0, 0)),  # stands on the slab
        "duct": block((0.3, 1.5, 0.3), (2, -0.5, 1.8)),  # goes through the wall
        "pipe": block((0.05, 3, 0.05), (4, 0.1, 1.0)),  # ends inside the wall
        "box": block((0.1, 0.1, 0.1), (5, 0.08, 1.0)),  # is inside the wall
        "table": block((1, 1, 0.8), (3, 2, 0)),
    }
)

found = house.overlap(volume=True)
names, relations = house.name_of(found.objects.numpy()), list(abut.Relation)
print(f"{len(found)} pairs of {len(house)} parts are not apart")
for k, (a, b) in enumerate(names):
    relation = relations[found.relation.numpy()[k]]
    if relation == "touching":
        print(f"{a} and {b}: touching")
        continue
    move = found.separation.numpy()[k]
    print(
        f"{a} and {b}: {relation}, {found.inside_a.numpy()[k]:.3f} deep in {a}, "
        f"{found.volume.numpy()[k]:.5f} in common; {np.linalg.norm(move):.3f} parts them, "
        f"{found.separation_bound.numpy()[k]:.3f} is the least that could"
    )

# One pair in detail: the duct leaves its two openings in the wall.
wall, duct = house["wall"].mesh, house["duct"].mesh
regions = abut.overlap(wall, duct).regions
for region in regions:
    where, loop = region.centroid.round(3).tolist(), len(region.curves[0]) - 1
    print(f"opening at {where}, facing {region.normal.round(3).tolist()}, {loop} segments")
up = abut.overlap(wall, duct, along=(0, 0, 1)).separation.numpy()
print(f"along z the duct must rise by {up[2]:.3f}")
