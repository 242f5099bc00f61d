"""Groups: clusters of clashes that probably have one cause.

A duct through six studs is one mistake of the duct. A group is a star: the clashes of one part,
its hub, with others of one type (of one file, where parts have no types), of one check and one
family of verdicts. Stars are taken greedily, the largest first. All duplicates of two files are one
group, and all copies of a solid within a file. The name of a group does not depend on its rows, so
that it is the same group in the next run.
"""

import hashlib
import heapq
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from abut.coordination.clashes import Clashes, Verdict
from abut.coordination.parts.part_table import stems_of_files
from abut.geometry.topology import components

FAMILIES = {
    Verdict.ENVELOPE: "interior",
    Verdict.PIERCE: "interior",
    Verdict.PROTRUDE: "interior",
    Verdict.TOUCH: "touch",
    Verdict.ENCROACH: "clearance",
}
DIGITS = 12  # of the name of a group
Star = tuple[str, str, str, str]  # hub, kind of the others, family, check
Anchor = tuple[str, ...]  # what all clashes of a group have in common


class ClashGroup(NamedTuple):
    """A cluster of clashes.

    Attributes:
        id: Its name in ``Clashes.group``.
        rows: Its rows.
        hub: Key of the part that all of them share; empty if there is none.
        text: Its clashes in words.
    """

    id: str
    rows: np.ndarray
    hub: str
    text: str


def with_groups(clashes: Clashes) -> Clashes:
    """Return the rows with the names of their groups.

    The result depends on the rows alone, not on their order in the files. The name of a star is a
    hash of its hub, the type of the others, the check and the family of verdicts. That of
    duplicates is a hash of their files, or of a part.
    """
    group = np.empty(len(clashes), object)
    same = np.equal(clashes.verdict, Verdict.DUPLICATE)
    duplicates = _of_duplicates(clashes, np.flatnonzero(same))
    for anchor, rows in [*duplicates, *_stars(clashes, np.flatnonzero(~same))]:
        group[rows] = group_id(anchor)
    return replace(clashes, group=group)


def group_id(anchor: Anchor) -> str:
    """Name of a group: hexadecimal digits of a hash."""
    return hashlib.sha256("\n".join(anchor).encode()).hexdigest()[:DIGITS]


def clash_groups(clashes: Clashes) -> list[ClashGroup]:
    """The groups of rows that have them, in the order of their first rows."""
    members: dict[str, list[int]] = {}
    for row, name in enumerate(clashes.group.tolist()):
        members.setdefault(name, []).append(row)
    out = []
    for name, some in members.items():
        rows = np.array(some)
        ends = zip(clashes.a[rows].tolist(), clashes.b[rows].tolist(), strict=True)
        shared: set[str] = set.intersection(*map(set, ends))
        hub = min(shared) if len(shared) == 1 and len(rows) > 1 else ""
        out.append(ClashGroup(name, rows, hub, _text(clashes, rows, hub)))
    return out


def _of_duplicates(clashes: Clashes, rows: np.ndarray) -> list[tuple[Anchor, np.ndarray]]:
    """Groups of duplicates: all of two files, and parts of one file that are all the same."""
    files = _files(clashes, rows)
    within = rows[np.array([a == b for a, b in files], bool)]
    ends = np.stack([clashes.a[within], clashes.b[within]], axis=1).astype(str)
    names, place = np.unique(ends, return_inverse=True)
    place = place.reshape(-1, 2)
    first = iter(names[components(place, len(names))[place[:, 0]]].tolist())
    members: dict[Anchor, list[int]] = defaultdict(list)
    for row, (a, b) in zip(rows.tolist(), files, strict=True):
        common = (next(first),) if a == b else (min(a, b), max(a, b))
        members["duplicate", *common].append(row)
    return [(anchor, np.array(some)) for anchor, some in members.items()]


def _stars(clashes: Clashes, rows: np.ndarray) -> list[tuple[Anchor, list[int]]]:
    """Disjoint stars, the largest first; equal ones in the order of their names."""
    members: dict[Star, list[int]] = defaultdict(list)
    stars_of: dict[int, list[Star]] = {}
    parts = clashes.parts
    kinds = np.where(parts.type == "", _file_names(clashes), parts.type)
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
    out: list[tuple[Anchor, list[int]]] = []
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
        out.append((star, taken))
        for k in taken:
            for other in stars_of[k]:
                left[other] -= 1
    return out


def _files(clashes: Clashes, rows: np.ndarray) -> list[tuple[str, str]]:
    """Names of the files of both parts of each row."""
    names = _file_names(clashes)
    ends = [names[clashes.parts.rows_of(side[rows].tolist())] for side in (clashes.a, clashes.b)]
    return list(zip(*ends, strict=True))


def _file_names(clashes: Clashes) -> np.ndarray:
    """The name of the file of each part, wherever its folder is."""
    paths = sorted(set(clashes.parts.file.tolist()))
    names = dict(zip(paths, stems_of_files([Path(path) for path in paths]), strict=True))
    return np.array([names[path] for path in clashes.parts.file.tolist()], object)


def _text(clashes: Clashes, rows: np.ndarray, hub: str) -> str:
    """Words about the clashes of a group."""
    counts = Counter(str(clashes.verdict[k]) for k in rows.tolist())
    verdicts = ", ".join(f"{counts[v]} {v}" for v in map(str, Verdict) if counts[v])
    ends = list(zip(clashes.a[rows].tolist(), clashes.b[rows].tolist(), strict=True))
    if not hub:
        pair = " and ".join(_names(clashes, ends[0]))
        return f"{pair}: {verdicts}" if len(rows) == 1 else f"{verdicts}, such as {pair}"
    others = {b if a == hub else a for a, b in ends}
    row = clashes.parts.rows_of(sorted(others)[:1])[0]
    kind = clashes.parts.type[row] or "part"
    return f"{_names(clashes, [hub])[0]} with {len(others)} {kind}: {verdicts}"


def _names(clashes: Clashes, keys: Sequence[str]) -> Sequence[str]:
    """Names of parts; their keys where a part has none, or two have the same."""
    names = clashes.parts.name[clashes.parts.rows_of(keys)].tolist()
    return names if all(names) and len(set(names)) == len(names) else keys
