"""A cloth falls over a round table, or over a ball."""

import numpy as np

from abut.cases.draped_sheets import drape_ball, drape_table
from abut.cases.placed_shapes import PlacedShapes
from abut.cases.shape import Shape
from abut.query.collide import collide
from abut.query.cull import cull
from abut.query.self_collide import self_collide
from abut.query.within import within
from abut.sim.cloth import Cloth, Fabric
from abut.sim.simulation import Seen, Simulation, box_corners

STEPS, SECONDS = 3, 0.01  # of a frame


class Drape(Simulation):
    """A square of cloth falls over something round (Quick-CULLIDE §6, gProximity §6).

    Args:
        placed: The sheet and the obstacle.
        fabric: The material of the sheet.
        device: None is the first CUDA device, else the CPU.
    """

    stages = ("near", "motion", "safe way")
    other_method = "far"

    def __init__(
        self, placed: PlacedShapes, fabric: Fabric | None = None, device: object = None
    ) -> None:
        self.face_count = placed.face_count
        sheet, self.solid = placed.placed()
        self.cloth = Cloth(sheet, self.solid, fabric=fabric, device=device)
        reach = 0.55 * np.ptp(sheet.vertices[:, 0])
        top = self.solid.vertices[:, 2].max()
        low, high = (-reach, -reach, top - 0.8 * reach), (reach, reach, top + 0.1 * reach)
        self.around = box_corners(low, high)

    def advance(self) -> dict[str, int]:
        """Make three steps of a hundredth of a second."""
        return advanced(self.cloth, STEPS, SECONDS)

    def seen(self) -> list[Seen]:
        """Return the cloth and the obstacle."""
        points, faces = self.cloth.mesh.points.numpy(), self.cloth.mesh.faces.numpy()
        return [Seen(Shape(points, faces), "cloth"), Seen(self.solid, "wood")]

    def rows(self, method: str) -> np.ndarray:
        """Return near faces of the cloth (0, 0), and of cloth and obstacle (0, 1)."""
        return near_face_rows(self.cloth, method)


def advanced(cloth: Cloth, steps: int, seconds: float) -> dict[str, int]:
    """Make steps; returns their statistics and the number of intersections afterwards (0)."""
    reports = [cloth.step(seconds) for _ in range(steps)]
    meeting = len(self_collide(cloth.mesh))
    if cloth.obstacle is not None:
        meeting += len(collide(cloth.mesh, cloth.obstacle))
    return {
        "near": reports[-1].near,
        "impacts": sum(report.impacts for report in reports),
        "rounds": max(report.rounds for report in reports),
        "meeting": meeting,
    }


def near_face_rows(cloth: Cloth, method: str) -> np.ndarray:
    """Return (n, 4) near faces of a cloth with itself and with its obstacle.

    Args:
        cloth: In its present shape.
        method: One of ``abut.within``; or ``far``: the rows of ``bvh`` whose faces culling at that
            distance keeps, which should be all.
    """
    by = "bvh" if method == "far" else method
    meshes = [mesh for mesh in (cloth.mesh, cloth.obstacle) if mesh is not None]
    found = []
    for other, mesh in enumerate([None, *meshes[1:]]):
        pairs = within(cloth.mesh, mesh, cloth.reach, method=by).pairs.numpy()
        found.append(np.column_stack([np.full((len(pairs), 2), [0, other]), pairs]))
    rows = np.concatenate(found)
    if method != "far":
        return rows
    culled = cull(meshes, distance=cloth.reach, self_collisions=True, pixels=512)
    kept = np.zeros((len(meshes), max(mesh.face_count for mesh in meshes)), bool)
    kept[tuple(culled.faces.numpy().T)] = True
    return rows[kept[rows[:, :2], rows[:, 2:]].all(axis=1)]


def cloth_over_table(faces: int = 20_000, device: object = None) -> Drape:
    """Drop a cloth of ``faces`` faces over a round table."""
    return Drape(drape_table(faces), device=device)


def cloth_over_ball(faces: int = 20_000, device: object = None) -> Drape:
    """Drop a cloth of ``faces`` faces over a ball."""
    return Drape(drape_ball(faces), device=device)
