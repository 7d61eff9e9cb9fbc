"""What a measurement waits for comes, or it ends and says what did not."""

import itertools

import pytest

from ibb.bench.errors import BenchError
from ibb.bench.waiting import wait_until


def test_what_comes_is_waited_for():
    asked = itertools.count()
    wait_until(lambda: next(asked) == 2, 60, "not three")
    assert next(asked) == 3


def test_what_does_not_come_is_told():
    with pytest.raises(BenchError, match=r"^no note within 0 s$"):
        wait_until(lambda: False, 0, "no note")
