"""Readers at the end, a relay that sends to them, others that commit: wherever threads meet."""

import asyncio
import os
import random
import threading
from types import SimpleNamespace

import pytest

from ibb.protocol.gtid import Gtid
from ibb.server.connections import connection as connection_module
from ibb.server.connections import direct_sender as direct_sender_module
from ibb.server.dump.tail import Tail
from ibb.storage.store import Store

from ...simulation.wide_windows import wide_windows
from ..conftest import publish
from ..raw_client import dumping
from ..waiting import until

pytestmark = pytest.mark.roomy

SECONDS_MAX = 120
READERS, GROUPS = 4, 500
SHORT = 0.1  # of writes to sockets
WATCHED = ("tails.py", "tail.py", "tail_member.py", "tail_turns.py", "durable_signal.py")


def short_writes(rng):
    """Return a system of which some writes take a part, or nothing."""

    def write(descriptor, data):
        if len(data) > 1 and rng.random() < SHORT:
            size = rng.choice((0, 1, 3, len(data) // 2, len(data) - 1))
            if not size:
                raise BlockingIOError
            data = memoryview(data)[:size]
        return os.write(descriptor, data)

    return SimpleNamespace(write=write, dup=os.dup, close=os.close)


async def read_all(server, last, rng):
    """Read up to *last* in several dumps, each of which goes on behind the one before."""
    at = 1
    while at < last:
        dump = await dumping(server, f"0-1-{at}", non_block=False, heartbeat=rng.choice((0.001, 1)))
        for seq in range(at + 1, min(last, at + rng.choice((20, 90, 300))) + 1):
            group = await dump.next_group()  # which checks the sequence ids
            assert group.gtid.seq == seq
            at = seq
            if rng.random() < 0.02:
                await asyncio.sleep(rng.random() * 0.02)  # it lags, and catches up
        await dump.client.close()


@pytest.mark.parametrize("seed", range(2))
async def test_each_reader_gets_each_group_once_and_in_order(seed, serve, tmp_path, monkeypatch):
    rng = random.Random(seed)
    for module in (direct_sender_module, connection_module):
        monkeypatch.setattr(module, "os", short_writes(random.Random(seed)))
    sent, send_at_once = [], Tail._send_at_once
    monkeypatch.setattr(
        Tail, "_send_at_once", lambda *given: sent.append(given) or send_at_once(*given)
    )
    number, turn = iter(range(2, GROUPS + 2)), threading.Lock()

    def commit(store, server, is_relay):
        sizes = random.Random(f"{seed} {is_relay}")
        while True:
            with turn:
                seq = next(number, None)
                if seq is None:
                    return
                if sizes.random() < 0.01:
                    store.switch_file()
                publish(store, Gtid(0, 1, seq), sizes.choice((0, 0, 50, 500, 3000, 20_000)))
            if is_relay:
                with server.signal.told_behind():
                    store.sync()
            else:
                store.sync()
            pause.wait(sizes.choice((0.001, 0.004, 0.01)))

    pause = threading.Event()  # that nobody sets
    with Store.open(tmp_path / "s") as store:
        publish(store, Gtid(0, 1, 1), wait=True)
        server = await serve(store)
        reading = [
            asyncio.create_task(read_all(server, GROUPS + 1, random.Random(f"{seed} {index}")))
            for index in range(READERS)
        ]
        with wide_windows(rng.random(), lambda code: code.co_filename.endswith(WATCHED)):
            threads = [
                threading.Thread(target=commit, args=(store, server, is_relay))
                for is_relay in (True, False)
            ]
            for thread in threads:
                thread.start()
            async with asyncio.timeout(SECONDS_MAX):
                await asyncio.gather(*reading)
        await until(lambda: not any(thread.is_alive() for thread in threads))
        await server.stop()
    assert len(sent) > 20
