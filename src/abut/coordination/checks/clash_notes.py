"""Notes of clashes: cautions about rows."""

from collections.abc import Sequence

import numpy as np

from abut.coordination.clashes import Verdict

INTERIOR = (Verdict.ENVELOPE, Verdict.PIERCE, Verdict.PROTRUDE)


def millimetres(length: float) -> str:
    """A length in millimetres, for people."""
    return f"{1e3 * length:.3g} mm"


def clash_note(
    verdict: str,
    depth: float,
    depth_error: float,
    distance: float,
    tolerance: float,
    clearance: float,
    slack: float,
    reasons: Sequence[str],
) -> str:
    """Note of a row.

    Args:
        verdict: Its verdict.
        depth, depth_error: Its depth, and how much larger the true depth may be [m].
        distance: Its distance [m].
        tolerance, clearance: Those of its check [m].
        slack: Sum of the deviations of both meshes from the true surfaces [m].
        reasons: Facts about the two meshes.
    """
    notes = []
    most = depth + depth_error
    if verdict == Verdict.TOUCH and most > 0.0:
        deep = f"at most {millimetres(most)}" if depth_error > depth else millimetres(depth)
        notes.append(f"{deep} deep, below the tolerance")
    if verdict in INTERIOR and depth <= tolerance < most:
        text = f"it may be a touch: the depth is between {millimetres(depth)} and"
        notes.append(f"{text} {millimetres(most)}")
    if verdict == Verdict.TOUCH and distance > 0.0:
        notes.append(f"{millimetres(distance)} apart, below the tolerance")
    if verdict == Verdict.ENCROACH and distance >= clearance:
        text = "the clearance was widened by {}, the deviation of the meshes"
        notes.append(text.format(millimetres(slack)))
    if 0.0 < most <= slack:
        text = f"not deeper than {millimetres(slack)}, the deviation of the meshes"
        notes.append(text)
    if verdict == Verdict.PROTRUDE and np.isnan(depth):
        notes.append("surfaces cross; the depth is unknown")
    return "; ".join([*notes, *reasons])
