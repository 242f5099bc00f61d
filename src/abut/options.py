"""The closed choices that calls take; the members are strings."""

from enum import StrEnum
from typing import TypeVar

from abut.errors import OptionError


class Method(StrEnum):
    """How candidate pairs are found. All methods return the same rows."""

    BRUTE = "brute"
    BVH = "bvh"
    KDOP = "kdop"


class Bound(StrEnum):
    """The bounding volume of a hierarchy."""

    AABB = "aabb"
    OBB = "obb"
    KDOP = "kdop"


Choice = TypeVar("Choice", bound=StrEnum)


def chosen(choices: type[Choice], value: str, name: str) -> Choice:
    """The member named ``value``."""
    try:
        return choices(value)
    except ValueError:
        names = ", ".join(repr(str(c)) for c in choices)
        raise OptionError(f"{name} must be one of {names}, not {value!r}.") from None
