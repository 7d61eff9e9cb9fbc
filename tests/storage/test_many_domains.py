"""Thousands of domains: what is done for all of them is done once for each."""

import time

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.verify import verify_directory

from ..faults.sim_disk import SimDisk
from .events import transaction

DOMAINS = 8000
OPTIONS = StoreOptions(
    max_binlog_size=2 << 20,
    state_interval=256 << 10,
    redo_segment_size=8 << 20,
    format_description="upstream",
    background=False,
)
CPU_SECONDS_MAX = 10  # some tenths on an idle machine; with quadratic work minutes


def publish(store, gtid):
    with store.begin() as group:
        group.write(transaction("group"))
        group.commit(gtid, wait=False)


@pytest.fixture(scope="module")
def disk():
    """Return the disk of a closed store: each domain logged before the newest file and in it."""
    disk = SimDisk()
    with Store.open("/s", OPTIONS, disk=disk) as store:
        store.reset(BinlogState(Gtid(domain, 1, 1) for domain in range(DOMAINS)))
        store.switch_file()
        for domain in range(0, DOMAINS, 2):
            publish(store, Gtid(domain, 2, 2))
    return disk


@pytest.fixture(autouse=True)
def quickly():
    begun_at = time.process_time()
    yield
    assert time.process_time() - begun_at < CPU_SECONDS_MAX


def test_a_store_opens_and_its_readers_find_their_place(disk):
    with Store.open("/s", OPTIONS, disk=disk) as store:
        assert len(store.state()) == DOMAINS + DOMAINS // 2
        position = store.state().position()
        assert list(store.reader(position)) == []
        publish(store, Gtid(1, 2, 2))
        (group,) = store.reader(position)
        assert group.gtid == Gtid(1, 2, 2)


def test_domains_are_deleted_and_verify_sees_that_nothing_is_wrong(disk):
    with Store.open("/s", OPTIONS, disk=disk) as store:
        store.switch_file(delete_domains=range(3, DOMAINS, 2))
        assert len(store.state().domains()) == DOMAINS // 2 + 1
    kinds = {finding.kind for finding in verify_directory(disk, "/s")}
    assert kinds <= {"domain-deleted", "more"}
