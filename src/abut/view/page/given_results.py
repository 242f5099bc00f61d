"""Results of queries as the answers of a page."""

from collections.abc import Iterable
from math import inf
from typing import Any

import numpy as np

from abut.errors import OptionError
from abut.results import Contacts, Distances, Gaps, ImpactKind, Impacts
from abut.view.page.answers import NO_FACE, Answers, Nearest
from abut.view.page.live_scene import LiveScene
from abut.visibility.culled import Culled

KINDS = "Contacts, Gaps, Distances, Impacts or Culled"


def answers_of(live: LiveScene, results: Any) -> Answers:
    """The answers of a result, or of several about the same scene, put together.

    Args:
        live: The scene that was asked. Rows of two meshes are about its first two objects, those of
            one mesh about its only one.
        results: Results of queries about one pose, not of a batch.
    """
    several = isinstance(results, Iterable) and not hasattr(results, "numpy")
    parts = [_answers(live, result) for result in (results if several else [results])]
    measured = [part for part in parts if part.values is not None]
    return Answers(
        np.concatenate([part.objects for part in parts]),
        np.concatenate([part.faces for part in parts]),
        np.concatenate([part.segments for part in parts]),
        next((part.nearest for part in parts if part.nearest is not None), None),
        measure=measured[0].measure if measured else "",
        values=np.concatenate([_values(part) for part in parts]) if measured else None,
        culled=np.concatenate([part.culled for part in parts]),
    )


def _answers(live: LiveScene, result: Any) -> Answers:
    if getattr(result, "pose", None) is not None:
        raise OptionError("the page shows results about one pose; index a batch first.")
    if isinstance(result, Contacts):
        pairs = result.pairs.numpy()
        return Answers(_objects(live, result, len(pairs)), pairs, result.segments.numpy())
    if isinstance(result, Gaps):
        about: Any = {"measure": "distance", "values": result.distance.numpy()}
        pairs, points = result.pairs.numpy(), result.points.numpy()
        return Answers(_objects(live, result, len(pairs)), pairs, points, **about)
    if isinstance(result, Distances):
        return _distances(live, result)
    if isinstance(result, Impacts):
        return _impacts(live, result)
    if isinstance(result, Culled):
        return Answers(culled=result.faces.numpy())
    raise OptionError(f"the page shows {KINDS}, not {type(result).__name__}.")


def _values(part: Answers) -> np.ndarray:
    return np.full(len(part.faces), np.nan) if part.values is None else part.values


def _objects(live: LiveScene, result: Any, count: int) -> np.ndarray:
    """(n, 2) objects of the rows."""
    if hasattr(result, "objects"):
        return result.objects.numpy().reshape(-1, 2)
    return np.tile(np.array([live.objects[0], live.objects[:2][-1]], np.int32), (count, 1))


def _distances(live: LiveScene, result: Distances) -> Answers:
    """One distance is the shortest; several are rows."""
    if isinstance(result.value, float):
        objects = _objects(live, result, 1)[0]
        faces, points = result.faces.numpy(), result.points.numpy()
        near = Nearest(result.value, objects, faces, points)
        return Answers(nearest=near if 0 < result.value < inf else None)
    values = result.value.numpy()
    rows = np.isfinite(values)
    objects, faces = _objects(live, result, len(values))[rows], result.faces.numpy()[rows]
    about: Any = {"measure": "distance", "values": values[rows]}
    return Answers(objects, faces, result.points.numpy()[rows], **about)


def _impacts(live: LiveScene, result: Impacts) -> Answers:
    """Impacts, drawn between their features where these are now, at the start of the step."""
    kind, features = result.kind.numpy(), result.features.numpy()
    objects = _objects(live, result, len(kind))
    faces = np.full((len(kind), 2), NO_FACE, np.int32)
    segments = np.zeros((len(kind), 2, 3))
    shapes = {row: _shape(live, row) for row in np.unique(objects).tolist()}
    for k, side in ((k, side) for k in range(len(kind)) for side in (0, 1)):
        points, corners, edges = shapes[int(objects[k, side])]
        if kind[k] == ImpactKind.EDGE_EDGE:
            vertices = edges[features[k, side]]
        elif (kind[k] == ImpactKind.VERTEX_FACE) == (side == 0):
            vertices = features[k, side]
        else:
            vertices = corners[features[k, side]]
            faces[k, side] = features[k, side]
        segments[k, side] = points[vertices].reshape(-1, 3).mean(axis=0)
    return Answers(objects, faces, segments, measure="time", values=result.time.numpy())


def _shape(live: LiveScene, row: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vertices of an object in the world, its faces and its edges."""
    points = live.points(row) @ live.poses[row, :3, :3].T + live.poses[row, :3, 3]
    return points, live.faces(row), live.meshes[row].edges.numpy()
