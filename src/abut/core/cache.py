"""Caches: recent values by their arrays, values of each thread by their owners."""

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary


class RecentCache:
    """The last few values made for certain arrays, found again by the identity of the arrays."""

    SIZE = 8  # results that are still alive hold on to arrays of their own

    def __init__(self) -> None:
        self._entries: list[tuple[tuple[Any, ...], Any]] = []

    def get(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Return the value for these arrays and numbers; ``make`` it on a miss."""
        for known, value in self._entries:
            if len(known) == len(key) and all(map(_same, known, key)):
                return value
        value = make()
        self._entries = [(key, value), *self._entries[: self.SIZE - 1]]
        return value


def _same(x: Any, y: Any) -> bool:
    return x is y or (isinstance(x, int | float) and x == y)


class ThreadCache(threading.local):
    """Values that each thread keeps for itself, one per tuple of owners, while all owners live.

    A value must not refer to an owner that should ever be freed.
    """

    def __init__(self) -> None:
        self._values: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def get(self, owners: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Return this thread's value for the owners, as two meshes; ``make`` it on a miss."""
        values = self._values
        for owner in owners[:-1]:
            inner = values.get(owner)
            if inner is None:
                inner = values[owner] = WeakKeyDictionary()
            values = inner
        value = values.get(owners[-1])
        if value is None:
            value = values[owners[-1]] = make()
        return value
