"""CGAL through libigl: exact predicates, box sweep, one core. Nothing is kept between calls."""

from typing import Any

import numpy as np
from igl.copyleft import cgal

from benchmarks.answers import sorted_pairs, stacked
from benchmarks.cases import Case, Question
from benchmarks.peers import Prepared

NAME, PACKAGE = "igl_cgal", "libigl"
NOTE = "CGAL is exact; faces without area it treats by rules of its own."
EXACT = True
SUPPORTS = dict.fromkeys(
    (
        Question.PAIRS,
        Question.FIRST,
        Question.SELF,
        Question.SELF_ANY,
        Question.SELF_REFIT,
    ),
    ("",),
)


def prepare(case: Case, choice: str = "") -> Prepared:
    """Arrays as libigl wants them; a pose is applied beforehand, as there is no way to pass it."""
    faces = case.faces.astype(np.int64)
    vertices = case.vertices.astype(np.float64)
    if case.question is Question.SELF_REFIT:
        frames = [frame.astype(np.float64) for frame in case.frames]
        return Prepared(lambda: [_self_pairs(frame, faces) for frame in frames], len(frames))
    if case.question is Question.SELF:
        return Prepared(lambda: [_self_pairs(vertices, faces)])
    if case.question is Question.SELF_ANY:
        return Prepared(lambda: len(_self_pairs(vertices, faces, first_only=True)) > 0)
    placed = case.placed
    if case.question is Question.PAIRS:
        return Prepared(lambda: _pairs(vertices, placed, faces))
    return Prepared(lambda: len(_pairs(vertices, placed, faces, first_only=True)) > 0)


def run(prepared: Prepared) -> Any:
    """The library's own result."""
    return prepared.call()


def answer(result: Any) -> Any:
    """Pairs, one list for all frames; yes and no."""
    if isinstance(result, list):
        return stacked([sorted_pairs(pairs, unordered=True) for pairs in result])
    return sorted_pairs(result) if isinstance(result, np.ndarray) else result


def _pairs(a: np.ndarray, b: np.ndarray, faces: np.ndarray, first_only: bool = False) -> np.ndarray:
    return cgal.intersect_other(a, faces, b, faces, detect_only=True, first_only=first_only)[0]


def _self_pairs(vertices: np.ndarray, faces: np.ndarray, first_only: bool = False) -> np.ndarray:
    return cgal.remesh_self_intersections(vertices, faces, detect_only=True, first_only=first_only)[
        2
    ]
