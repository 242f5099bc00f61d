"""Run and time queries, and print their answers as tables or as JSON."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from abut.cases import box
from abut.cli.console import show_facts, show_json, show_rows, working
from abut.core.timing import recording
from abut.mesh import Mesh
from abut.results import Contacts

Answer = TypeVar("Answer")
Stages = dict[str, float]  # milliseconds by name


def timed(stages: Stages, name: str, work: Callable[[], Answer]) -> Answer:
    """Run ``work`` and record its time."""
    start = time.perf_counter()
    answer = work()
    stages[name] = (time.perf_counter() - start) * 1e3
    return answer


def run_timed(
    query: Callable[..., Answer],
    meshes: tuple[Mesh, ...],
    *,
    then: Callable[[Answer], Any] = bool,
    **options: Any,
) -> tuple[Answer, Stages]:
    """Run a query; returns its answer and the times of its stages.

    The query runs on small boxes first, to load kernels; ``then`` evaluates the lazy parts of that
    answer which the caller needs.
    """
    stages: Stages = {}
    boxes = [Mesh(*box(), device=mesh.device) for mesh in meshes]
    few = {name: _few(value) for name, value in options.items()}
    with working("loading kernels"):
        timed(stages, "kernels", lambda: then(query(*boxes, **few)))
    with working("searching"), recording() as timer:
        answer = query(*meshes, **options)
    return answer, stages | timer.milliseconds


def _few(option: Any) -> Any:
    """The first two of a batch of poses."""
    return option[:2] if isinstance(option, np.ndarray) and option.ndim == 3 else option


ROWS_SHOWN = 10
Meshes = dict[str, tuple[str, Mesh]]  # file and mesh of each operand


def show_contacts(
    hits: Contacts,
    meshes: Meshes,
    stages: dict[str, float],
    *,
    limit: int | None,
    as_json: bool,
) -> None:
    """Print contacts.

    Args:
        hits: The contacts.
        meshes: File and mesh of each operand.
        stages: Milliseconds by stage.
        limit: Pairs to list; None lists a few in a table and all in JSON.
        as_json: Print a JSON object instead of a table.
    """
    if as_json:
        show_json(_plain(hits, meshes, limit) | {"milliseconds": stages})
        return
    found = [("contact", _verdict(hits)), ("pairs", f"{len(hits):,}")]
    show_answer(meshes, found, stages)
    columns = pair_columns(hits)
    show_first(columns, len(hits), ROWS_SHOWN if limit is None else limit)


def show_answer(meshes: Meshes, found: list[tuple[str, str]], stages: dict[str, float]) -> None:
    """Print a table of operands, results and times."""
    operands = [
        (name, f"{path}: {mesh.vertex_count:,} vertices, {mesh.face_count:,} faces")
        for name, (path, mesh) in meshes.items()
    ]
    device = next(iter(meshes.values()))[1].device
    show_facts([*operands, *found, ("device", str(device)), ("time", times_line(stages))])


def plain_operands(meshes: Meshes) -> dict[str, Any]:
    """Operands and device, for JSON."""
    operands = {
        name: {"file": path, "vertices": mesh.vertex_count, "faces": mesh.face_count}
        for name, (path, mesh) in meshes.items()
    }
    device = next(iter(meshes.values()))[1].device
    return {**operands, "device": str(device)}


def pair_columns(rows: Any) -> dict[str, Any]:
    """Columns of face pairs; with their poses for a batch."""
    pairs = rows.pairs.numpy()
    columns = {"face a": pairs[:, 0], "face b": pairs[:, 1]}
    return columns if rows.pose is None else {"pose": rows.pose.numpy(), **columns}


def show_first(columns: dict[str, Any], total: int, limit: int) -> None:
    """Print the first rows of a table and the number of rows left out."""
    count = min(limit, total)
    if count == 0:
        return
    print()
    show_rows(list(columns), zip(*(c[:count] for c in columns.values()), strict=True))
    if total > count:
        print(f"… and {total - count:,} more (--pairs N)")


def _plain(hits: Contacts, meshes: Meshes, limit: int | None) -> dict[str, Any]:
    rows = {name: array.tolist() for name, array in hits.numpy().items()}
    rows |= {name: rows[name][:limit] for name in ("pairs", "pose") if name in rows}
    return {**plain_operands(meshes), "pair_count": len(hits), **rows}


def _verdict(hits: Contacts) -> str:
    if isinstance(hits.colliding, bool):
        return "one inside the other" if hits.contained else "yes" if hits.colliding else "no"
    colliding = hits.colliding.numpy()
    return f"in {colliding.sum():,} of {len(colliding):,} poses"


def times_line(stages: dict[str, float]) -> str:
    """Format stage times on one line."""
    query = {name: spent for name, spent in stages.items() if name != "kernels"}
    parts = ", ".join(f"{name} {spent:.2f}" for name, spent in query.items())
    return f"{sum(query.values()):.2f} ms ({parts}); kernels loaded in {stages['kernels']:.0f} ms"
