"""Pages of readers: the columns of SHOW BINLOG READERS, sorted, searched, with a reason."""

import asyncio

import pytest

from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import encode_gtid_event
from ibb.server.dashboard.reader_table import (
    COLUMNS,
    ORDERS,
    ReaderQuery,
    placed_readers,
    reader_page,
)
from ibb.server.dashboard.statement_rows import statement_rows
from ibb.server.dump.readers import HeldUpBy

from ...storage.events import transaction
from ..waiting import until


@pytest.fixture
async def page(server):
    """Return a function that asks for a page."""

    async def ask(rates=None, seconds=None, **query):
        def look():
            readers = placed_readers(server, rates or {})
            return reader_page(server, readers, ReaderQuery(**query), seconds)

        return await asyncio.to_thread(look)

    return ask


async def test_a_row_is_what_sql_shows_and_two_columns_more(server, reading, page):
    await reading("0-1-3", groups=7)
    await until(lambda: next(iter(server.sessions)).is_idle_dump)
    (shown,) = await asyncio.to_thread(statement_rows, server, "SHOW BINLOG READERS")
    found = await page()
    assert (found.total, found.found) == (1, 1)
    (row,) = found.rows
    assert {name: row[name] for name in COLUMNS} == shown
    assert tuple(shown) == COLUMNS
    assert (row["Rate"], row["Why"], row["Gtid_pos"]) == (0, "", "0-1-10")


async def test_readers_are_sorted_searched_and_cut_into_pages(server, reading, page):
    for server_id in (41, 43, 42):
        await reading("0-1-10", server_id=server_id)
    await until(lambda: len(placed_readers(server, {})) == 3)
    for order in ORDERS:
        assert (await page(order=order)).found == 3
    found = await page(order="Server_id", descending=False, limit=2)
    assert [row["Server_id"] for row in found.rows] == [41, 42]
    found = await page(order="Server_id", descending=True, offset=2)
    assert [row["Server_id"] for row in found.rows] == [41]
    found = await page(text="43")
    assert [row["Server_id"] for row in found.rows if row["Server_id"] == 43] == [43]
    assert (await page(text="nobody of that name")).rows == []
    assert (await page(text="SENT ALL BINLOG")).found == 3
    by_rate = {reader.session.id: 1.0 * reader.session.dump_server_id
               for reader in placed_readers(server, {})}  # fmt: skip
    found = await page(rates=by_rate, order="Rate")
    assert [row["Rate"] for row in found.rows] == [43, 42, 41]


async def test_who_is_behind_is_told_with_the_reason(store, monkeypatch, page, reading, server):
    """A reader that a delay holds back has something ahead for sure."""
    await reading("0-1-10", server_id=44)
    (session,) = server.sessions
    await until(lambda: session.is_idle_dump)
    server.settings.change(dump_delay=3600)
    with store.begin() as group:
        gtid = Gtid(0, 1, 11)
        group.write(encode_gtid_event(gtid, int(server.now()) - 5, 0) + transaction("late"))
        await asyncio.to_thread(group.commit, gtid)
    await until(lambda: not session.is_idle_dump)

    async def row(held_up=None, rate=0.0):
        if held_up is not None:
            monkeypatch.setattr(session, "held_up_by", lambda: held_up)
        (found,) = (await page({session.id: rate})).rows
        return found

    late = await row()
    assert late["Bytes_behind"] > 0
    assert late["Groups_behind"] == 1
    assert 5 <= late["Seconds_behind"] < 60
    assert "served late" in late["Why"]
    assert "does not read" in (await row(HeldUpBy.CLIENT))["Why"]
    assert "rate is limited" in (await row(HeldUpBy.RATE))["Why"]
    assert (await row(HeldUpBy.NOTHING))["Why"] == "is about to be sent more"
    assert (await row(HeldUpBy.NOTHING, rate=1e6))["Why"] == "keeps up"
    slow = (await row(HeldUpBy.CLIENT, rate=late["Bytes_behind"] / 100))["Why"]
    assert slow == "catches up as fast as it reads: there in 100 s if nothing more came"
    assert "hardly reads" in (await row(HeldUpBy.NOTHING, rate=1e-9))["Why"]


async def test_rows_come_without_what_is_ahead_when_there_is_no_time(server, reading, page):
    for server_id in (51, 52):
        await reading("0-1-10", server_id=server_id)
    await until(lambda: all(reader.session.is_idle_dump for reader in placed_readers(server, {})))
    found = await page(seconds=-1.0, order="Id", descending=False)
    first, second = found.rows
    assert first["Groups_behind"] == 0
    assert second["Groups_behind"] is None
    assert first.keys() == second.keys()
    assert {name: second[name] for name in COLUMNS[4:7]} == {
        name: first[name] for name in COLUMNS[4:7]
    }
