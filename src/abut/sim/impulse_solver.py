"""Tumble: rigid bodies that fall, hit each other and pile up; contacts are those of a Scene."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from abut.cases.placed_shapes import rotations_of_quaternions
from abut.cases.shape import Shape
from abut.core.timing import stage
from abut.mesh import Mesh
from abut.operands.soup import soup_of
from abut.query.self_collide import self_collide
from abut.scene.contacts import SceneContacts
from abut.scene.scene import Scene
from abut.sim.impulses import leaning, push_apart
from abut.sim.rigid_state import Lumps


@dataclass(frozen=True)
class Surfaces:
    """How bodies hit and rub.

    Attributes:
        bounce: Share of the speed of approach that comes back, in [0, 1].
        friction: Coefficient of Coulomb.
        parting: Least speed at which bodies that meet leave each other.
    """

    bounce: float = 0.2
    friction: float = 0.5
    parting: float = 0.05


class Tumble:
    """Rigid bodies in a scene.

    A small solver for demos: bodies that meet in a step are pushed apart by impulses in the next
    ones. They may sink into each other for some steps; ``abut.sim.Cloth`` is the one that never
    does.

    Args:
        shapes: One for each body; bodies may share one.
        poses: (n, 4, 4) where they are.
        fixed: (n,) bool, those that do not move; None: all move.
        density: Mass over volume.
        surfaces: How bodies hit and rub.
        device: None is the first CUDA device, else the CPU.

    Attributes:
        scene: The objects, one for each body.
        bodies: Where they are and how they move.
        objects: (n,) the object of each body.
    """

    def __init__(
        self,
        shapes: list[Shape],
        poses: np.ndarray,
        *,
        fixed: np.ndarray | None = None,
        density: float = 1.0,
        surfaces: Surfaces | None = None,
        device: Any = None,
    ) -> None:
        self.scene = Scene(device)
        self.surfaces = surfaces or Surfaces()
        self.shapes: list[Shape] = []
        self.bodies = Lumps.of(shapes, poses, density)
        self.objects = np.zeros(0, np.int64)
        fixed = np.zeros(len(shapes), bool) if fixed is None else fixed
        self.bodies.fixed(fixed)
        meshes: dict[int, Mesh] = {}
        objects = []
        for shape, pose in zip(shapes, poses, strict=True):
            mesh = meshes.setdefault(id(shape), Mesh(*shape, device=self.scene.device))
            objects.append(self.scene.add(mesh, pose))
        self._take(shapes, np.array(objects))

    def step(self, seconds: float, pull: np.ndarray) -> SceneContacts:
        """Let time pass.

        Args:
            seconds: How much.
            pull: (3,) or (n, 3) acceleration of the bodies.
        """
        self.move(seconds, pull)
        hits = self.collide()
        self.respond(hits)
        return hits

    def move(self, seconds: float, pull: np.ndarray) -> None:
        """The first part of a step: go on as if nothing were in the way."""
        with stage("motion", self.scene.device):
            bodies = self.bodies
            moving = bodies.lightness > 0
            bodies.velocity[moving] += (
                seconds * np.broadcast_to(pull, bodies.velocity.shape)[moving]
            )
            bodies.drift(seconds)
            self.scene.move(self.objects[moving], bodies.poses()[moving])

    def collide(self) -> SceneContacts:
        """The second part: find what meets."""
        with stage("collide", self.scene.device):
            return self.scene.collide()

    def respond(self, hits: SceneContacts) -> None:
        """The last part: push apart what meets."""
        with stage("impulses", self.scene.device):
            if len(hits):
                look = self.surfaces
                options = {"bounce": look.bounce, "friction": look.friction}
                push_apart(self.bodies, self._leaning(hits), parting=look.parting, **options)

    def split(self, body: int, labels: np.ndarray) -> np.ndarray:
        """Break a body: its faces with one label become a body of their own.

        Returns:
            The new bodies; those after the broken one have moved up by one.
        """
        shape, pose = self.shapes[body], self.bodies.poses()[body]
        objects = self.scene.split(int(self.objects[body]), labels)
        order = np.argsort(labels, kind="stable")
        pieces = []
        for some in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
            used, faces = np.unique(shape.faces[some], return_inverse=True)
            pieces.append(Shape(shape.vertices[used], faces.reshape(-1, 3).astype(np.int32)))
        new = Lumps.of(pieces, np.broadcast_to(pose, (len(pieces), 4, 4)))
        kept = np.delete(np.arange(len(self.shapes)), body)
        old = Lumps(*(values[kept] for values in vars(self.bodies).values()))
        self.bodies = old.joined(new)
        shapes = [*(self.shapes[k] for k in kept), *pieces]
        self._take(shapes, np.concatenate([self.objects[kept], objects]))
        return np.arange(len(kept), len(shapes))

    def placed(self) -> tuple[Shape, np.ndarray]:
        """All bodies as one shape, and the body of each of its faces."""
        poses = self.bodies.poses()
        turned = np.einsum("nij,nj->ni", poses[self._owner_v, :3, :3], self._all.vertices)
        return Shape(turned + poses[self._owner_v, :3, 3], self._all.faces), self._owner_f

    def rows(self, method: str) -> np.ndarray:
        """(n, 4) contacts as they are now: objects, then faces.

        Args:
            method: One of ``Scene.collide``; ``joined`` or ``far`` take all faces as one mesh and
                look where it meets itself, by its own hierarchy or by visibility.
        """
        if method not in ("joined", "far"):
            hits = self.scene.collide(method=method)
            return np.column_stack([hits.objects.numpy(), hits.pairs.numpy()])
        soup = soup_of(self.scene.meshes, self.scene.poses.numpy())
        whole = Mesh(soup.points, soup.faces, self.scene.device)
        by = "bvh" if method == "joined" else "far"
        pairs = self_collide(whole, weld=False, method=by).pairs.numpy()
        owner = soup.object_of.numpy()[pairs]
        told = owner[:, 0] != owner[:, 1]
        rows = np.column_stack([owner, pairs - np.asarray(soup.first_face)[owner]])[told]
        return rows[np.lexsort(rows.T[::-1])]

    def _leaning(self, hits: SceneContacts) -> Any:
        objects, pairs = hits.objects.numpy(), hits.pairs.numpy()
        body = np.full(int(self.objects.max()) + 1, -1)
        body[self.objects] = np.arange(len(self.objects))
        ids = body[objects]
        turns = rotations_of_quaternions(self.bodies.turn)
        normals = np.einsum("nkij,nkj->nki", turns[ids], self._normals[self._first[ids] + pairs])
        segments = hits.segments.numpy()
        return leaning(ids, segments, normals[:, 0] - normals[:, 1])

    def _take(self, shapes: list[Shape], objects: np.ndarray) -> None:
        self.shapes, self.objects = shapes, objects
        sizes = np.array([[len(shape.vertices), len(shape.faces)] for shape in shapes])
        firsts = np.cumsum(sizes, axis=0) - sizes
        self._first = firsts[:, 1]
        self._owner_v, self._owner_f = (np.repeat(np.arange(len(shapes)), s) for s in sizes.T)
        vertices = np.concatenate([shape.vertices for shape in shapes])
        faces = np.concatenate([shape.faces for shape in shapes])
        self._all = Shape(vertices, (faces + firsts[self._owner_f, :1]).astype(np.int32))
        a, b, c = (vertices[corner] for corner in self._all.faces.T)
        area = np.cross(b - a, c - a)
        self._normals = area / np.maximum(np.linalg.norm(area, axis=1, keepdims=True), 1e-300)
