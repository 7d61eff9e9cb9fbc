"""The file in which a stream begins is that of a walk over all, and is found by looking at few."""

import random
from dataclasses import replace

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store
from ibb.storage.directory import BinlogDirectory
from ibb.storage.errors import DiskError, DomainInUse
from ibb.storage.file_name import binlog_name
from ibb.storage.file_search import search_files
from ibb.storage.gtid_search import TooOld, find_start
from ibb.storage.os_disk import OsDisk
from ibb.storage.state_scan import read_state

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


def write_file(store, numbers, falls, rng):
    """
    Commit a few groups and begin a file, now and then purge old ones and forget a domain.

    Args:
        numbers: the last of each domain; they rise but for a share *falls*, as is legal, if
            not strict.

    Returns:
        The states behind each group and at the beginning, and whether a domain is forgotten.
    """
    states, domains = [], list(numbers)
    for _ in range(rng.randint(0, 3)):
        domain = rng.choice(domains[:2] if rng.random() < 0.8 else domains)
        numbers[domain] += rng.choice((1, 1, 1, 5))
        if rng.random() < falls:
            numbers[domain] = rng.randint(1, numbers[domain])
        publish(store, Gtid(domain, rng.randint(1, 2), numbers[domain]))
        states.append(store.state())
    gone = frozenset()
    if rng.random() < 0.1:
        first, last = store.pages.first_file(), store.end().file_no
        store.purge_to(binlog_name(rng.randint(first, (first + last) // 2)))
        gone = frozenset(rng.sample(domains, 1))
    try:
        store.switch_file(delete_domains=gone)
    except DomainInUse:
        store.switch_file()
        gone = frozenset()
    return [*states, store.state()], bool(gone)


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


def walked(source, position):
    """Return the newest file whose state is before a position, by looking at each."""
    for file_no in reversed(source.file_numbers()):
        try:
            state = read_state(source, file_no, 1)
        except (FormatError, DiskError):
            continue
        if state is not None and BinlogState(state.entries).is_before(position):
            return file_no
        if state is None and file_no == 0:
            return file_no
    return None


def searched(source, position):
    found = search_files(source, position)
    return None if found is None else found.file_no


def looked_at(source, monkeypatch):
    """Return a list that gets the number of each file whose first state is read."""
    numbers, read_page, first_state = [], source.read_page, source.first_state

    def counted(file_no, page_no):
        if page_no == 1:
            numbers.append(file_no)
        return read_page(file_no, page_no)

    def counted_at_once(file_no):
        entries = first_state(file_no)
        if entries is not None:
            numbers.append(file_no)
        return entries

    monkeypatch.setattr(source, "read_page", counted)
    monkeypatch.setattr(source, "first_state", counted_at_once)
    return numbers


@pytest.mark.parametrize("falls", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("seed", range(8))
def test_the_file_is_that_of_a_walk_over_all(seed, falls):
    rng, deleted = random.Random(f"{seed} {falls}"), 0
    with Store.open(PLACE, TINY, disk=SimDisk()) as store:
        states, numbers = [store.state()], dict.fromkeys(range(4), 0)
        for _ in range(60):
            behind, is_forgotten = write_file(store, numbers, falls, rng)
            states += behind
            deleted += is_forgotten
            for position in positions_of(rng.sample(states, min(3, len(states))), rng):
                assert searched(store.pages, position) == walked(store.pages, position)
        for position in positions_of(rng.sample(states, 40), rng):
            assert searched(store.pages, position) == walked(store.pages, position)
        assert len(store.pages.file_states.rising) > 1 or falls
    assert deleted or falls or seed not in (1, 2, 3)


def test_who_is_behind_gets_nothing_twice_although_numbers_fell():
    with Store.open(PLACE, TINY, disk=SimDisk()) as store:
        for batch in ((10, 20), (100,), (30, 40), (50, 52), (60,), (70,), (80,), (200,)):
            publish(store, *(Gtid(0, 1, number) for number in batch))
            store.switch_file()
        for _ in range(2):  # the second time by what is known
            for number, file_no in ((20, 1), (40, 3), (50, 3), (52, 4), (60, 5), (80, 7)):
                place = find_start(store.pages, GtidPosition([Gtid(0, 1, number)]))
                assert place.position.file_no == file_no


def test_states_are_read_once_and_few_are_compared(monkeypatch):
    with Store.open(PLACE, TINY, disk=SimDisk()) as store:
        states = []
        for number in range(1, 1001):
            publish(store, Gtid(0, 1, number))
            states.append(store.state().position())
            store.switch_file()
        numbers = looked_at(store.pages, monkeypatch)
        is_before, compared = BinlogState.is_before, []
        monkeypatch.setattr(
            BinlogState, "is_before", lambda *of: compared.append(of) or is_before(*of)
        )
        for behind, most in ((1, 2), (2, 4), (10, 12), (700, 702), (1, 2), (100, 2), (999, 301)):
            place = find_start(store.pages, states[-behind])
            assert place.position.file_no == 1000 - behind + 1
            assert len(set(numbers)) <= most  # the one that is found for what else is in it
            numbers.clear()
        for behind in (1, 10, 500, 999):
            compared.clear()
            find_start(store.pages, states[-behind])
            assert len(compared) <= 16
        store.purge_to(binlog_name(300))
        assert store.pages.first_file() == 300
        publish(store, Gtid(0, 1, 2000))
        for _ in range(3):
            store.switch_file()
        numbers.clear()
        assert find_start(store.pages, states[299]).position.file_no == 300
        assert len(set(numbers)) <= 5
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
        found = number + 1 if number + 1 != damaged else number
        assert searched(pages, position) == walked(pages, position) == found
        assert find_start(pages, position).position.file_no == found


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
    assert found == [walked(pages, position) for position in positions]
    assert len(set(found)) > 5
