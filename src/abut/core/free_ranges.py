"""FreeRanges: an allocator of index ranges whose cost does not depend on how many are free."""

from collections import defaultdict

TRIES = 8  # ranges of the least size class that are compared


class FreeRanges:
    """Segregated-fit allocator of index ranges; neighbouring free ranges are merged.

    Attributes:
        end: End of the last range in use.
    """

    def __init__(self) -> None:
        self.end = 0
        self._stops: dict[int, int] = {}  # of free ranges, by their starts
        self._starts: dict[int, int] = {}  # of the same ranges, by their stops
        self._by_class: dict[int, list[int]] = defaultdict(list)  # starts, by size class
        self._places: dict[int, int] = {}  # of starts in the list of their class

    def take(self, count: int) -> int:
        """Allocate a range of ``count`` indices and return its start."""
        start = self._fitting(count)
        if start is None:
            self.end += count
            return self.end - count
        stop = self._stops[start]
        self._remove(start)
        if stop - start > count:
            self._insert(start + count, stop)
        return start

    def give(self, start: int, count: int) -> None:
        """Free a range."""
        if count == 0:
            return
        stop = start + count
        if stop in self._stops:
            after, stop = stop, self._stops[stop]
            self._remove(after)
        if start in self._starts:
            start = self._starts[start]
            self._remove(start)
        if stop == self.end:
            self.end = start
        else:
            self._insert(start, stop)

    def _fitting(self, count: int) -> int | None:
        """Start of a free range of at least ``count`` indices, of the least class with one."""
        least = count.bit_length()
        for start in self._by_class[least][-TRIES:]:
            if self._stops[start] - start >= count:
                return start
        for size_class in range(least + 1, self.end.bit_length() + 1):
            if self._by_class[size_class]:
                return self._by_class[size_class][-1]
        return None

    def _insert(self, start: int, stop: int) -> None:
        self._stops[start] = stop
        self._starts[stop] = start
        starts = self._by_class[(stop - start).bit_length()]
        self._places[start] = len(starts)
        starts.append(start)

    def _remove(self, start: int) -> None:
        stop = self._stops.pop(start)
        del self._starts[stop]
        starts = self._by_class[(stop - start).bit_length()]
        last = starts.pop()
        place = self._places.pop(start)
        if last != start:
            starts[place] = last
            self._places[last] = place
