"""Translations that separate two solids: locally shortest, and shortest along a direction."""

from typing import NamedTuple

import numpy as np

from abut.mesh import Mesh
from abut.query.solids.first_exit import first_exit
from abut.query.solids.free_boundary import boundary_between
from abut.query.solids.relation import relations
from abut.query.solids.translated_solids import FREE, TranslatedSolids
from abut.query.solids.translation_descent import shorten

SPHERE = 192  # directions that are tried
FEW_FACES = 64  # of a mesh whose normals are tried as well
ESCAPES = 4  # descents, each from a shorter translation than the last one reached
QUICK = 4  # translations whose gap is looked at before a mesh is built to check them
LENGTHENINGS = np.concatenate([[0.0], 4.0 ** np.arange(3, 27)])  # ulps, up to beyond both solids


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
        by more than the tolerance and separates with a clearance of 1/64 of it.
    """
    blocked = ~np.isin(relations(a, b, pose_a, pose_b), FREE)
    out = Separations(np.zeros((len(blocked), 3)), np.ones(len(blocked), bool))
    for row in np.flatnonzero(blocked).tolist():
        solids = TranslatedSolids(a, b, _row(pose_a, row), _row(pose_b, row))
        out.translation[row], out.converged[row] = _separate(solids, tolerance)
    return out


def separate_along(
    a: Mesh,
    b: Mesh,
    pose_a: np.ndarray | None,
    pose_b: np.ndarray | None,
    direction: np.ndarray,
    tolerance: float,
) -> np.ndarray:
    """Find how far b must move along a direction to at most touch a.

    Args:
        a, b: Closed surfaces, oriented outward.
        pose_a, pose_b: (B, 4, 4), (1, 4, 4), or None.
        direction: (3,) or (B, 3) in the world frame, of any length but zero.
        tolerance: Length by which an answer may be too long.

    Returns:
        (B,) lengths t >= 0.

    Guarantee:
        b moved by ``t * direction / |direction|`` at most touches a, exactly: posed, and with that
        translation added to its moved vertices. No t that is shorter by more than the tolerance
        separates, unless for an instant while faces of both lie in common planes.
    """
    blocked = ~np.isin(relations(a, b, pose_a, pose_b), FREE)
    directions = np.broadcast_to(direction, (len(blocked), 3)).astype(np.float64)
    lengths = np.zeros(len(blocked))
    for row in np.flatnonzero(blocked).tolist():
        solids = TranslatedSolids(a, b, _row(pose_a, row), _row(pose_b, row))
        unit = directions[row] / np.linalg.norm(directions[row])
        longer = first_exit(solids, unit, tolerance) + LENGTHENINGS * solids.ulp
        lengths[row] = longer[_first_verified(solids, longer[:, None] * unit)]
    return lengths


def _row(poses: np.ndarray | None, row: int) -> np.ndarray | None:
    return None if poses is None else poses[min(row, len(poses) - 1)]


def _separate(solids: TranslatedSolids, tolerance: float) -> tuple[np.ndarray, bool]:
    """Return a verified translation, and whether it is locally shortest."""
    directions = _directions(solids)
    directions = directions[np.argsort(solids.sampled_widths(directions), kind="stable")]
    wide = _lengthened(solids, solids.support_width(directions[0]) * directions[0])
    s, converged = wide[solids.first_free(wide) or 0], False
    for _ in range(ESCAPES):
        shorter = _shortest_of(solids, directions, s, tolerance)
        if shorter is s and converged:
            break
        s, converged = shorten(solids, shorter, tolerance)
    longer = _lengthened(solids, s)
    verified = longer[_first_verified(solids, longer)]
    excess = np.linalg.norm(verified) - np.linalg.norm(s)
    return verified + 0.0, converged and bool(excess <= tolerance)  # no negative zeros


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


def _lengthened(solids: TranslatedSolids, s: np.ndarray) -> np.ndarray:
    """Return (k, 3) s, and s lengthened by more and more ulps."""
    return s + (LENGTHENINGS * solids.ulp / np.linalg.norm(s))[:, None] * s


def _first_verified(solids: TranslatedSolids, translations: np.ndarray) -> int:
    """Return the first of ever longer translations that separates in either way of adding it."""
    free = np.flatnonzero(solids.free(translations)).tolist()
    for i in free[:QUICK]:
        if solids.clears_rounding(translations[i]):
            return i
    for i in free:
        if solids.free_when_added(translations[i]):
            return i
    raise AssertionError("no translation beyond the width of both solids separates them")
