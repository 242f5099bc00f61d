"""abut.ccd: when moving meshes first touch."""

from typing import Any

import warp as wp

from abut.core.device import require_same_device
from abut.core.pair_queue import KeyLayout
from abut.errors import MeshError
from abut.geometry.common_corners import SHARED_BY_INDEX, SHARED_BY_POSITION, SHARED_NONE
from abut.motion import Motion
from abut.narrow.impact_rigid import Turning
from abut.operands.ccd_operands import moving
from abut.options import LEAST_TOLERANCE, TREE_METHODS, Method, Solver, chosen, number_from
from abut.query.impact_rows import (
    Rows,
    earliest_row,
    empty_rows,
    first_of,
    join_pieces,
    refined,
    sorted_rows,
    to_impacts,
)
from abut.query.sweep_front import SweepFronts
from abut.query.sweep_plan import SweepPlan, require_memory
from abut.results import Impacts


def ccd(
    a: Motion,
    b: Motion | None = None,
    *,
    min_distance: float = 0.0,
    tolerance: float = 1e-6,
    first: bool = False,
    weld: bool = True,
    method: str = "bvh",
    solver: str = "conservative",
) -> Impacts:
    """Find when moving faces first come within a gap of each other.

    Faces of straight-moving vertices touch first where a vertex meets a face or an edge meets an
    edge; each such pair is one row. Without ``b``, faces of ``a`` meet each other; a vertex and a
    face, or two edges, with a vertex in common give no row.

    Args:
        a, b: Motions over one step, on the same device.
        min_distance: Gap to keep [mesh length unit]; features touch when they are no farther.
        tolerance: How much earlier than the first contact a time may be [share of the step].
        first: Only the earliest impact, one row: the cheapest way to know a safe step.
        weld: Vertices at equal positions at both ends of the step count as common. False goes by
            vertex index alone.
        method: ``bvh``, or ``brute`` for the slow truth. All methods return the same rows.
        solver: ``conservative``; or ``cubic``, the root finder of Provot, which is Approximate.

    Returns:
        One row per vertex-face or edge-edge impact, sorted; times in [0, 1].

    Raises:
        DeviceError: The motions live on different devices.
        OptionError: A distance or tolerance that is not a usable number.

    Guarantee:
        Conservative. No impact is missed; no time is later than the true one. Starting in contact
        gives time 0. All of this holds for the true paths of turning meshes.
    """
    return impacts_of(
        _motions(a, b),
        min_distance=min_distance,
        tolerance=tolerance,
        first=first,
        weld=weld,
        method=chosen(TREE_METHODS, method, "method"),
        solver=solver,
    )


def impacts_of(
    motions: tuple[Motion, ...],
    *,
    min_distance: float,
    tolerance: float,
    first: bool,
    weld: bool,
    method: Method,
    solver: str,
    fronts: SweepFronts | None = None,
) -> Impacts:
    """``ccd`` of one motion or two; ``fronts`` to go on where the last step stopped."""
    device = require_same_device(*motions)
    solver = chosen(Solver, solver, "solver")
    gap = number_from(min_distance, "min_distance", 0.0)
    tolerance = number_from(tolerance, "tolerance", LEAST_TOLERANCE)
    sharing = SHARED_NONE if len(motions) == 2 else SHARED_BY_POSITION if weld else SHARED_BY_INDEX
    layout = _layout(motions)
    require_memory(layout)
    count = max(motion.piece_count for motion in motions)
    found = [empty_rows(device)]
    if all(motion.mesh.face_count for motion in motions):
        meshes = tuple(motion.mesh for motion in motions)
        turning = _turning(motions, layout, gap, tolerance) if _refines(motions, solver) else None
        pieces = zip(*(motion.pieces(count) for motion in motions), strict=True)
        for number, parts in enumerate(pieces):
            # features of one mesh that turns as a whole keep their distance: no need of it twice
            stray = sum(part.deviation for part in parts)
            plan = SweepPlan(device, meshes, parts, sharing, layout, gap + stray, tolerance)
            plan.solver, plan.brute, plan.fronts = solver, method is Method.BRUTE, fronts
            plan.first = first and turning is None
            rows = _rows(plan).placed(number, count)
            if turning is not None:
                rows = refined(rows, turning, (number + 1) / count)
            found.append(rows)
            if first and len(rows):
                break
    rows = found[-1] if count == 1 or first else join_pieces(found)
    return to_impacts(first_of(rows) if first else rows, layout)


def _refines(motions: tuple[Motion, ...], solver: Solver) -> bool:
    return solver is Solver.CONSERVATIVE and any(motion.turns for motion in motions)


def _turning(motions: tuple[Motion, ...], layout: KeyLayout, gap: float, tolerance: float) -> Any:
    """The struct of true paths."""
    turning = Turning()
    sides = [motion.true_path() for motion in (motions[0], motions[-1])]
    views = [
        moving(motion.mesh, start, end)
        for motion, (start, end, _) in zip((motions[0], motions[-1]), sides, strict=True)
    ]
    turning.a, turning.b = views
    turning.path_a, turning.path_b = sides[0][2], sides[1][2]
    turning.bits = layout.bits
    turning.min_distance, turning.tolerance = wp.float64(gap), wp.float64(tolerance)
    return turning


def plan_of(a: Motion, b: Motion | None = None) -> SweepPlan:
    """The plan of the first piece of a query with default options, for those who measure."""
    motions = _motions(a, b)
    count = max(motion.piece_count for motion in motions)
    parts = tuple(next(iter(motion.pieces(count))) for motion in motions)
    sharing = SHARED_NONE if b is not None else SHARED_BY_POSITION
    meshes = tuple(motion.mesh for motion in motions)
    return SweepPlan(a.device, meshes, parts, sharing, _layout(motions), 0.0, 1e-6)


def _rows(plan: SweepPlan) -> Rows:
    count, buffers = plan.run()
    if plan.first:
        return earliest_row(buffers, count)
    return sorted_rows(buffers, count, plan.layout)


def _motions(a: Any, b: Any) -> tuple[Motion, ...]:
    motions = (a,) if b is None else (a, b)
    for name, motion in zip("ab", motions, strict=False):
        if not isinstance(motion, Motion):
            raise MeshError(f"{name} must be an abut.Motion, not {type(motion).__name__}.")
    return motions


def _layout(motions: tuple[Motion, ...]) -> KeyLayout:
    """Room for the most numerous feature on either side: operands may change places."""
    most = max(max(m.mesh.vertex_count, m.mesh.edges.shape[0], m.mesh.face_count) for m in motions)
    return KeyLayout.of(most, most)
