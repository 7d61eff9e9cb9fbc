"""The queue between the loop that receives and the thread that stores."""

import threading

import pytest

from ibb.server.connections.byte_queue import ByteQueue

from ...integration.waiting import wait_until

SECONDS = 20.0


@pytest.fixture
def rooms():
    return []


@pytest.fixture
def queue(rooms):
    return ByteQueue(10, lambda: rooms.append(threading.current_thread().name))


class Taker:
    """A thread that takes, until the end."""

    def __init__(self, queue):
        self.taken, self.ended_by = [], None
        self._queue = queue
        self.thread = threading.Thread(target=self._run, name="taker")
        self.thread.start()

    def _run(self):
        try:
            while True:
                self.taken.append(self._queue.take())
        except ConnectionError as error:
            self.ended_by = str(error)

    def waits(self):
        wait_until(lambda: self._queue._is_awaited, SECONDS)


def test_everything_that_waits_is_taken_in_order(queue):
    for piece in (b"a", b"b", b"c"):
        assert queue.put(piece)
    assert queue.take() == [b"a", b"b", b"c"]


def test_who_puts_is_told_when_there_is_no_room_and_when_there_is(queue, rooms):
    assert queue.put(b"x" * 9)
    assert queue.take() == [b"x" * 9]
    assert rooms == []
    assert queue.put(b"x" * 9)
    assert not queue.put(b"y")
    assert not queue.put(b"z")  # was on its way
    assert queue.take() == [b"x" * 9, b"y", b"z"]
    assert rooms == [threading.current_thread().name]
    assert queue.put(b"z")


def test_a_thread_that_waits_is_woken_by_each_first_piece(queue):
    taker = Taker(queue)
    for number in range(50):
        taker.waits()
        queue.put(b"%d" % number)
    taker.waits()
    queue.end(ConnectionResetError("gone"))
    taker.thread.join(SECONDS)
    assert taker.taken == [[b"%d" % number] for number in range(50)]
    assert taker.ended_by == "gone"


def test_the_end_comes_behind_the_last_piece_and_only_once(queue):
    queue.put(b"x")
    queue.end(ConnectionResetError("gone"))
    queue.end(TimeoutError("silent"))
    assert queue.take() == [b"x"]
    for _ in range(2):
        with pytest.raises(ConnectionResetError, match="gone"):
            queue.take()


def test_behind_its_close_it_has_nothing_more(queue):
    queue.put(b"x")
    queue.close(ConnectionAbortedError("left"))
    assert not queue.put(b"y")
    with pytest.raises(ConnectionAbortedError, match="left"):
        queue.take()


def test_a_close_ends_who_waits(queue):
    taker = Taker(queue)
    taker.waits()
    queue.close(ConnectionAbortedError("left"))
    taker.thread.join(SECONDS)
    assert (taker.taken, taker.ended_by) == ([], "left")


def test_nothing_is_lost_however_it_comes(queue):
    taker = Taker(queue)
    for number in range(20_000):
        queue.put(number.to_bytes(3, "big"))
    queue.end(ConnectionResetError("gone"))
    taker.thread.join(SECONDS)
    found = b"".join(piece for pieces in taker.taken for piece in pieces)
    assert found == b"".join(number.to_bytes(3, "big") for number in range(20_000))
