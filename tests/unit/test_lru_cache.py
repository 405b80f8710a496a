"""The cache that others are made of."""

from contextbase.lru_cache import LruCache


def held(cache: LruCache[str, str], names: str) -> str:
    """The names that it still holds; asking makes none of them younger than the others."""
    return "".join(name for name in names if cache.get(name) is not None)


def test_the_least_recently_used_makes_room() -> None:
    cache: LruCache[str, str] = LruCache(2)
    cache.put("a", "1")
    cache.put("b", "2")
    assert cache.get("a") == "1"
    cache.put("c", "3")
    assert held(cache, "abc") == "ac"


def test_values_are_weighed_and_one_that_is_too_heavy_displaces_nothing() -> None:
    cache: LruCache[str, str] = LruCache(10, weigh=lambda _, value: len(value))
    cache.put("a", "x" * 4)
    cache.put("b", "x" * 4)
    cache.put("c", "x" * 11)
    assert held(cache, "abc") == "ab"
    cache.put("c", "x" * 6)
    assert held(cache, "abc") == "bc"


def test_a_value_that_is_put_again_or_forgotten_weighs_nothing_any_more() -> None:
    cache: LruCache[str, str] = LruCache(10, weigh=lambda _, value: len(value))
    for _ in range(5):
        cache.put("a", "x" * 6)
    cache.put("b", "x" * 4)
    assert held(cache, "ab") == "ab"
    cache.forget("a")
    cache.put("c", "x" * 6)
    assert held(cache, "abc") == "bc"
    cache.clear()
    cache.put("d", "x" * 10)
    assert held(cache, "abcd") == "d"
