"""Strangers cannot fill the log."""

import pytest

from ibb.server.connections.refusal_log import ADDRESSES_MAX, RefusalLog

from ..raw_client import RawClient


class Now:
    """A clock that stands."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def now():
    return Now()


def written(capfd):
    return capfd.readouterr().out.splitlines()


def test_an_address_has_so_many_lines_and_then_one_now_and_then(now, capfd):
    refusals = RefusalLog(now, of_one=(3, 10.0))
    for _ in range(100):
        refusals.tell("a", "client_refused", reason="r")
    assert len(written(capfd)) == 3
    refusals.tell("b", "client_refused", reason="r")
    (line,) = written(capfd)
    assert "left_out_before=97" in line
    now.seconds = 20.0
    for _ in range(10):
        refusals.tell("a", "client_refused", reason="r")
    lines = written(capfd)
    assert len(lines) == 2
    assert "left_out_before" not in lines[0]


def test_many_addresses_together_have_a_limit_too(now, capfd):
    refusals = RefusalLog(now, of_one=(3, 10.0), of_all=(50, 0.5))
    for number in range(ADDRESSES_MAX + 10):
        refusals.tell(str(number), "client_refused", reason="r")
    assert len(written(capfd)) == 50
    assert len(refusals._addresses) == ADDRESSES_MAX
    now.seconds = 1.0
    for number in range(10):
        refusals.tell(str(number), "client_refused", reason="r")
    assert len(written(capfd)) == 2


async def test_a_blocked_address_writes_no_line_for_each_attempt(serve, store, capfd):
    server = await serve(store, max_connect_errors=1)
    for _ in range(100):
        async with await RawClient.connect(server.address) as client:
            if await client.packet() is not None and not server.guard.is_blocked("127.0.0.1"):
                await client.send(b"", 1)
                await client.packet()
    lines = [line for line in written(capfd) if "refused" in line or "blocked" in line]
    assert 2 <= len(lines) < 30


async def test_each_refusal_counts_whether_or_not_it_is_logged(serve, store):
    server = await serve(store)
    for _ in range(40):
        async with await RawClient.connect(server.address) as client:
            await client.packet()
            await client.send(b"", 1)
            assert await client.packet() is not None
    assert server.aborted_connects == 40
