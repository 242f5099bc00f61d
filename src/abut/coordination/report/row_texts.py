"""Texts about rows of a report, for people."""

from pathlib import Path

from abut.coordination.report.compare import length_text
from abut.coordination.report.report_columns import Columns, PartFacts

LEAST = 1e-6  # of lengths that are written in figures [m]


def part_facts(columns: Columns, side: str, row: int) -> PartFacts:
    """Facts of part a or b of a row."""
    return PartFacts(*(str(columns[f"{side}_{name}"][row]) for name in PartFacts._fields))


def part_name(columns: Columns, side: str, row: int) -> str:
    """Name of a part for people: its name and type, else its id."""
    facts = part_facts(columns, side, row)
    if facts.name.strip():
        return f"{facts.name} ({facts.type})" if facts.type else facts.name
    return f"{facts.type} {facts.id}".strip() or str(columns[side][row])


def part_names(columns: Columns, row: int) -> list[str]:
    """Names of both parts; with their files, or else their ids, where they are the same."""
    names = [part_name(columns, side, row) for side in "ab"]
    facts = [part_facts(columns, side, row) for side in "ab"]
    files, ids = [Path(fact.file).name for fact in facts], [fact.id for fact in facts]
    if names[0] != names[1]:
        return names
    more = files if files[0] != files[1] else ids
    return [f"{name} {text}".strip() for name, text in zip(names, more, strict=True)]


def row_title(columns: Columns, row: int) -> str:
    """Verdict, size and both parts in one line."""
    size = row_size(columns, row)
    parts = " / ".join(part_names(columns, row))
    return f"{columns['verdict'][row]}{size and ' ' + size}: {parts}"


def row_size(columns: Columns, row: int) -> str:
    """Depth or distance of a row; empty where neither is known."""
    depth, distance = float(columns["depth"][row]), float(columns["distance"][row])
    if distance > 0.0:
        return f"{size_text(distance)} apart"
    error = float(columns["depth_error"][row])
    if error > depth and depth + error >= LEAST:
        return f"at most {size_text(depth + error)} deep"
    return f"{size_text(depth)} deep" if depth > 0.0 else ""


def size_text(metres: float) -> str:
    """A length for people; nobody looks at nanometres."""
    return "<0.001 mm" if metres < LEAST else length_text(metres)


def row_labels(columns: Columns, row: int) -> list[str]:
    """Verdict, check, status and group."""
    group = columns["group"][row]
    names = [str(columns[name][row]).strip() for name in ("verdict", "check", "status")]
    names += [f"group {group}"] if group else []
    return list(dict.fromkeys(" ".join(name.split()) for name in names if name))


def row_description(columns: Columns, row: int) -> str:
    """Facts of a row, a line each."""
    lines = []
    for side in "ab":
        facts = part_facts(columns, side, row)
        about = [part_name(columns, side, row), facts.layer, Path(facts.file).name, facts.id]
        lines.append(f"{side}: " + ", ".join(text for text in about if text.strip()))
    size, error = row_size(columns, row), float(columns["depth_error"][row])
    lines.append(f"{columns['verdict'][row]}{size and ', ' + size}")
    if size.endswith("deep") and 0.0 < error <= float(columns["depth"][row]):
        lines.append(f"depth: up to {length_text(error)} more")
    regions = int(columns["regions"][row])
    lines.append(f"regions of contact: {regions}")
    lines += [f"check: {columns['check'][row]}", f"id: {columns['id'][row]}"]
    lines += [str(columns["note"][row])] if columns["note"][row] else []
    return "\n".join(lines)
