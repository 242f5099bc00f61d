"""``abut clash FILES…``: the parts of building and machine models that clash, as a report."""

import argparse
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from abut.cli.console import counting, show_facts, show_json, tell, working
from abut.cli.operands import add_length, add_report
from abut.cli.report import show_first
from abut.cli.where import Facts, count_text
from abut.coordination.checks.clash_notes import INTERIOR
from abut.coordination.clash import clash
from abut.coordination.clashes import Clashes
from abut.coordination.groups import clash_groups
from abut.coordination.report.compare import accepted_text, compare, read_accepted
from abut.coordination.report.report import (
    TITLE,
    EarlierReport,
    clash_columns,
    open_rows,
    read_earlier,
    report_of,
    write_report,
)
from abut.coordination.report.report_columns import Columns
from abut.coordination.report.report_json import document_of
from abut.coordination.report.row_texts import part_names, row_size
from abut.errors import OptionError
from abut.io.models.read_model import UNITS
from abut.io.write import replacing

NONE, SOME, PROBLEMS = 0, 1, 2
GROUPS_SHOWN = 5
SLIGHT = 1e-6  # of depths that no model means [m]
TILES = "tiles"  # folder of a report with the results of tiles


def add_command(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "clash",
        description="Check the parts of building and machine models against each other: which are "
        "inside each other, pass through, overlap, are there twice, or come too close. Writes a "
        "report as CSV, JSON, Parquet and BCF. Exit status: 0 no clash, or all of them accepted; "
        "1 clashes; 2 an error, or a problem with a file or a rule while the rest was checked.",
    )
    about = "IFC, STEP, GLB and other models, and folders of them"
    parser.add_argument("files", metavar="FILE", nargs="+", help=about)
    about = "sets of parts, their checks and exclusions (TOML; docs/clash.md)"
    parser.add_argument("--rules", metavar="FILE", help=about)
    add_length(parser, "--clearance", "gap to keep [m], where rules state none", 0.0)
    add_length(parser, "--tolerance", "depths up to this are a touch [m]", 0.0)
    parser.add_argument("--touch", action="store_true", help="also report parts that touch")
    about = f"of formats that state none: {', '.join(UNITS)}, or metres per unit"
    parser.add_argument("--units", metavar="UNIT", help=about)
    add_length(parser, "--chord", "deviation of meshes from curved surfaces [m]", 0.001)
    parser.add_argument("--out", metavar="FOLDER", help="write a report")
    parser.add_argument("--no-pictures", action="store_true", help="draw no clashes for the report")
    parser.add_argument("--title", default=TITLE, help="name of the project in the report")
    about = (
        "an earlier report (its folder or a file of it): say which clashes are new, gone, changed"
    )
    parser.add_argument("--compare", metavar="OLD", help=about)
    about = "CSV of accepted clashes (id,by,reason,depth); made if there is none"
    parser.add_argument("--accepted", metavar="FILE", help=about)
    add_tiling(parser)
    add_report(parser, "clashes")
    parser.set_defaults(run=run)


def add_tiling(parser: argparse.ArgumentParser) -> None:
    """Declare the options of checks tile by tile."""
    group = parser.add_argument_group("more parts than fit in memory, or several processes")
    group.add_argument("--workers", metavar="N", type=int, help="worker processes (needs Dask)")
    group.add_argument("--scheduler", metavar="ADDRESS", help="workers of a Dask scheduler")
    about = "bytes of all processes, such as 8e9; with --scheduler, of one worker"
    group.add_argument("--memory", metavar="BYTES", type=float, help=about)
    about = "go on with an interrupted run of the same --out"
    group.add_argument("--resume", action="store_true", help=about)


def run(args: argparse.Namespace) -> int:
    """Check, report and print; see the description for the status."""
    earlier = None if args.compare is None else read_earlier(args.compare)
    accepted = None if args.accepted is None else read_accepted(args.accepted)
    start = time.perf_counter()
    found = _found(args)
    seconds = time.perf_counter() - start
    columns = compare(clash_columns(found), None if earlier is None else earlier.rows, accepted)
    _write_files(args, found, columns, earlier)
    for line in found.problems:
        tell(f"abut: {line}")
    if args.json:
        dates = {"earlier": None if earlier is None else earlier.created}
        show_json(document_of(report_of(found, columns, title=args.title, **dates)))
    else:
        show_facts([*_facts(found, columns, args), ("time", f"{seconds:.2f} s")])
        _show_rows(columns, args.pairs)
    if found.problems:
        return PROBLEMS
    return SOME if open_rows(columns) else NONE


def _found(args: argparse.Namespace) -> Clashes:
    """The clashes of the files, with a progress bar."""
    names = ("rules", "clearance", "tolerance", "touch", "chord", "device")
    options = {name: getattr(args, name) for name in (*names, "workers", "scheduler", "resume")}
    if args.resume and args.out is None:
        raise OptionError("--resume needs the --out of the run.")
    if args.resume or args.workers is not None or args.scheduler or args.memory is not None:
        options["memory"] = None if args.memory is None else int(args.memory)
        options["folder"] = None if args.out is None else Path(args.out) / TILES
    with counting() as progress:
        return clash(args.files, unit=args.units, progress=progress, **options)


def _write_files(
    args: argparse.Namespace, found: Clashes, columns: Columns, earlier: EarlierReport | None
) -> None:
    """Write the report, and an empty list of accepted clashes where there is none."""
    if args.accepted is not None and not Path(args.accepted).exists():
        with replacing(args.accepted, folders=True) as new:
            new.write_text(accepted_text(), encoding="utf-8")
    if args.out is None:
        return
    with working("writing the report"):
        write_report(
            found,
            columns,
            args.out,
            title=args.title,
            earlier=None if earlier is None else earlier.created,
            pictures=not args.no_pictures,
            device=args.device,
        )


def _facts(found: Clashes, columns: Columns, args: argparse.Namespace) -> Facts:
    """Lines about the run."""
    files = len(set(found.parts.file.tolist()))
    parts = f"{len(found.parts):,} in {count_text(files, 'file')}"
    if found.skipped:
        parts += f", {count_text(len(found.skipped), 'object')} without a mesh"
    facts = [("parts", parts)]
    excluded = found.settings["excluded"]
    reasons = ", ".join(f"{count:,} {name}" for name, count in excluded.items())
    pairs = count_text(found.settings["pairs"], "close pair")
    facts.append(("checked", pairs + (f"; excluded: {reasons}" if reasons else "")))
    counts = [f"{count:,} {verdict}" for verdict, count in found.counts().items() if count]
    facts.append(("clashes", ", ".join(counts) or "none"))
    facts += _slight_overlaps(found)
    if args.compare or args.accepted:
        statuses = Counter(map(str, columns["status"]))
        facts.append(("statuses", ", ".join(f"{n:,} {name}" for name, n in statuses.items())))
    groups = sorted(clash_groups(found), key=lambda group: (-len(group.rows), group.text))
    if groups:
        facts.append(("groups", f"{len(groups):,}" + _group_changes(columns, args)))
        facts += [
            ("", f"{one.id}  {one.text}") for one in groups[:GROUPS_SHOWN] if len(one.rows) > 1
        ]
    return [*facts, ("report", args.out)] if args.out else facts


def _slight_overlaps(found: Clashes) -> Facts:
    """A line about overlaps by rounding, which a tolerance would take as touches."""
    exact = [check["name"] for check in found.settings["checks"] if check["tolerance"] == 0.0]
    asked = np.isin(found.check.astype(str), exact) & np.isin(found.verdict.astype(str), INTERIOR)
    count = int((asked & (found.depth < SLIGHT)).sum())
    if not count:
        return []
    why = "rounding in the files? --tolerance 0.001 takes them as touches"
    return [("", f"{count:,} less than {1e3 * SLIGHT:g} mm deep: {why}")]


def _group_changes(columns: Columns, args: argparse.Namespace) -> str:
    """Numbers of groups that are new, and of those that are gone, in words."""
    if not args.compare:
        return ""
    found: dict[str, set[str]] = {}
    for name, status in zip(columns["group"], columns["status"], strict=True):
        found.setdefault(name, set()).add(str(status))
    counts = [
        (sum(one == {status} for one in found.values()), status) for status in ("new", "gone")
    ]
    return "".join(f", {count:,} {status}" for count, status in counts if count)


def _show_rows(columns: Columns, limit: int | None) -> None:
    rows = range(len(columns["id"]))
    parts = [part_names(columns, k) for k in rows]
    shown: dict[str, list[Any]] = {
        "id": list(columns["id"]),
        "verdict": list(map(str, columns["verdict"])),
        "size": [row_size(columns, k) for k in rows],
        "a": [names[0] for names in parts],
        "b": [names[1] for names in parts],
        "group": list(columns["group"]),
    }
    if set(columns["status"]) != {"new"}:
        shown["status"] = list(columns["status"])
    show_first(shown, len(rows), limit)
