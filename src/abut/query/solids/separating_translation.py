"""Translations that separate two solids: locally shortest, and shortest along a direction."""

from typing import NamedTuple

import numpy as np

from abut.mesh import Mesh
from abut.query.solids.free_boundary import boundary_between
from abut.query.solids.relation import relations
from abut.query.solids.translated_solids import FREE, TranslatedSolids
from abut.query.solids.translation_descent import shorten

SPHERE = 64  # directions that are tried
FEW_FACES = 64  # of a mesh whose normals are tried as well
ESCAPES = 4  # descents, each from a shorter translation than the last one reached
LENGTHENINGS = np.concatenate([[0.0], 4.0 ** np.arange(3, 24)])  # ulps


class Separations(NamedTuple):
    """Translations of b after which it at most touches a.

    Attributes:
        translation: (B, 3), zero where the solids do not overlap.
        converged: (B,) bool, whether each is locally shortest.
    """

    translation: np.ndarray
    converged: np.ndarray


def separate(
    a: Mesh,
    b: Mesh,
    pose_a: np.ndarray | None,
    pose_b: np.ndarray | None,
    tolerance: float,
) -> Separations:
    """Find translations of b, in the world frame, after which the solids at most touch.

    Args:
        a, b: Closed surfaces, oriented outward.
        pose_a, pose_b: (B, 4, 4), (1, 4, 4), or None.
        tolerance: Length by which a neighbouring translation may be shorter.

    Guarantee:
        Every translation separates, exactly: both b at ``translate(s) @ pose_b`` and the mesh of
        its moved vertices plus s. Where ``converged``, no translation in a neighbourhood is shorter
        by more than the tolerance.
    """
    blocked = ~np.isin(relations(a, b, pose_a, pose_b), FREE)
    out = Separations(np.zeros((len(blocked), 3)), np.ones(len(blocked), bool))
    for row in np.flatnonzero(blocked).tolist():
        solids = TranslatedSolids(a, b, _row(pose_a, row), _row(pose_b, row))
        out.translation[row], out.converged[row] = _separate(solids, tolerance)
    return out


def _row(poses: np.ndarray | None, row: int) -> np.ndarray | None:
    return None if poses is None else poses[min(row, len(poses) - 1)]


def _separate(solids: TranslatedSolids, tolerance: float) -> tuple[np.ndarray, bool]:
    """Return a verified translation, and whether it is locally shortest."""
    directions = _directions(solids)
    widths = solids.support_widths(directions)
    order = np.argsort(widths, kind="stable")
    directions = directions[order]
    widest = _verified(solids, widths[order[0]] * directions[0])
    at, converged = widest, False
    for _ in range(ESCAPES):
        shorter = _shortest_of(solids, directions, at, tolerance)
        if shorter is at and converged:
            break
        at, converged = shorten(solids, shorter, tolerance)
    s = _verified(solids, at)
    longer = np.linalg.norm(s) - np.linalg.norm(at)
    return s, converged and bool(longer <= tolerance)


def _shortest_of(
    solids: TranslatedSolids, directions: np.ndarray, start: np.ndarray, tolerance: float
) -> np.ndarray:
    """Return the shortest translation found along given directions, or ``start``."""
    best = start
    while len(directions):
        length = np.linalg.norm(best)
        radius = float(min(length - 2.0 * tolerance, (1.0 - 1.0 / 64.0) * length))
        if radius <= 0.0:
            break
        directions = directions[solids.free(radius * directions)]
        if len(directions):
            best = boundary_between(solids, directions[0], 0.0, radius, tolerance / 256.0)
    return best


def _directions(solids: TranslatedSolids) -> np.ndarray:
    """Return unit vectors to try: around a sphere, along axes, and normal to faces if few."""
    turn = np.pi * (3.0 - np.sqrt(5.0)) * np.arange(SPHERE)
    z = 1.0 - (2.0 * np.arange(SPHERE) + 1.0) / SPHERE
    ring = np.sqrt(1.0 - z**2)
    around = np.stack([ring * np.cos(turn), ring * np.sin(turn), z], axis=1)
    axes = [np.eye(3), solids.pose_b[:3, :3].T]
    if solids.pose_a is not None:
        axes.append(solids.pose_a[:3, :3].T)
    axes = np.concatenate(axes)
    centre = solids.points_b.mean(axis=0) - solids.points_a.mean(axis=0)
    vectors = np.concatenate([axes, -axes, centre[None], solids.normals(FEW_FACES), around])
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(length > 0, length, 1.0))[length[:, 0] > 0]


def _verified(solids: TranslatedSolids, s: np.ndarray) -> np.ndarray:
    """Return s, lengthened by as few ulps as make it separate in either way of adding it."""
    length = np.linalg.norm(s)
    longer = s + (LENGTHENINGS * solids.ulp / length)[:, None] * s
    for row in longer:
        if solids.free(row[None])[0] and solids.free_when_added(row):
            return row
    raise AssertionError("a translation beyond the width of both solids separates them")
