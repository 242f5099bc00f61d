"""Reports as JSON files; ``report.schema.json`` is their JSON Schema."""

import json
import math
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from abut.coordination.report.report_columns import (
    COLUMNS,
    Columns,
    PartFacts,
    columns_from,
    row_total,
)
from abut.errors import FileError, OptionError
from abut.io.file_errors import reading
from abut.io.write import replacing

FORMAT = "abut clash report"
VERSION = 1
TEXTS = (
    "id",
    "status",
    "verdict",
    "check",
    "group",
    "note",
    "change",
    "accepted_by",
    "accepted_reason",
)
NUMBERS = ("depth", "depth_error", "distance", "regions")
TRIPLES = {"point_a": "a_", "point_b": "b_", "low": "low_", "high": "high_"}


@dataclass(frozen=True, eq=False)
class ClashReport:
    """Contents of a report.

    Attributes:
        rows: Columns of all clashes; clashes that are gone come last.
        created: Date of the report, the only one in it.
        title: Name of the project.
        settings: Options of the run by name; texts, numbers, truths, and lists or tables of them.
        skipped: Parts that were not checked, each with file, id, name, type and reason.
        problems: Lines about files and rules that could not be used.
        earlier: Date of the report that it is compared with; None without a comparison.
    """

    rows: Columns
    created: datetime
    title: str = "Clash report"
    settings: dict[str, Any] = field(default_factory=dict)
    skipped: list[dict[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    earlier: datetime | None = None


def report_date(given: datetime | None = None) -> datetime:
    """Date of a report: the given one, else SOURCE_DATE_EPOCH, else the time of day, in UTC.

    Raises:
        OptionError: SOURCE_DATE_EPOCH is no number of seconds.
    """
    if given is not None:
        return given.astimezone(UTC).replace(microsecond=0)
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.now(UTC).replace(microsecond=0)
    try:
        return datetime.fromtimestamp(int(epoch), UTC)
    except (ValueError, OverflowError, OSError):
        raise OptionError(
            f"SOURCE_DATE_EPOCH must be a number of seconds since 1970, not {epoch!r}."
        ) from None


def date_text(date: datetime) -> str:
    """A date as RFC 3339 text in UTC, such as 2026-03-01T09:30:00Z."""
    return date.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_json(report: ClashReport, path: Any) -> Path:
    """Write a report as JSON; equal reports give equal bytes.

    Raises:
        FileError: The file cannot be written.
    """
    text = json.dumps(document_of(report), ensure_ascii=False, allow_nan=False, indent=1)
    with replacing(path, folders=True) as new:
        new.write_text(text + "\n", encoding="utf-8")
    return Path(path)


def read_json(path: Any) -> ClashReport:
    """Read a report that ``write_json`` wrote.

    Raises:
        FileError: The file is missing or damaged, or a later abut wrote it.
    """
    with reading(path, "a clash report"):
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise FileError(f"{path} is no clash report of abut.")
        if found["version"] > VERSION:
            raise FileError(
                f"{path} has version {found['version']} of the report format, and this abut "
                f"reads {VERSION}; update abut."
            )
        earlier = found["compared_with"]
        return ClashReport(
            _rows_from(found["clashes"]),
            datetime.fromisoformat(found["created"]),
            found["title"],
            found["settings"],
            found["skipped"],
            found["problems"],
            None if earlier is None else datetime.fromisoformat(earlier),
        )


def read_schema() -> dict[str, Any]:
    """Return the JSON Schema of reports."""
    return json.loads(
        files("abut.coordination.report").joinpath("report.schema.json").read_text("utf-8")
    )


def document_of(report: ClashReport) -> dict[str, Any]:
    """Return a report as plain values, as they stand in the JSON file."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "title": report.title,
        "created": date_text(report.created),
        "compared_with": None if report.earlier is None else date_text(report.earlier),
        "settings": report.settings,
        "problems": report.problems,
        "skipped": report.skipped,
        "clashes": [_clash(report.rows, k) for k in range(row_total(report.rows))],
    }


def _clash(rows: Columns, k: int) -> dict[str, Any]:
    out: dict[str, Any] = {name: rows[name][k] for name in TEXTS}
    for side in "ab":
        facts = {name: rows[f"{side}_{name}"][k] for name in PartFacts._fields}
        out[side] = {"key": rows[side][k], **facts}
    out |= {name: _number(rows[name][k]) for name in NUMBERS}
    triples = {n: [_number(rows[s + axis][k]) for axis in "xyz"] for n, s in TRIPLES.items()}
    out["box"] = [triples.pop("low"), triples.pop("high")]
    return {**out, **triples, "solid": bool(rows["solid"][k])}


def _rows_from(clashes: list[dict[str, Any]]) -> Columns:
    rows: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for clash in clashes:
        low, high = clash["box"]
        points = {**clash, "low": low, "high": high}
        for name in (*TEXTS, *NUMBERS, "solid"):
            rows[name].append(clash[name])
        for side in "ab":
            rows[side].append(clash[side]["key"])
            for name in PartFacts._fields:
                rows[f"{side}_{name}"].append(clash[side][name])
        for name, start in TRIPLES.items():
            for axis, value in zip("xyz", points[name], strict=True):
                rows[start + axis].append(value)
    return columns_from(rows)


def _number(value: Any) -> float | int | None:
    """A plain number; None for NaN and infinity, which JSON does not have."""
    if isinstance(value, np.integer | int):
        return int(value)
    return float(value) if math.isfinite(value) else None
