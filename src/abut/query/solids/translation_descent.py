"""Descent to a locally shortest free translation of one solid beside another."""

import numpy as np

from abut.query.solids.contact_cones import (
    Cones,
    beside,
    cones_at,
    cuts_at,
    joined_cones,
    shortest_beside,
    vertices_and_feet,
)
from abut.query.solids.face_differences import FaceDifferences, face_differences
from abut.query.solids.free_boundary import boundary_between, crossing
from abut.query.solids.translated_solids import TranslatedSolids

STEPS = 60
NEAR = 512.0  # ulps from a facet that count as on it
CUTS = 8  # contacts at other translations that are remembered
DEEPEST = 3  # face pairs at a blocked target that are remembered
CLEARANCE = 1.0 / 64.0  # share of the tolerance, or of a face
POLISHED = 8  # points that are looked at
TOP = np.linspace(0.0, 1.0, 4)
BELOW = 2.0 ** np.arange(6)


def shorten(
    solids: TranslatedSolids, start: np.ndarray, tolerance: float
) -> tuple[np.ndarray, bool]:
    """Shorten a free translation until no neighbour is free and shorter by the tolerance.

    A step aims at the shortest translation beside the cones of the present contacts and of contacts
    met on the way, within a radius that shrinks after a step that was blocked.

    Returns:
        The translation reached, and whether it is locally shortest.
    """
    s, memory, radius, here = start, [], np.inf, None
    clearance = max(NEAR * solids.ulp, CLEARANCE * min(tolerance, solids.face_size))
    near = max(clearance, min(tolerance, CLEARANCE * solids.face_size))
    for _ in range(STEPS):
        limit = float(np.linalg.norm(s)) - tolerance
        if here is None:
            here = cones_at(face_differences(solids, solids.near(s, near)), s, near, clearance)
        target = shortest_beside(here, clearance, limit)
        if target is None:
            return _polished(solids, s, here, tolerance), True
        beside_all = shortest_beside(joined_cones([here, *memory]), clearance, limit)
        if beside_all is None:
            memory = []
        else:
            target = beside_all
        move = target - s
        share = min(1.0, radius / float(np.linalg.norm(move)))
        found = _step(solids, s + share * move, s, tolerance * share, clearance)
        if isinstance(found, np.ndarray):
            memory, radius, here = [*memory, here][-CUTS:], 4.0 * radius, None
            memory = [beside(cones, found, clearance) for cones in memory]
            s = found
        else:
            radius = 0.25 * share * float(np.linalg.norm(move))
            if found is not None:
                memory = [*memory, cuts_at(found, s, s + share * move, DEEPEST)][-CUTS:]
    return s, False


def _polished(solids: TranslatedSolids, s: np.ndarray, here: Cones, tolerance: float) -> np.ndarray:
    """Return a free point on facets of the contacts close to s, if it is not longer; else s.

    Steps keep a clearance; on facets the solids touch. Points without the last bits come first.
    """
    points = vertices_and_feet(here.normals, here.offsets)
    points = points[np.linalg.norm(points - s, axis=1) <= tolerance]
    for unit in (64.0 * solids.ulp, solids.ulp):
        rounded = np.unique(np.round(points / unit), axis=0) * unit
        length = np.linalg.norm(rounded, axis=1)
        rounded = rounded[np.argsort(length, kind="stable")]
        rounded = rounded[: np.count_nonzero(length <= np.linalg.norm(s) + unit)][:POLISHED]
        first = solids.first_free(rounded) if len(rounded) else None
        if first is not None:
            return rounded[first]
    return s


def _step(
    solids: TranslatedSolids, target: np.ndarray, s: np.ndarray, gain: float, clearance: float
) -> np.ndarray | FaceDifferences | None:
    """Return a free translation on the ray through a target, shorter than s by half of ``gain``.

    Blocked translations lie at most ``clearance`` below it. If there is none, return the polytopes
    of faces in the way.
    """
    length, longest = float(np.linalg.norm(target)), float(np.linalg.norm(s))
    direction = target / length if length > solids.ulp else s / longest
    top = longest - 0.5 * gain
    if length >= top:
        return None
    lengths = length + (top - length) * TOP
    first = solids.first_free(lengths[:, None] * direction)
    if first is None:
        return crossing(solids, direction, length)[0]
    if first:
        return boundary_between(
            solids, direction, lengths[first - 1], lengths[first], clearance / 4.0
        )
    lengths = np.append(np.maximum(length - (longest - length) * BELOW, 0.0), 0.0)
    blocked = ~solids.free(lengths[:, None] * direction)
    low = int(np.argmax(blocked))
    high = float(lengths[low - 1]) if low else length
    return boundary_between(solids, direction, lengths[low], high, clearance / 4.0)
