"""Answers: contacts and the shortest distance of a scene at one moment, as NumPy arrays."""

import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from abut.core.timing import recording
from abut.options import CULL_METHODS, TREE_METHODS, Method
from abut.query.cull import cull
from abut.scene import Scene
from abut.view.page.overlap_answers import SolidOverlap, solid_overlaps

NO_FACE = -1
STAGES = ("contacts", "curves", "distance", "culled", "overlap")


@dataclass(frozen=True)
class Question:
    """The choices of the panel.

    Attributes:
        method: Method of ``scene.collide``; distances take ``bvh`` unless it is ``brute``.
        self_collisions: Also find faces of one object that meet.
        distance: Measure the shortest distance where no objects meet.
        culled: Find the potentially colliding set, by ``far`` unless the method is another one by
            visibility.
        overlap: Measure the overlap of solids that meet; of two objects always.
    """

    method: str = "bvh"
    self_collisions: bool = False
    distance: bool = True
    culled: bool = False
    overlap: bool = False


@dataclass(frozen=True)
class Nearest:
    """The shortest distance of two objects: value, (2,) objects and faces, (2, 3) points."""

    value: float
    objects: np.ndarray
    faces: np.ndarray
    points: np.ndarray


@dataclass(frozen=True)
class Answers:
    """Contacts and the shortest distance.

    Attributes:
        objects, faces: (n, 2), the objects and faces of each contact; NO_FACE where a vertex or an
            edge touches.
        segments: (n, 2, 3), where the faces meet.
        nearest: The shortest distance; None where it was not asked for or objects meet.
        milliseconds: Times of the stages, in order.
        measure, values: The name of a number of each contact, and (n,) numbers: distance, time.
        culled: (k, 2) rows (object, face) of the potentially colliding set.
        overlaps: Overlaps of solids.
        message: Why some answers are missing.
    """

    objects: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    faces: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    segments: np.ndarray = field(default_factory=lambda: np.zeros((0, 2, 3)))
    nearest: Nearest | None = None
    milliseconds: dict[str, float] = field(default_factory=dict)
    measure: str = ""
    values: np.ndarray | None = None
    culled: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    overlaps: list[SolidOverlap] = field(default_factory=list)
    message: str = ""

    @property
    def clearance(self) -> float:
        """Distance of the nearest objects, 0 where objects meet; NaN where it is not known."""
        if self.nearest is not None:
            return self.nearest.value
        between = (self.objects[:, 0] != self.objects[:, 1]).any()
        return 0.0 if between else np.nan

    @cached_property
    def object_pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs of objects that meet (k, 2), their number of contacts, and (n,) pair of each."""
        low, high = self.objects.min(initial=0), self.objects.max(initial=0) + 1
        keys = (self.objects - low).astype(np.int64) @ [high - low, 1]
        found, pair, counts = np.unique(keys, return_inverse=True, return_counts=True)
        return np.stack(np.divmod(found, high - low), axis=1) + low, counts, pair


def answer(scene: Scene, question: Question) -> Answers:
    """Ask a scene; with the milliseconds of each stage."""
    clock = [time.perf_counter()]
    with recording() as timer:
        hits = scene.collide(method=question.method, self_collisions=question.self_collisions)
        clock.append(time.perf_counter())
        objects, faces = hits.objects.numpy(), hits.pairs.numpy()
        segments = hits.segments.numpy() if len(hits) else np.zeros((0, 2, 3))
        clock.append(time.perf_counter())
        meet = bool((objects[:, 0] != objects[:, 1]).any())
        nearest = _nearest(scene, question.method) if question.distance and not meet else None
        clock.append(time.perf_counter())
        found = Answers(objects, faces, segments, nearest)
        culled = _culled(scene, question) if question.culled else found.culled
        clock.append(time.perf_counter())
        overlaps, message = _overlaps(scene, found) if question.overlap else ([], "")
        clock.append(time.perf_counter())
    times = dict(zip(STAGES, 1e3 * np.diff(clock), strict=True))
    times = {name: float(ms) for name, ms in times.items() if getattr(question, name, True)}
    times |= {f"· {name}": ms for name, ms in timer.milliseconds.items()}
    about: Any = {"culled": culled, "overlaps": overlaps, "message": message}
    return replace(found, milliseconds=times, **about)


def _overlaps(scene: Scene, found: Answers) -> tuple[list[SolidOverlap], str]:
    """Overlaps of the objects that meet; of two objects, also where one lies inside the other."""
    pairs = found.object_pairs[0]
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return solid_overlaps(scene, scene.indices[None] if len(scene) == 2 else pairs)


def _culled(scene: Scene, question: Question) -> np.ndarray:
    """(k, 2) rows of the potentially colliding set."""
    how = question.method if question.method in CULL_METHODS else Method.FAR
    return cull(scene, method=how, self_collisions=question.self_collisions).faces.numpy()


def _nearest(scene: Scene, method: str) -> Nearest | None:
    """The two nearest objects; None where no two may meet."""
    how = method if method in TREE_METHODS else Method.BVH
    near = scene.least_distance(method=how)
    if near.value == inf:
        return None
    return Nearest(near.value, near.objects.numpy(), near.faces.numpy(), near.points.numpy())
