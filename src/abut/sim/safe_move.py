"""Ways that are shortened until nothing is crossed."""

from dataclasses import dataclass

import numpy as np
import warp as wp

from abut.atomics import lower_to
from abut.mesh import Mesh
from abut.motion import Motion
from abut.query.ccd import ccd
from abut.query.collide import collide
from abut.query.self_collide import self_collide
from abut.results import ImpactKind, Impacts
from abut.runtime import launch

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ONE = wp.constant(wp.float64(1.0))
VERTEX_FACE = wp.constant(int(ImpactKind.VERTEX_FACE))
EDGE_EDGE = wp.constant(int(ImpactKind.EDGE_EDGE))
PATIENT_ROUNDS, ROUNDS = 4, 12  # after the first few, whatever still meets something stays


@dataclass(frozen=True)
class Way:
    """Where a step ended, and how.

    Attributes:
        points: Where vertices are now; nothing meets.
        share: (n,) float64, how much of its way each vertex made.
        impacts: How many impacts the full way had.
        rounds: How often ways were shortened.
    """

    points: wp.array
    share: wp.array
    impacts: int
    rounds: int


@wp.kernel
def shorten_kernel(
    # in
    span: wp.vec3i,
    time: wp.array[wp.float64],
    kind: wp.array[wp.int32],
    features: wp.array2d[wp.int32],
    faces: wp.array[wp.vec3i],
    edges: wp.array[wp.vec2i],
    alone: wp.bool,
    # out
    first_out: wp.array[wp.int64],
):
    """The earliest impact of each vertex; ``alone``: both features are of this mesh."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        bits = wp.cast(time[i], wp.int64)  # of numbers from 0 up, bits sort like the numbers
        a = features[i, 0]
        b = features[i, 1]
        if kind[i] == EDGE_EDGE:
            for k in range(2):
                lower_to(first_out, edges[a][k], bits)
                if alone:
                    lower_to(first_out, edges[b][k], bits)
        elif kind[i] == VERTEX_FACE:
            lower_to(first_out, a, bits)
            if alone:
                for k in range(3):
                    lower_to(first_out, faces[b][k], bits)
        else:
            for k in range(3):
                lower_to(first_out, faces[a][k], bits)


@wp.kernel
def pull_back_kernel(
    # in
    span: wp.vec3i,
    start: wp.array[wp.vec3d],
    wanted: wp.array[wp.vec3d],
    kept: wp.float64,
    # out
    first_out: wp.array[wp.int64],
    share_out: wp.array[wp.float64],
    end_out: wp.array[wp.vec3d],
):
    """End ways a little before their first impact."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        time = wp.cast(first_out[i], wp.float64)
        if time <= ONE:
            share_out[i] = share_out[i] * (kept * time)
        first_out[i] = wp.cast(wp.float64(2.0), wp.int64)
        end_out[i] = start[i] + share_out[i] * (wanted[i] - start[i])


def safe_way(mesh: Mesh, wanted: wp.array, obstacle: Mesh | None = None) -> Way:
    """Move a mesh that meets neither itself nor the obstacle; afterwards that is still so.

    Vertices go straight from where the mesh has them to where they are ``wanted``. Those that would
    cross something on the way end before it, alone; if that does not help, all of them do.

    Guarantee:
        The way has no impact (``abut.ccd``), or the mesh was found free of contact at its end by
        exact tests, or nothing has moved.
    """
    device, count = mesh.device, mesh.vertex_count
    start, end = mesh.points, wanted
    share = wp.full(count, 1.0, dtype=wp.float64, device=device)
    first = wp.full(count, _bits(2.0), dtype=wp.int64, device=device)
    impacts = 0
    for round_number in range(ROUNDS):
        hits = _impacts(mesh, end, obstacle)
        if not any(hits):
            return Way(end, share, impacts, round_number)
        impacts = impacts or sum(map(len, hits))
        for rows, alone in zip(hits, (True, False), strict=False):
            _lower(first, rows, mesh, alone)
        end = wp.empty_like(start) if end is wanted else end
        kept = wp.float64(0.8 if round_number < PATIENT_ROUNDS else 0.0)
        launch(pull_back_kernel, count, [start, wanted, kept, first, share, end], device)
    time = min(rows.first for rows in _impacts(mesh, end, obstacle))
    return _all_together(mesh, end, obstacle, share, impacts, min(time, 1.0))


def _impacts(mesh: Mesh, end: wp.array, obstacle: Mesh | None) -> list[Impacts]:
    move = Motion(mesh, end)
    hits = [ccd(move)]
    if obstacle is not None:
        hits.append(ccd(move, Motion(obstacle, obstacle.points)))
    return hits


def _lower(first: wp.array, rows: Impacts, mesh: Mesh, alone: bool) -> None:
    args = [rows.time, rows.kind, rows.features, mesh.faces, mesh.edges, alone, first]
    launch(shorten_kernel, len(rows), args, mesh.device, grain=1024)


def _all_together(
    mesh: Mesh, end: wp.array, obstacle: Mesh | None, share: wp.array, impacts: int, time: float
) -> Way:
    """The last resort: all vertices stop before the first impact, or stay where they are."""
    start = mesh.points
    part, part_end = wp.full_like(share, 0.8 * time), wp.empty_like(end)
    first = wp.full(len(share), _bits(2.0), dtype=wp.int64, device=mesh.device)
    args = [start, end, wp.float64(1.0), first, part, part_end]
    launch(pull_back_kernel, len(share), args, mesh.device)
    moved = Mesh(part_end, mesh.faces, mesh.device)
    if self_collide(moved) or (obstacle is not None and collide(moved, obstacle, first=True)):
        return Way(start, wp.zeros_like(share), impacts, ROUNDS)
    wp.copy(share, wp.array(share.numpy() * part.numpy(), device=mesh.device))
    return Way(part_end, share, impacts, ROUNDS)


def _bits(number: float) -> int:
    return int(np.float64(number).view(np.int64))
