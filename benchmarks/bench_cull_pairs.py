"""Pairs of objects that FAR leaves of the fracture: ``python -m benchmarks.bench_cull_pairs``.

Beside the pairs whose boxes overlap, those of survivors whose boxes overlap, and those that
intersect. Rows go to results/<machine>/cull_pairs.csv.
"""

import argparse
import csv
import sys
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import warp as wp

import abut
from benchmarks import bench_cull, cull_contacts
from benchmarks.comparison import QUIET, RESULTS
from benchmarks.cull_scenes import Frame, fracture
from benchmarks.rows import machine_name


@dataclass
class Row:
    """Pairs of objects of one frame; lost are pairs of faces that intersect."""

    frame: int
    pixels: int
    boxes: int
    boxes_of_survivors: int
    in_all_views: int
    intersecting: int
    lost_pairs: int


def main(argv: list[str] | None = None) -> int:
    """Count, print, write. 1 if a pair is lost."""
    parser = argparse.ArgumentParser(prog="bench_cull_pairs", description=__doc__)
    parser.add_argument("--frames", type=int, nargs="+", default=[1, 15, 40])
    parser.add_argument("--pixels", type=int, nargs="+", default=[1024, 1400, 4096])
    parser.add_argument("--device", default="cpu", help="cpu or cuda:0")
    parser.add_argument("--out", type=Path, help="folder; default: results/<machine>")
    args = parser.parse_args(argv)
    wp.config.log_level = QUIET
    frames = fracture(max(args.frames), steps=1)
    rows = [row for n in args.frames for row in _rows(n, frames[n - 1], args.pixels, args.device)]
    for row in rows:
        print(row)
    path = (args.out or RESULTS / machine_name(args.device)) / "cull_pairs.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    return int(any(row.lost_pairs for row in rows))


def _rows(number: int, frame: Frame, pixels: list[int], device: str) -> list[Row]:
    asked = cull_contacts.Asked(frame, False, device)
    met = cull_contacts.rows_of(asked.contacts())
    rows = []
    for size in pixels:
        culled = abut.cull(asked.meshes, pixels=size)
        found = np.concatenate([culled.pair_objects.numpy(), culled.pairs.numpy()], axis=1)
        counts = [
            bench_cull._overlapping_boxes(frame),
            survivors_boxes(frame, culled.faces.numpy()),
            culled.object_pairs.shape[0],
            len({row[:2] for row in met}),
            len(met - set(map(tuple, found.tolist()))),
        ]
        rows.append(Row(number, size, *counts))
    return rows


def survivors_boxes(frame: Frame, survivors: np.ndarray) -> int:
    """Count pairs of objects of which a box of a surviving face of one overlaps one of the other.

    Args:
        frame: Shapes of the objects.
        survivors: (n, 2) rows (object, face).
    """
    boxes = []
    for k, shape in enumerate(frame):
        corners = shape.vertices[shape.faces[survivors[survivors[:, 0] == k, 1]]]
        boxes.append((corners.min(axis=1), corners.max(axis=1)))
    return sum(
        _overlap(boxes[a], boxes[b]) for a in range(len(frame)) for b in range(a + 1, len(frame))
    )


def _overlap(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> bool:
    """Whether a box of one list overlaps a box of the other."""
    (low_a, high_a), (low_b, high_b) = a, b
    if not len(low_a) or not len(low_b):
        return False
    if (low_a.min(0) > high_b.max(0)).any() or (low_b.min(0) > high_a.max(0)).any():
        return False
    apart = (low_a[:, None] > high_b) | (low_b > high_a[:, None])
    return bool((~apart.any(axis=2)).any())


if __name__ == "__main__":
    sys.exit(main())
