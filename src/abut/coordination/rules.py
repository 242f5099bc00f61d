"""Rules: the check that applies to each pair of parts."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from abut.coordination.checks.check import Check, CheckKind
from abut.coordination.parts.part_sets import EVERYTHING, PartSet
from abut.coordination.parts.part_table import PartTable

LINKS = ("connects", "fills", "hosts", "voids")  # kinds of links between parts


class SetCheck(NamedTuple):
    """A check of the parts of some sets with those of other sets; a part is in any of them."""

    check: Check
    a: tuple[str, ...] = (EVERYTHING,)
    b: tuple[str, ...] = (EVERYTHING,)


@dataclass(frozen=True)
class Exclusions:
    """Pairs of parts that no check applies to.

    Attributes:
        links: Kinds of links between the two parts.
        same_assembly: One part is in the assembly that the other is in, of the same file.
        pairs: Pairs of names of sets.
    """

    links: tuple[str, ...] = LINKS
    same_assembly: bool = False
    pairs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Rules:
    """Sets of parts, the checks of pairs of sets, and exclusions.

    A pair of parts is asked one check, the first in order that has one part in ``a`` and the other
    in ``b``. A pair that no check has is not checked.

    Attributes:
        sets: Sets by name; "*" is the set of all parts.
        checks: Checks in order.
        exclusions: Pairs that are left out of all checks.
        source: File of the rules, for messages.
    """

    sets: dict[str, PartSet] = field(default_factory=dict)
    checks: tuple[SetCheck, ...] = ()
    exclusions: Exclusions = Exclusions()
    source: str = "the rules"

    @classmethod
    def default(cls, clearance: float, tolerance: float, touch: bool = False) -> "Rules":
        """One check of all parts: hard, or for the clearance where that is not 0."""
        kind = CheckKind.CLEARANCE if clearance > 0 else CheckKind.HARD
        return cls(checks=(SetCheck(Check("all", kind, clearance, tolerance, touch)),))

    @property
    def check_list(self) -> list[Check]:
        """The checks, without their sets."""
        return [rule.check for rule in self.checks]


class CheckMatrix:
    """The check of each pair of parts, before links and assemblies.

    Parts that are in the same sets are one class; a matrix of classes holds the checks.

    Attributes:
        rules: The rules.
        part_class: (n,) class of each part.
        asked: (c, c) index of the check of each pair of classes, or -1, before exclusions.
        which: The same, and -1 for pairs of sets that are excluded.
        problems: A line for each set that has no part, and each check that no pair gets.
    """

    def __init__(self, rules: Rules, parts: PartTable) -> None:
        self.rules = rules
        names = [EVERYTHING, *rules.sets]
        member = np.ones((len(parts), len(names)), bool)
        for column, name in enumerate(names[1:], 1):
            member[:, column] = rules.sets[name].members(parts)
        classes, place, sizes = np.unique(member, axis=0, return_inverse=True, return_counts=True)
        self.part_class = place.reshape(-1)
        self._classes, self._sizes = classes.reshape(len(sizes), len(names)), sizes
        self._column = {name: column for column, name in enumerate(names)}
        self.asked = np.full((len(sizes), len(sizes)), -1)
        for number in reversed(range(len(rules.checks))):
            self.asked[self._block(rules.checks[number].a, rules.checks[number].b)] = number
        self.which = self.asked.copy()
        for a, b in rules.exclusions.pairs:
            self.which[self._block((a,), (b,))] = -1

    @cached_property
    def problems(self) -> list[str]:
        """Lines about sets and checks that have no effect."""
        empty = [name for name in self.rules.sets if not self._in((name,)).any()]
        lines = [f"{self.rules.source}: set {name!r} names no part." for name in empty]
        if len(self.part_class) < 2:
            return lines
        for number, rule in enumerate(self.rules.checks):
            if not (self._in(rule.a).any() and self._in(rule.b).any()):
                continue  # a line of its set says so
            where = f"{self.rules.source}: check {rule.check.name!r}"
            block = self._block(rule.a, rule.b) & self._has_pairs()
            if not block.any():
                lines.append(f"{where} names no pair of parts.")
            elif not (block & (self.asked == number)).any():
                lines.append(f"{where} gets no pair: checks before it have all of them.")
            elif not (block & (self.which == number)).any():
                lines.append(f"{where} gets no pair: all of them are excluded.")
        return lines

    def of(self, pairs: np.ndarray) -> np.ndarray:
        """(k,) index of the check of each pair of parts, or -1."""
        classes = self.part_class[pairs]
        return self.which[classes[:, 0], classes[:, 1]]

    @property
    def reach(self) -> np.ndarray:
        """(c, c) reach of the check of each pair of classes [m]; -inf without one."""
        return np.array([check.reach for check in self.rules.check_list] + [-np.inf])[self.asked]

    def _in(self, names: tuple[str, ...]) -> np.ndarray:
        """(c,) whether each class of parts is in one of some sets."""
        columns = [self._column[name] for name in names]
        return np.logical_or.reduce(self._classes[:, columns], axis=1)

    def _block(self, a: tuple[str, ...], b: tuple[str, ...]) -> np.ndarray:
        """(c, c) whether a pair of classes has a side in ``a`` and the other in ``b``."""
        block = np.outer(self._in(a), self._in(b))
        return block | block.T

    def _has_pairs(self) -> np.ndarray:
        """(c, c) whether there is a pair of different parts of two classes."""
        return np.logical_not(np.diag(self._sizes < 2))


def excluded_by(exclusions: Exclusions, parts: PartTable, pairs: np.ndarray) -> np.ndarray:
    """(k,) reason why a pair is left out, a kind of link or "same assembly"; "" for none."""
    out = np.full(len(pairs), "", object)
    if exclusions.same_assembly:
        out[_same_assembly(parts, pairs)] = "same assembly"
    keys = np.sort(pairs, axis=1) @ [len(parts), 1]
    for kind in exclusions.links:
        links = [(a, b) for a, b, found in parts.links if found == kind]
        ends = parts.rows_of([end for link in links for end in link]).reshape(-1, 2)
        ends = np.sort(ends[(ends >= 0).all(axis=1)], axis=1)
        out[np.isin(keys, ends @ [len(parts), 1])] = kind
    return out


def _same_assembly(parts: PartTable, pairs: np.ndarray) -> np.ndarray:
    """(k,) whether one part is in the assembly that the other is in, of one file."""
    _, file = np.unique(parts.file.astype(str), return_inverse=True)
    named = parts.assembly.astype(bool)
    out = (file[pairs[:, 0]] == file[pairs[:, 1]]) & named[pairs].all(axis=1)
    for k in np.flatnonzero(out).tolist():
        one, other = (f"{parts.assembly[row]}/" for row in pairs[k].tolist())
        out[k] = one.startswith(other) or other.startswith(one)
    return out
