"""Clashes: one row for each pair of parts with a verdict."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

import numpy as np

from abut.coordination.parts.part_table import PartTable
from abut.io.models.part_model import Skipped


class Verdict(StrEnum):
    """Kind of a clash, in order of severity.

    Touching parts are no clash unless a rule asks for them.
    """

    DUPLICATE = "duplicate"  # the same solid twice
    ENVELOPE = "envelope"  # one is wholly inside the other
    PIERCE = "pierce"  # one cuts the other into pieces: it passes through and comes out again
    PROTRUDE = "protrude"  # common interior, and none of the above
    TOUCH = "touch"  # common points, no common interior deeper than the tolerance
    ENCROACH = "encroach"  # apart, but closer than the clearance


@dataclass(frozen=True, eq=False)
class Clashes:
    """Rows of verdicts, sorted by (part a, part b); a column is an array with one entry a row.

    A part is named by its key, "file stem/part id", which is unique among all files. The part with
    the lower key is a.

    Attributes:
        id: (n,) str: stable name of the clash, a hash of the two part keys and the check.
        a, b: (n,) str: keys of the parts.
        verdict: (n,) str: a ``Verdict``.
        check: (n,) str: name of the check of the rules that applies.
        depth: (n,) float64 [m]: largest distance of a common point to either surface; no shorter
            translation separates the two. 0 where no interior is common, NaN where a mesh is open.
        depth_error: (n,) float64 [m]: the true depth is at most this much larger.
        distance: (n,) float64 [m]: 0 where the parts meet.
        point_a, point_b: (n, 3) float64 [m]: the nearest points where the parts are apart, else
            the deepest common points in a and in b, or a common point twice.
        box: (n, 2, 3) float64 [m]: the region of contact, or the box of the two nearest points.
        region_count: (n,) int32: connected sets of common points of the surfaces; 0 where the
            surfaces do not meet.
        solid: (n,) bool: both parts are closed, so that interior, depth and containment are known.
        note: (n,) str: a reason to look twice, such as "0.4 mm deep, below the tolerance".
        group: (n,) str: name of the cluster of clashes with one cause, equal in the next run; empty
            before ``with_groups``.
        parts: The parts of all files.
        skipped: (file, object) for every object without a mesh, which was not checked.
        problems: One line for each file that could not be read, each rule that names nothing and
            each unit that is in doubt. The rest was checked.
        settings: clearance, tolerance, unit, rules and version of the run.
    """

    id: np.ndarray
    a: np.ndarray
    b: np.ndarray
    verdict: np.ndarray
    check: np.ndarray
    depth: np.ndarray
    depth_error: np.ndarray
    distance: np.ndarray
    point_a: np.ndarray
    point_b: np.ndarray
    box: np.ndarray
    region_count: np.ndarray
    solid: np.ndarray
    note: np.ndarray
    group: np.ndarray
    parts: PartTable
    skipped: list[tuple[str, Skipped]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.id)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Rows as dicts of columns."""
        columns = self.columns()
        return ({name: values[row] for name, values in columns.items()} for row in range(len(self)))

    def __repr__(self) -> str:
        """Number of rows of each verdict."""
        counts = [f"{count} {verdict}" for verdict, count in self.counts().items() if count]
        return f"Clashes({', '.join(counts) or 'none'}; {len(self.parts)} parts)"

    def columns(self) -> dict[str, np.ndarray]:
        """The columns by name."""
        return {name: getattr(self, name) for name in COLUMNS}

    def counts(self) -> dict[str, int]:
        """Number of rows of each verdict, in order of severity."""
        return {str(verdict): int((self.verdict == verdict).sum()) for verdict in Verdict}

    def take(self, rows: np.ndarray) -> "Clashes":
        """The rows of a mask or of indices."""
        return replace(self, **{name: values[rows] for name, values in self.columns().items()})


COLUMNS = [f.name for f in fields(Clashes) if f.type == np.ndarray or f.type == "np.ndarray"]
TEXTS = ("id", "a", "b", "verdict", "check", "note", "group")


def clash_id(a: str, b: str, check: str) -> str:
    """Stable name of a clash: 16 hexadecimal digits of a hash of the keys and the check."""
    text = "\n".join((min(a, b), max(a, b), check))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def clashes_of(columns: dict[str, Any], parts: PartTable) -> Clashes:
    """Make rows of columns, sorted by their parts, in the types of ``Clashes``."""
    count = len(columns["a"])
    shapes = {"point_a": (3,), "point_b": (3,), "box": (2, 3)}
    whole = {"region_count": np.int32, "solid": bool}
    made = {}
    for name in COLUMNS:
        if name in TEXTS:
            made[name] = np.empty(count, object)
            made[name][:] = columns[name]
        else:
            array = np.asarray(columns[name], whole.get(name, np.float64))
            made[name] = array.reshape(count, *shapes.get(name, ()))
    order = sorted(range(count), key=lambda k: (made["a"][k], made["b"][k], made["check"][k]))
    return Clashes(**{name: made[name][order] for name in COLUMNS}, parts=parts)


def no_clashes(parts: PartTable) -> Clashes:
    """No rows."""
    return clashes_of({name: [] for name in COLUMNS}, parts)


def joined_clashes(tables: Iterable[Clashes], parts: PartTable) -> Clashes:
    """All rows of several tables of different pairs."""
    tables = [no_clashes(parts), *tables]
    columns = {name: np.concatenate([getattr(table, name) for table in tables]) for name in COLUMNS}
    return clashes_of(columns, parts)
