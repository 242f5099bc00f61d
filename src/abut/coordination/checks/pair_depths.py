"""Depths of pairs of solid parts, with bounds that do not straddle the tolerance."""

from typing import NamedTuple

import numpy as np

from abut.coordination.checks.part_contacts import PartContacts
from abut.coordination.checks.shallow_overlaps import parting_length
from abut.coordination.parts.part_surfaces import PartSurfaces
from abut.query.solids.inside_depth import depth_beside, inside_depths

FIRST_PRECISION = 2.0**-12  # of the smaller part
LEAST_PRECISION = 2.0**-24
FINER = 1.0 / 16.0
RELATIVE_ERROR = 1.0 / 16.0
NEGLIGIBLE = 2.0**-16  # of the smaller part: measured more closely only to decide the tolerance
OF_TOLERANCE = 1.0 / 8.0
SLIGHTLY_LESS = 1.0 - 2.0**-10  # so that the length, rounded up, is at most the tolerance
VAGUE = 1.5  # tolerances: upper bounds beyond, of which a search has given up
SHALLOW = 1.0 / 64.0  # of the tolerance: such overlaps need no search


class PairDepth(NamedTuple):
    """Depth of the common part of two solids.

    Attributes:
        depth: A common point lies this deep [m].
        error: No common point lies deeper than ``depth + error`` [m].
        points: (2, 3) deepest common points in a and in b.
    """

    depth: float
    error: float
    points: np.ndarray


def pair_depths(
    surfaces: PartSurfaces,
    pairs: np.ndarray,
    tolerance: np.ndarray,
    shown: np.ndarray,
    contacts: PartContacts,
    rows: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(k,) depths, (k,) errors and (k, 2, 3) deepest points of pairs with common interior.

    Args:
        surfaces: Surfaces of the parts, all closed.
        pairs: (k, 2) rows of parts.
        tolerance: (k,) depths that are still a touch [m].
        shown: (k,) also touches are reported, so that their depths matter.
        contacts: All contacts of all pairs.
        rows: (k,) rows of these pairs among all.
    """
    found = [
        pair_depth(surfaces, i, j, t, contacts.faces[contacts.of(row)], shown=show)
        for (i, j), t, show, row in zip(
            pairs.tolist(), tolerance.tolist(), shown.tolist(), rows.tolist(), strict=True
        )
    ]
    points = np.array([row.points for row in found]).reshape(-1, 2, 3)
    depths = np.array([[row.depth, row.error] for row in found]).reshape(-1, 2)
    return depths[:, 0], depths[:, 1], points


def pair_depth(
    surfaces: PartSurfaces,
    i: int,
    j: int,
    tolerance: float,
    faces: np.ndarray,
    *,
    shown: bool = True,
) -> PairDepth:
    """Depth of two parts with common interior: the larger of the depths in a and in b.

    Parts that a translation of a 64th of the tolerance parts have depth 0 and that length as error,
    and no deepest points. The bounds of others are at most a sixteenth of the depth, an eighth of
    the tolerance or 2**-16 of the smaller part apart. They lie on one side of a tolerance above 0,
    unless the depth is closer to it than 2**-24 of the smaller part. Surfaces that intersect
    themselves may forbid either, unless a translation of the tolerance parts them. Where touches
    are not reported, bounds of those, and of others that intersect themselves, need not be close.

    Args:
        surfaces: Surfaces of the parts, both closed.
        i, j: Rows of the parts.
        tolerance: Depth that is still a touch [m].
        faces: (n, 2) their faces that meet.
        shown: A touch is reported, too, so that its depth matters.

    Guarantee:
        The true depth is in [depth, depth + error].
    """
    for share in (SHALLOW,) if shown else (SHALLOW, SLIGHTLY_LESS):
        length = parting_length(surfaces, i, j, faces, share * tolerance)
        if length <= tolerance:
            return PairDepth(0.0, length, np.full((2, 3), np.nan))
    if tolerance > 0.0 and not shown:
        high = _beside_tolerance(surfaces, i, j, tolerance)
        if high <= tolerance or VAGUE * tolerance < high < np.inf:
            return PairDepth(0.0, high, np.full((2, 3), np.nan))
    found = _searched(surfaces, i, j, tolerance)
    if shown and found.depth <= tolerance < found.depth + found.error:
        length = parting_length(surfaces, i, j, faces, SLIGHTLY_LESS * tolerance)
        if length <= tolerance:
            return found._replace(error=max(length - found.depth, 0.0))
    return found


def _beside_tolerance(surfaces: PartSurfaces, i: int, j: int, tolerance: float) -> float:
    """An upper bound of the depth of two parts; infinite if it is more than the tolerance."""
    most = 0.0
    for k, m in ((i, j), (j, i)):
        poses = surfaces.pose(k), surfaces.pose(m)
        low, high = depth_beside(surfaces[k].mesh, surfaces[m].mesh, *poses, tolerance)
        if low > tolerance:
            return np.inf
        most = max(most, high)
    return most


def _searched(surfaces: PartSurfaces, i: int, j: int, tolerance: float) -> PairDepth:
    """Depth of two parts by search; see ``pair_depth``."""
    sides = (i, j), (j, i)
    size = min(surfaces[row].size for row in (i, j))
    precision = FIRST_PRECISION * size
    enough = max(NEGLIGIBLE * size, OF_TOLERANCE * tolerance)
    while True:
        found = [
            inside_depths(
                surfaces[k].mesh,
                surfaces[m].mesh,
                surfaces.pose(k),
                surfaces.pose(m),
                precision,
            )
            for k, m in sides
        ]
        low, high = np.max([side.bounds[0] for side in found], axis=0)
        deepest = max(side.depth[0] for side in found)
        decided = tolerance == 0.0 or low > tolerance or high <= tolerance
        tight = high - low <= max(RELATIVE_ERROR * high, enough)
        stuck = high - low > 2.0 * precision  # the search has run out of cells or of digits
        if (decided and tight) or stuck or precision < LEAST_PRECISION * size:
            points = np.array([side.deepest[0] for side in found])
            return PairDepth(float(deepest), float(max(high - deepest, 0.0)), _known(points))
        needed = 0.5 * (max(RELATIVE_ERROR * low, enough) if decided else max(tolerance - low, 0.0))
        precision = max(FINER * precision, min(needed, 0.5 * precision))


def _known(points: np.ndarray) -> np.ndarray:
    """Replace a point that was not found by the other one."""
    return np.where(np.isnan(points), points[::-1], points)
