"""Rows of a table of answers: a text, a place in the world, and the objects of each."""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from abut.view.page.answers import NO_FACE, Answers
from abut.view.page.live_scene import LiveScene

OBJECT_PAIRS, FACE_PAIRS = "object pairs", "face pairs"
KINDS = (OBJECT_PAIRS, FACE_PAIRS)


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        text: Names and numbers.
        points: (k, 3), the place that the camera flies to.
        key: The two objects, then the two faces of a row about faces.
    """

    text: str
    points: np.ndarray
    key: tuple[int, ...]


def title_of(answers: Answers, kind: str) -> str:
    """The heading of the rows of a kind."""
    count = row_count(answers, kind) - (answers.nearest is not None)
    number = f"{kind}: {count:,}"
    if answers.nearest is None:
        return number
    return f"nearest objects; {number}" if count else "nearest objects"


def row_count(answers: Answers, kind: str) -> int:
    """Number of rows of a kind."""
    contacts = len(answers.object_pairs[0]) if kind == OBJECT_PAIRS else len(answers.faces)
    return contacts + (answers.nearest is not None)


def rows_from(live: LiveScene, answers: Answers, kind: str, first: int, count: int) -> list[Row]:
    """Some rows of a kind, beginning with the row ``first``; the shortest distance comes first."""
    near = [] if answers.nearest is None else [_nearest_row(live, answers)]
    start = max(first - len(near), 0)
    make = _object_rows if kind == OBJECT_PAIRS else _face_rows
    return [*near[first:], *make(live, answers, start, count)][:count]


def _nearest_row(live: LiveScene, answers: Answers) -> Row:
    near = answers.nearest
    assert near is not None
    (a, b), (f, g) = near.objects.tolist(), near.faces.tolist()
    text = f"{live.name(a)} face {f} · {live.name(b)} face {g}: distance {near.value:.4g}"
    return Row(text, near.points, (a, b, f, g))


def _object_rows(live: LiveScene, answers: Answers, first: int, count: int) -> list[Row]:
    pairs, counts, pair = answers.object_pairs
    rows = []
    for k in range(first, min(first + count, len(pairs))):
        a, b = pairs[k].tolist()
        here = pair == k
        other = "itself" if a == b else live.name(b)
        text = f"{live.name(a)} · {other}: {counts[k]:,} face pairs"
        for depth in (o.depths for o in answers.overlaps if o.objects == (a, b)):
            text += f", depth {depth[0]:.4g}, {depth[1]:.4g}"
        if answers.values is not None and isfinite(least := answers.values[here].min()):
            text += f", {answers.measure} {least:.4g}"
        rows.append(Row(text, answers.segments[here].reshape(-1, 3), (a, b)))
    return rows


def _face_rows(live: LiveScene, answers: Answers, first: int, count: int) -> list[Row]:
    rows = []
    for k in range(first, min(first + count, len(answers.faces))):
        (a, b), (f, g) = answers.objects[k].tolist(), answers.faces[k].tolist()
        sides = ((a, f), (b, g))
        text = " · ".join(live.name(o) + (f" {x}" if x != NO_FACE else "") for o, x in sides)
        if answers.values is not None:
            text += f": {answers.measure} {answers.values[k]:.4g}"
        rows.append(Row(text, answers.segments[k], (a, b, f, g)))
    return rows
