"""Contacts of two meshes or of one: whether, where and which faces; their picture."""

import argparse
from typing import Any

import numpy as np

from abut.cli.operands import pose_of
from abut.cli.pictures import draw_picture
from abut.cli.report import (
    Meshes,
    Stages,
    pair_columns,
    show_answer,
    show_first,
    show_json_answer,
    size_of,
    timed,
)
from abut.cli.where import where_facts, where_plain
from abut.geometry.polylines import join_segments
from abut.results import Contacts


def load_segments(hits: Contacts) -> None:
    """Run the kernels of segments once, so that they are loaded."""
    assert hits.segments is not None


def show_contacts(
    hits: Contacts, operands: Meshes, stages: Stages, args: argparse.Namespace, **poses: Any
) -> int:
    """Print and draw contacts; the exit status is 1 where there are any."""
    row = row_of(hits)
    points = timed(stages, "segments", lambda: segments_of(hits, row)[0].reshape(-1, 3))
    if hits and not len(points):
        points = _enclosed(operands, poses, row)
    file, mesh = next(iter(operands.values()))
    if len(operands) == 1:
        draw_picture(args, file, stages, lambda made: made.of_self_contacts(hits, mesh))
    else:
        draw_picture(args, file, stages, lambda made: made.of_contacts(hits, operands, poses, row))
    if args.json:
        rows: dict[str, Any] = {name: array.tolist() for name, array in hits.numpy().items()}
        rows |= {name: rows[name][: args.pairs] for name in ("pairs", "pose") if name in rows}
        found = {"pair_count": len(hits), "where": where_plain(points), **rows}
        show_json_answer(operands, found, stages, args.picture)
    else:
        found = [("contact", _verdict(hits)), *where_facts(points, row)]
        show_answer(operands, [*found, ("pairs", f"{len(hits):,}")], stages, args.picture)
        show_first(pair_columns(hits), len(hits), args.pairs)
    return int(bool(hits))


def row_of(hits: Any) -> int | None:
    """The first pose of a batch that has rows; None without a batch."""
    if hits.pose is None:
        return None
    if len(hits):
        return int(hits.pose.numpy()[0])
    inside = getattr(hits, "contained", None)
    return 0 if inside is None else int(np.argmax(inside.numpy()))


def segments_of(hits: Contacts, row: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(n, 2, 3) segments in which faces meet, and (n,) whether faces are coplanar; of one pose."""
    if not len(hits):
        return np.empty((0, 2, 3)), np.empty(0, bool)
    segments, coplanar = hits.segments.numpy(), hits.coplanar.numpy()
    if row is None or hits.pose is None:
        return segments, coplanar
    chosen = hits.pose.numpy() == row
    return segments[chosen], coplanar[chosen]


def lines_of(segments: np.ndarray, coplanar: np.ndarray) -> list[np.ndarray]:
    """Curves of intersection, segments across coplanar faces, and points of contact."""
    points = segments[(segments[:, 0] == segments[:, 1]).all(axis=1), :1]
    return [*join_segments(segments[~coplanar]), *segments[coplanar], *points]


def _enclosed(operands: Meshes, poses: dict[str, Any], row: int | None) -> np.ndarray:
    """(n, 3) vertices of the smaller mesh."""
    name, (_, mesh) = min(operands.items(), key=lambda item: size_of(item[1][1]).max())
    pose = pose_of(poses.get(f"pose_{name}"), row)
    return (
        mesh.points.numpy() if pose is None else mesh.points.numpy() @ pose[:3, :3].T + pose[:3, 3]
    )


def _verdict(hits: Contacts) -> str:
    if isinstance(hits.colliding, bool):
        return "one inside the other" if hits.contained else "yes" if hits.colliding else "no"
    colliding = hits.colliding.numpy()
    return f"in {colliding.sum():,} of {len(colliding):,} poses"
