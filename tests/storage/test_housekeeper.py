"""The background makes durable what nobody waits for, and brings it to the files."""

import threading

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.position import Position

from ..faults.sim_disk import SimDisk
from .events import transaction

WAIT_SECONDS = 15.0


@pytest.mark.parametrize("mode", [0, 2])
def test_a_commit_that_nobody_waits_for_is_durable_soon(mode):
    options = StoreOptions(
        page_size=512, max_binlog_size=1 << 16, redo_segment_size=256 << 10,
        format_description="upstream", flush_log_at_commit=mode, flush_log_interval=0.02,
    )  # fmt: skip
    with Store.open("/s", options, disk=SimDisk()) as store:
        moved = threading.Event()
        store.subscribe(moved.set)
        with store.begin() as group:
            group.write(transaction("alone"))
            position = group.commit(Gtid(0, 1, 1), wait=False)
        while store.end() < Position(position.file_no, position.offset):
            assert moved.wait(WAIT_SECONDS), "nobody has synced it"
            moved.clear()
        assert str(store.state()) == "0-1-1"
