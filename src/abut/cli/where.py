"""Places and sizes in numbers: the box of an answer, the sizes of meshes, units that differ."""

from typing import Any

import numpy as np

Facts = list[tuple[str, str]]  # names and values

UNITS_DIFFER = 200.0  # sizes further apart than this hint at different units


def point_text(point: np.ndarray) -> str:
    """Format a point."""
    return "(" + ", ".join(f"{x + 0.0:.9g}" for x in point) + ")"


def where_plain(points: np.ndarray) -> dict[str, list[float]] | None:
    """Box and centre of points (n, 3) for JSON; None without points."""
    if not len(points):
        return None
    low, high = points.min(axis=0), points.max(axis=0)
    return {"lower": low.tolist(), "upper": high.tolist(), "centre": ((low + high) / 2).tolist()}


def where_facts(points: np.ndarray, pose: int | None = None) -> Facts:
    """Box and centre of points (n, 3) for people."""
    box = where_plain(points)
    if box is None:
        return []
    low, high, centre = (point_text(np.array(box[k])) for k in ("lower", "upper", "centre"))
    of_pose = "" if pose is None else f" of pose {pose}"
    extent = f", box {low} to {high}" if low != high else ""
    return [("where", f"centre{of_pose} {centre}{extent}")]


def count_text(count: int, what: str) -> str:
    """A number of things, in the singular where it is one."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def unit_hint(sizes: dict[str, np.ndarray]) -> str | None:
    """A hint where the sizes (3,) of things differ so much that their units may differ."""
    lengths = {name: float(np.max(size)) for name, size in sizes.items() if np.max(size) > 0}
    if len(lengths) < 2:
        return None
    small, large = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
    times = lengths[large] / lengths[small]
    if times < UNITS_DIFFER:
        return None
    return f"{large} is {times:,.0f} times as large as {small}: do both use the same unit?"


def hint_facts(sizes: dict[str, np.ndarray]) -> Facts:
    """The hint as a fact."""
    hint = unit_hint(sizes)
    return [("units", hint)] if hint else []


def hint_plain(sizes: dict[str, np.ndarray]) -> dict[str, Any]:
    """The hint for JSON."""
    hint = unit_hint(sizes)
    return {"unit_hint": hint} if hint else {}


def size_text(size: np.ndarray) -> str:
    """Format the sides of a box."""
    return " x ".join(f"{x:.6g}" for x in size)
