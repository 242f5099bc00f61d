"""Columns of a report: one flat table of clashes, a row each."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from abut.coordination.clashes import Clashes

Columns = dict[str, np.ndarray]


class Column(NamedTuple):
    """A column: its type (str, float, int or bool) and its meaning."""

    type: type
    about: str


class PartFacts(NamedTuple):
    """Words about a part, for people; each is empty if the file does not say it."""

    file: str = ""
    id: str = ""
    name: str = ""
    type: str = ""
    layer: str = ""


COLUMNS: dict[str, Column] = {
    "id": Column(str, "name of the clash, equal in the next run"),
    "status": Column(str, "new, changed, same, accepted or gone; see compare"),
    "verdict": Column(str, "duplicate, envelope, pierce, protrude, touch or encroach"),
    "check": Column(str, "name of the rule that asked"),
    "group": Column(str, "name of the cluster of clashes with one cause, equal in the next run"),
    "a": Column(str, "key of the first part: file stem/part id"),
    "a_file": Column(str, "its file"),
    "a_id": Column(str, "its id in the file, such as an IFC GlobalId"),
    "a_name": Column(str, "its name"),
    "a_type": Column(str, "its class, such as IfcWall"),
    "a_layer": Column(str, "its storey or layer"),
    "b": Column(str, "key of the second part"),
    "b_file": Column(str, "its file"),
    "b_id": Column(str, "its id in the file"),
    "b_name": Column(str, "its name"),
    "b_type": Column(str, "its class"),
    "b_layer": Column(str, "its storey or layer"),
    "depth": Column(float, "of the common interior [m]; empty where a mesh is open"),
    "depth_error": Column(float, "the true depth is at most this much larger [m]"),
    "distance": Column(float, "0 where the parts meet [m]"),
    "a_x": Column(float, "nearest or deepest point of a [m]"),
    "a_y": Column(float, "nearest or deepest point of a [m]"),
    "a_z": Column(float, "nearest or deepest point of a [m]"),
    "b_x": Column(float, "nearest or deepest point of b [m]"),
    "b_y": Column(float, "nearest or deepest point of b [m]"),
    "b_z": Column(float, "nearest or deepest point of b [m]"),
    "low_x": Column(float, "low corner of the region of contact [m]"),
    "low_y": Column(float, "low corner of the region of contact [m]"),
    "low_z": Column(float, "low corner of the region of contact [m]"),
    "high_x": Column(float, "high corner of the region of contact [m]"),
    "high_y": Column(float, "high corner of the region of contact [m]"),
    "high_z": Column(float, "high corner of the region of contact [m]"),
    "regions": Column(int, "connected regions of contact"),
    "solid": Column(bool, "both parts are closed"),
    "note": Column(str, "a reason to look twice"),
    "change": Column(str, "difference from the earlier report"),
    "accepted_by": Column(str, "the person who accepted the clash"),
    "accepted_reason": Column(str, "their reason"),
}
POINTS = {"a_": "point_a", "b_": "point_b"}


def columns_of(clashes: Clashes, facts_of: Callable[[str], PartFacts]) -> Columns:
    """Return rows of clashes as the columns of a report; the status of each is "new"."""
    count = len(clashes)
    out: Columns = {"status": np.full(count, "new", object)}
    for name in ("id", "verdict", "check", "group", "a", "b", "note"):
        out[name] = np.array([str(value) for value in getattr(clashes, name)], object)
    for name in ("depth", "depth_error", "distance"):
        out[name] = np.asarray(getattr(clashes, name), np.float64)
    for start, name in POINTS.items():
        for axis, values in zip("xyz", np.reshape(getattr(clashes, name), (-1, 3)).T, strict=True):
            out[start + axis] = np.asarray(values, np.float64)
    boxes = np.reshape(clashes.box, (-1, 2, 3))
    for k, corner in enumerate(("low", "high")):
        for axis, values in zip("xyz", boxes[:, k].T, strict=True):
            out[f"{corner}_{axis}"] = np.asarray(values, np.float64)
    out["regions"] = np.asarray(clashes.region_count, np.int64)
    out["solid"] = np.asarray(clashes.solid, bool)
    for side in "ab":
        facts = [facts_of(key) for key in out[side]]
        for name in PartFacts._fields:
            out[f"{side}_{name}"] = np.array([getattr(fact, name) for fact in facts], object)
    return complete(out, count)


def complete(columns: Mapping[str, np.ndarray], count: int) -> Columns:
    """Return all columns in their order; texts that are missing are empty."""
    empty = np.full(count, "", object)
    return {name: columns.get(name, empty) for name in COLUMNS}


def row_total(columns: Columns) -> int:
    """Number of rows."""
    return len(columns["id"])


def taken(columns: Columns, rows: np.ndarray) -> Columns:
    """Return chosen rows, by indices or a mask."""
    return {name: values[rows] for name, values in columns.items()}


def stacked(first: Columns, second: Columns) -> Columns:
    """Return the rows of two tables, one after the other."""
    return {name: np.concatenate([first[name], second[name]]) for name in COLUMNS}


def columns_from(rows: Mapping[str, Any]) -> Columns:
    """Return columns of their types from lists; None is NaN among floats."""
    out = {}
    for name, column in COLUMNS.items():
        if column.type is float:
            values = [np.nan if value is None else float(value) for value in rows[name]]
            out[name] = np.array(values, np.float64)
        else:
            kind = {str: object, int: np.int64, bool: bool}[column.type]
            out[name] = np.array(list(rows[name]), kind)
    return out
