"""Rows of the culling benchmarks, for the pages of FAR and Quick-CULLIDE."""

import csv
from collections.abc import Iterable

from benchmarks.readme import CPU, GPU, RESULTS

Row = dict[str, str]
NAMES = {
    "cullide": "CULLIDE",
    "cullide_gl": "CULLIDE, gl",
    "quick_cullide": "Quick-CULLIDE",
    "quick_cullide_gl": "Quick-CULLIDE, gl",
    "quick_far": "Quick-CULLIDE, conservative",
    "far_drawn": "FAR, drawn",
    "far_gl": "FAR, gl",
    "far": "FAR",
    "cullide_twice": "CULLIDE, views twice",
    "quick_cullide_twice": "Quick-CULLIDE, views twice",
    "far_drawn_twice": "FAR, drawn, views twice",
}
MACHINES = {CPU: "CPU", GPU: "H200"}


def rows_of(file: str, machine: str = CPU) -> list[Row]:
    """Return the rows of a file of a machine; none without it."""
    path = RESULTS / machine / f"{file}.csv"
    if not path.is_file():
        return []
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def counts_of(scene: str, machine: str = CPU) -> dict[str, Row]:
    """Return the counts of a scene by method."""
    return {row["way"]: row for row in rows_of("cull_counts", machine) if row["scene"] == scene}


def times_of(scene: str, machine: str) -> dict[str, float]:
    """Return the best milliseconds of a scene by method."""
    rows = [row for row in rows_of("cull", machine) if row["job"] == f"cull_{scene}"]
    return {row["variant"]: float(row["ms_min"]) for row in rows}


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table whose first column is aligned left, the others right."""
    names = list(head)
    out = [names, ["---"] + ["---:"] * (len(names) - 1), *lines]
    return "".join("| " + " | ".join(line) + " |\n" for line in out)


def shown(value: str | float, digits: int = 1) -> str:
    """Format a number: whole numbers and numbers from 100 on without decimals."""
    number = float(value)
    plain = number >= 100 or number == int(number)
    return f"{number:,.0f}" if plain else f"{number:,.{digits}f}"


def scene_table(scene: str, *columns: str, meet: Iterable[str] = ()) -> str:
    """Return what each method leaves of a scene, and the pairs that it loses.

    Args:
        scene: Name in cull_counts.csv.
        columns: Columns of the file to show.
        meet: Columns of the last line: what intersects.
    """
    counts = counts_of(scene)
    first = next(iter(counts.values()))
    head = ["", *(name.replace("_", " ") for name in columns)]
    head.append(f"lost pairs, of {int(first['exact_pairs']):,}")
    lines = [
        [NAMES[way], *(shown(row[name]) for name in columns), shown(row["lost_pairs"])]
        for way, row in counts.items()
    ]
    truth = [shown(first[name]) if name else "" for name in meet]
    if truth:
        lines.append(["*intersecting*", *truth, ""])
    return table(head, lines)
