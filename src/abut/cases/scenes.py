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


def _split(faces: int, along: float) -> tuple[int, int]:
    """Rows and columns of a grid of ``faces`` faces with ``along`` times as many rows."""
    columns = max(4, round((faces / 2 / along) ** 0.5))
    return max(4, round(faces / 2 / columns)), columns


def _knot(faces: int) -> Pair:
    rows, columns = _split(faces, along=20.0)
    return shapes.torus_knot(rows, columns, q=5, thick=0.17), shapes.gem(faces, 1.1, 0.1, 4)


def _tori(faces: int) -> Pair:
    ring = shapes.torus(*_split(faces, along=2.0), thick=0.45)
    return ring, ring.turned("x", 80).moved((0.9, 0.2, 0.1))


def _spheres(faces: int, by: tuple[float, float, float]) -> Pair:
    sphere = shapes.icosphere(faces)
    return sphere, sphere.moved(by)


def _stacked_boxes(faces: int) -> Pair:
    return shapes.box(), shapes.box((0.5, 0.5, 1.0)).moved((0.125, 0.0, 1.0))


def _needles(faces: int) -> Shape:
    return shapes.needles(max(faces // 4, 1))


def _twins(faces: int) -> Pair:
    sphere = shapes.icosphere(faces)
    return sphere, sphere


PAIRS: dict[str, Callable[[int], Pair]] = {
    "knot": _knot,  # winds in and out of a bumpy ball
    "tori": _tori,  # linked, and they intersect
    "spheres": lambda faces: _spheres(faces, (0.9, 0.4, 0.2)),  # intersect
    "apart": lambda faces: _spheres(faces, (2.01, 0.0, 0.0)),  # a narrow gap
    # a bumpy ball inside a sphere: no faces intersect
    "nested": lambda faces: (shapes.gem(faces, 0.5), shapes.icosphere(faces, 1.0)),
    "stacked_boxes": _stacked_boxes,  # one rests on the other: contact in a plane only
    "twins": _twins,  # at one place: every face touches its copy and its neighbours
    # through a sphere: the worst case for boxes
    "needles": lambda faces: (_needles(faces), shapes.icosphere(faces, 0.8)),
    # a ball half sunk into rippled ground
    "terrain": lambda faces: (
        shapes.plane(*_split(faces, along=1.0), 4.0, 0.3),
        shapes.icosphere(faces, 0.7),
    ),
}
SINGLES: dict[str, Callable[[int], Shape]] = {
    # a wavy sheet that folds over and intersects itself
    "folded_cloth": lambda faces: shapes.folded_cloth(*_split(faces, along=2.0)),
    # a trefoil so thick that its strands overlap
    "thick_knot": lambda faces: shapes.torus_knot(*_split(faces, along=6.0), thick=0.45),
    "sphere": shapes.icosphere,
    "needles": _needles,
}
