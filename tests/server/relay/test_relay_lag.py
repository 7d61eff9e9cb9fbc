"""How far a relay is behind: what it says while a slow upstream feeds it, and when it has all."""

import asyncio
import time

from ibb.protocol.event import with_checksum
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_list import GtidList
from ibb.protocol.heartbeat import Heartbeat
from ibb.protocol.rotate import Rotate
from ibb.server.relay.relay_lag import RelayLag

from ...storage.events import TIMESTAMP
from ..conftest import publish
from ..waiting import until
from .fake_primary import CUT, HANG, FakePrimary, group, preamble
from .test_relay import Following

HEARTBEAT = with_checksum(Heartbeat("bin.000001", 4, 1).encode())


def lag_of(following):
    return following.relay.seconds_behind(time.time())


def is_right(following, ahead=0):
    """Tell whether it says what groups of `TIMESTAMP` are old, within the time of a test."""
    said = lag_of(following)
    return said is not None and 0 <= time.time() - TIMESTAMP + ahead - said < 60


async def test_a_slow_upstream_is_seen(serve, store, target):
    """The thread that stores waits for bytes most of the time."""
    for seq in range(11, 31):
        publish(store, Gtid(0, 1, seq), size=30_000)
    store.sync()
    server = await serve(store, dump_rate=512 << 10)
    async with Following(target, server.port(), password="secret") as following:
        await until(lambda: target.state().contains(Gtid(0, 1, 11)))
        seen = []

        def has_all():
            seen.append(is_right(following))
            return target.state() == store.state()

        await until(has_all)
    assert len(seen) > 10
    assert all(seen)


async def test_what_comes_in_is_as_late_as_it_is_old_until_a_heartbeat(target):
    (begin, *rest), gates = group(Gtid(0, 1, 2)), [asyncio.Event() for _ in range(5)]
    whole, again, ended, idle, broken = gates
    of_a_dump = [with_checksum(Rotate.fake("bin.000002", 1).encode()),
                 with_checksum(GtidList.fake([Gtid(0, 1, 1)], 1).encode())]  # fmt: skip
    script = [*preamble(), HEARTBEAT, whole, *group(Gtid(0, 1, 1)), again, *of_a_dump, begin,
              HEARTBEAT, ended, *rest, idle, HEARTBEAT, broken, begin, CUT]  # fmt: skip
    async with FakePrimary(script, [HANG]) as primary, Following(target, primary.port) as following:
        assert lag_of(following) is None
        await until(lambda: following.relay.connected)
        assert lag_of(following) == 0  # nothing has come
        whole.set()
        await until(lambda: target.state().contains(Gtid(0, 1, 1)))
        await until(lambda: is_right(following))
        again.set()
        received = following.relay._figures
        wanted = received.received + sum(map(len, (*of_a_dump, begin, HEARTBEAT)))
        await until(lambda: received.received >= wanted)
        assert is_right(following)
        ended.set()
        await until(lambda: received.groups == 2)
        assert is_right(following)  # a heartbeat inside of a group says nothing
        idle.set()
        await until(lambda: lag_of(following) == 0)
        broken.set()
        await until(lambda: len(primary.dumps) == 2)
        await until(lambda: following.relay.connected)
        assert is_right(following)  # that group has not been stored, nor come again


async def test_the_clock_of_the_upstream_is_what_groups_are_compared_with(target):
    async with (
        FakePrimary([*preamble(), *group(Gtid(0, 1, 1)), HANG], clock_ahead=-3600) as primary,
        Following(target, primary.port) as following,
    ):
        await until(lambda: target.state().contains(Gtid(0, 1, 1)))
        await until(lambda: is_right(following, ahead=-3600))


def test_nothing_is_late_by_less_than_nothing():
    lag = RelayLag()
    lag.begin(1005)
    assert lag.seconds(1000.5) == 0
    lag.stored(1001.0)
    assert lag.seconds(1020.0) == 0


def test_a_group_is_late_as_long_as_it_is_being_stored():
    lag = RelayLag()
    lag.begin(1000)
    assert [lag.seconds(now) for now in (1000.9, 1070.0)] == [0, 70]
    lag.stored(1080.0)
    assert lag.seconds(1090.0) == 80
    lag.heard_heartbeat()
    assert lag.seconds(1090.0) == 80  # what came before it may not be safe yet
    lag.stored(1091.0)
    assert lag.seconds(1092.0) == 0
