"""A crowd of readers at the end of a history."""

import random
from contextlib import contextmanager

import pytest

from .crowd import filled, opened
from .tail_crowd import TailCrowd


@pytest.fixture
def crowd(tmp_path, monkeypatch):
    """Return a crowd over a store with some groups, in large pages of one file."""
    with a_crowd(tmp_path, monkeypatch) as crowd:
        yield crowd


@pytest.fixture
def direct_crowd(tmp_path, monkeypatch):
    """Return one to which any thread may send."""
    with a_crowd(tmp_path, monkeypatch, is_direct=True) as crowd:
        yield crowd


@contextmanager
def a_crowd(folder, monkeypatch, **options):
    rng = random.Random(5)
    with opened(folder, rng, page_size=16384, max_binlog_size=8 << 20) as store:
        filled(store, rng, 30)
        crowd = TailCrowd(store, rng, monkeypatch, **options)
        yield crowd
        crowd.close()
