"""Where change tables go on reading, and where numbers of a server fall."""

from contextlib import closing

import pytest

from ibb.pipeline.history_mark import HistoryMark
from ibb.pipeline.tables.change_stream import read_batches
from ibb.pipeline.tables.config import PipelineConfig
from ibb.pipeline.tables.errors import PipelineError
from ibb.pipeline.tables.ledger import Ledger
from ibb.pipeline.tables.place import Place
from ibb.pipeline.tables.rising_groups import rising_groups
from ibb.protocol.errors import SqlError
from ibb.storage import Store
from ibb.storage.gtid_search import TooOld
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory

from ...storage.events import transaction
from ..published import OPTIONS, made_store, publish_events
from .changes import position

FALLING = ["0-1-1", "0-1-9", "0-1-3", "0-1-4", "0-1-12"]


def history_of(path, gtids):
    with Store.open(path, OPTIONS) as store:
        for gtid in gtids:
            publish_events(store, gtid, transaction("SELECT 1"))


def batches(path, ledger):
    """Yield the GTIDs of each batch behind *ledger*, which is moved along; statements end one."""
    config = PipelineConfig("test", str(path), "")
    for batch in read_batches(config, ledger, lambda _: None):
        assert batch.start == ledger.place.position
        ledger.place, ledger.mark = Place(batch.end), batch.mark
        yield [str(gtid) for gtid, _ in batch.groups]


def test_a_stream_ends_where_the_number_of_a_server_falls(tmp_path):
    history_of(tmp_path, FALLING)
    ledger, found = Ledger(Place.nowhere()), []

    def read():
        for batch in batches(tmp_path, ledger):
            found.extend(batch)

    for _ in range(2):  # after a restart too
        with pytest.raises(PipelineError, match=r"0-1-3 comes behind 0-1-9 .*--snapshot"):
            read()
        assert found == FALLING[:2]


def test_a_number_may_not_come_twice(tmp_path):
    history_of(tmp_path, ["0-1-1", "0-1-2", "0-1-2"])
    with pytest.raises(PipelineError, match="0-1-2 comes behind 0-1-2"):
        list(batches(tmp_path, Ledger(Place.nowhere())))


def test_servers_of_a_domain_have_numbers_of_their_own(tmp_path):
    gtids = ["0-1-5", "0-2-3", "0-1-6", "0-2-4", "1-1-1", "0-3-1"]
    history_of(tmp_path, gtids)
    for first in range(len(gtids) + 1):
        ledger = Ledger(Place.nowhere())
        with closing(batches(tmp_path, ledger)) as reading:
            found = [next(reading) for _ in range(first)]
        found += batches(tmp_path, ledger)  # as after a restart
        assert [gtid for (gtid,) in found] == gtids


def test_tables_that_were_read_anew_behind_a_fall_go_on(tmp_path):
    history_of(tmp_path, FALLING[:3])
    ledger = Ledger(Place(position("0-1-3")))
    assert list(batches(tmp_path, ledger)) == []
    history_of(tmp_path, FALLING[3:])
    unclear = Ledger(Place(position("0-1-3")))  # nothing says which groups came before it
    with pytest.raises(SqlError, match=r"0-1-3 is not where it should be.*0-1-9 comes first"):
        list(batches(tmp_path, unclear))


def test_tables_go_on_at_their_place_where_a_position_does_not_say_it(tmp_path):
    """They were read anew behind a fall, and another domain has moved since."""
    history_of(tmp_path, [*FALLING[:3], "1-1-1"])
    ledger = Ledger(Place(position("0-1-3")))
    assert list(batches(tmp_path, ledger)) == [["1-1-1"]]
    history_of(tmp_path, ["0-1-10", "1-1-2"])
    with pytest.raises(SqlError, match=r"0-1-3 is not where it should be"):
        behind(tmp_path, str(ledger.place.position), ledger.mark._replace(offset=0))
    assert list(batches(tmp_path, ledger)) == [["0-1-10"], ["1-1-2"]]


def behind(path, at, mark):
    with closing(ReadOnlyHistory(OsDisk(), str(path))) as history:
        return [str(group.gtid) for group in rising_groups(history, position(at), mark)]


def test_a_place_that_holds_another_group_is_looked_for(tmp_path):
    history_of(tmp_path, ["0-1-1", "0-1-2", "0-1-3"])
    ledger = Ledger(Place.nowhere())
    with closing(batches(tmp_path, ledger)) as reading:
        assert next(reading) == ["0-1-1"]
    assert ledger.mark.offset
    assert behind(tmp_path, "0-1-1", ledger.mark) == ["0-1-2", "0-1-3"]
    assert behind(tmp_path, "0-1-2", ledger.mark) == ["0-1-3"]
    assert behind(tmp_path, "0-1-2", HistoryMark(0, ledger.mark.mark)) == ["0-1-3"]


def test_a_place_that_was_purged_is_too_old(tmp_path):
    gtids = made_store(tmp_path, 1500)
    ledger = Ledger(Place.nowhere())
    with closing(batches(tmp_path, ledger)) as reading:
        for _ in range(10):
            next(reading)
    assert behind(tmp_path, str(ledger.place.position), ledger.mark) == gtids[10:]
    with Store.open(tmp_path, OPTIONS) as store:
        store.purge_to(store.files()[-1].name)
    with pytest.raises(TooOld):
        behind(tmp_path, str(ledger.place.position), ledger.mark)
