"""abut.ccd: the times at which moving meshes first touch."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import warp as wp

from abut.core.device import require_same_device
from abut.core.pair_queue import KeyLayout
from abut.core.progress import tracked
from abut.core.unknown_options import explain_options
from abut.errors import MeshError
from abut.geometry.common_corners import SHARED_BY_INDEX, SHARED_BY_POSITION, SHARED_NONE
from abut.mesh import Mesh
from abut.motion import Motion, Piece
from abut.narrow.impact_paths import TruePaths
from abut.operands.ccd_operands import moving_mesh
from abut.options import (
    LEAST_TOLERANCE,
    MOVING_BOUNDS,
    TREE_METHODS,
    Method,
    Solver,
    chosen,
    number_from,
)
from abut.query.ccd_candidates import CcdStrategy
from abut.query.ccd_labels import IgnoredLabels, ignored_labels
from abut.query.ccd_plan import CcdExecution, CcdPlan
from abut.query.ccd_queues import require_feature_bits
from abut.query.impact_rows import (
    ImpactRows,
    earliest_row,
    empty_impact_rows,
    first_of,
    join_pieces,
    refined,
    sorted_rows,
    to_impacts,
)
from abut.query.initial_distance import least_initial_distance, log_closer_start
from abut.results import Impacts


@explain_options
def ccd(
    a: Motion,
    b: Motion | None = None,
    *,
    min_distance: float = 0.0,
    tolerance: float = 1e-6,
    first: bool = False,
    weld: bool = True,
    labels: Any = None,
    ignore: Any = None,
    method: str = "bvh",
    bound: str = "aabb",
    solver: str = "conservative",
) -> Impacts:
    """Find when moving faces first come within a gap of each other.

    Faces whose vertices move in straight lines touch first where a vertex meets a face or an edge
    meets an edge; each such pair is one row. Without ``b``, faces of ``a`` meet each other; a
    vertex and a face, or two edges, with a vertex in common give no row.

    Args:
        a, b: Motions over one step, on the same device.
        min_distance: Gap to keep [mesh length unit]; features touch when they are no farther.
        tolerance: Times are at most this much before the first contact [share of the step].
        first: Only the earliest impact, one row: the cheapest way to find a safe step.
        weld: Vertices at equal positions at the start and at the end of the step count as common.
            False compares vertex indices only.
        labels: (n,) integers, one for each vertex of ``a``; with ``b``, such an array for each.
        ignore: Pairs of labels that do not collide, (k, 2) from 0 up; or ``"same"``, equal labels.
            A vertex and a face, or two edges, give no row if no vertex of one may collide with a
            vertex of the other.
        method: ``bvh``, or ``brute``, the reference. All methods return the same rows.
        bound: Bounding volume of the hierarchies, ``aabb``, the fastest; ``obb`` or ``rss``. All
            return the same rows.
        solver: ``conservative``; or ``cubic``, the root finder of Provot, which is Approximate.

    Returns:
        One row per vertex-face or edge-edge impact, sorted; times in [0, 1]. ``initial_distance``
        tells how close the features of rows at time 0 were at the start.

    Raises:
        DeviceError: The motions live on different devices.
        OptionError: A distance or tolerance that is not a usable number; labels that do not fit.

    Guarantee:
        Conservative. No impact is missed; no time is later than the true one. Starting in contact
        gives time 0. All of this holds for the true paths of rotating meshes.
    """
    brute = chosen(TREE_METHODS, method, "method") is Method.BRUTE
    volume = chosen(MOVING_BOUNDS, bound, "bound")
    return impacts_of(
        _motions(a, b),
        min_distance=min_distance,
        tolerance=tolerance,
        first=first,
        weld=weld,
        labels=labels,
        ignore=ignore,
        solver=solver,
        execution=CcdExecution(CcdStrategy.BRUTE if brute else None, bound=volume),
    )


def impacts_of(
    motions: tuple[Motion, ...],
    *,
    min_distance: float = 0.0,
    tolerance: float = 1e-6,
    first: bool = False,
    weld: bool = True,
    labels: Any = None,
    ignore: Any = None,
    solver: str = "conservative",
    execution: CcdExecution | None = None,
) -> Impacts:
    """``ccd`` of one motion or two, executed in a given way."""
    device = require_same_device(*motions)
    solver = chosen(Solver, solver, "solver")
    gap = number_from(min_distance, "min_distance", 0.0)
    tolerance = number_from(tolerance, "tolerance", LEAST_TOLERANCE)
    sharing = sharing_of(motions, weld)
    ignored = ignored_labels(motions, labels, ignore)
    layout = _layout(motions)
    require_feature_bits(layout)
    count = max(motion.piece_count for motion in motions)
    found: list[ImpactRows] = []
    if all(motion.mesh.face_count for motion in motions):
        meshes = tuple(motion.mesh for motion in motions)
        paths = None
        if solver is Solver.CONSERVATIVE and any(motion.rotates for motion in motions):
            paths = _true_paths(motions, layout, gap, tolerance)
        pieces = zip(*(motion.pieces(count) for motion in motions), strict=True)
        options = (sharing, layout, gap, tolerance, solver, first, execution, ignored)
        for rows in rows_of_pieces(meshes, pieces, count, paths, *options):
            found.append(rows)
            if first and len(rows):
                break
    if not found:
        return to_impacts(empty_impact_rows(device), layout)
    rows = found[-1] if count == 1 or first else join_pieces(found)
    rows = first_of(rows) if first else rows
    if rows.first > 0.0:
        return to_impacts(rows, layout)
    impacts = to_impacts(rows, layout, partial(least_initial_distance, motions))
    log_closer_start(impacts, gap)
    return impacts


def rows_of_pieces(
    meshes: tuple[Mesh, ...],
    pieces: Iterable[tuple[Piece, ...]],
    count: int,
    paths: Any,
    sharing: int,
    layout: KeyLayout,
    gap: float,
    tolerance: float,
    solver: Solver = Solver.CONSERVATIVE,
    first: bool = False,
    execution: CcdExecution | None = None,
    ignored: IgnoredLabels | None = None,
) -> Iterator[ImpactRows]:
    """Yield the impacts of each of ``count`` pieces of a step, with times in the whole step.

    Args:
        meshes, pieces: One mesh, or two; for each piece as many straight motions.
        count: Number of pieces.
        paths: TruePaths on which times are refined; None where pieces are the motion itself.
        sharing, layout, gap, tolerance, solver, first, execution, ignored: As in CcdPlan.
    """
    for number, parts in enumerate(tracked(pieces, count)):
        # features of one rigid mesh keep their distance: its deviation counts once
        near = gap + sum(part.deviation for part in parts)
        about = (meshes, parts, sharing, layout, near, tolerance, solver)
        plan = CcdPlan(*about, first and paths is None, execution, ignored)
        rows = _rows(plan).placed(number, count)
        yield rows if paths is None else refined(rows, paths, (number + 1) / count)


def sharing_of(operands: tuple[Any, ...], weld: bool) -> int:
    """Vertices that one operand shares with itself, or two with each other; see common_corners."""
    if len(operands) == 2:
        return SHARED_NONE
    return SHARED_BY_POSITION if weld else SHARED_BY_INDEX


def _true_paths(
    motions: tuple[Motion, ...], layout: KeyLayout, gap: float, tolerance: float
) -> Any:
    """The struct of true paths."""
    out = TruePaths()
    sides = [motion.true_path() for motion in (motions[0], motions[-1])]
    out.a, out.b = (
        moving_mesh(motion.mesh, start, end)
        for motion, (start, end, _) in zip((motions[0], motions[-1]), sides, strict=True)
    )
    out.path_a, out.path_b = sides[0][2], sides[1][2]
    out.bits = layout.bits
    out.min_distance, out.tolerance = wp.float64(gap), wp.float64(tolerance)
    return out


def plan_of(a: Motion, b: Motion | None = None, execution: CcdExecution | None = None) -> CcdPlan:
    """The plan of the first piece of a query with default options, for measurements."""
    motions = _motions(a, b)
    count = max(motion.piece_count for motion in motions)
    parts = tuple(next(iter(motion.pieces(count))) for motion in motions)
    sharing = sharing_of(motions, True)
    meshes = tuple(motion.mesh for motion in motions)
    return CcdPlan(meshes, parts, sharing, _layout(motions), 0.0, 1e-6, execution=execution)


def _rows(plan: CcdPlan) -> ImpactRows:
    count = plan.run()
    if plan.first:
        return earliest_row(plan.queues, count)
    return sorted_rows(plan.queues, count, plan.layout)


def _motions(a: Any, b: Any) -> tuple[Motion, ...]:
    motions = (a,) if b is None else (a, b)
    for name, motion in zip("ab", motions, strict=False):
        if not isinstance(motion, Motion):
            way = "; abut.Motion(mesh, end=…) makes one" if isinstance(motion, Mesh) else ""
            raise MeshError(f"{name} must be an abut.Motion, not {type(motion).__name__}{way}.")
    return motions


def _layout(motions: tuple[Motion, ...]) -> KeyLayout:
    """Bits for the most numerous feature on either side: operands may change places."""
    most = max(max(m.mesh.vertex_count, m.mesh.edges.shape[0], m.mesh.face_count) for m in motions)
    return KeyLayout.of(most, most)
