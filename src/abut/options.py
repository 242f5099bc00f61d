"""The closed choices that calls take; the members are strings."""

from enum import StrEnum
from math import isfinite
from typing import Any, TypeVar

from abut.errors import OptionError


class Method(StrEnum):
    """How candidate pairs are found. All methods return the same rows."""

    BRUTE = "brute"
    BVH = "bvh"


class _Contacts(StrEnum):
    @property
    def looks(self) -> bool:
        """Goes by visibility."""
        return self in CULLING


class ContactMethod(_Contacts):
    """How candidate pairs of contacts are found; the last three go by what hides what."""

    BRUTE = "brute"
    BVH = "bvh"
    KDOP = "kdop"
    CULLIDE = "cullide"
    QUICK_CULLIDE = "quick_cullide"
    FAR = "far"


class SceneMethod(_Contacts):
    """How a Scene finds candidate pairs of contacts: also from where the last search stopped."""

    BRUTE = "brute"
    BVH = "bvh"
    FRONT = "front"
    KDOP = "kdop"
    CULLIDE = "cullide"
    QUICK_CULLIDE = "quick_cullide"
    FAR = "far"


class CullMethod(StrEnum):
    """How faces that cannot collide are told by what hides what."""

    CULLIDE = "cullide"
    QUICK_CULLIDE = "quick_cullide"
    FAR = "far"


CULLING = frozenset(CullMethod)


class Level(StrEnum):
    """What is culled: whole objects, or single faces."""

    OBJECT = "object"
    FACE = "face"


class Order(StrEnum):
    """What hides a face: what is drawn before or after it, or anything at its depth."""

    DRAWN = "drawn"
    FREE = "free"


class CullBackend(StrEnum):
    """What draws: kernels, or the graphics pipeline."""

    WARP = "warp"
    GL = "gl"


class TrackerMethod(StrEnum):
    """How a Tracker searches a frame: like a query, or from where the last search stopped."""

    BRUTE = "brute"
    BVH = "bvh"
    FRONT = "front"


class Bound(StrEnum):
    """The bounding volume of a hierarchy."""

    AABB = "aabb"
    OBB = "obb"
    RSS = "rss"
    KDOP = "kdop"


class Sign(StrEnum):
    """How the inside of a mesh is told from the outside."""

    PSEUDONORMAL = "pseudonormal"
    WINDING = "winding"


class Sampling(StrEnum):
    """Where a mesh is looked at in a distance field."""

    DOMINANT = "dominant"  # pixels, each face seen along the axis its normal leans to
    VIEWS = "views"  # pixels, each face seen along all three axes
    FACES = "faces"  # equal parts of each face, about a pixel in size


class EarlyOut(StrEnum):
    """How what is outside an object is left out early. The answers are the same."""

    BOUND = "bound"  # faces, by the field at their centroid
    DEPTH = "depth"  # fragments, by six depth images
    NOTHING = "nothing"


class Solver(StrEnum):
    """How the time of an impact is found."""

    CONSERVATIVE = "conservative"
    CUBIC = "cubic"


class BroadMethod(StrEnum):
    """How pairs of objects whose boxes overlap are found. All methods find the same pairs."""

    ALL_PAIRS = "all_pairs"
    SWEEP = "sweep"
    GRID = "grid"
    TREE = "tree"


LEAST_TOLERANCE = 1e-12  # of times: float64 has no finer

Choice = TypeVar("Choice", bound=StrEnum)


ELSEWHERE = {"front": "; fronts are kept from frame to frame, by abut.Tracker and abut.Scene"}


def chosen(
    choices: type[Choice], value: str, name: str, *, without: Choice | None = None
) -> Choice:
    """The member named ``value``, if it is not the one that this verb does ``without``."""
    try:
        choice = choices(value)
    except ValueError:
        choice = without
    if choice is not None and choice is not without:
        return choice
    names = ", ".join(repr(str(offered)) for offered in choices if offered is not without)
    hint = ELSEWHERE.get(str(value), "")
    raise OptionError(f"{name} must be one of {names}, not {value!r}{hint}.")


def number_from(value: Any, name: str, least: float) -> float:
    """``value`` as a finite number not below ``least``."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not isfinite(number) or number < least:
        raise OptionError(f"{name} must be a number from {least:g} up, not {value!r}.")
    return number


def require_length(**lengths: float) -> None:
    """Refuse negative lengths, NaN, and what is no number."""
    for name, length in lengths.items():
        try:
            fits = float(length) >= 0
        except (TypeError, ValueError, OverflowError):
            fits = False
        if not fits:
            raise OptionError(f"{name} must be a length from 0 up, not {length!r}.")
