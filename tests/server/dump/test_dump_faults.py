"""A disk that fails or lies while dumps run: who is told, who notices nothing."""

import errno
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from ibb.protocol.errors import FormatError, SqlError
from ibb.protocol.event import EventType
from ibb.protocol.gtid import Gtid
from ibb.storage.errors import DiskError
from ibb.storage.file_name import binlog_name
from ibb.storage.group_reader import GroupReader
from ibb.storage.page_cache import CACHE_BYTES_MAX
from ibb.storage.store import Store

from ...faults.sim_disk import SimDisk
from ...storage.events import query, xid
from ...tiny import SMALL
from ..raw_client import RawClient, dumping

DIRECTORY = "/s"
PAGE = SMALL.page_size
EVENT = 32 << 10  # bytes: such events go out whole, so that an error can follow any
LARGE = CACHE_BYTES_MAX + (2 << 20)  # its pieces are not cached any more when they are sent
BAD = (f"{DIRECTORY}/{binlog_name(0)}", 40 * PAGE)


@pytest.fixture
def disk():
    return SimDisk()


@pytest.fixture
def store(disk):
    """A store with a large group 0-1-2 in file 0 and small ones before and behind it."""
    options = replace(SMALL, max_binlog_size=16 << 20, server_id=7)
    with Store.open(DIRECTORY, options, disk=disk) as opened:
        for seq in range(1, 7):
            with opened.begin() as group:
                group.write(query("x" * EVENT) * (LARGE // EVENT if seq == 2 else 1) + xid(seq))
                group.commit(Gtid(0, 1, seq))
            if seq == 4:
                opened.switch_file()
        opened.sync()
    with Store.open(DIRECTORY, options, disk=disk) as opened:  # nothing is in memory any more
        yield opened


def fail(path, offset, data):
    if path == BAD[0] and offset <= BAD[1] < offset + len(data):
        raise DiskError(errno.EIO, "simulated", operation="read", path=path, offset=offset)
    return data


def lie(path, offset, data):
    return b"?" + data[1:] if (path, offset) == BAD else data


def once(fault):
    """Return *fault* for the first read of the bad page only."""
    reads = []

    def act(path, offset, data):
        if (path, offset) != BAD or reads:
            return data
        reads.append(offset)
        return fault(path, offset, data)

    return act


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (fail, r"I/O error reading log event.*binlog-000000\.ibb page 40 at 655360: simulated"),
        (lie, r"bogus data in log event.*byte 655360.*binlog-000000\.ibb, page 40\)"),
    ],
)
async def test_a_page_that_fails_in_the_middle_of_a_group_ends_that_dump_alone(
    serve, store, disk, fault, text
):
    disk.lies.append(fault)
    server = await serve(store)
    async with await RawClient.logged_in(server) as client:
        await client.prepare("0-1-1")
        dump = await client.dump(non_block=True)
        await dump.preamble(rotate_checksum=True)
        types = []
        with pytest.raises(SqlError, match=text) as caught:
            while True:
                types.append((await dump.event())[0].type)
        assert EventType.GTID in types  # its start was found, behind the bad page
        assert caught.value.code == 1236
    unconcerned = await dumping(server, "0-1-4")
    assert [group.gtid.seq for group in await unconcerned.groups()] == [5, 6]
    await unconcerned.client.close()


async def test_damage_behind_a_batch_ends_the_dump_with_the_reason(serve, store, monkeypatch):
    """Where a group is passed over, its end is looked for to tell how far the reader is."""

    def damaged(_):
        raise FormatError("it has no end")

    monkeypatch.setattr(GroupReader, "position", property(damaged))
    dump = await dumping(await serve(store), "0-1-4")
    with pytest.raises(SqlError, match="bogus data in log event; it has no end"):
        await dump.groups()
    await dump.client.close()


async def test_a_page_that_is_right_when_read_again_is_sent_and_logged(serve, store, disk):
    disk.lies.append(once(lie))
    server = await serve(store)
    with capture_logs() as lines:
        dump = await dumping(server, "0-1-1")
        assert [group.gtid.seq for group in await dump.groups()] == [2, 3, 4, 5, 6]
        await dump.client.close()
    healed = [line for line in lines if line["event"] == "read_healed"]
    assert [(line["file"], line["page"]) for line in healed] == [(binlog_name(0), 40)]
    assert store.pages.healed.count == 1
