"""WarmCache: values that are kept between tiles, up to a number of bytes."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any


class WarmCache:
    """Values by name; those that were not used for longest are dropped first.

    Args:
        budget: Bytes of all values.
    """

    def __init__(self, budget: int) -> None:
        self.budget, self.held = budget, 0
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def __len__(self) -> int:
        """Number of values."""
        return len(self._values)

    def __contains__(self, name: Hashable) -> bool:
        """Whether a value is held."""
        return name in self._values

    def get(self, name: Hashable, make: Callable[[], Any], size: int) -> Any:
        """Return the value of a name; ``make`` it on a miss, of ``size`` bytes."""
        found = self._values.get(name)
        if found is not None:
            self._values.move_to_end(name)
            return found[0]
        self.make_room(size)
        value = make()
        self._values[name] = value, size
        self.held += size
        return value

    def make_room(self, size: int) -> None:
        """Drop values until another ``size`` bytes fit."""
        while self._values and self.held + size > self.budget:
            _, (_, freed) = self._values.popitem(last=False)
            self.held -= freed

    def clear(self) -> None:
        """Drop all values."""
        self._values.clear()
        self.held = 0


_caches: dict[str, WarmCache] = {}


def warm_cache(name: str, budget: int) -> WarmCache:
    """The cache of this process for a purpose; a new budget replaces it."""
    found = _caches.get(name)
    if found is None or found.budget != budget:
        found = _caches[name] = WarmCache(budget)
    return found
