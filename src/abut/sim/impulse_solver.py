"""ImpulseSolver: rigid bodies that fall, collide and pile up; contacts come from a Scene."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from abut.cases.placed_shapes import rotations_of_quaternions
from abut.cases.shape import Shape
from abut.core.timing import stage
from abut.mesh import Mesh
from abut.operands.soup import soup_of
from abut.query.self_collide import self_collide
from abut.scene.scene import Scene
from abut.scene.scene_results import SceneContacts
from abut.sim.rigid_state import RigidState

ITERATIONS = 20


@dataclass(frozen=True)
class Surfaces:
    """Restitution and friction of all bodies.

    Attributes:
        bounce: Coefficient of restitution, in [0, 1].
        friction: Coulomb friction coefficient.
        parting: Least speed at which bodies in contact separate.
    """

    bounce: float = 0.2
    friction: float = 0.5
    parting: float = 0.05


class ImpulseSolver:
    """Rigid bodies in a scene.

    A small solver for demos: bodies that intersect after a step are separated by impulses in the
    next ones. They may penetrate each other for some steps, unlike ``abut.sim.Cloth``.

    Args:
        shapes: One for each body; bodies may share one.
        poses: (n, 4, 4) of the bodies.
        fixed: (n,) bool, bodies that do not move; None: all move.
        density: Mass over volume.
        surfaces: Restitution and friction.
        device: None is the first CUDA device, else the CPU.

    Attributes:
        scene: The objects, one for each body.
        bodies: Their positions and velocities.
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
        self.bodies = RigidState.of(shapes, poses, density)
        self.objects = np.zeros(0, np.int64)
        fixed = np.zeros(len(shapes), bool) if fixed is None else fixed
        self.bodies.fixed(fixed)
        meshes: dict[int, Mesh] = {}
        objects = []
        for shape, pose in zip(shapes, poses, strict=True):
            mesh = meshes.setdefault(id(shape), Mesh(*shape, device=self.scene.device))
            objects.append(self.scene.add(mesh, pose))
        self._set_shapes(shapes, np.array(objects))

    def step(self, seconds: float, pull: np.ndarray) -> SceneContacts:
        """Advance by ``seconds``; ``pull`` is the acceleration, (3,) or (n, 3)."""
        self.move(seconds, pull)
        hits = self.collide()
        self.respond(hits)
        return hits

    def move(self, seconds: float, pull: np.ndarray) -> None:
        """Advance the bodies without regard to contacts, the first part of a step."""
        with stage("motion", self.scene.device):
            bodies = self.bodies
            moving = bodies.inverse_mass > 0
            bodies.velocity[moving] += (
                seconds * np.broadcast_to(pull, bodies.velocity.shape)[moving]
            )
            bodies.integrate(seconds)
            self.scene.move(self.objects[moving], bodies.poses()[moving])

    def collide(self) -> SceneContacts:
        """Find all contacts, the second part of a step."""
        with stage("collide", self.scene.device):
            return self.scene.collide()

    def respond(self, hits: SceneContacts) -> None:
        """Apply impulses at the contacts, the last part of a step."""
        with stage("impulses", self.scene.device):
            if len(hits):
                solve_impulses(self.bodies, self._contact_points(hits), self.surfaces)

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
        new = RigidState.of(pieces, np.broadcast_to(pose, (len(pieces), 4, 4)))
        kept = np.delete(np.arange(len(self.shapes)), body)
        old = RigidState(*(values[kept] for values in vars(self.bodies).values()))
        self.bodies = old.joined(new)
        shapes = [*(self.shapes[k] for k in kept), *pieces]
        self._set_shapes(shapes, np.concatenate([self.objects[kept], objects]))
        return np.arange(len(kept), len(shapes))

    def placed(self) -> tuple[Shape, np.ndarray]:
        """Return all bodies as one shape, and the body of each of its faces."""
        poses = self.bodies.poses()
        turned = np.einsum("nij,nj->ni", poses[self._owner_v, :3, :3], self._all.vertices)
        return Shape(turned + poses[self._owner_v, :3, 3], self._all.faces), self._owner_f

    def rows(self, method: str) -> np.ndarray:
        """Return (n, 4) contacts of the present state: objects, then faces.

        Args:
            method: One of ``Scene.collide``; ``joined`` or ``far`` find the self-collisions of all
                faces as one mesh, by its BVH or by visibility.
        """
        if method not in ("joined", "far"):
            hits = self.scene.collide(method=method)
            return np.column_stack([hits.objects.numpy(), hits.pairs.numpy()])
        soup = soup_of(self.scene.meshes, self.scene.poses.numpy())
        whole = Mesh(soup.points, soup.faces, self.scene.device)
        by = "bvh" if method == "joined" else "far"
        pairs = self_collide(whole, weld=False, method=by).pairs.numpy()
        owner = soup.object_of.numpy()[pairs]
        apart = owner[:, 0] != owner[:, 1]
        rows = np.column_stack([owner, pairs - np.asarray(soup.first_face)[owner]])[apart]
        return rows[np.lexsort(rows.T[::-1])]

    def _contact_points(self, hits: SceneContacts) -> Any:
        objects, pairs = hits.objects.numpy(), hits.pairs.numpy()
        body = np.full(int(self.objects.max()) + 1, -1)
        body[self.objects] = np.arange(len(self.objects))
        ids = body[objects]
        rotations = rotations_of_quaternions(self.bodies.rotation)
        normals = np.einsum(
            "nkij,nkj->nki", rotations[ids], self._normals[self._first[ids] + pairs]
        )
        segments = hits.segments.numpy()
        return contact_points(ids, segments, normals[:, 0] - normals[:, 1])

    def _set_shapes(self, shapes: list[Shape], objects: np.ndarray) -> None:
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


@dataclass(frozen=True)
class ContactPoints:
    """Contact points of pairs of bodies."""

    a: np.ndarray  # (k,) bodies
    b: np.ndarray
    point: np.ndarray  # (k, 3) positions
    normal: np.ndarray  # (k, 3) unit vectors from a to b


def contact_points(
    objects: np.ndarray, segments: np.ndarray, out_of_a: np.ndarray
) -> ContactPoints:
    """Return four contact points for each pair of objects that intersect.

    Args:
        objects: (n, 2) of each pair of faces that intersect, sorted.
        segments: (n, 2, 3) of their intersections.
        out_of_a: (n, 3) from a towards b, by the faces' normals.
    """
    new = np.ones(len(objects), bool)
    new[1:] = (objects[1:] != objects[:-1]).any(axis=1)
    starts, group = np.flatnonzero(new), np.cumsum(new) - 1
    weight = np.linalg.norm(segments[:, 1] - segments[:, 0], axis=1)
    weight += 1e-12 + 1e-3 * weight.mean()
    normal = np.add.reduceat(weight[:, None] * out_of_a, starts, axis=0)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
    across = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal), axis=1)])
    across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-12)
    over = np.cross(normal, across)
    middle = segments.mean(axis=1)
    picked = []
    for way in (across, -across, over, -over):
        order = np.lexsort((np.einsum("ij,ij->i", middle, way[group]), group))
        picked.append(order[starts])  # the point of each group farthest along -way
    rows = np.concatenate(picked)
    first, second = objects[rows].T
    return ContactPoints(first, second, middle[rows], normal[group[rows]])


def solve_impulses(bodies: RigidState, found: ContactPoints, surfaces: Surfaces) -> None:
    """Change velocities so that bodies no longer approach at their contact points.

    Every body splits its mass among its contact points, so that each iteration solves all points
    at once (Tonge, Benevolenski and Voroshilov 2012).
    """
    a, b, n = found.a, found.b, found.normal
    rotations = rotations_of_quaternions(bodies.rotation)
    loose = np.einsum("nij,njk,nlk->nil", rotations, bodies.inverse_inertia, rotations)
    arms = found.point - bodies.position[a], found.point - bodies.position[b]
    share = np.bincount(np.concatenate([a, b]), minlength=len(bodies.inverse_mass))
    give = np.zeros(len(a))
    slack = np.zeros(len(a))
    for body, arm in zip((a, b), arms, strict=True):
        turned = np.cross(arm, n)
        give += share[body] * np.einsum("ki,kij,kj->k", turned, loose[body], turned)
        spread = np.trace(loose[body], axis1=1, axis2=2) * (arm**2).sum(axis=1)
        give += share[body] * bodies.inverse_mass[body]
        slack += share[body] * (bodies.inverse_mass[body] + spread)
    give, slack = np.maximum(give, 1e-12), np.maximum(slack, 1e-12)
    approach = np.einsum("ij,ij->i", _closing(bodies, a, b, arms), n)
    wanted = np.maximum(surfaces.parting, -surfaces.bounce * approach)
    total, rubbed = np.zeros(len(a)), np.zeros_like(n)
    for _ in range(ITERATIONS):
        speed = _closing(bodies, a, b, arms)
        along = np.einsum("ij,ij->i", speed, n)
        before, total = total, np.maximum(total + (wanted - along) / give, 0.0)
        rub = rubbed - (speed - along[:, None] * n) / slack[:, None]
        size = np.linalg.norm(rub, axis=1)
        rub *= np.minimum(1.0, surfaces.friction * total / np.maximum(size, 1e-12))[:, None]
        impulse = (total - before)[:, None] * n + rub - rubbed
        rubbed = rub
        for body, arm, sign in ((a, arms[0], -1.0), (b, arms[1], 1.0)):
            push = sign * impulse
            np.add.at(bodies.velocity, body, bodies.inverse_mass[body, None] * push)
            spin = np.einsum("kij,kj->ki", loose[body], np.cross(arm, push))
            np.add.at(bodies.spin, body, spin)


def _closing(
    bodies: RigidState, a: np.ndarray, b: np.ndarray, arms: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Return the velocity of b relative to a at each point."""
    speeds = [
        bodies.velocity[body] + np.cross(bodies.spin[body], arm)
        for body, arm in zip((a, b), arms, strict=True)
    ]
    return speeds[1] - speeds[0]
