"""Groups: clusters of clashes that probably have one cause.

A duct through six studs is one mistake of the duct. A group is a star: the clashes of one part,
its hub, with others of one type (of one file, where parts have no types), of one check and one
family of verdicts. Stars are taken greedily, the largest first. Duplicates of two files, or of one
solid, are one group.
"""

import heapq
from collections import Counter, defaultdict
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from abut.coordination.clashes import Clashes, Verdict
from abut.geometry.topology import components

FAMILIES = {
    Verdict.ENVELOPE: "interior",
    Verdict.PIERCE: "interior",
    Verdict.PROTRUDE: "interior",
    Verdict.TOUCH: "touch",
    Verdict.ENCROACH: "clearance",
}
Star = tuple[str, str, str, str]  # hub, kind of the others, family, check


class ClashGroup(NamedTuple):
    """A cluster of clashes.

    Attributes:
        number: Its number in ``Clashes.group``.
        rows: Its rows.
        hub: Key of the part that all of them share; empty if there is none.
        text: Its clashes in words.
    """

    number: int
    rows: np.ndarray
    hub: str
    text: str


def with_groups(clashes: Clashes) -> Clashes:
    """Return the rows with their groups, numbered in the order of their first rows.

    The result depends on the rows alone, not on their order in the files.
    """
    label = np.full(len(clashes), -1)
    same = np.equal(clashes.verdict, Verdict.DUPLICATE)
    label[same] = _of_duplicates(clashes, np.flatnonzero(same))
    next_label = int(label.max(initial=-1)) + 1
    for rows in _stars(clashes, np.flatnonzero(~same)):
        label[rows] = next_label
        next_label += 1
    _, first, place = np.unique(label, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first))
    return replace(clashes, group=rank[place.reshape(-1)])


def clash_groups(clashes: Clashes) -> list[ClashGroup]:
    """The groups of rows that have them, in the order of their numbers."""
    out = []
    order = np.argsort(clashes.group, kind="stable")
    bounds = np.flatnonzero(np.diff(clashes.group[order], prepend=-2))
    for rows in np.split(order, bounds[1:]) if len(order) else []:
        ends = zip(clashes.a[rows].tolist(), clashes.b[rows].tolist(), strict=True)
        shared: set[str] = set.intersection(*map(set, ends))
        hub = min(shared) if len(shared) == 1 and len(rows) > 1 else ""
        text = _text(clashes, rows, hub)
        out.append(ClashGroup(int(clashes.group[rows[0]]), rows, hub, text))
    return out


def _of_duplicates(clashes: Clashes, rows: np.ndarray) -> np.ndarray:
    """Labels of duplicates: one for all of two files, and one for parts that are all the same."""
    if not len(rows):
        return np.empty(0, int)
    ends = np.stack([clashes.a[rows], clashes.b[rows]], axis=1).astype(str)
    files = _files(clashes, rows)
    names, place = np.unique(ends, return_inverse=True)
    place = place.reshape(-1, 2)
    other = {pair: k for k, pair in enumerate(sorted({tuple(sorted(f)) for f in files}))}
    link = [
        [i, len(names) + other[tuple(sorted(pair))] if pair[0] != pair[1] else j]
        for (i, j), pair in zip(place.tolist(), files, strict=True)
    ]
    return components(np.array(link), len(names) + len(other))[place[:, 0]]


def _stars(clashes: Clashes, rows: np.ndarray) -> list[list[int]]:
    """Disjoint stars, the largest first; equal ones in the order of their names."""
    members: dict[Star, list[int]] = defaultdict(list)
    stars_of: dict[int, list[Star]] = {}
    parts = clashes.parts
    kinds = np.where(parts.type == "", parts.file, parts.type)
    sides = [side[rows].tolist() for side in (clashes.a, clashes.b)]
    ends = [kinds[parts.rows_of(side)].tolist() for side in sides]
    for k, a, b, kind_a, kind_b in zip(rows.tolist(), *sides, *ends, strict=True):
        family, check = FAMILIES[Verdict(clashes.verdict[k])], str(clashes.check[k])
        stars: list[Star] = [(a, kind_b, family, check), (b, kind_a, family, check)]
        stars_of[k] = stars
        for star in stars:
            members[star].append(k)
    left = {star: len(found) for star, found in members.items()}
    heap = [(-count, star) for star, count in left.items()]
    heapq.heapify(heap)
    out: list[list[int]] = []
    free = set(stars_of)
    while heap:
        count, star = heapq.heappop(heap)
        if left[star] != -count:  # some of its rows were taken
            if left[star]:
                heapq.heappush(heap, (-left[star], star))
            continue
        taken = [k for k in members[star] if k in free]
        if not taken:
            continue
        free.difference_update(taken)
        out.append(taken)
        for k in taken:
            for other in stars_of[k]:
                left[other] -= 1
    return out


def _files(clashes: Clashes, rows: np.ndarray) -> list[tuple[str, str]]:
    """Files of both parts of each row."""
    parts = clashes.parts
    ends = [parts.file[parts.rows_of(side[rows].tolist())] for side in (clashes.a, clashes.b)]
    return list(zip(*ends, strict=True))


def _text(clashes: Clashes, rows: np.ndarray, hub: str) -> str:
    """Words about the clashes of a group."""
    counts = Counter(str(clashes.verdict[k]) for k in rows.tolist())
    verdicts = ", ".join(f"{counts[v]} {v}" for v in map(str, Verdict) if counts[v])
    if not hub:
        keys = (clashes.a[rows[0]], clashes.b[rows[0]])
        names = [_name(clashes, key) for key in keys]
        pair = " and ".join(names if names[0] != names[1] else keys)
        return f"{pair}: {verdicts}" if len(rows) == 1 else f"{verdicts}, such as {pair}"
    ends = zip(clashes.a[rows].tolist(), clashes.b[rows].tolist(), strict=True)
    others = {b if a == hub else a for a, b in ends}
    row = clashes.parts.rows_of(sorted(others)[:1])[0]
    kind = clashes.parts.type[row] or "part"
    return f"{_name(clashes, hub)} with {len(others)} {kind}: {verdicts}"


def _name(clashes: Clashes, key: str) -> str:
    """Name of a part for people: its name, else its key."""
    row = clashes.parts.rows_of([key])[0]
    return str(clashes.parts.name[row]).strip() or key
