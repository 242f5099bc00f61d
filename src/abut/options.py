"""The closed choices that calls take; the members are strings."""

from enum import StrEnum
from math import isfinite
from typing import Any, TypeVar

from abut.errors import OptionError


class Method(StrEnum):
    """How candidate pairs are found. All methods return the same rows."""

    BRUTE = "brute"
    BVH = "bvh"
    FRONT = "front"  # kept by a Tracker from frame to frame


class Bound(StrEnum):
    """The bounding volume of a hierarchy."""

    AABB = "aabb"
    OBB = "obb"


class Solver(StrEnum):
    """How the time of an impact is found."""

    CONSERVATIVE = "conservative"
    CUBIC = "cubic"


LEAST_TOLERANCE = 1e-12  # of times: float64 has no finer

Choice = TypeVar("Choice", bound=StrEnum)


def chosen(choices: type[Choice], value: str, name: str) -> Choice:
    """The member named ``value``."""
    try:
        return choices(value)
    except ValueError:
        names = ", ".join(repr(str(c)) for c in choices)
        raise OptionError(f"{name} must be one of {names}, not {value!r}.") from None


def chosen_method(value: str) -> Method:
    """The method named ``value``, of those that need nothing from an earlier frame."""
    method = chosen(Method, value, "method")
    if method is Method.FRONT:
        raise OptionError("method='front' needs an earlier frame to start from; use abut.Tracker.")
    return method


def number_from(value: Any, name: str, least: float) -> float:
    """``value`` as a finite number not below ``least``."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not isfinite(number) or number < least:
        raise OptionError(f"{name} must be a number from {least:g} up, not {value!r}.")
    return number
