"""Rows of results: the name of the machine, its CSV file, and a table to print."""

import csv
import os
import platform
import re
import sys
from dataclasses import asdict, dataclass, fields
from pathlib import Path


@dataclass
class Row:
    """One measurement. Times in milliseconds; empty where not measured."""

    job: str
    variant: str
    library: str
    device: str
    ms_min: float | str = ""
    ms_median: float | str = ""
    rounds: int | str = ""
    answer_size: float | str = ""
    agrees: str = ""
    ratio_to_best_peer: float | str = ""
    version: str = ""


COLUMNS = [field.name for field in fields(Row)]


def machine_name(device: str) -> str:
    """Return the GPU's name, or the CPU's with the number of cores this process may use."""
    if device.startswith("cuda"):
        import warp as wp

        return slug(wp.get_device(device).name)
    return f"{slug(_cpu_model())}-{core_count()}c"


def core_count() -> int:
    """Return the number of cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def slug(name: str) -> str:
    """Reduce a name to lower-case words joined by hyphens, without trademarks and clock rates."""
    name = re.sub(r"\((r|tm)\)|@.*|\b(cpu|processor|\d+-core)\b", " ", name.lower())
    return "-".join(re.findall(r"[a-z0-9]+", name)) or "unknown"


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1]
    return platform.processor() or platform.machine()


def set_ratios(rows: list[Row], apart: set[str]) -> None:
    """Set each row's ratio to the best peer of its case: below 1 is faster.

    ``apart``: libraries that do not count as peers, in all their configurations.
    """
    peers = [row.ms_min for row in rows if not row.library.startswith(tuple(apart))]
    for row in rows:
        if peers:
            row.ratio_to_best_peer = row.ms_min / min(peers)


def write_csv(path: Path, rows: list[Row]) -> None:
    """Write rows; they replace older rows of the same jobs."""
    done = {row.job for row in rows}
    kept = [old for old in _read(path) if old["job"] not in done]
    lines = kept + [{name: _text(value) for name, value in asdict(row).items()} for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(lines, key=lambda line: line["job"]))


def print_rows(title: str, rows: list[Row]) -> None:
    """Print the rows of a job as a table."""
    lines = [[_text(value) for value in list(asdict(row).values())[1:]] for row in rows]
    print_table(title, [name.replace("_", " ") for name in COLUMNS[1:]], lines, ruled=True)


def print_table(
    title: str, header: list[str], lines: list[list[str]], *, ruled: bool = False
) -> None:
    """Print a table; ``ruled`` draws a line wherever the first column changes."""
    try:
        from rich.console import Console
        from rich.table import Column, Table
    except ImportError:
        print("\n".join([title, *("\t".join(line) for line in [header, *lines])]))
        return
    sides = [
        "right" if any(map(_is_number, cells)) else "left" for cells in zip(*lines, strict=True)
    ]
    columns = [Column(name, justify=side) for name, side in zip(header, sides, strict=True)]
    table = Table(*columns, title=title, title_justify="left")
    for line, after in zip(lines, [*lines[1:], lines[-1]], strict=True):
        table.add_row(*line, end_section=ruled and line[0] != after[0])
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def _read(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _text(value: float | str) -> str:
    """Format a value with four significant digits."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
