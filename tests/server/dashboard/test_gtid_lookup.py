"""Where a GTID is: every group is found, and what is not there is told apart."""

from dataclasses import replace

import pytest

from ibb.protocol.gtid import Gtid
from ibb.server.dashboard.gtid_lookup import find_gtid
from ibb.storage.store import Store

from ...tiny import SMALL
from ..conftest import publish


@pytest.fixture
def history(tmp_path):
    """A store of several small files, with two domains and a change of server."""
    options = replace(SMALL, page_size=512, max_binlog_size=32 * 512, state_interval=1024)
    with Store.open(tmp_path / "search", options) as store:
        for seq in range(1, 121):
            publish(store, Gtid(0, 1 if seq < 60 else 2, seq), size=200)
            if seq % 3 == 0:
                publish(store, Gtid(5, 9, seq * 10), size=50)
        store.sync()
        yield store


def test_every_group_is_found_where_readers_meet_it(history):
    assert len(history.files()) > 3
    for group in history.reader():
        if group.gtid is not None:
            found = find_gtid(history, group.gtid)
            assert found.position == group.position, found
            assert found.answer.startswith("in binlog-")


@pytest.mark.parametrize(
    ("gtid", "answer"),
    [
        ("7-1-1", "no groups of domain 7"),
        ("0-2-121", "nothing behind 0-2-120 of server 2"),
        ("0-3-5", "it has nothing of server 3"),
        ("5-9-31", "a hole there (the next of its server is in binlog-"),
    ],
)
def test_what_is_not_there_is_told_with_the_reason(history, gtid, answer):
    found = find_gtid(history, Gtid.parse(gtid))
    assert found.position is None
    assert answer in found.answer


def test_what_was_purged_is_told(history):
    history.purge_to(history.files()[3].name)
    assert "purged: it was in a file before" in find_gtid(history, Gtid(0, 1, 1)).answer
    assert find_gtid(history, Gtid(0, 2, 120)).position is not None


def test_a_search_ends_with_its_time(history, monkeypatch):
    monkeypatch.setattr("ibb.server.dashboard.gtid_lookup._RECORDS_A_LOOK", 1)
    assert "not found in the time" in find_gtid(history, Gtid(5, 9, 31), seconds=-1.0).answer
