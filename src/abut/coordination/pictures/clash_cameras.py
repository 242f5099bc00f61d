"""Cameras of clashes: directions from which the contact of two parts is seen."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import warp as wp

from abut.coordination.clashes import Clashes
from abut.coordination.parts.part_table import PartTable
from abut.coordination.pictures.clash_frame import clash_frames, frame_camera, triples
from abut.coordination.pictures.picture_meshes import PictureMeshes, PictureParts, picture_parts
from abut.coordination.report.report_columns import Columns
from abut.core.device import resolve_device
from abut.core.launch import launch
from abut.query.collide import collide
from abut.view.camera import Camera

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

ASPECT = 4 / 3  # of pictures: width over height
AZIMUTHS = (-60, -30, -120, -150, 120, 150, 60, 30)
ELEVATIONS = (28, 55, 10, -25)
DIRECTIONS = tuple(product(ELEVATIONS, AZIMUTHS))
CHUNK = 64  # clashes of one launch
POINTS = 24  # of the contact that are looked for
LIFT = 1e-2  # of points above surfaces, over the size of the frame
ENOUGH = 0.1  # directions that see this much less than the best are as good
HIDDEN = (0.45, 0.7)  # share of the contact that the larger and the smaller part may hide


@wp.kernel
def hidden_kernel(
    # in
    span: wp.vec3i,
    parts: PictureParts,
    points: wp.array2d[wp.vec3f],
    ways: wp.array[wp.vec3f],
    lift: wp.array[wp.float32],
    # out
    hidden_out: wp.array4d[wp.int32],
):
    """Whether part a or b of clash k lies between each point and each direction."""
    ways_count = ways.shape[0]
    count = points.shape[1]
    for i in range(span[0] + wp.tid(), span[1], span[2]):
        k = i / (ways_count * count)
        w = (i / count) % ways_count
        p = i % count
        for side in range(2):
            slot = parts.first[k] + side
            way = parts.turn[slot] * ways[w]
            start = parts.eye[slot] + parts.turn[slot] * points[k, p] + way * lift[k]
            hit = wp.mesh_query_ray(parts.mesh[slot], start, way, 1.0e8)
            hidden_out[k, w, p, side] = wp.int32(hit.result)


@dataclass(frozen=True)
class ClashView:
    """A camera of a clash.

    Attributes:
        camera: It sees the frame of the clash.
        lines: (k, 2, 3) segments in which the surfaces meet; none where they do not.
        glass: Whether part a and part b hide the contact.
    """

    camera: Camera
    lines: np.ndarray
    glass: tuple[bool, bool]


def clash_views(
    meshes: PictureMeshes,
    pairs: Sequence[tuple[int, int]],
    frames: np.ndarray,
    ends: np.ndarray,
    aspect: float,
) -> list[ClashView]:
    """Choose a camera for each of some clashes.

    Of 32 directions the camera takes the first from which most of the contact is seen.

    Args:
        meshes: The meshes of the parts.
        pairs: Rows of parts.
        frames: (n, 2, 3) boxes to show.
        ends: (n, 2, 3) a point of a and a point of b, for parts whose surfaces do not meet.
        aspect: Width over height.
    """
    lines = [segments_of_pair(meshes.parts, a, b, meshes.device) for a, b in pairs]
    sought = np.stack([_samples(*given) for given in zip(lines, ends, strict=True)])
    hidden = _hidden(meshes, pairs, sought, np.linalg.norm(np.ptp(frames, axis=1), axis=1))
    out = []
    for k, frame in enumerate(frames):
        seen = 1 - hidden[k].max(axis=2).mean(axis=1)
        best = int(np.argmax(seen >= seen.max() - ENOUGH))
        share = hidden[k, best].mean(axis=0)
        elevation, azimuth = DIRECTIONS[best]
        camera = frame_camera(frame, aspect, azimuth=azimuth, elevation=elevation)
        out.append(ClashView(camera, lines[k], _glass(meshes.parts, pairs[k], share)))
    return out


def report_views(
    clashes: Clashes, columns: Columns, rows: Sequence[int], device: Any = None
) -> dict[int, ClashView]:
    """Views of rows of a report, by row; rows with an unknown part or place are left out.

    Args:
        clashes: The clashes and their parts.
        columns: Rows of the report, also those of clashes that are gone.
        rows: Rows of the report to look at.
        device: None is the first CUDA device, else the CPU.
    """
    parts = clashes.parts
    if parts is None or not len(parts):  # rows made by hand
        return {}
    frames = clash_frames(columns, parts)
    sides = [parts.rows_of(columns[side].tolist()) for side in "ab"]
    known = (sides[0] >= 0) & (sides[1] >= 0) & np.isfinite(frames).all(axis=(1, 2))
    points = triples(columns, "a_", "b_")
    meshes = PictureMeshes(parts, resolve_device(device))
    out = {}
    for some in row_chunks([row for row in rows if known[row]], CHUNK):
        pairs = [(int(sides[0][row]), int(sides[1][row])) for row in some]
        views = clash_views(meshes, pairs, frames[some], points[some], ASPECT)
        out |= dict(zip(some, views, strict=True))
        meshes.trim()
    return out


def segments_of_pair(parts: PartTable, a: int, b: int, device: Any) -> np.ndarray:
    """(k, 2, 3) segments in which the surfaces of two parts meet; points are left out."""
    low = np.maximum(parts.boxes[a, 0], parts.boxes[b, 0])
    if (low > np.minimum(parts.boxes[a, 1], parts.boxes[b, 1])).any():
        return np.zeros((0, 2, 3))
    meshes = parts.mesh_of(a, device), parts.mesh_of(b, device)
    hits = collide(*meshes, pose_a=parts.poses[a], pose_b=parts.poses[b])
    segments = hits.segments.numpy() if len(hits) else np.zeros((0, 2, 3))
    return segments[(segments[:, 0] != segments[:, 1]).any(axis=1)]


def _hidden(
    meshes: PictureMeshes,
    pairs: Sequence[tuple[int, int]],
    points: np.ndarray,
    sizes: np.ndarray,
) -> np.ndarray:
    """(n, directions, points, 2) whether a part hides a point from a direction."""
    origins = points.mean(axis=1)
    device = meshes.device
    groups = [[meshes.placed(row) for row in pair] for pair in pairs]
    parts = picture_parts(groups, list(origins), device)
    given = wp.array((points - origins[:, None]).astype(np.float32), dtype=wp.vec3f, device=device)
    ways = wp.array(_ways().astype(np.float32), dtype=wp.vec3f, device=device)
    lift = wp.array((LIFT * sizes).astype(np.float32), dtype=wp.float32, device=device)
    shape = (len(pairs), len(DIRECTIONS), points.shape[1], 2)
    out = wp.empty(shape, dtype=wp.int32, device=device)
    count = shape[0] * shape[1] * shape[2]
    launch(hidden_kernel, count, [parts, given, ways, lift, out], device, grain=256)
    return out.numpy()


def _glass(parts: PartTable, pair: tuple[int, int], hidden: np.ndarray) -> tuple[bool, bool]:
    """Whether each part hides too much of the contact; pipes hide half of their own."""
    sizes = [np.linalg.norm(np.ptp(parts.boxes[row], axis=0)) for row in pair]
    limits = HIDDEN if sizes[0] >= sizes[1] else HIDDEN[::-1]
    return bool(hidden[0] > limits[0]), bool(hidden[1] > limits[1])


def _ways() -> np.ndarray:
    """Unit vectors from a clash to its cameras."""
    e, a = np.radians(DIRECTIONS).T
    return np.stack([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)], axis=1)


def _samples(lines: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """(POINTS, 3) of a contact, evenly spread along its length."""
    if not len(lines):
        return np.repeat(ends, POINTS // 2, axis=0)
    lengths = np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1)
    along = np.cumsum(lengths)
    at = (np.arange(POINTS) + 0.5) / POINTS * along[-1]
    k = np.minimum(np.searchsorted(along, at), len(lines) - 1)
    share = 1 - (along[k] - at) / lengths[k]
    return lines[k, 0] + share[:, None] * (lines[k, 1] - lines[k, 0])


def row_chunks(rows: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Runs of at most ``size`` rows."""
    return (rows[start : start + size] for start in range(0, len(rows), size))
