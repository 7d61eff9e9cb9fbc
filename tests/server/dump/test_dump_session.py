"""What a session says of its client while that does not read yet."""

import asyncio
from types import SimpleNamespace

from ibb.protocol.gtid import Gtid
from ibb.server.connections.tls_channel import TlsFailed
from ibb.server.dump.dump_batch import Batch, Outcome, Place
from ibb.server.dump.dump_session import DumpSession
from ibb.server.dump.socket_pump import PumpTurns
from ibb.server.worker_threads import WorkerThreads
from ibb.storage.position import Position

from ..waiting import until

HAD, NEXT = Gtid(0, 1, 5), Gtid(0, 1, 900)
AT = Place(Position(3, 16384), None, False)


class Stream:
    """A stream with a batch that is larger than what its client takes."""

    seq, stopping, at_boundary, between_groups = 1, False, True, True

    def start(self):
        return Batch(b"rotate", Outcome.MORE, sent={0: HAD}, start=AT, end=AT)

    def next_batch(self):
        return Batch(b"groups" * 50_000, Outcome.MORE, sent={0: NEXT}, start=AT, end=AT)

    def forget_batch(self):
        pass


class Connection:
    """One whose client takes a little and then nothing."""

    encrypted, sent, unsent = False, 0, 1

    def __init__(self):
        self.is_stuck = asyncio.Event()

    def keep_nothing(self, *, wanted=True):
        pass

    def direct_sender(self):
        return SimpleNamespace(
            send=lambda _: 0, wait=lambda _: False, has_reader=lambda: True, close=lambda: None
        )

    async def write(self, _):
        self.is_stuck.set()
        await asyncio.Event().wait()


async def test_a_client_that_has_taken_nothing_yet_has_what_it_had():
    connection, pool, begun = Connection(), WorkerThreads(2, "dump"), asyncio.Event()
    session = DumpSession(
        Stream(), connection, signal=SimpleNamespace(count=0, nudge=lambda: None), pool=pool,
        turns=PumpTurns(2), heartbeat_period=lambda: None, non_block=False,
        pace=SimpleNamespace(limited=False),
    )  # fmt: skip
    running = asyncio.create_task(session.run(begun.set))
    await begun.wait()
    await connection.is_stuck.wait()
    assert session.at == AT
    assert session.reached == {0: HAD}
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    pool.shutdown()


async def test_what_went_wrong_with_the_next_batch_of_one_that_has_left_is_told_to_nobody():
    loop, failed = asyncio.get_running_loop(), asyncio.Event()

    class Encrypted(Connection):
        encrypted, seals = True, 0

        def seal(self, _):
            self.seals += 1
            if self.seals == 2:
                loop.call_soon_threadsafe(failed.set)
                raise TlsFailed("TLS failed: no way")

        async def write_sealed(self, _):
            await asyncio.Event().wait()

    connection, pool, turns = Encrypted(), WorkerThreads(2, "dump"), PumpTurns(2)
    session = DumpSession(
        Stream(), connection, signal=SimpleNamespace(count=0, nudge=lambda: None), pool=pool,
        turns=turns, heartbeat_period=lambda: None, non_block=False,
        pace=SimpleNamespace(limited=False),
    )  # fmt: skip
    running = asyncio.create_task(session.run(lambda: None))
    await failed.wait()
    upcoming = session._upcoming
    await until(upcoming.done)
    running.cancel()
    await asyncio.wait([running])
    assert not upcoming._log_traceback  # else the loop tells of it, once it is forgotten
    assert (turns.sealing, connection.seals) == (0, 2)
    pool.shutdown()
