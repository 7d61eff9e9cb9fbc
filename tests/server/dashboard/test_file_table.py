"""Files, what begins in them, and who needs them."""

import asyncio

from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server.dashboard import file_table
from ibb.server.dashboard.file_table import FileTable

from ..conftest import publish
from ..waiting import until


def grown(store):
    """Have three files more."""
    for seq in range(11, 14):
        store.switch_file()
        publish(store, Gtid(0, 1, seq), wait=True)


async def test_files_are_shown_with_what_begins_in_them(server, store):
    await asyncio.to_thread(grown, store)
    # The one that is made in advance too, which has its name before its size.
    await until(lambda: len(store.files()) == 5 and store.files()[-1].size > 0)
    page = await asyncio.to_thread(FileTable(server).page, 0, 200)
    assert [row["Log_name"] for row in page.rows] == [file.name for file in store.files()[::-1]]
    assert [row["First_gtid"] for row in page.rows][1:] == ["0-1-13", "0-1-12", "0-1-11", "0-1-1"]
    assert (page.total, page.bytes) == (5, sum(file.size for file in store.files()))
    assert page.rows[-1]["First_time"] == 1_700_000_000
    assert page.settings["slave_connections_needed_for_purge"] == 1
    few = await asyncio.to_thread(FileTable(server).page, 1, 2)
    assert [row["First_gtid"] for row in few.rows] == ["0-1-13", "0-1-12"]


async def test_who_needs_a_file_is_told_beside_it(server, store, reading):
    await asyncio.to_thread(grown, store)
    store.leases.renew("archive", GtidPosition([Gtid(0, 1, 11)]))
    await reading("0-1-13", server_id=77)
    page = await asyncio.to_thread(FileTable(server).page, 0, 200)
    by_name = {row["Log_name"]: row["Needed_because"] for row in page.rows}
    assert "lease 'archive'" in by_name["binlog-000002.ibb"]
    assert by_name["binlog-000001.ibb"] == ""
    oldest = page.needs[0]
    assert oldest["Reason"] == "lease 'archive' needs it"
    assert oldest["Holds_from"] == "binlog-000002.ibb"
    assert any("server id 77" in need["Reason"] for need in page.needs)
    assert not any(file_table.HOLDER in need["Reason"] for need in page.needs)


async def test_what_is_known_of_files_goes_with_them(server, store):
    await asyncio.to_thread(grown, store)
    files = FileTable(server)
    await asyncio.to_thread(files.page, 0, 200)
    await asyncio.to_thread(store.purge_to, "binlog-000002.ibb")
    page = await asyncio.to_thread(files.page, 0, 200)
    assert page.rows[-1]["Log_name"] == "binlog-000002.ibb"
    assert files._begins.keys() == {2, 3}


async def test_files_of_another_program_have_no_needs(sample, serve):
    history, _ = sample
    server = await serve(history)
    page = await asyncio.to_thread(FileTable(server).page, 0, 10)
    assert (page.needs, page.last_purge) == ([], "")
    assert page.rows
