"""The verb clash: verdicts about the parts of building and machine models."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from importlib.metadata import version
from tempfile import TemporaryDirectory
from typing import Any

from abut.coordination.checks.check_candidates import check_candidates
from abut.coordination.clashes import Clashes
from abut.coordination.groups import with_groups
from abut.coordination.parts.load_parts import LoadedParts, Report, load_parts
from abut.coordination.parts.part_candidates import part_candidates
from abut.coordination.rules import Rules
from abut.coordination.rules_file import read_rules
from abut.core.progress import Progress
from abut.core.unknown_options import explain_options
from abut.errors import OptionError

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
    workers: int | None = None,
    scheduler: str | None = None,
    memory: int | None = None,
    resume: bool = False,
    folder: Any = None,
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
        workers, scheduler, memory: Check tile by tile on worker processes, on those of a Dask
            scheduler at an address, or within a number of bytes; see docs/scale.md. The rows have
            the same bytes.
        resume: Go on with the run of tiles in ``folder``.
        folder: Where the results of tiles are kept; None: a temporary folder.

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
    tiled = resume or any(x is not None for x in (workers, scheduler, memory, folder))
    if resume and folder is None:
        raise OptionError("resume needs the folder of the run.")
    asked = read_rules(rules, clearance=clearance, tolerance=tolerance, touch=touch)
    with _reporting(progress) as report:
        loaded = load_parts(files, unit, chord, report)
        if tiled:
            options = {"workers": workers, "scheduler": scheduler, "memory": memory}
            rows = _in_tiles(loaded, asked, folder, report, device, resume, options)
        else:
            rows = _at_once(loaded, asked, report, device)
    settings = settings_of(
        asked, rows.settings, clearance=clearance, tolerance=tolerance, unit=unit, chord=chord
    )
    return finished(rows, loaded, rows.problems, settings)


def _at_once(loaded: LoadedParts, rules: Rules, report: Report, device: Any) -> Clashes:
    """Rows of all candidate pairs, with problems and numbers of pairs."""
    found = part_candidates(loaded.parts, rules, device)
    report("checking", 0, len(found))
    rows, failed = check_candidates(
        loaded.parts, found, device=device, done=lambda n: report("checking", n, len(found))
    )
    counts = {"pairs": len(found), "excluded": found.excluded}
    return replace(rows, problems=[*found.problems, *failed], settings=counts)


def _in_tiles(
    loaded: LoadedParts,
    rules: Rules,
    folder: Any,
    report: Report,
    device: Any,
    resume: bool,
    options: dict[str, Any],
) -> Clashes:
    """Rows of all candidate pairs, found tile by tile."""
    from abut.coordination.checks.tile_checks import check_table

    steps = iter(range(1, len(loaded.parts) + 2))
    with ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(TemporaryDirectory(prefix="abut-"))
        return check_table(
            loaded.parts,
            rules,
            folder,
            device=device,
            resume=resume,
            progress=lambda _, total: report("checking", next(steps), total),
            **options,
        )


def finished(
    rows: Clashes, loaded: LoadedParts, problems: list[str], settings: dict[str, Any]
) -> Clashes:
    """Rows of all candidate pairs with groups, and with all that was not checked."""
    lines = [*loaded.problems, *problems]
    grouped = with_groups(rows)
    return replace(grouped, skipped=loaded.skipped, problems=lines, settings=settings)


def settings_of(rules: Rules, counts: dict[str, Any], **given: Any) -> dict[str, Any]:
    """Settings of a run, as plain values: options, checks, exclusions and numbers of pairs."""
    checks = [
        {**asdict(rule.check), "kind": str(rule.check.kind), "a": list(rule.a), "b": list(rule.b)}
        for rule in rules.checks
    ]
    return {
        **given,
        "rules": rules.source,
        "checks": checks,
        **counts,
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
