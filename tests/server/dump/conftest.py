"""A crowd of readers at the end of a history."""

import random

import pytest

from .crowd import filled, opened
from .tail_crowd import TailCrowd


@pytest.fixture
def crowd(tmp_path, monkeypatch):
    """Return a crowd over a store with some groups, in large pages of one file."""
    rng = random.Random(5)
    with opened(tmp_path, rng, page_size=16384, max_binlog_size=8 << 20) as store:
        filled(store, rng, 30)
        crowd = TailCrowd(store, rng, monkeypatch)
        yield crowd
        crowd.close()
