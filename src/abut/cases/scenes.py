"""Named scenes: the same inputs for tests, benchmarks, examples and demos."""

from collections.abc import Callable

from abut.cases import shapes
from abut.cases.shape import Shape
from abut.errors import OptionError

Pair = tuple[Shape, Shape]


def pair(name: str, faces: int = 5000) -> Pair:
    """Make two shapes.

    Args:
        name: One of ``PAIRS``.
        faces: Approximate number of faces of each; ignored by small scenes.
    """
    return _named(PAIRS, name)(faces)


def single(name: str, faces: int = 5000) -> Shape:
    """Make one shape; ``name`` is one of ``SINGLES``."""
    return _named(SINGLES, name)(faces)


def _named(scenes: dict, name: str) -> Callable:
    if name not in scenes:
        raise OptionError(f"there is no scene {name!r}; there are: {', '.join(scenes)}.")
    return scenes[name]


def _knot(faces: int) -> Pair:
    """A knot winds in and out of a bumpy ball."""
    rows, columns = _split(faces, along=20.0)
    return shapes.torus_knot(rows, columns, q=5, thick=0.17), shapes.gem(faces, 1.1, 0.1, 4)


def _tori(faces: int) -> Pair:
    """Two linked tori that intersect."""
    ring = shapes.torus(*_split(faces, along=2.0), thick=0.45)
    return ring, ring.turned("x", 80).moved((0.9, 0.2, 0.1))


def _spheres(faces: int) -> Pair:
    """Two intersecting spheres."""
    sphere = shapes.icosphere(faces)
    return sphere, sphere.moved((0.9, 0.4, 0.2))


def _apart(faces: int) -> Pair:
    """Two spheres with a narrow gap."""
    sphere = shapes.icosphere(faces)
    return sphere, sphere.moved((2.01, 0.0, 0.0))


def _nested(faces: int) -> Pair:
    """A bumpy ball inside a sphere: no faces intersect."""
    return shapes.gem(faces, 0.5), shapes.icosphere(faces, 1.0)


def _stacked_boxes(faces: int) -> Pair:
    """Two boxes, one resting on the other: contact in a plane only."""
    return shapes.box(), shapes.box((0.5, 0.5, 1.0)).moved((0.125, 0.0, 1.0))


def _twins(faces: int) -> Pair:
    """A sphere and a copy at the same place: every face touches its copy and its neighbours."""
    sphere = shapes.icosphere(faces)
    return sphere, sphere


def _needles(faces: int) -> Pair:
    """Needles through a sphere: the worst case for boxes."""
    return shapes.needles(max(faces // 4, 1)), shapes.icosphere(faces, 0.8)


def _terrain(faces: int) -> Pair:
    """A ball half sunk into rippled ground."""
    return shapes.plane(*_split(faces, along=1.0), 4.0, 0.3), shapes.icosphere(faces, 0.7)


def _folded_cloth(faces: int) -> Shape:
    """A wavy sheet that folds over and intersects itself."""
    return shapes.folded_cloth(*_split(faces, along=2.0))


def _thick_knot(faces: int) -> Shape:
    """A trefoil knot so thick that its strands overlap."""
    return shapes.torus_knot(*_split(faces, along=6.0), thick=0.45)


def _split(faces: int, along: float) -> tuple[int, int]:
    """Rows and columns of a grid of ``faces`` faces with ``along`` times as many rows."""
    columns = max(4, round((faces / 2 / along) ** 0.5))
    return max(4, round(faces / 2 / columns)), columns


PAIRS: dict[str, Callable[[int], Pair]] = {
    "knot": _knot,
    "tori": _tori,
    "spheres": _spheres,
    "apart": _apart,
    "nested": _nested,
    "stacked_boxes": _stacked_boxes,
    "twins": _twins,
    "needles": _needles,
    "terrain": _terrain,
}
SINGLES: dict[str, Callable[[int], Shape]] = {
    "folded_cloth": _folded_cloth,
    "thick_knot": _thick_knot,
    "sphere": shapes.icosphere,
    "needles": lambda faces: shapes.needles(max(faces // 4, 1)),
}
