"""Impulses that stop bodies from entering each other where they meet."""

from dataclasses import dataclass

import numpy as np

from abut.cases.placed_shapes import rotations_of_quaternions
from abut.sim.rigid_state import Lumps

ITERATIONS = 20
CORNERS = 4  # points in which two bodies lean on each other


@dataclass(frozen=True)
class Leaning:
    """Points in which bodies lean on each other.

    Attributes:
        a, b: (k,) bodies.
        point: (k, 3) where.
        normal: (k, 3) unit vector from a to b.
    """

    a: np.ndarray
    b: np.ndarray
    point: np.ndarray
    normal: np.ndarray


def leaning(objects: np.ndarray, segments: np.ndarray, out_of_a: np.ndarray) -> Leaning:
    """A few points for each pair of objects that meet.

    Args:
        objects: (n, 2) of each pair of faces that meet, sorted.
        segments: (n, 2, 3) where faces meet.
        out_of_a: (n, 3) from a towards b, as the faces' normals have it.
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
    for way in (across, -across, over, -over)[:CORNERS]:
        order = np.lexsort((np.einsum("ij,ij->i", middle, way[group]), group))
        picked.append(order[starts])  # of each group the one farthest against the way
    rows = np.concatenate(picked)
    return Leaning(*objects[rows].T, middle[rows], normal[group[rows]])


def push_apart(
    bodies: Lumps, found: Leaning, *, bounce: float, friction: float, parting: float
) -> None:
    """Change velocities so that bodies no longer approach where they lean on each other.

    Every body shares its mass among the points that it leans on, so that all points can be solved
    at once, over and over (Tonge, Benevolenski and Voroshilov 2012).

    Args:
        bodies: Whose velocities change.
        found: Where they lean.
        bounce: Share of the speed of approach that comes back.
        friction: Coefficient of Coulomb.
        parting: Least speed at which bodies that meet leave each other.
    """
    a, b, n = found.a, found.b, found.normal
    turns = rotations_of_quaternions(bodies.turn)
    loose = np.einsum("nij,njk,nlk->nil", turns, bodies.looseness, turns)
    arms = found.point - bodies.position[a], found.point - bodies.position[b]
    share = np.bincount(np.concatenate([a, b]), minlength=len(bodies.lightness))
    give = np.zeros(len(a))
    slack = np.zeros(len(a))
    for body, arm in zip((a, b), arms, strict=True):
        turned = np.cross(arm, n)
        give += share[body] * np.einsum("ki,kij,kj->k", turned, loose[body], turned)
        spread = np.trace(loose[body], axis1=1, axis2=2) * (arm**2).sum(axis=1)
        give += share[body] * bodies.lightness[body]
        slack += share[body] * (bodies.lightness[body] + spread)
    give, slack = np.maximum(give, 1e-12), np.maximum(slack, 1e-12)
    approach = np.einsum("ij,ij->i", _closing(bodies, a, b, arms), n)
    wanted = np.maximum(parting, -bounce * approach)
    total, rubbed = np.zeros(len(a)), np.zeros_like(n)
    for _ in range(ITERATIONS):
        speed = _closing(bodies, a, b, arms)
        along = np.einsum("ij,ij->i", speed, n)
        before, total = total, np.maximum(total + (wanted - along) / give, 0.0)
        rub = rubbed - (speed - along[:, None] * n) / slack[:, None]
        size = np.linalg.norm(rub, axis=1)
        rub *= np.minimum(1.0, friction * total / np.maximum(size, 1e-12))[:, None]
        impulse = (total - before)[:, None] * n + rub - rubbed
        rubbed = rub
        for body, arm, sign in ((a, arms[0], -1.0), (b, arms[1], 1.0)):
            push = sign * impulse
            np.add.at(bodies.velocity, body, bodies.lightness[body, None] * push)
            turn = np.einsum("kij,kj->ki", loose[body], np.cross(arm, push))
            np.add.at(bodies.spin, body, turn)


def _closing(
    bodies: Lumps, a: np.ndarray, b: np.ndarray, arms: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Velocity of b against a at each point."""
    speeds = [
        bodies.velocity[body] + np.cross(bodies.spin[body], arm)
        for body, arm in zip((a, b), arms, strict=True)
    ]
    return speeds[1] - speeds[0]
