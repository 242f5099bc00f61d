"""Shorten the paths of vertices until none crosses anything."""

from dataclasses import dataclass

import numpy as np
import warp as wp

from abut.core.atomics import atomic_add_aggregated, atomic_min_int64
from abut.core.launch import launch
from abut.mesh import Mesh
from abut.motion import Motion
from abut.query.ccd import ccd
from abut.query.collide import collide
from abut.query.self_collide import self_collide
from abut.results import ImpactKind, Impacts

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ONE = wp.constant(wp.float64(1.0))
VERTEX_FACE = wp.constant(int(ImpactKind.VERTEX_FACE))
EDGE_EDGE = wp.constant(int(ImpactKind.EDGE_EDGE))
KEPT = 0.5  # share of the path up to an impact
PATIENT_ROUNDS, ROUNDS = 3, 24  # after the first few, vertices with impacts stay


@dataclass(frozen=True)
class SafePaths:
    """The end of a step without collisions."""

    points: wp.array  # positions of the vertices; no faces intersect
    share: wp.array  # (n,) float64, share of its path that each vertex has travelled
    impacts: int  # on the full paths
    rounds: int  # in which paths were shortened


@wp.func
def impact_vertex(
    faces: wp.array[wp.vec3i],
    edges: wp.array[wp.vec2i],
    kind: wp.int32,
    features: wp.vec2i,
    k: wp.int32,
    alone: wp.bool,
):
    """Return the k-th of four vertices of an impact; -1 for a vertex of another mesh.

    The vertices of the first feature come first. ``alone``: both features belong to one mesh.
    """
    corner = wp.int32(-1)
    if kind == EDGE_EDGE:
        if k < 2:
            corner = edges[features[0]][k]
        elif alone:
            corner = edges[features[1]][k - 2]
    elif kind == VERTEX_FACE:
        if k == 0:
            corner = features[0]
        elif alone:
            corner = faces[features[1]][k - 1]
    elif k < 3:
        corner = faces[features[0]][k]
    return corner


@wp.kernel
def first_impacts_kernel(
    # in
    span: wp.vec3i,
    start: wp.array[wp.vec3d],
    end: wp.array[wp.vec3d],
    time: wp.array[wp.float64],
    kind: wp.array[wp.int32],
    features: wp.array2d[wp.int32],
    faces: wp.array[wp.vec3i],
    edges: wp.array[wp.vec2i],
    alone: wp.bool,
    # out
    first_out: wp.array[wp.int64],
    moving_out: wp.array[wp.int64],
):
    """Lower the first impact of each vertex, and count impacts with a moving vertex.

    Features at rest do not collide, however near: they were apart to begin with.
    """
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        pair = wp.vec2i(features[i, 0], features[i, 1])
        moves = wp.bool(False)
        for k in range(4):
            corner = impact_vertex(faces, edges, kind[i], pair, k, alone)
            if corner >= 0:
                if wp.max(wp.abs(end[corner] - start[corner])) > wp.float64(0.0):
                    moves = True
        if moves:
            atomic_add_aggregated(moving_out, 1)
            bits = wp.cast(time[i], wp.int64)  # bits of non-negative floats sort like the floats
            for k in range(4):
                corner = impact_vertex(faces, edges, kind[i], pair, k, alone)
                if corner >= 0:
                    atomic_min_int64(first_out, corner, bits)


@wp.kernel
def shorten_paths_kernel(
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
    """End paths at the share ``kept`` of the way to their first impact."""
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        time = wp.cast(first_out[i], wp.float64)
        if time <= ONE:
            share_out[i] = share_out[i] * (kept * time)
        first_out[i] = wp.cast(wp.float64(2.0), wp.int64)
        end_out[i] = start[i] + share_out[i] * (wanted[i] - start[i])


def safe_paths(mesh: Mesh, wanted: wp.array, obstacle: Mesh | None = None) -> SafePaths:
    """Move a mesh free of collisions with itself and the obstacle, and keep it free.

    Vertices move straight from the mesh's to the ``wanted`` positions. Paths with impacts are
    shortened, first one by one, then all together.

    Guarantee:
        No feature that moved has an impact on its path (``abut.ccd``); or exact tests found no
        intersection at the end; or nothing has moved.
    """
    device, count = mesh.device, mesh.vertex_count
    start, end = mesh.points, wanted
    share = wp.full(count, 1.0, dtype=wp.float64, device=device)
    first = wp.full(count, _bits(2.0), dtype=wp.int64, device=device)
    impacts = 0
    for round_number in range(ROUNDS):
        found = _lower_first_impacts(first, mesh, end, obstacle)
        if not found:
            return SafePaths(end, share, impacts, round_number)
        impacts = impacts or found
        end = wp.empty_like(start) if end is wanted else end
        kept = wp.float64(KEPT if round_number < PATIENT_ROUNDS else 0.0)
        launch(shorten_paths_kernel, count, [start, wanted, kept, first, share, end], device)
    time = min(rows.first for rows in _impacts(mesh, end, obstacle))
    return _stop_together(mesh, end, obstacle, share, impacts, min(time, 1.0))


def _lower_first_impacts(first: wp.array, mesh: Mesh, end: wp.array, obstacle: Mesh | None) -> int:
    """Lower the first impact of each vertex on its path; returns how many matter."""
    moving = wp.zeros(1, dtype=wp.int64, device=mesh.device)
    hits = _impacts(mesh, end, obstacle)
    for rows, alone in zip(hits, (True, False), strict=False):
        about = [rows.time, rows.kind, rows.features, mesh.faces, mesh.edges, alone]
        args = [mesh.points, end, *about, first, moving]
        launch(first_impacts_kernel, len(rows), args, mesh.device, grain=1024)
    return int(moving.numpy()[0]) if any(hits) else 0


def _impacts(mesh: Mesh, end: wp.array, obstacle: Mesh | None) -> list[Impacts]:
    move = Motion(mesh, end)
    hits = [ccd(move)]
    if obstacle is not None:
        hits.append(ccd(move, Motion(obstacle, obstacle.points)))
    return hits


def _stop_together(
    mesh: Mesh, end: wp.array, obstacle: Mesh | None, share: wp.array, impacts: int, time: float
) -> SafePaths:
    """Stop all vertices before the first impact, or where they are."""
    start = mesh.points
    part, part_end = wp.full_like(share, KEPT * time), wp.empty_like(end)
    first = wp.full(len(share), _bits(2.0), dtype=wp.int64, device=mesh.device)
    args = [start, end, wp.float64(1.0), first, part, part_end]
    launch(shorten_paths_kernel, len(share), args, mesh.device)
    moved = Mesh(part_end, mesh.faces, mesh.device)
    if self_collide(moved) or (obstacle is not None and collide(moved, obstacle, first=True)):
        return SafePaths(start, wp.zeros_like(share), impacts, ROUNDS)
    wp.copy(share, wp.array(share.numpy() * part.numpy(), device=mesh.device))
    return SafePaths(part_end, share, impacts, ROUNDS)


def _bits(number: float) -> int:
    return int(np.float64(number).view(np.int64))
