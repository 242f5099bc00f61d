"""Verdicts of given pairs of parts."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from abut.coordination.checks.check import Check, CheckKind
from abut.coordination.checks.clash_notes import clash_note
from abut.coordination.checks.duplicate_parts import duplicates
from abut.coordination.checks.pair_depths import pair_depths
from abut.coordination.checks.pair_distances import pair_distances
from abut.coordination.checks.pair_relations import CODES, pair_relations
from abut.coordination.checks.part_contacts import PartContacts, part_contacts
from abut.coordination.checks.parted_boxes import without_findings
from abut.coordination.checks.piercing import pierced
from abut.coordination.checks.region_counts import region_counts
from abut.coordination.clashes import Clashes, Verdict, clash_id, clashes_of
from abut.coordination.parts.part_surfaces import PartSurfaces
from abut.coordination.parts.part_table import PartTable
from abut.query.solids.relation import Relation

NONE = ""  # no finding
NESTED = [CODES[Relation.A_IN_B], CODES[Relation.B_IN_A]]
APART, TOUCHING = CODES[Relation.APART], CODES[Relation.TOUCHING]
CROSSING = CODES[Relation.CROSSING]
CHUNK = 4096  # pairs that are looked at together


def check_pairs(
    parts: PartTable,
    pairs: Any,
    checks: Sequence[Check],
    which: Any = None,
    *,
    device: Any = None,
    progress: Callable[[int], None] | None = None,
) -> Clashes:
    """Find the verdicts of pairs of parts.

    A row depends on its two parts and its check alone: it has the same bytes whatever other pairs
    are asked about.

    Args:
        parts: The parts.
        pairs: (k, 2) rows of parts; each pair once.
        checks: Checks of the rules.
        which: (k,) index of the check of each pair; None: the first.
        device: Where to compute; None: the first CUDA device, else the CPU.
        progress: Called with the number of pairs that have been finished since the last call.

    Returns:
        A row for each pair with a finding that its check reports; groups are not set.
    """
    pairs = np.sort(np.asarray(pairs, np.int64).reshape(-1, 2), axis=1)
    which = np.zeros(len(pairs), int) if which is None else np.asarray(which, int)
    surfaces = PartSurfaces(parts, device)
    tables = []
    for start in range(0, max(len(pairs), 1), CHUNK):
        some = np.arange(start, min(start + CHUNK, len(pairs)))
        asked = [checks[k] for k in which[some].tolist()]
        open_ = some[~without_findings(surfaces, pairs[some], asked)]
        tables.append(_PairCheck(surfaces, pairs[open_], checks, which[open_]).columns())
        if progress is not None:
            progress(len(some))
    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    return clashes_of(columns, parts)


class _PairCheck:
    """Findings about pairs, one entry of every array for each."""

    def __init__(
        self,
        surfaces: PartSurfaces,
        pairs: np.ndarray,
        checks: Sequence[Check],
        which: np.ndarray,
    ) -> None:
        self.surfaces, self.pairs = surfaces, pairs
        self.check = [checks[k] for k in which.tolist()]
        self.kind = np.array([check.kind for check in self.check], object)
        self.tolerance = np.array([check.tolerance for check in self.check], float)
        self.clearance = np.array([check.clearance for check in self.check], float)
        self.touch = np.array([check.touch for check in self.check], bool)
        self.slack = surfaces.parts.deviation[pairs].sum(axis=1)
        self.solid = np.logical_and(*surfaces.closed(pairs).T)
        self.contacts: PartContacts = part_contacts(surfaces, pairs)
        self.relation = pair_relations(surfaces, pairs, self.contacts)
        self.met = np.zeros(len(pairs), bool)
        self.met[self.contacts.pair] = True

    def columns(self) -> dict[str, np.ndarray]:
        """Columns of the pairs with a finding that their check reports."""
        same = duplicates(self.surfaces, self.pairs, self.relation, self.tolerance)
        self._measure_depths(same)
        self._measure_distances(same)
        verdict = self._verdicts(same)
        wanted = np.flatnonzero(self._reported(verdict))
        crossing = wanted[np.equal(verdict[wanted], Verdict.PROTRUDE) & self.solid[wanted]]
        through = pierced(self.surfaces, self.pairs[crossing], self.tolerance[crossing])
        verdict[crossing[through]] = Verdict.PIERCE
        regions = region_counts(self.surfaces, self.pairs, self.contacts, wanted)
        boxes, points = self._places()
        keys = self.surfaces.parts.key
        names = [self.check[k].name for k in wanted.tolist()]
        ends = [keys[self.pairs[wanted, side]].tolist() for side in range(2)]
        return {
            "id": _texts(map(clash_id, *ends, names)),
            "a": _texts(ends[0]),
            "b": _texts(ends[1]),
            "verdict": verdict[wanted],
            "check": _texts(names),
            "depth": self.depth[wanted],
            "depth_error": self.depth_error[wanted],
            "distance": self.distance[wanted],
            "point_a": points[wanted, 0],
            "point_b": points[wanted, 1],
            "box": boxes[wanted],
            "region_count": regions[wanted],
            "solid": self.solid[wanted],
            "note": _texts(self._note(k, verdict[k]) for k in wanted.tolist()),
            "group": np.full(len(wanted), "", object),
        }

    def _note(self, k: int, verdict: str) -> str:
        reasons = []
        for side, row in zip("ab", self.pairs[k].tolist(), strict=True):
            surface = self.surfaces[row]
            if not surface.closed:
                reasons.append(f"{side}: {surface.reason}")
            elif verdict not in (Verdict.ENCROACH, Verdict.DUPLICATE) and surface.meets_itself:
                reasons.append(f"{side} intersects itself")
        measured = self.depth[k], self.depth_error[k], self.distance[k]
        allowed = self.tolerance[k], self.clearance[k], self.slack[k]
        return clash_note(verdict, *measured, *allowed, reasons)

    def _measure_depths(self, same: np.ndarray) -> None:
        """Depths of solids with common interior; NaN of open parts that share more than points."""
        count = len(self.pairs)
        self.depth, self.depth_error = np.zeros(count), np.zeros(count)
        self.deepest = np.full((count, 2, 3), np.nan)
        common = ~np.isin(self.relation, (APART, TOUCHING))
        wanted = common & self.solid & ((self.kind != CheckKind.DUPLICATE) | same)
        rows = np.flatnonzero(wanted)
        shown = (self.touch | same)[rows]
        about = self.pairs[rows], self.tolerance[rows], shown, self.contacts, rows
        found = pair_depths(self.surfaces, *about)
        self.depth[rows], self.depth_error[rows], self.deepest[rows] = found
        self.depth[(common | same) & ~self.solid] = np.nan

    def _measure_distances(self, same: np.ndarray) -> None:
        """Distances of parts that are apart and may be too close, or duplicates."""
        count = len(self.pairs)
        near = self.kind == CheckKind.CLEARANCE
        reach = np.maximum(np.where(near, self.clearance + self.slack, 0.0), self.tolerance)
        asked = (self.relation == APART) & (near | self.touch | same) & (reach > 0.0)
        rows = np.flatnonzero(asked)
        self.distance = np.where(self.relation == APART, np.inf, 0.0)
        self.nearest = np.full((count, 2, 3), np.nan)
        found = pair_distances(self.surfaces, self.pairs[rows], reach[rows])
        self.distance[rows], self.nearest[rows] = found

    def _verdicts(self, same: np.ndarray) -> np.ndarray:
        """The verdict of each pair, without piercing."""
        shallow = self.depth + self.depth_error <= self.tolerance
        close = self.distance <= self.tolerance
        encroaching = (self.kind == CheckKind.CLEARANCE) & (
            self.distance < self.clearance + self.slack
        )
        met = (self.relation == TOUCHING) | (self.relation == APART) & close
        out = np.full(len(self.pairs), NONE, object)
        out[encroaching] = Verdict.ENCROACH
        out[met] = Verdict.TOUCH
        out[self.relation == CROSSING] = Verdict.PROTRUDE
        out[np.isin(self.relation, NESTED)] = Verdict.ENVELOPE
        out[~np.isin(self.relation, (APART, TOUCHING)) & shallow] = Verdict.TOUCH
        out[same] = Verdict.DUPLICATE
        return out

    def _reported(self, verdict: np.ndarray) -> np.ndarray:
        """(k,) whether the check of a pair reports its verdict."""
        out = np.not_equal(verdict, NONE) & (np.not_equal(verdict, Verdict.TOUCH) | self.touch)
        return out & ((self.kind != CheckKind.DUPLICATE) | (verdict == Verdict.DUPLICATE))

    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """Boxes (k, 2, 3) and points (k, 2, 3): contacts, nearest points, or the inner part."""
        boxes, first = self.contacts.boxes(len(self.pairs)), self.contacts.first(len(self.pairs))
        points = np.repeat(first[:, None], 2, axis=1)
        for known in (self.nearest, self.deepest):
            points = np.where(np.isnan(known), points, known)
        own = self.surfaces.parts.boxes[self.pairs]
        inner = np.stack([own[:, :, 0].max(axis=1), own[:, :, 1].min(axis=1)], axis=1)
        gap = np.stack([self.nearest.min(axis=1), self.nearest.max(axis=1)], axis=1)
        boxes = np.where(np.isnan(boxes), gap, boxes)
        boxes = np.where(np.isnan(boxes), inner, boxes)
        middle = np.repeat(boxes.mean(axis=1)[:, None], 2, axis=1)
        return boxes, np.where(np.isnan(points), middle, points)


def _texts(texts: Iterable[str]) -> np.ndarray:
    """Texts as an array of objects."""
    texts = list(texts)
    out = np.empty(len(texts), object)
    out[:] = texts
    return out
