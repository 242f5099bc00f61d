"""Ranges of indices come and go, never overlap, and are used again."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from abut.core.free_ranges import FreeRanges


@given(st.lists(st.tuples(st.integers(1, 40), st.floats(0, 1)), max_size=80))
def test_ranges_are_disjoint_and_within_the_end(steps):
    """Each step frees a range at random, or takes a new one."""
    ranges, held = FreeRanges(), []
    for count, chance in steps:
        if held and chance < 0.45:
            ranges.give(*held.pop(int(chance / 0.45 * len(held))))
        else:
            held.append((ranges.take(count), count))
        used = np.zeros(ranges.end + 1, int)
        for start, length in held:
            used[start : start + length] += 1
        assert used.max(initial=0) <= 1 and used[-1] == 0
        assert ranges.end == max((start + length for start, length in held), default=0)
        free = sum(stop - start for start, stop in ranges._stops.items())
        assert free + sum(length for _, length in held) == ranges.end
    for start, length in held:
        ranges.give(start, length)
    assert ranges.end == 0


def test_neighbours_are_merged():
    ranges = FreeRanges()
    starts = [ranges.take(10) for _ in range(5)]
    for start in (starts[1], starts[3], starts[2]):
        ranges.give(start, 10)
    assert ranges.take(30) == 10
    assert ranges.end == 50


def test_steady_use_does_not_grow():
    ranges, rng = FreeRanges(), np.random.default_rng(0)
    held = [(ranges.take(count), count) for count in rng.integers(1, 9, 200).tolist()]
    size = ranges.end
    for k in rng.integers(200, size=20_000).tolist():
        start, count = held[k]
        ranges.give(start, count)
        held[k] = (ranges.take(count), count)
    assert ranges.end <= size
    assert sum(map(len, ranges._by_class.values())) == len(ranges._stops) <= 400
