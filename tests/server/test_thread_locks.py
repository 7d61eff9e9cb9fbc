"""Locks for kernels, by what those do with them; here, how many there may be."""

import pytest

from ibb.server.thread_locks import LOCKS_MAX, ThreadLocks
from ibb.server.work_permits import THREADS_MAX, WorkPermits

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("count", [-1, 0, LOCKS_MAX + 1])
def test_there_is_one_at_least_and_no_more_than_there_is_room_for(count):
    with pytest.raises(ValueError, match=f"^{count} locks$"):
        ThreadLocks(count)


def test_there_is_room_for_those_of_as_many_threads_as_there_may_be():
    for _ in range(50):  # which the system has again when they go
        assert WorkPermits(THREADS_MAX).free == THREADS_MAX
    assert isinstance(ThreadLocks(LOCKS_MAX), ThreadLocks)
