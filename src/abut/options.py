"""Enums of the choices that calls take; the members are strings."""

from collections.abc import Iterable
from enum import StrEnum
from math import isfinite
from typing import Any, TypeVar

from abut.errors import OptionError


class Method(StrEnum):
    """Methods that find candidate pairs. A call takes some of them and returns the same rows.

    ``cullide`` and ``quick_cullide`` alone are Approximate.
    """

    BRUTE = "brute"
    BVH = "bvh"
    FRONT = "front"
    KDOP = "kdop"
    CULLIDE = "cullide"
    QUICK_CULLIDE = "quick_cullide"
    FAR = "far"


TREE_METHODS = (Method.BRUTE, Method.BVH)  # distance, within, ccd, closest_point, DistanceField
FRAME_METHODS = (*TREE_METHODS, Method.FRONT)  # Tracker
CULL_METHODS = (Method.CULLIDE, Method.QUICK_CULLIDE, Method.FAR)  # by visibility
SELF_METHODS = (*TREE_METHODS, *CULL_METHODS)  # self_collide
CONTACT_METHODS = (*TREE_METHODS, Method.KDOP, *CULL_METHODS)  # collide; a Scene takes all


class Level(StrEnum):
    """Granularity of culling: whole objects, or single faces."""

    OBJECT = "object"
    FACE = "face"


class Order(StrEnum):
    """Occluders of a face: faces drawn before or after it, or all faces at its depth."""

    DRAWN = "drawn"
    FREE = "free"


class CullBackend(StrEnum):
    """Rasteriser of the culling methods: kernels, or the graphics pipeline."""

    WARP = "warp"
    GL = "gl"


class Bound(StrEnum):
    """The bounding volume of a hierarchy."""

    AABB = "aabb"
    OBB = "obb"
    RSS = "rss"
    KDOP = "kdop"


DISTANCE_BOUNDS = (Bound.AABB, Bound.OBB, Bound.RSS)
MOVING_BOUNDS = (Bound.AABB, Bound.OBB, Bound.RSS)  # ccd, Tracker


class Sign(StrEnum):
    """Rules that distinguish points inside a mesh from points outside."""

    PSEUDONORMAL = "pseudonormal"
    WINDING = "winding"


class Sampling(StrEnum):
    """Sample points of a mesh in a distance field."""

    DOMINANT = "dominant"  # pixels, each face seen along the axis its normal leans to
    VIEWS = "views"  # pixels, each face seen along all three axes
    FACES = "faces"  # equal parts of each face, about a pixel in size
    VERTICES = "vertices"  # vertices alone, each with a third of the area of its faces


class EarlyOut(StrEnum):
    """Early rejection of samples outside an object. The answers are the same."""

    BOUND = "bound"  # faces, by the field at their centroid
    DEPTH = "depth"  # fragments, by six depth images
    NOTHING = "nothing"


class Solver(StrEnum):
    """Root finders for the time of an impact."""

    CONSERVATIVE = "conservative"
    CUBIC = "cubic"


class BroadMethod(StrEnum):
    """Broad phases: methods that list objects whose boxes overlap. All list the same pairs."""

    ALL_PAIRS = "all_pairs"
    SWEEP = "sweep"
    TREE = "tree"


LEAST_TOLERANCE = 1e-12  # of times: float64 has no finer

Choice = TypeVar("Choice", bound=StrEnum)

HINTS = {"front": "; fronts are kept from frame to frame, by abut.Tracker and abut.Scene"}


def chosen(choices: Iterable[Choice], value: str, name: str) -> Choice:
    """Return the choice that equals ``value``.

    Args:
        choices: An enum, or the members that a verb takes.
        value: A member or its string.
        name: The option, for the error.
    """
    choices = tuple(choices)
    if isinstance(value, str) and value in choices:
        return choices[choices.index(value)]
    names = ", ".join(repr(str(choice)) for choice in choices)
    raise OptionError(f"{name} must be one of {names}, not {value!r}{HINTS.get(str(value), '')}.")


def number_from(value: Any, name: str, least: float) -> float:
    """Return ``value`` as a finite number that is at least ``least``."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not isfinite(number) or number < least:
        raise OptionError(f"{name} must be a number from {least:g} up, not {value!r}.")
    return number


def require_length(**lengths: float) -> None:
    """Refuse negative lengths, NaN, and values that are not numbers."""
    for name, length in lengths.items():
        try:
            fits = float(length) >= 0
        except (TypeError, ValueError, OverflowError):
            fits = False
        if not fits:
            raise OptionError(f"{name} must be a length from 0 up, not {length!r}.")
