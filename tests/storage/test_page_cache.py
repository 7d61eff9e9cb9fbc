"""The page cache is bounded by bytes and forgets what was not used for longest."""

from ibb.storage.page_cache import PageCache


def test_what_was_put_is_got_by_its_place():
    cache = PageCache()
    cache.put(1, 2, b"page")
    assert cache.get(1, 2) == b"page"
    assert cache.get(2, 1) is None
    cache.clear()
    assert cache.get(1, 2) is None


def test_the_bytes_are_bounded_and_the_longest_unused_goes_first():
    cache = PageCache(3000)
    for page in (1, 2, 3):
        cache.put(0, page, bytes(1000))
    cache.get(0, 1)
    cache.put(0, 3, bytes(1000))  # known: counts once
    cache.put(0, 4, bytes(1000))
    assert cache.get(0, 2) is None
    assert [cache.get(0, page) is not None for page in (1, 3, 4)] == [True] * 3
    cache.put(0, 5, bytes(3000))
    assert [cache.get(0, page) is not None for page in (1, 3, 4, 5)] == [False] * 3 + [True]
