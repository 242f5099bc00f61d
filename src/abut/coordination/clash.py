"""The verb clash: verdicts about the parts of building and machine models."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any

from abut.coordination.check_candidates import check_candidates
from abut.coordination.clashes import Clashes
from abut.coordination.groups import with_groups
from abut.coordination.load_parts import LoadedParts, Report, load_parts
from abut.coordination.part_candidates import PartCandidates, part_candidates
from abut.coordination.rules import Rules
from abut.coordination.rules_file import read_rules
from abut.core.progress import Progress
from abut.core.unknown_options import explain_options

READING = 0.2  # share of the time, for the bar


@explain_options
def clash(
    files: Any,
    rules: Any = None,
    *,
    clearance: float = 0.0,
    tolerance: float = 0.0,
    touch: bool = False,
    unit: float | str | None = None,
    chord: float = 0.001,
    device: Any = None,
    progress: Report | None = None,
) -> Clashes:
    """Find the parts of models that clash, each pair with its verdict.

    Files and parts that cannot be used are lines of ``problems``, objects without a mesh are
    ``skipped``; the rest is checked. The order of files has no effect, and equal input gives equal
    rows.

    Args:
        files: A path or several (IFC, STEP, GLB, OBJ and others, folders of them), a ``Scene``, or
            a ``PartTable``.
        rules: A TOML file or its table; None: one check of all parts, without linked ones.
        clearance: Gap to keep [m], for checks of rules that state none.
        tolerance: Depths and gaps up to this are a touch [m], for checks that state none.
        touch: Also report parts that touch, for checks that do not say.
        unit: Metres per unit, or "mm", "cm", "m", "in" or "ft", of formats that state no unit.
        chord: Largest distance of a mesh from the curved surface it replaces [m].
        device: Where to compute; None: the first CUDA device, else the CPU.
        progress: Called with the stage, the steps done and their number; None: a bar on terminals.

    Returns:
        A row for each pair of parts with a verdict that its check reports, in groups.

    Raises:
        OptionError: An option or a rule is wrong.
        FileError: The file of rules is missing or damaged.

    Guarantee:
        Complete for the rules: every pair of parts that a check names is decided. Exact for closed
        meshes that do not intersect themselves: touching, common interior and containment. Depths
        are certified by ``depth_error``; clearances are widened by the deviation of the meshes.
    """
    asked = read_rules(rules, clearance=clearance, tolerance=tolerance, touch=touch)
    with _reporting(progress) as report:
        loaded = load_parts(files, unit, chord, report)
        found = part_candidates(loaded.parts, asked, device)
        report("checking", 0, len(found))
        rows, failed = check_candidates(
            loaded.parts, found, device=device, done=lambda n: report("checking", n, len(found))
        )
    settings = settings_of(
        asked, found, clearance=clearance, tolerance=tolerance, unit=unit, chord=chord
    )
    return finished(rows, loaded, [*found.problems, *failed], settings)


def finished(
    rows: Clashes, loaded: LoadedParts, problems: list[str], settings: dict[str, Any]
) -> Clashes:
    """Rows of all candidate pairs with groups, and with all that was not checked."""
    lines = [*loaded.problems, *problems]
    grouped = with_groups(rows)
    return replace(grouped, skipped=loaded.skipped, problems=lines, settings=settings)


def settings_of(rules: Rules, found: PartCandidates, **given: Any) -> dict[str, Any]:
    """Settings of a run, as plain values: options, checks, exclusions and numbers of pairs."""
    checks = [
        {**asdict(rule.check), "kind": str(rule.check.kind), "a": list(rule.a), "b": list(rule.b)}
        for rule in rules.checks
    ]
    return {
        **given,
        "rules": rules.source,
        "checks": checks,
        "pairs": len(found),
        "excluded": found.excluded,
        "version": version("abut"),
    }


@contextmanager
def _reporting(given: Report | None) -> Iterator[Report]:
    """The given function, or one that shows a bar."""
    if given is not None:
        yield given
        return
    with Progress() as shown:

        def report(stage: str, done: int, total: int) -> None:
            low, high = (0.0, READING) if stage == "reading" else (READING, 1.0)
            share = low + (high - low) * done / max(total, 1)
            shown.step(share, share + (high - low) / max(total, 1))

        yield report
