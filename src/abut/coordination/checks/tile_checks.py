"""Checks of parts that do not fit in memory together: tile by tile, here or on workers."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np

from abut.coordination.checks.check_candidates import check_candidates
from abut.coordination.clashes import Clashes, clashes_of, no_clashes
from abut.coordination.parts.part_candidates import part_candidates
from abut.coordination.parts.part_catalogue import LoadedMesh, PartCatalogue, write_table_catalogue
from abut.coordination.parts.part_table import PartTable
from abut.coordination.rules import CheckMatrix, Rules
from abut.core.device import resolve_device
from abut.errors import MeshError, OptionError
from abut.mesh import Mesh
from abut.scale.distribute import TileDone, run_tiles
from abut.scale.part_files import Columns
from abut.scale.peak_memory import machine_bytes
from abut.scale.tile_plan import Tile, TilePlan, plan_tiles
from abut.scale.tile_run import TileRun
from abut.scale.warm_cache import warm_cache

FACE_BYTES = 450  # of a mesh while its pairs are checked, for each face
WARM_FACE_BYTES = 170  # of a mesh between tiles, with all that is derived from it
PART_BYTES = 16_000  # of a part besides its faces
PROCESS_BYTES = 400 << 20  # of a process with the kernels
LEAST_BYTES = 128 << 20  # for the parts of a process
TILE_SHARE = 0.6  # of the memory for parts; the rest is for meshes between tiles
TILES_PER_WORKER = 4  # at least, where there is enough work
LEAST_TILE = 64 << 20  # tiles are not made smaller than this for the sake of more tiles
MOST_PARTS = 200_000  # up to this, clashes have a table of all parts; beyond, of those in rows
ULPS = 16.0  # rounding of boxes and distances, in units of the largest coordinate
STRIDE = 20_000  # parts that are looked at together


@dataclass(frozen=True)
class TileChecks:
    """The function of a tile: its clashes, as columns, and facts about its pairs.

    Attributes:
        parts: The parts.
        rules: Rules.
        device: Where to compute.
        warm: Memory of meshes between tiles [bytes].
    """

    parts: PartCatalogue
    rules: Rules
    device: str | None
    warm: int

    def __call__(self, tile: Tile) -> tuple[Columns, dict[str, Any]]:
        """Check the pairs of a tile."""
        table, rows = self.parts.table(tile.rows)
        place = np.searchsorted(tile.rows, rows)
        found = part_candidates(
            table, self.rules, self.device, keep=lambda pairs: tile.owns(place[pairs])
        )
        used, pairs = np.unique(found.pairs, return_inverse=True)
        loaded, _ = self.parts.table(rows[used], self._loaded)
        mapped = replace(found, pairs=pairs.reshape(-1, 2))
        rows_of_tile, problems = check_candidates(loaded, mapped, device=self.device)
        facts = {"pairs": len(found), "excluded": found.excluded, "problems": problems}
        return rows_of_tile.columns(), facts

    def _loaded(self, number: int, row: int) -> LoadedMesh:
        """A mesh, kept between tiles."""
        device = str(resolve_device(self.device))
        cache = warm_cache("part meshes", self.warm)
        size = int(self.parts.catalogue.face_count[row]) * WARM_FACE_BYTES + PART_BYTES
        name = self.parts.catalogue.digest, number, device
        return cache.get(name, lambda: self._load(number, row), size)

    def _load(self, number: int, row: int) -> LoadedMesh:
        part = self.parts.mesh_of(number, row)
        try:
            return LoadedMesh(part, Mesh(part.vertices, part.faces, self.device))
        except MeshError as error:
            key = self.parts.keys(np.array([row]))[0]
            raise MeshError(f"{key}: {error}") from None


def check_tiles(
    parts: PartCatalogue,
    rules: Rules,
    folder: Any,
    *,
    device: Any = None,
    memory: int | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    progress: Callable[[TileDone, int], None] | None = None,
    table: PartTable | None = None,
) -> Clashes:
    """Check parts tile by tile. The rows have the same bytes as those of ``check_pairs``.

    Args:
        parts: The parts.
        rules: Rules.
        folder: Folder of the run: the manifest, the tiles and their results.
        device: Where to compute; None: the first CUDA device, else the CPU.
        memory: Memory of all processes together [bytes]; with a scheduler, of one worker. None:
            half of the machine's.
        workers: Processes; None: this one.
        scheduler: Address of a Dask scheduler, in place of ``workers``.
        resume: Go on with the run in the folder.
        progress: Called after every tile, see ``run_tiles``.
        table: The parts, for the clashes; None: all of them, or those in rows where there are more
            than ``MOST_PARTS``.

    Returns:
        The clashes; groups are not set. ``settings`` has the numbers of close pairs and of excluded
        ones.

    Raises:
        CapacityError: Two near parts need more memory than there is.
        OptionError: The memory is too little, or the run in the folder has other inputs.
        ToolError: Dask is not installed.
    """
    share = memory_of_process(memory, workers, scheduler)
    kind = str(device if device is not None else resolve_device(None))
    settings = {"rules": repr(rules), "device": kind, "version": version("abut")}
    budget = int(share * TILE_SHARE)
    checks = TileChecks(parts, rules, None if device is None else str(device), budget)

    def plan() -> TilePlan:
        return plan_checks(parts, rules, budget, workers or 1)

    run = TileRun(folder, parts.catalogue.digest, settings, plan, resume=resume)
    run_tiles(checks, run, workers=workers, scheduler=scheduler, progress=progress)
    columns, facts = run.results() or ({}, [])
    table = _table_of(parts, columns) if table is None else table
    rows = clashes_of(columns, table) if columns else no_clashes(table)
    failed = sorted(line for fact in facts for line in fact["problems"])
    excluded: Counter[str] = Counter()
    for fact in facts:
        excluded.update(fact["excluded"])
    counts = {"pairs": sum(f["pairs"] for f in facts), "excluded": dict(sorted(excluded.items()))}
    return replace(rows, problems=[*problems_of(parts, rules), *failed], settings=counts)


def check_table(parts: PartTable, rules: Rules, folder: Any, **options: Any) -> Clashes:
    """Check the parts of a table tile by tile, see ``check_tiles`` for the options.

    Args:
        parts: The parts, all with faces; they are written to the folder for a while.
        rules: Rules.
        folder: Folder of the run.
        **options: Those of ``check_tiles``.
    """
    place = Path(folder) / "parts"
    catalogue = write_table_catalogue(parts, place)
    rows = check_tiles(catalogue, rules, folder, table=parts, **options)
    rmtree(place)
    return rows


def memory_of_process(
    memory: int | None, workers: int | None = None, scheduler: str | None = None
) -> int:
    """Memory for the parts of one process [bytes].

    Raises:
        OptionError: It is too little.
    """
    memory = machine_bytes() // 2 if memory is None else memory
    processes = 1 if scheduler is not None or workers is None else workers + 1  # and this one
    share = memory - processes * PROCESS_BYTES
    share //= max(processes - 1, 1)
    if share < LEAST_BYTES:
        needed = processes * PROCESS_BYTES + max(processes - 1, 1) * LEAST_BYTES
        raise OptionError(f"memory must be at least {needed:,} bytes here, not {memory:,}.")
    return share


def plan_checks(parts: PartCatalogue, rules: Rules, budget: int, workers: int = 1) -> TilePlan:
    """Cut parts into tiles, see ``plan_tiles``; several for each worker if there is enough work."""
    total = int(np.sum(parts.catalogue.face_count, dtype=np.int64)) * FACE_BYTES
    some = max(total // (TILES_PER_WORKER * workers), LEAST_TILE)
    return plan_tiles(
        parts.catalogue,
        halo=halo_of(parts, rules),
        budget=budget,
        target=min(budget, some),
        bytes_per_face=FACE_BYTES,
        object_bytes=PART_BYTES,
    )


def halo_of(parts: PartCatalogue, rules: Rules) -> float:
    """Largest gap of the boxes of two parts that may have a verdict, along an axis [m]."""
    reach = max((check.reach for check in rules.check_list), default=0.0)
    deviation = float(np.max(parts.deviation, initial=0.0))
    rounding = ULPS * np.spacing(np.abs(parts.catalogue.boxes).max(initial=0.0))
    return reach + 2.0 * (deviation + float(rounding))


def problems_of(parts: PartCatalogue, rules: Rules) -> list[str]:
    """Lines about rules without effect, as ``CheckMatrix.problems`` of all parts.

    They depend on the classes of parts alone, and on which have more than one: two parts of each
    class of a stride stand for the rest.
    """
    if not rules.sets and len(rules.checks) == 1:
        return []
    chosen = []
    for stride in _strides(len(parts)):
        table, rows = parts.table(stride)
        place = CheckMatrix(rules, table).part_class
        order = np.argsort(place, kind="stable")
        rank = np.arange(len(place)) - np.searchsorted(place[order], place[order])
        chosen.append(rows[order[rank < 2]])
    rows = np.concatenate([np.empty(0, np.int64), *chosen])
    return CheckMatrix(rules, parts.table(rows)[0]).problems


def _strides(count: int) -> Iterator[np.ndarray]:
    for start in range(0, count, STRIDE):
        yield np.arange(start, min(start + STRIDE, count))


def _table_of(parts: PartCatalogue, columns: Columns) -> PartTable:
    """The parts, or those of rows where there are many."""
    if len(parts) <= MOST_PARTS:
        return parts.table(np.arange(len(parts)))[0]
    return _table_of_keys(parts, columns)


def _table_of_keys(parts: PartCatalogue, columns: Columns) -> PartTable:
    """The parts of some keys."""
    wanted = {key for side in "ab" for key in columns.get(side, ())}
    found = [np.empty(0, np.int64)]
    for rows in _strides(len(parts)):
        hit = [key in wanted for key in parts.keys(rows)]
        found.append(rows[np.array(hit, bool)])
    return parts.table(np.concatenate(found))[0]
