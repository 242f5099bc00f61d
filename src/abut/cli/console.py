"""Output of commands: results on standard output, messages on standard error."""

import errno
import json
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from io import TextIOWrapper
from typing import Any, TypeVar

Item = TypeVar("Item")

STDOUT, STDERR = 1, 2
PIPE_WIDTH = 200  # columns; output to a pipe is not wrapped


@cache
def _console(stderr: bool) -> Any:
    from rich.console import Console as RichConsole

    class Console(RichConsole):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with status 1, which means contact

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


def open_streams() -> None:
    """Replace closed streams, and escape characters that a stream cannot encode.

    Raises:
        OSError: Standard output is closed.
    """
    while (null := os.open(os.devnull, os.O_RDWR)) <= STDERR:  # no file may take a stream's number
        pass
    os.close(null)
    closed = sys.stdout is None
    if sys.stderr is None:
        sys.stderr = open(STDERR, "w", closefd=False)
    if sys.stdout is None:
        sys.stdout = open(STDOUT, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if closed:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def drop_output() -> None:
    """Discard what standard output still holds, so that no later flush fails."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tell(message: str) -> None:
    """Print a message on standard error, if it can be written."""
    with suppress(OSError):
        print(message, file=sys.stderr, flush=True)


def one_line(error: BaseException) -> str:
    """Return the message of an error on one line."""
    return " ".join(str(error).split())


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a spinner on a terminal."""
    from rich.text import Text

    with _console(True).status(Text(f"{what} …")):
        yield


def progress(items: Iterable[Item], what: str, total: int | None = None) -> Iterator[Item]:
    """Yield the items with a progress bar; ``total`` is their number where they have no length."""
    from rich.progress import track

    console = _console(True)
    quiet = not console.is_terminal
    yield from track(items, what, total, console=console, transient=True, disable=quiet)


@contextmanager
def bar(what: str) -> Iterator[Callable[[float], None]]:
    """Show a progress bar; yields a function that sets the share done."""
    from rich.progress import Progress

    console = _console(True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task(what, total=1.0)
        yield lambda share: shown.update(task, completed=share)


@contextmanager
def counting() -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar with a rate and an estimate for each stage of a call.

    Yields a function of the stage, the steps that are done, and their number.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Left

    console = _console(True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    rate = TextColumn("{task.fields[rate]}")
    options: Any = {"transient": True, "disable": not console.is_terminal}
    with Progress(*columns, rate, Left(), console=console, **options) as shown:
        tasks: dict[str, Any] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = shown.add_task(stage, total=total, rate="")
            shown.update(tasks[stage], completed=done, total=total)
            speed = shown.tasks[tasks[stage]].speed
            shown.update(tasks[stage], rate=f"{speed:,.0f}/s" if speed else "")

        yield show


def show_json(report: dict[str, Any]) -> None:
    """Print a JSON object, one line per member."""
    members = (f"  {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in report.items())
    print("{", ",\n".join(members), "}", sep="\n")


def show_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print a table of names and values."""
    columns = [{"style": "cyan", "no_wrap": True}, {"overflow": "fold"}]
    _show_table(columns, facts, show_header=False)


def show_rows(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table with column names."""
    _show_table([{"header": n, "justify": "right"} for n in names], rows, header_style="cyan")


def _show_table(columns: list[Any], rows: Iterable[Sequence[Any]], **style: Any) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), **style)
    for column in columns:
        table.add_column(**column)
    for row in rows:
        table.add_row(*map(str, row))
    _console(False).print(table)


def quiet_warp() -> None:
    """Initialise Warp without its banner, and send abut's log to standard error."""
    import warp as wp

    from abut.core.kernel_cache import init_warp

    handler = logging.Handler()
    handler.emit = lambda record: tell(f"abut: {record.getMessage()}")
    log = logging.getLogger("abut")
    log.handlers[:] = [handler]
    log.propagate = False
    logging.getLogger().addHandler(logging.NullHandler())  # readers of files log on their own
    warnings.simplefilter("ignore")
    wp.config.log_level = wp.LOG_WARNING
    os.environ["ABUT_PROGRESS"] = "0"  # commands show their own
    init_warp()


def version_of(package: str) -> str:
    """The installed version of a package; "not installed" for a bare checkout."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
