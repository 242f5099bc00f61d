"""Simulate a cloth that falls over a ball without contact, and film it."""

import numpy as np

import abut
from abut import cases, sim, view

sheet, ball = cases.drape_ball(faces=1200, size=1.6).placed()
cloth = sim.Cloth(sheet, ball, fabric=sim.Fabric(friction=0.2, thickness=0.05))

corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-0.7, 0.6)])
film = view.Film(corners, size=(120, 80), elevation=15)

touching = impacts = 0
for _ in range(8):
    for _ in range(3):
        impacts += cloth.step(0.02).impacts
    touching += len(abut.self_collide(cloth.mesh)) + len(abut.collide(cloth.mesh, cloth.obstacle))
    shape = cases.Shape(cloth.mesh.points.numpy(), sheet.faces)
    film.take([view.Body(shape, view.INDIGO), view.Body(ball, view.SAND)])

low = cloth.mesh.points.numpy()[:, 2].min()
print(f"after {cloth.seconds:.2f} s the cloth reaches down to {low:.2f}")
print(f"impacts avoided: {impacts}; pairs of faces that met in any frame: {touching}")
print("written:", film.save("out/cloth.gif"), film.save_sheet("out/cloth.png"))
