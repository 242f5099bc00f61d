"""The boundary between blocked and free translations along a ray."""

import numpy as np

from abut.query.solids.face_differences import FaceDifferences, face_differences, passages
from abut.query.solids.translated_solids import TranslatedSolids

SECTIONS = 9  # parts of an interval that one batch divides
NUDGES = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 32.0, 128.0, 1024.0])  # ulps
PROPER = 256.0  # ulps inside a polytope that prove common interior in spite of rounding


def crossing(
    solids: TranslatedSolids, direction: np.ndarray, t: float
) -> tuple[FaceDifferences, np.ndarray]:
    """Return the polytopes of faces that cross at length t of a ray, and where it leaves each.

    Crossing faces have common interior points, so all lengths from t to there are blocked.
    """
    polytopes = face_differences(solids, solids.meeting(t * direction))
    margin = PROPER * solids.ulp
    inside = passages(polytopes, np.zeros(3), direction, margin)
    rows = np.flatnonzero((inside.start < t - margin) & (inside.stop > t + margin))
    return FaceDifferences(*(part[rows] for part in polytopes)), inside.stop[rows]


def boundary_between(
    solids: TranslatedSolids, direction: np.ndarray, low: float, high: float, tolerance: float
) -> np.ndarray:
    """Return a free translation on a ray with blocked ones right below it.

    Args:
        solids: The solids.
        direction: Unit vector of the ray.
        low, high: A blocked length and a free one.
        tolerance: The length of free translations below it is at most this.

    Sections narrow the interval; then faces that cross at its lower end name the place where they
    cease to, which is free if it is the boundary.
    """
    done = tolerance
    while high - low > done:
        if high - low < 2.0 * solids.face_size:
            stop = float(crossing(solids, direction, low)[1].max(initial=-np.inf))
            nudged = stop + NUDGES * solids.ulp
            nudged = nudged[(low < nudged) & (nudged < high)]
            first = solids.first_free(nudged[:, None] * direction) if len(nudged) else None
            if first is not None:
                return nudged[first] * direction
            low = max(low, float(nudged.max(initial=low)))
        parts = low + (high - low) * np.arange(1, SECTIONS) / SECTIONS
        first = solids.first_free(parts[:, None] * direction)
        if first is None:
            low = float(parts[-1])
        else:
            low, high = (float(parts[first - 1]) if first else low), float(parts[first])
        done = max(done, 4.0 * np.spacing(high))
    return high * direction
