"""Metrics of readers: bounded in lines and in work, and counters that do not fall."""

import asyncio
from types import SimpleNamespace

import pytest

from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import encode_gtid_event
from ibb.server.dashboard.reader_table import PlacedReader, placed_readers
from ibb.server.dump import readers
from ibb.server.web import reader_metrics
from ibb.server.web.reader_metrics import SentBytes

from ...storage.events import transaction
from ..raw_client import dumping
from ..waiting import until
from .test_metrics import as_lists, scrape


def reader(number, behind=0, *, server_id=9, host="h:1", sent=0):
    session = SimpleNamespace(
        id=number,
        user="r",
        host=host,
        dump_server_id=server_id,
        traffic=(0, sent),
        progress=lambda: None,
    )
    return PlacedReader(session, SimpleNamespace(acknowledged_at=None), 0, 0, behind, 0.0)


@pytest.fixture
def there_are(monkeypatch):
    """Return a function that has a server have these readers, of whom no more is known."""

    def found(there):
        monkeypatch.setattr(reader_metrics, "placed_readers", lambda *_: there)

    return found


async def test_a_thousand_readers_have_a_bounded_number_of_lines(pages, store, there_are):
    there_are(
        [
            reader(number, number, server_id=number, host=f"10.0.0.{number % 250}:4{number}")
            for number in range(1, 1001)
        ]
    )
    values = await scrape(await pages(store))
    lags = {labels: value for (_, labels), value in as_lists(values, "ibb_reader_lag_bytes")}
    assert sorted(lags.values()) == list(range(801, 1001))  # the worst
    assert values["ibb_readers_unlisted",] == 800
    assert not as_lists(values, "ibb_reader_lag_seconds")  # nobody knows


async def test_readers_with_the_same_labels_have_one_line(pages, store, there_are):
    there_are([reader(number, behind, sent=10) for number, behind in enumerate((3, 7, 5))])
    values = await scrape(await pages(store))
    assert values["ibb_reader_lag_bytes", "9", "h", "r"] == 7
    assert values["ibb_reader_sent_bytes_total", "9", "h", "r"] == 30
    assert values["ibb_readers_unlisted",] == 2


def test_what_was_sent_does_not_fall_while_one_with_the_labels_is_left():
    sent = SentBytes()
    labels = ("9", "r", "h")
    assert sent.count([reader(1, sent=100), reader(2, sent=900)]) == {labels: 1000}
    assert sent.count([reader(1, sent=150)]) == {labels: 1050}
    assert sent.count([reader(3, sent=50), reader(1, sent=150)]) == {labels: 1100}
    assert sent.count([reader(4, sent=5)]) == {labels: 1105}  # it came as the others went
    assert sent.count([]) == {}
    assert sent.count([reader(5, sent=7)]) == {labels: 7}  # as a counter begins anew


@pytest.fixture
async def late(pages, store):
    """Return the pages of a server with two late readers: 6, and 5, which came later."""
    shown = await pages(store, dump_delay=3600)
    server, dumps = shown.server, []
    for seq in (11, 12):
        with store.begin() as group:
            gtid = Gtid(0, 1, seq)
            group.write(encode_gtid_event(gtid, int(server.now()) - 5, 0) + transaction("late"))
            await asyncio.to_thread(group.commit, gtid)
    for server_id, position in ((6, "0-1-11"), (5, "0-1-10")):
        dumps.append(await dumping(server, position, server_id=server_id, non_block=False))
    await until(
        lambda: [one.progress.at is None for one in placed_readers(server, {})] == [False] * 2
    )
    yield shown
    for dump in dumps:
        await dump.client.close()


async def test_who_is_furthest_behind_is_looked_up_if_there_is_no_time_for_more(late, monkeypatch):
    groups = as_lists(await scrape(late), "ibb_reader_lag_groups")
    assert {labels[0]: behind for (_, labels), behind in groups} == {"5": 2, "6": 1}
    monkeypatch.setattr(reader_metrics, "LOOK_SECONDS_MAX", -1)
    values = await scrape(late)
    for name in ("ibb_reader_lag_groups", "ibb_reader_lag_seconds"):
        assert [labels[0] for (_, labels), _ in as_lists(values, name)] == ["5"]
    assert len(as_lists(values, "ibb_reader_lag_bytes")) == 2


async def test_only_those_with_lines_of_their_own_are_looked_up(late, monkeypatch):
    looks, look_ahead = [], readers.look_ahead

    def counted(*args):
        looks.append(args)
        return look_ahead(*args)

    monkeypatch.setattr(readers, "look_ahead", counted)
    monkeypatch.setattr(reader_metrics, "READERS_MAX", 1)
    values = await scrape(late)
    assert len(looks) == len(as_lists(values, "ibb_reader_lag_groups")) == 1
