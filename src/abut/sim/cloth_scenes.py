"""Scenes of sheets: a cloth falls over a table or a ball, leaves fall from a tree."""

import numpy as np

from abut.cases.draped_sheets import drape_ball, drape_table
from abut.cases.placed_shapes import PlacedShapes
from abut.cases.shape import Shape, joined
from abut.cases.tree import leaves
from abut.mesh import Mesh
from abut.query.collide import collide
from abut.query.cull import cull
from abut.query.self_collide import self_collide
from abut.query.within import within
from abut.sim.cloth import Cloth, Fabric
from abut.sim.simulation import Seen, Simulation, box_corners

STEPS, SECONDS = 3, 0.01  # of a frame
LAST_FALL = 1.2  # seconds after which all leaves have detached
LEAF = Fabric(stretch=0.0, bend=1e-7, braces=3, form=4e-7, drag=(6.0, 0.4), friction=0.6)
LEAF_FACES = 156
STALK = 7  # vertices, the first of each leaf


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


class FallingLeaves(Simulation):
    """Leaves that bend in the wind, detach one by one and fall through a tree (FAR §5).

    Args:
        placed: The tree, then leaves; leaves that intersect anything are left out.
        count: Leaves to keep.
        seed: Seed of the times at which leaves detach.
        device: None is the first CUDA device, else the CPU.
    """

    stages = ("near", "motion", "safe way")
    other_method = "far"

    def __init__(
        self, placed: PlacedShapes, count: int, *, seed: int = 0, device: object = None
    ) -> None:
        self.tree, *found = placed.placed()
        low, high = self.tree.vertices.min(axis=0), self.tree.vertices.max(axis=0)
        found = _apart(found, self.tree, device)[:count]
        ground = _ground((low + high) / 2, 2.0 * float((high - low).max()))
        self.count, size = len(found), len(found[0].vertices)
        self.stalks = np.arange(self.count)[:, None] * size + np.arange(STALK)
        options = {"fabric": LEAF, "pinned": self.stalks.ravel(), "wind": (0.7, 0.25, 0.0)}
        self.cloth = Cloth(joined(*found), joined(self.tree, ground), device=device, **options)
        self.loose_at = LAST_FALL * np.random.default_rng(seed).random(self.count)
        self.face_count = self.cloth.mesh.face_count + len(self.tree.faces) + len(ground.faces)
        self.around = np.concatenate([self.tree.vertices, joined(*found).vertices])

    def advance(self) -> dict[str, int]:
        """Make three steps of a hundredth of a second."""
        now = self.cloth.seconds
        due = (self.loose_at >= now) & (self.loose_at < now + STEPS * SECONDS)
        self.cloth.release(self.stalks[due].ravel())
        loose = int((self.loose_at < now + STEPS * SECONDS).sum())
        return {"loose": loose, **advanced(self.cloth, STEPS, SECONDS)}

    def seen(self) -> list[Seen]:
        """Return the tree and its leaves."""
        points, faces = self.cloth.mesh.points.numpy(), self.cloth.mesh.faces.numpy()
        part = np.repeat(np.arange(self.count), len(faces) // self.count)
        return [Seen(self.tree, "wood"), Seen(Shape(points, faces), "leaf", part)]

    def rows(self, method: str) -> np.ndarray:
        """Return near faces of the leaves (0, 0), and of leaves and tree or ground (0, 1)."""
        return near_face_rows(self.cloth, method)


def falling_leaves(faces: int = 40_000, device: object = None) -> FallingLeaves:
    """Return a tree with leaves of 156 faces, ``faces`` in all; 150 of 40K, as in the paper."""
    count = max(1, round(150 * faces / 40_000))
    return FallingLeaves(leaves(3 * count, faces - LEAF_FACES * count), count, device=device)


def _apart(found: list[Shape], tree: Shape, device: object) -> list[Shape]:
    """Return the leaves that intersect neither the tree, the ground nor an earlier leaf."""
    mesh = Mesh(*joined(*found), device=device)
    owner = np.repeat(np.arange(len(found)), [len(leaf.faces) for leaf in found])
    kept = np.array([leaf.vertices[:, 2].min() > 0.01 for leaf in found])
    kept[owner[collide(mesh, Mesh(*tree, device=device)).pairs.numpy()[:, 0]]] = False
    for a, b in owner[self_collide(mesh).pairs.numpy()].tolist():
        if kept[a] and a != b:
            kept[b] = False
    return [leaf for leaf, keep in zip(found, kept.tolist(), strict=True) if keep]


def _ground(middle: np.ndarray, size: float) -> Shape:
    corners = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * size / 2
    corners[:, :2] += middle[:2]
    return Shape(corners, np.array([[0, 1, 2], [0, 2, 3]], np.int32))
