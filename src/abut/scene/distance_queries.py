"""Rows of distance queries: pairs of objects, the nearest ones of each, the nearest two."""

from typing import Any

import numpy as np

from abut.broad.boxes import AGAINST, WHICH
from abut.errors import OptionError, SceneError
from abut.query.collide import collide
from abut.scene.broad_stages import BroadStages
from abut.scene.lowest_contact import LowestContactSearch
from abut.scene.mesh_methods import brute_distance_rows
from abut.scene.object_distances import FoundDistances, NearestSearch, PairSearch
from abut.scene.search_cache import SearchCache
from abut.scene.selection import Part

Found = tuple[BroadStages, FoundDistances]  # the rows are objects of its view


def bounded_rows(searches: SearchCache, part: Part, poses: Any, bound: float, brute: bool) -> Found:
    """All pairs of objects at most so far apart."""
    if brute:
        scene = searches.layout(part, poses)
        rows = brute_distance_rows(part, scene, bound)
        return scene, rows[np.isfinite(rows.value)]
    search = _search(searches, PairSearch, part, poses, bound=bound)
    rows = search.run()
    rows = rows[np.isfinite(rows.value)]
    if (rows.value == 0).any():
        rows.faces[rows.value == 0] = _contacts(searches, part, poses).faces  # sorted alike
    return search.broad, rows


def nearest_rows(
    searches: SearchCache, part: Part, poses: Any, nearest: int, bound: float, brute: bool
) -> Found:
    """The ``nearest`` objects of each object, at most so far apart, nearest ones first."""
    if brute:
        scene = searches.layout(part, poses)
        rows = _directed(part, brute_distance_rows(part, scene, bound))
        return scene, _first_of_each(rows[np.isfinite(rows.value)], nearest)
    met = _directed(part, _contacts(searches, part, poses))
    search = _search(searches, NearestSearch, part, poses, nearest=nearest, bound=bound)
    scene, count = search.broad, len(part.objects)
    touched = np.bincount(met.environments * count + met.objects[:, 0], minlength=scene.total)
    rows = _directed(part, search.run(touched >= nearest))
    rows = _joined(met, rows[np.isfinite(rows.value) & (rows.value > 0)])
    return scene, _first_of_each(rows, nearest)


def given_rows(
    searches: SearchCache, part: Part, poses: Any, pairs: Any, bound: float, brute: bool
) -> Found:
    """Pairs of objects as they were given; in each copy of the scene."""
    asked = _checked_pairs(part, pairs)
    faces = part.objects.pool.arrays.table["face_count"][part.objects.shapes[asked]]
    low = np.sort(asked, axis=1)
    known, place = np.unique(low[(faces > 0).all(axis=1)], axis=0, return_inverse=True)
    if brute:
        scene = searches.layout(part, poses)
        rows = brute_distance_rows(part, scene, bound, known)
    else:
        search = _search(searches, PairSearch, part, poses, bound=bound, given=True)
        scene, rows = search.broad, search.run(known)
    _name_contacts(part, scene, rows)
    environments, count = scene.environments, len(asked)
    out = FoundDistances(
        np.repeat(np.arange(environments), count),
        np.tile(asked, (environments, 1)),
        np.full((environments * count, 2), -1, np.int64),
        np.full(environments * count, np.inf),
    )
    has_faces = np.tile((faces > 0).all(axis=1), environments)
    rank = (np.arange(environments)[:, None] * len(known) + place.reshape(-1)).reshape(-1)
    out.value[has_faces], out.faces[has_faces] = rows.value[rank], rows.faces[rank]
    swapped = out.objects[:, 0] > out.objects[:, 1]
    out.faces[swapped] = out.faces[swapped][:, ::-1]
    return scene, out


def least_rows(searches: SearchCache, part: Part, poses: Any, brute: bool) -> Found:
    """The nearest two objects of each copy of the scene, the lowest of those at one distance."""
    if brute:
        scene = searches.layout(part, poses)
        return scene, _least_of_each(brute_distance_rows(part, scene, np.inf), scene.environments)
    search = searches.near(LowestContactSearch, part, poses)
    met = search.run()
    rows, colliding = met, np.zeros(search.broad.environments, bool)
    colliding[met.environments] = True
    if not colliding.all():
        options = {"nearest": 1, "bound": np.inf, "least": True}
        search = _search(searches, NearestSearch, part, poses, **options)
        rows = _joined(met, search.run(np.repeat(colliding, len(part.objects))))
    return search.broad, _least_of_each(rows, search.broad.environments)


def _search(searches: SearchCache, kind: type, part: Part, poses: Any, **options: Any) -> Any:
    """The search of a kind, which may fit swept spheres to the trees."""
    part.objects.pool.flush()
    part.objects.pool.trees.clear_rss()
    return searches.near(kind, part, poses, **options)


def _contacts(searches: SearchCache, part: Part, poses: Any) -> FoundDistances:
    """All pairs of objects that meet, sorted."""
    found = searches.contacts(part, poses, False, first=True)
    environments, objects, faces = (rows.numpy().astype(np.int64) for rows in found.rows)
    objects[:, 1] += part.first_external
    return FoundDistances(environments, objects, faces, np.zeros(len(faces)))


def _joined(*parts: FoundDistances) -> FoundDistances:
    """All rows of several results."""
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return FoundDistances(*map(np.concatenate, columns))


def _directed(part: Part, rows: FoundDistances) -> FoundDistances:
    """Rows of an object of ``which`` and one of ``against``: a pair may be one in either order."""
    roles = np.broadcast_to(part.roles, len(part.objects))[rows.objects].T
    turned = FoundDistances(
        rows.environments, rows.objects[:, ::-1], rows.faces[:, ::-1], rows.value
    )
    forth, back = ((a & WHICH != 0) & (b & AGAINST != 0) for a, b in (roles, roles[::-1]))
    return _joined(rows[forth], turned[back])


def _first_of_each(rows: FoundDistances, nearest: int) -> FoundDistances:
    """So many rows of each object, sorted by objects, distances and other objects."""
    mine, other = rows.objects.T
    order = np.lexsort((other, rows.value, mine, rows.environments))
    rows = rows[order]
    mine = np.stack([rows.environments, rows.objects[:, 0]])
    starts = np.flatnonzero(np.diff(mine, axis=1, prepend=-1).any(axis=0))
    place = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    return rows[place < nearest]


def _least_of_each(rows: FoundDistances, environments: int) -> FoundDistances:
    """The nearest pair of each environment; an infinite row of no objects where there is none."""
    order = np.lexsort((*rows.objects.T[::-1], rows.value, rows.environments))
    rows = rows[order[np.isfinite(rows.value[order])]]
    first = np.flatnonzero(np.diff(rows.environments, prepend=-1))
    out = FoundDistances(
        np.arange(environments),
        np.full((environments, 2), -1, np.int64),
        np.full((environments, 2), -1, np.int64),
        np.full(environments, np.inf),
    )
    at = rows.environments[first]
    out.objects[at], out.faces[at], out.value[at] = (
        column[first] for column in (rows.objects, rows.faces, rows.value)
    )
    return out


def _checked_pairs(part: Part, pairs: Any) -> np.ndarray:
    """(n, 2) rows of pairs of different objects, given by indices or names."""
    flat = pairs.numpy() if hasattr(pairs, "numpy") else pairs
    shape = np.shape(flat)
    if shape != (0,) and (len(shape) != 2 or shape[1] != 2):
        raise OptionError(f"pairs must have shape (n, 2), not {shape}.")
    rows = part.objects.rows([handle for pair in flat for handle in pair]).reshape(-1, 2)
    same = np.flatnonzero(rows[:, 0] == rows[:, 1])
    if len(same):
        raise SceneError(f"pairs[{same[0]}] is an object and itself.")
    return rows


def _name_contacts(part: Part, scene: BroadStages, rows: FoundDistances) -> None:
    """Fill in the faces of pairs that meet: two that do, the same on every device."""
    met = np.flatnonzero(rows.value == 0)
    if not len(met):
        return
    poses, shapes = scene.environment_poses(), part.objects.shapes[rows.objects[met]]
    for both in np.unique(shapes, axis=0):
        some = met[(shapes == both).all(axis=1)]
        a, b = (part.objects.pool.mesh(int(shape)) for shape in both)
        sides = (poses[rows.environments[some], rows.objects[some, side]] for side in range(2))
        hits = collide(a, b, pose_a=next(sides), pose_b=next(sides), first=True)
        rows.faces[some] = hits.pairs.numpy()
