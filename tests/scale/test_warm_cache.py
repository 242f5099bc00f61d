"""The cache of values that are kept between tiles."""

from abut.scale.warm_cache import WarmCache, warm_cache


def test_the_oldest_values_are_dropped():
    cache, made = WarmCache(100), []

    def value(name, size):
        return cache.get(name, lambda: made.append(name) or name, size)

    assert [value(name, 40) for name in "ab"] == ["a", "b"]
    assert value("a", 40) == "a"  # now b is the oldest
    value("c", 40)
    assert made == ["a", "b", "c"]
    assert ("a" in cache, "b" in cache, "c" in cache) == (True, False, True)
    assert cache.held == 80
    value("huge", 1000)  # alone, beyond the budget
    assert (len(cache), cache.held) == (1, 1000)
    value("a", 40)
    assert made == ["a", "b", "c", "huge", "a"]
    cache.clear()
    assert (len(cache), cache.held) == (0, 0)


def test_a_process_has_one_cache_for_a_purpose():
    assert warm_cache("test", 10) is warm_cache("test", 10)
    assert warm_cache("test", 10) is not warm_cache("test", 20)
