"""Run a function over tiles: in this process, on a local cluster, or on a Dask scheduler."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from abut.core.device import thread_count
from abut.errors import AbutError, OptionError, ToolError
from abut.scale.part_files import Columns, write_part
from abut.scale.peak_memory import peak_bytes
from abut.scale.tile_plan import Tile
from abut.scale.tile_run import TileRun

RETRIES = 3
TileFunction = Callable[[Tile], tuple[Columns, Any]]


class TileDone(NamedTuple):
    """A finished tile.

    Attributes:
        number: The tile.
        rows: Rows of its result.
        seconds: Time it took.
        cpu: Processor time of the process meanwhile [s].
        worker: Address of the worker; empty for this process.
        pid: Process of the worker.
        peak: Largest memory of that process so far [bytes]; 0 where it is unknown.
    """

    number: int
    rows: int
    seconds: float
    cpu: float
    worker: str
    pid: int
    peak: int


def run_tiles(
    function: TileFunction,
    run: TileRun,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[TileDone, int], None] | None = None,
) -> None:
    """Run a function over all unfinished tiles; each result becomes a file of the run.

    A worker that dies is replaced, and its tile is run again, up to three times.

    Args:
        function: Called with a tile, returns columns and facts (a value of JSON); picklable. Its
            result must depend on the tile alone.
        run: The run.
        workers: Processes of a local cluster; None: this process, without Dask.
        scheduler: Address of a Dask scheduler, such as "tcp://10.0.0.1:8786", in place of
            ``workers``. Its workers must be able to read and write the folder of the run under the
            same name. A tile takes one ``GPU`` resource where workers declare any.
        progress: Called after every tile with a ``TileDone`` and the number of tiles to run.

    Raises:
        OptionError: Both ``workers`` and ``scheduler`` are given, or there is less than 1 worker.
        ToolError: Dask is not installed, or a tile has ended its worker four times.
    """
    if workers is not None and scheduler is not None:
        raise OptionError("give workers or a scheduler, not both.")
    if workers is not None and workers < 1:
        raise OptionError(f"workers must be 1 or more, not {workers}.")
    numbers = run.unfinished()
    if workers is None and scheduler is None:
        found: Iterator[TileDone] = (
            _run_tile(function, run.plan[number], run.path(number)) for number in numbers
        )
        _report(found, len(numbers), progress)
        return
    require_dask()
    if not numbers:
        return
    with _client(workers, scheduler) as client:
        _report(_submitted(client, function, run, numbers), len(numbers), progress)


def require_dask() -> None:
    """Refuse to go on without Dask.

    Raises:
        ToolError: Dask is not installed.
    """
    try:
        import distributed  # noqa: F401
    except ModuleNotFoundError:
        raise ToolError(
            "workers and a scheduler need Dask; pip install 'abut[scale]' brings it."
        ) from None


def _report(
    found: Iterator[TileDone], total: int, progress: Callable[[TileDone, int], None] | None
) -> None:
    for done in found:
        if progress is not None:
            progress(done, total)


@contextmanager
def _client(workers: int | None, scheduler: str | None) -> Iterator[Any]:
    """A client of a scheduler, or of a local cluster that ends with the block."""
    from dask.config import set as configured
    from distributed import Client, LocalCluster

    if scheduler is not None:
        try:
            client = Client(scheduler)
        except OSError as error:
            raise ToolError(f"there is no Dask scheduler at {scheduler}: {error}") from None
        with client:
            yield client
        return
    threads = max(1, thread_count() // (workers or 1))
    with (
        configured({"distributed.scheduler.allowed-failures": RETRIES}),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=0,
            dashboard_address=None,  # type: ignore[arg-type]
            silence_logs=50,
            env={"ABUT_THREADS": str(threads)},
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _submitted(
    client: Any, function: TileFunction, run: TileRun, numbers: list[int]
) -> Iterator[TileDone]:
    """Submit tiles as tasks; yield those that are finished, in any order."""
    from distributed import KilledWorker, as_completed

    client.wait_for_workers(1)
    known = client.scheduler_info(n_workers=-1)["workers"].values()
    gpus = any("GPU" in worker.get("resources", {}) for worker in known)
    tasks = {}
    for number in numbers:
        task = client.submit(
            _try_tile,
            function,
            run.plan[number],
            run.path(number),
            key=f"tile-{number}-{run.folder}",
            pure=False,
            retries=RETRIES,
            resources={"GPU": 1} if gpus else None,
            priority=-number,
        )
        tasks[task] = number
    try:
        for task in as_completed(list(tasks)):
            try:
                found = task.result()
            except KilledWorker:
                raise ToolError(
                    f"tile {tasks[task]} has ended its worker {RETRIES + 1} times; it may need "
                    "more memory than there is."
                ) from None
            if isinstance(found, AbutError):
                raise found
            yield found
            task.release()
    finally:
        client.cancel(list(tasks), force=True)


def _try_tile(function: TileFunction, tile: Tile, path: Path) -> TileDone | AbutError:
    """Run a tile on a worker. Errors of abut are returned: they are not tried again."""
    from distributed import get_worker

    try:
        with _one_at_a_time:
            return _run_tile(function, tile, path)._replace(worker=get_worker().address)
    except AbutError as error:
        return error


_one_at_a_time = threading.Lock()


def _run_tile(function: TileFunction, tile: Tile, path: Path) -> TileDone:
    start, cpu = time.perf_counter(), time.process_time()
    columns, facts = function(tile)
    write_part(columns, path, facts)
    count = len(next(iter(columns.values()), ()))
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return TileDone(tile.number, count, seconds, cpu, "", os.getpid(), peak_bytes())
