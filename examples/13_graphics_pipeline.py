"""Cull by kernels and by the graphics pipeline, and draw the survivors."""

import abut
from abut import cases, view

shapes = cases.pair("knot", 2000)
meshes = [abut.Mesh(*shape) for shape in shapes]
faces = sum(mesh.face_count for mesh in meshes)

for backend in ("warp", "gl"):
    try:
        left = abut.cull(meshes, pixels=300, order="drawn", backend=backend)
    except abut.ToolError as why:
        print(why)  # no OpenGL here
        continue
    print(f"{len(left):4} of {faces} faces may collide, {backend}: {left.milliseconds:.1f} ms")

# with either backend all intersecting faces are among the red ones
rows = left.faces.numpy()
for side, column in enumerate(abut.collide(*meshes).pairs.numpy().T):
    assert set(column) <= set(rows[rows[:, 0] == side, 1])

colors = view.SAND, view.TEAL
bodies = [
    view.Body(shape, color, marked=rows[rows[:, 0] == side, 1], mark=view.RED)
    for side, (shape, color) in enumerate(zip(shapes, colors, strict=True))
]
view.save_picture("out/left.png", view.render(bodies, size=(300, 200)))
print("drawn: out/left.png")
