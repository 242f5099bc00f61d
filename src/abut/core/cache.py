"""Caches: recent values by their arrays, values of each thread by their owners."""

import threading
from collections.abc import Callable
from operator import is_
from typing import Any
from weakref import WeakKeyDictionary

import warp as wp


class RecentCache:
    """The last few values made for certain arrays, found again by the identity of the arrays."""

    SIZE = 8  # results that are still alive hold on to arrays of their own

    def __init__(self) -> None:
        self._entries: list[tuple[tuple[Any, ...], Any]] = []

    def get(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Return the value for these arrays and numbers; ``make`` it on a miss."""
        for known, value in self._entries:
            if len(known) == len(key) and (
                all(map(is_, known, key)) or all(map(_same, known, key))  # the former is faster
            ):
                return value
        value = make()
        self._entries = [(key, value), *self._entries[: self.SIZE - 1]]
        return value


def _same(x: Any, y: Any) -> bool:
    return x is y or (isinstance(x, int | float) and x == y)


_thread_caches: set["ThreadCache"] = set()


def forget_values_of_thread() -> None:
    """Drop the values of this thread, which were made while an owner changed."""
    for cache in list(_thread_caches):
        cache.forget()


class ThreadCache(threading.local):
    """Values that each thread keeps for itself: one per device, one per tuple of owners.

    A value lives as long as all of its owners; it must not refer to them.
    """

    def __init__(self) -> None:
        self._values: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self._by_device: dict[str, Any] = {}
        _thread_caches.add(self)

    def on(self, device: wp.Device, make: Callable[[], Any]) -> Any:
        """Return this thread's value for a device; ``make`` it on a miss."""
        value = self._by_device.get(device.alias)
        if value is None:
            value = self._by_device[device.alias] = make()
        return value

    def get(self, owners: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Return this thread's value for the owners (meshes, a field); ``make`` it on a miss."""
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

    def forget(self) -> None:
        """Drop this thread's values of all owners."""
        self._values.clear()
