"""The file in which a stream begins is found by looking at a few files, and is that of a walk."""

import random
from dataclasses import replace

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store
from ibb.storage.directory import BinlogDirectory
from ibb.storage.errors import DomainInUse
from ibb.storage.file_name import binlog_name
from ibb.storage.gtid_search import TooOld, _search_files, _walk_files, find_start
from ibb.storage.os_disk import OsDisk

from ..faults.sim_disk import SimDisk
from ..tiny import SMALL
from .binlog_builder import BinlogBuilder, event
from .events import transaction

TINY = replace(
    SMALL, page_size=512, max_binlog_size=4096, state_interval=512, flush_log_at_commit=0
)
PLACE = "/binlogs"


def publish(store, *gtids):
    for gtid in gtids:
        with store.begin() as group:
            group.write(transaction("t", 20))
            group.commit(gtid, wait=False)
    store.sync()


def positions_of(states, rng):
    """Yield positions that replicas may have, and some that none should."""
    for state in states:
        position = state.position()
        yield position
        entries = list(position)
        yield GtidPosition(rng.sample(entries, rng.randint(0, len(entries))))
        yield GtidPosition([*entries, Gtid(99, 1, rng.randint(1, 50))])
        if entries:
            domain, server, seq = rng.choice(entries)
            others = [entry for entry in entries if entry.domain != domain]
            yield GtidPosition([*others, Gtid(domain, server, max(1, seq - rng.randint(1, 9)))])
            yield GtidPosition([*others, Gtid(domain, server, seq + rng.randint(1, 9))])
            yield GtidPosition([*others, Gtid(domain, server + 1, seq)])


def looked_at(source, monkeypatch):
    """Return a list that gets the number of each file whose first state is read."""
    numbers, read_page = [], source.read_page

    def counted(file_no, page_no):
        if page_no == 1:
            numbers.append(file_no)
        return read_page(file_no, page_no)

    monkeypatch.setattr(source, "read_page", counted)
    return numbers


@pytest.mark.parametrize("seed", range(12))
def test_the_file_is_that_of_a_walk_over_all(seed):
    rng, deleted, told = random.Random(seed), 0, 0
    with Store.open(PLACE, TINY, disk=SimDisk()) as store:
        states, numbers, domains = [store.state()], dict.fromkeys(range(4), 0), list(range(4))
        for _ in range(60):
            for _ in range(rng.randint(0, 3)):
                domain = rng.choice(domains[:2] if rng.random() < 0.8 else domains)
                numbers[domain] += rng.choice((1, 1, 1, 5))
                publish(store, Gtid(domain, rng.randint(1, 2), numbers[domain]))
                states.append(store.state())
            gone = frozenset()
            if rng.random() < 0.1:
                first, last = store.pages.first_file(), store.end().file_no
                store.purge_to(binlog_name(rng.randint(first, (first + last) // 2)))
                gone = frozenset(rng.sample(domains, 1))
            try:
                store.switch_file(delete_domains=gone)
                deleted += bool(gone)
            except DomainInUse:
                store.switch_file()
            states.append(store.state())
        for position in positions_of(rng.sample(states, 40), rng):
            found, walked = _search_files(store.pages, position), _walk_files(store.pages, position)
            told += found is not None
            if found is not None:
                assert found == walked
        assert told > 10
    assert deleted or seed not in (1, 2, 3)


def test_the_cost_grows_with_the_logarithm_of_what_is_behind(monkeypatch):
    with Store.open(PLACE, TINY, disk=SimDisk()) as store:
        states = []
        for number in range(1, 1001):
            publish(store, Gtid(0, 1, number))
            states.append(store.state().position())
            store.switch_file()
        numbers = looked_at(store.pages, monkeypatch)
        for behind, most in ((1, 2), (2, 4), (10, 10), (100, 16), (700, 22), (999, 22)):
            place = find_start(store.pages, states[-behind])
            assert place.position.file_no == 1000 - behind + 1
            # The one that is found is looked at again, for states inside of it.
            assert len(set(numbers)) <= most
            numbers.clear()
        find_start(store.pages, GtidPosition())
        assert len(set(numbers)) <= 22
        store.purge_to(binlog_name(300))
        assert store.pages.first_file() == 300
        numbers.clear()
        assert find_start(store.pages, states[299]).position.file_no == 300
        assert len(set(numbers)) <= 22
        with pytest.raises(TooOld):
            find_start(store.pages, states[298])


@pytest.mark.parametrize("is_gone", [False, True])
@pytest.mark.parametrize("damaged", range(1, 11))
def test_a_file_that_cannot_be_read_hides_no_other(damaged, is_gone):
    disk = SimDisk()
    with Store.open(PLACE, TINY, disk=disk) as store:
        positions = []
        for number in range(1, 11):
            publish(store, Gtid(0, 1, number))
            positions.append(store.state().position())
            store.switch_file()
    path = f"{PLACE}/{binlog_name(damaged)}"
    if is_gone:
        disk.remove(path)
    else:
        disk.damage(path, TINY.page_size + 9, b"\xff\xff")
    pages = BinlogDirectory(disk, PLACE)
    for number, position in enumerate(positions):
        searched, walked = _search_files(pages, position), _walk_files(pages, position)
        assert searched in (walked, None)
        assert walked.file_no == (number + 1 if number + 1 != damaged else number)
        assert find_start(pages, position).position.file_no == walked.file_no


def test_a_domain_that_came_and_went_hides_no_file(tmp_path):
    builder, positions = BinlogBuilder(pages=4), []
    for number in range(1, 11):
        if number == 3:
            builder.full.update(Gtid(7, 1, 1))
        if number == 5:
            builder.full = BinlogState(gtid for gtid in builder.full.entries() if gtid.domain == 0)
        builder.commit(Gtid(0, 1, number), event(50))
        positions.append(GtidPosition([Gtid(0, 1, number)]))
        builder.fill_file()
    pages = BinlogDirectory(OsDisk(), str(builder.write(tmp_path)))
    found = [find_start(pages, position).position.file_no for position in positions]
    walked = [_walk_files(pages, position).file_no for position in positions]
    assert found == walked
    assert len(set(walked)) > 5
