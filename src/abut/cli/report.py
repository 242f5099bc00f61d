"""Run and time queries, and print their answers as tables or as JSON."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from abut.cases import box
from abut.cli.console import show_facts, show_json, show_rows, working
from abut.cli.where import Facts, hint_facts, hint_plain, size_text
from abut.core.timing import recording
from abut.mesh import Mesh

Answer = TypeVar("Answer")
Meshes = dict[str, tuple[str, Mesh]]  # file and mesh of each operand
Stages = dict[str, float]  # milliseconds by name

ROWS_SHOWN = 10


def timed(stages: Stages, name: str, work: Callable[[], Answer]) -> Answer:
    """Run ``work`` and record its time."""
    start = time.perf_counter()
    answer = work()
    stages[name] = (time.perf_counter() - start) * 1e3
    return answer


def run_timed(
    query: Callable[..., Answer],
    operands: Meshes,
    *,
    then: Callable[[Answer], Any] = bool,
    **options: Any,
) -> tuple[Answer, Stages]:
    """Run a query; returns its answer and the times of its stages.

    The query runs on small boxes first, to load kernels; ``then`` evaluates the lazy parts of that
    answer which the caller needs.
    """
    stages: Stages = {}
    meshes = [mesh for _, mesh in operands.values()]
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


def show_answer(operands: Meshes, found: Facts, stages: Stages, picture: str | None = None) -> None:
    """Print a table of operands, results and times."""
    facts = [(name, f"{path}: {sizes_of(mesh)}") for name, (path, mesh) in operands.items()]
    facts += hint_facts(_sizes(operands)) + found
    drawn = [("picture", picture)] if picture else []
    show_facts([*facts, ("device", _device_of(operands)), ("time", times_line(stages)), *drawn])


def show_json_answer(
    operands: Meshes, found: dict[str, Any], stages: Stages, picture: str | None = None
) -> None:
    """Print operands, results and times as JSON."""
    about: dict[str, Any] = {
        name: {
            "file": path,
            "vertices": mesh.vertex_count,
            "faces": mesh.face_count,
            "size": size_of(mesh).tolist(),
        }
        for name, (path, mesh) in operands.items()
    }
    about |= hint_plain(_sizes(operands))
    drawn = {"picture": picture} if picture else {}
    show_json({**about, "device": _device_of(operands), **found, "milliseconds": stages, **drawn})


def sizes_of(mesh: Mesh) -> str:
    """Describe the size of a mesh."""
    sides = size_text(size_of(mesh)) if mesh.face_count else "nothing"
    return f"{mesh.vertex_count:,} vertices, {mesh.face_count:,} faces, size {sides}"


def size_of(mesh: Mesh) -> np.ndarray:
    """(3,) sides of the box around the faces of a mesh."""
    return np.ptp(mesh.surface_bounds, axis=0)


def pair_columns(rows: Any) -> dict[str, Any]:
    """Columns of face pairs; with their poses for a batch."""
    pairs = rows.pairs.numpy()
    columns = {"face a": pairs[:, 0], "face b": pairs[:, 1]}
    return columns if rows.pose is None else {"pose": rows.pose.numpy(), **columns}


def show_first(columns: dict[str, Any], total: int, limit: int | None) -> None:
    """Print the first rows of a table, ROWS_SHOWN without a limit, and how many are left out."""
    count = min(ROWS_SHOWN if limit is None else limit, total)
    if count == 0:
        return
    print()
    show_rows(list(columns), zip(*(c[:count] for c in columns.values()), strict=True))
    if total > count:
        print(f"… and {total - count:,} more (--pairs N)")


def times_line(stages: Stages) -> str:
    """Format stage times on one line."""
    query = {name: spent for name, spent in stages.items() if name not in ("kernels", "picture")}
    parts = ", ".join(f"{name} {spent:.2f}" for name, spent in query.items())
    out = f"{sum(query.values()):.2f} ms ({parts}); kernels loaded in {stages['kernels']:.0f} ms"
    return out + (f"; drawn in {stages['picture']:.0f} ms" if "picture" in stages else "")


def _sizes(operands: Meshes) -> dict[str, np.ndarray]:
    return {name: size_of(mesh) for name, (_, mesh) in operands.items() if mesh.face_count}


def _device_of(operands: Meshes) -> str:
    return str(next(iter(operands.values()))[1].device)
