"""Named inputs for tests, benchmarks, examples and demos, made in pure NumPy."""

from abut.cases.scenes import PAIRS, SINGLES, pair, single
from abut.cases.shape import Shape, joined
from abut.cases.shapes import (
    box,
    folded_cloth,
    gem,
    icosphere,
    needles,
    plane,
    torus,
    torus_knot,
    uv_sphere,
)
from abut.cases.tube import tube

__all__ = [
    "PAIRS",
    "SINGLES",
    "Shape",
    "box",
    "folded_cloth",
    "gem",
    "icosphere",
    "joined",
    "needles",
    "pair",
    "plane",
    "single",
    "torus",
    "torus_knot",
    "tube",
    "uv_sphere",
]
