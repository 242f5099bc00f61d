"""Named sets of parts, chosen by file, type, name, layer, assembly and properties."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import PurePath
from typing import Any

import numpy as np

from abut.coordination.parts.part_table import PartTable

TEXTS = ("file", "type", "name", "layer", "assembly")
EVERYTHING = "*"  # the set of all parts


@dataclass(frozen=True)
class ValueRange:
    """Numbers of a property from ``low`` to ``high``, both included."""

    low: float = -np.inf
    high: float = np.inf


Wanted = str | bool | int | float | ValueRange


@dataclass(frozen=True)
class PartSet:
    """Parts that satisfy all criteria; a criterion is satisfied by any entry of its list.

    Patterns are globs (``*``, ``?``, ``[ab]``) for the whole text, and ignore case.

    Attributes:
        name: Name in the rules.
        patterns: Patterns by one of ``TEXTS``. ``file`` is the name of the file or its path.
        properties: Wanted values by a pattern for names of properties, such as "*.FireRating". A
            text is a pattern; truth values and numbers must be equal; a range holds the number.
    """

    name: str
    patterns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    properties: dict[str, tuple[Wanted, ...]] = field(default_factory=dict)

    def members(self, parts: PartTable) -> np.ndarray:
        """(n,) whether each part is in the set."""
        out = np.ones(len(parts), bool)
        for criterion, patterns in self.patterns.items():
            texts = _spellings if criterion == "file" else _itself
            out &= _match_texts(getattr(parts, criterion), patterns, texts)
        for name, wanted in self.properties.items():
            out &= _match_properties(parts.properties, name, wanted)
        return out


def _itself(text: str) -> Sequence[str]:
    return (text,)


def _spellings(path: str) -> Sequence[str]:
    """The name of a file, and its path with slashes."""
    pure = PurePath(path)
    return pure.name, pure.as_posix()


def _match_texts(
    texts: np.ndarray, patterns: Iterable[str], spellings: Callable[[str], Sequence[str]]
) -> np.ndarray:
    """(n,) whether a spelling of each text matches a pattern."""
    found = [_pattern(pattern) for pattern in patterns]
    known = {
        text: any(pattern.match(word) for pattern in found for word in spellings(text))
        for text in set(texts.tolist())
    }
    return np.array([known[text] for text in texts.tolist()], bool)


def _match_properties(
    properties: list[dict[str, Any]], name: str, wanted: tuple[Wanted, ...]
) -> np.ndarray:
    """(n,) whether a property of each part, of a name that matches, has a wanted value."""
    names = {key for values in properties for key in values}
    pattern = _pattern(name)
    names = {key for key in names if pattern.match(key)}
    accept = [_acceptor(one) for one in wanted]
    found = [
        any(key in names and any(test(value) for test in accept) for key, value in values.items())
        for values in properties
    ]
    return np.array(found, bool)


def _acceptor(wanted: Wanted) -> Callable[[Any], bool]:
    """Return a function that says whether a value is the wanted one."""
    if isinstance(wanted, str):
        pattern = _pattern(wanted)
        return lambda value: isinstance(value, str) and bool(pattern.match(value))
    if isinstance(wanted, bool):
        return lambda value: value is wanted
    low, high = (wanted.low, wanted.high) if isinstance(wanted, ValueRange) else (wanted, wanted)
    return lambda value: (
        isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    )


def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob), re.IGNORECASE)
