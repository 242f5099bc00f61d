"""Compare two reports: clashes that are new, gone, changed, the same or accepted."""

import csv
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from abut.coordination.report.report_columns import Columns, row_total, stacked, taken
from abut.errors import FileError
from abut.io.file_errors import reading

CHANGED_BY = 1e-3  # metres of depth or distance
HEADER = ("id", "by", "reason", "depth")


class Status(StrEnum):
    """State of a clash relative to an earlier report and to the list of accepted clashes."""

    NEW = "new"
    CHANGED = "changed"  # another verdict, depth or distance
    SAME = "same"
    ACCEPTED = "accepted"  # a person accepted it, and it has not changed since
    GONE = "gone"  # only the earlier report has it


class Acceptance(NamedTuple):
    """A clash that a person accepts.

    Attributes:
        id: Name of the clash.
        by: The person.
        reason: For readers of the report.
        depth: The largest depth that is accepted [m]; infinity without a limit.
    """

    id: str
    by: str
    reason: str
    depth: float = np.inf


def compare(
    new: Columns,
    old: Columns | None = None,
    accepted: dict[str, Acceptance] | None = None,
    *,
    tolerance: float = CHANGED_BY,
) -> Columns:
    """Give each clash of a report its status; clashes that are gone follow at the end.

    A clash has changed if its verdict differs, or its depth or distance by more than the
    tolerance. A changed clash is not accepted. Without an earlier report, clashes are new or
    accepted.

    Args:
        new: Rows of the report.
        old: Rows of the earlier report; rows that were gone then are left out.
        accepted: Accepted clashes by id.
        tolerance: Change of depth or distance to leave out, and depth beyond the accepted [m].

    Returns:
        The rows of ``new`` with status, change and acceptance; then those that are gone.
    """
    before = {} if old is None else _rows_by_id(old)
    out = {name: values.copy() for name, values in new.items()}
    for k, name in enumerate(new["id"]):
        status, change = Status.NEW, ""
        if name in before:
            change = change_text(old, before.pop(name), new, k, tolerance)  # type: ignore[arg-type]
            status = Status.CHANGED if change else Status.SAME
        accepts = (accepted or {}).get(name)
        if accepts is not None:
            out["accepted_by"][k], out["accepted_reason"][k] = accepts.by, accepts.reason
            deeper = new["depth"][k] > accepts.depth + tolerance
            if deeper:
                limit = f"deeper than the accepted {length_text(accepts.depth)}"
                change = f"{change}; {limit}" if change else limit
            status = Status.CHANGED if change else Status.ACCEPTED
        out["status"][k], out["change"][k] = str(status), change
    return stacked(out, _gone(old, list(before.values()))) if old is not None else out


def change_text(old: Columns, i: int, new: Columns, k: int, tolerance: float) -> str:
    """Words about the difference of row ``i`` before and row ``k`` after; empty without one."""
    changes = []
    if old["verdict"][i] != new["verdict"][k]:
        changes.append(f"{old['verdict'][i]} → {new['verdict'][k]}")
    for name in ("depth", "distance"):
        before, after = float(old[name][i]), float(new[name][k])
        if np.isnan(before) and np.isnan(after):
            continue
        if not abs(after - before) <= tolerance:  # also where one of them is unknown
            changes.append(f"{name} {length_text(before)} → {length_text(after)}")
    return ", ".join(changes)


def length_text(metres: float) -> str:
    """A length for people: "12.5 mm", "1.25 m" or "unknown"."""
    if np.isnan(metres):
        return "unknown"
    if abs(metres) >= 1:
        return f"{metres:.3g} m" if abs(metres) < 100 else f"{metres:.0f} m"
    return f"{1e3 * metres:.3g} mm"


def read_accepted(path: Any) -> dict[str, Acceptance]:
    """Read accepted clashes from a CSV file with the columns id, by, reason and depth [m].

    ``by``, ``reason`` and ``depth`` may be missing or empty. A file that does not exist accepts
    nothing.

    Raises:
        FileError: The file is damaged; names the line.
    """
    if not Path(path).exists():
        return {}
    out: dict[str, Acceptance] = {}
    with reading(path, "a list of accepted clashes"):
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            if "id" not in (reader.fieldnames or []):
                raise FileError(f"{path} needs a header: {','.join(HEADER)}.")
            for row in reader:
                one = _acceptance(path, reader.line_num, row)
                if one.id:
                    out[one.id] = one
    return out


def accepted_text() -> str:
    """Contents of an empty list of accepted clashes."""
    return ",".join(HEADER) + "\n"


def _acceptance(path: Any, line: int, row: dict[str, Any]) -> Acceptance:
    name, by, reason, depth = ((row.get(column) or "").strip() for column in HEADER)
    try:
        return Acceptance(name, by, reason, float(depth) if depth else np.inf)
    except ValueError:
        raise FileError(
            f"{path}, line {line}: depth must be a number of metres, not {depth!r}."
        ) from None


def _rows_by_id(old: Columns) -> dict[str, int]:
    return {name: k for k, name in enumerate(old["id"]) if old["status"][k] != Status.GONE}


def _gone(old: Columns, rows: list[int]) -> Columns:
    gone = taken(old, np.array(rows, np.int64))
    count = row_total(gone)
    gone["status"] = np.full(count, str(Status.GONE), object)
    gone["change"] = np.full(count, "", object)
    return gone
