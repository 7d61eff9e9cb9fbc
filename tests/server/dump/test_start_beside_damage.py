"""Where a file is damaged, a dump that begins behind the damage steps over nobody's groups."""

from dataclasses import replace

import pytest

from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.server.dump.dump_batch import Outcome
from ibb.server.dump.run_stream import RunStream
from ibb.storage.file_name import binlog_name
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.store import Store

from ...faults.sim_disk import SimDisk
from ...tiny import SMALL
from ..conftest import publish
from .made_streams import request, rest_of, stream

PLACE, PAGE = "/b", 512
OPTIONS = replace(SMALL, page_size=PAGE, max_binlog_size=64 * PAGE, state_interval=256 * PAGE)


@pytest.fixture
def damaged():
    """Return files of another program; behind a damaged page, one domain's groups among others'."""
    disk = SimDisk()
    with Store.open(PLACE, OPTIONS, disk=disk) as store:
        publish(store, Gtid(0, 1, 1))
        publish(store, Gtid(5, 1, 1))
        store.switch_file()
        for seq in range(2, 20):
            publish(store, Gtid(0, 1, seq), size=200)
        place = store.end()
        for seq in range(20, 30):
            publish(store, Gtid(0, 1, seq), size=200)
        publish(store, Gtid(5, 1, 2))
        for seq in range(30, 60):
            publish(store, Gtid(0, 1, seq), size=200)
    disk.damage(f"{PLACE}/{binlog_name(place.file_no)}", place.offset // PAGE * PAGE + 600, b"?")
    history = ReadOnlyHistory(disk, PLACE)
    yield history
    history.close()


UNTIL = GtidPosition([Gtid(5, 1, 2)])


@pytest.mark.parametrize("asked", [{"ignore_duplicates": True}, {"until": UNTIL}], ids=str)
def test_the_damage_is_told_when_it_is_due(damaged, asked):
    assert damaged.damage is not None
    position = GtidPosition([Gtid(0, 1, 40), Gtid(5, 1, 1)])
    one = stream(RunStream, damaged, request(connect_state=position, **asked))
    made = rest_of(one, one.start())
    one.close()
    assert made.outcome is Outcome.END
    assert made.error.startswith("1236 ")
    assert "page" in made.error
