"""Rows of ``cull_frames.csv`` and ``cull_pairs.csv``, for the pages of FAR and Quick-CULLIDE."""

from functools import cache

from benchmarks.papers.culling import NAMES, Row, rows_of
from benchmarks.plots import line_plot
from benchmarks.readme import CPU, ROOT

IMAGES = ROOT / "docs" / "images"
END_TO_END = {
    "bvh_built": "hierarchies, built",
    "bvh_refitted": "hierarchies, refitted",
    "collide_far_built": "FAR, new meshes",
    "collide_far": "FAR, kept meshes",
}
Curve = list[tuple[float, float]]


@cache
def frames_of(scene: str, machine: str = CPU) -> tuple[dict[str, Row], ...]:
    """Return the rows of each frame of a scene, by method."""
    frames: dict[str, dict[str, Row]] = {}
    for row in rows_of("cull_frames", machine):
        if row["scene"] == scene:
            frames.setdefault(row["frame"], {})[row["way"]] = row
    return tuple(frames[number] for number in sorted(frames, key=int))


def ways_of(scene: str) -> list[str]:
    """Return the methods of culling that were measured on a scene."""
    return [way for way in NAMES if any(way in frame for frame in frames_of(scene))]


def column(scene: str, way: str, name: str) -> list[float]:
    """Return a column of a method over the frames that have it."""
    return [float(frame[way][name]) for frame in frames_of(scene) if way in frame]


def mean(scene: str, way: str, name: str) -> float:
    """Return the mean of a column over the frames."""
    values = column(scene, way, name)
    return sum(values) / len(values)


def curve(scene: str, way: str, name: str, least: float = 0.0) -> Curve:
    """Return (frame, value) of a column; smaller values are drawn at ``least``."""
    return [(k, max(v, least)) for k, v in enumerate(column(scene, way, name))]


def plotted(
    name: str, title: str, unit: str, curves: dict[str, Curve], *, decades: bool = False
) -> str:
    """Write a plot over frames and return its Markdown."""
    line_plot(IMAGES / f"{name}.svg", title, "frame", unit, curves, decades=decades)
    return f"![{title}.](../images/{name}.svg)\n"
