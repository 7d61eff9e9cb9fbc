"""Whoever begins right behind a group is sent what one is who passes over all before it."""

import random
from contextlib import contextmanager
from dataclasses import replace
from statistics import mean
from unittest.mock import patch

import pytest

from ibb.protocol.dump_filter import DumpFilter, Verdict
from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store, gtid_search
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import Newest, find_start

from ..faults.sim_disk import SimDisk
from ..tiny import SMALL
from .events import transaction
from .test_file_search import publish

WIDE = replace(
    SMALL,
    page_size=512,
    max_binlog_size=96 * 512,
    state_interval=16 * 512,
    oob_piece_size=1500,
    flush_log_at_commit=0,
)
PLACE = "/binlogs"
# Of 32 positions, those that are found so at least; at some of them a state stands.
NEARER = {"rising": 25, "with gaps": 25, "two servers": 18, "two domains": 18, "out of order": 14}


def numbers_of(kind, rng):
    """Yield GTIDs for ever, each another."""
    number, server, used = 0, 1, set()
    while True:
        number += rng.choice((1, 1, 1, 7)) if kind != "rising" else 1
        if kind == "two servers" and rng.random() < 0.02:
            server = 3 - server
        gtid = Gtid(0, server, number)
        if kind == "out of order" and rng.random() < 0.2:
            gtid = Gtid(0, server, max(1, number - rng.randint(1, 300)))
        if kind == "two domains" and rng.random() < 0.01:
            gtid = Gtid(1, 1, number)
        if gtid not in used:
            used.add(gtid)
            yield gtid


def filled(store, kind, rng, groups=700):
    """Publish groups; return their GTIDs in the order of the history."""
    logged = []
    for gtid in numbers_of(kind, rng):
        with store.begin() as group:
            group.write(transaction("t", rng.choice((20, 20, 20, 20, 600, 4000))))
            group.commit(gtid, wait=False)
        logged.append(gtid)
        if rng.random() < 0.01:
            store.write_format_description(store.formats.in_force(store.end()))
        if len(logged) == groups:
            break
    store.sync()
    return logged


def sent_from(store, place, position):
    """Return the GTIDs that a dump sends which begins at a place."""
    wanted = DumpFilter(
        position, place.state, None, False, False, empty_domains=frozenset(), state_now=store.state
    )
    reader, found = GroupReader(store.pages, place.position), []
    while (group := reader.next()) is not None:
        if group.gtid is not None and wanted.wants(group.gtid) is Verdict.SEND:
            found.append(group.gtid)
            wanted.after(group.gtid)
    return found


@pytest.mark.parametrize("knows_newest", [False, True])
@pytest.mark.parametrize("kind", NEARER)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_sent_is_the_same(seed, kind, knows_newest, monkeypatch):
    rng, nearer = random.Random(f"{seed} {kind}"), 0
    with Store.open(PLACE, WIDE, disk=SimDisk()) as store:
        logged = filled(store, kind, rng)
        newest = Newest(store.end(), store.state()) if knows_newest else None
        places = sorted(rng.sample(range(len(logged)), 30))
        for index in [0, *places, len(logged) - 1]:
            last = {gtid.domain: gtid for gtid in logged[: index + 1]}
            position = GtidPosition(last.values())
            place = find_start(store.pages, position, newest)
            with monkeypatch.context() as patch:
                patch.setattr(gtid_search, "find_behind", lambda *_: None)
                early = find_start(store.pages, position, newest)
            nearer += place.position != early.position
            sent, as_ever = sent_from(store, place, position), sent_from(store, early, position)
            if kind == "out of order":  # of what follows the group, a state may hide something
                assert set(as_ever) & set(logged[index + 1 :]) <= set(sent)
                continue
            # A state may stand behind the group, with nothing that ends in between.
            assert early.position <= place.position or early.state == place.state
            assert sent == as_ever
            assert place.state.is_before(position)
    assert nearer >= NEARER[kind]


def test_a_position_that_nobody_logged_is_found_as_ever():
    with Store.open(PLACE, WIDE, disk=SimDisk()) as store:
        logged = {gtid.seq for gtid in filled(store, "with gaps", random.Random(1))}
        gaps = set(range(min(logged), max(logged))) - logged
        for number in sorted(gaps)[::97]:
            place = find_start(
                store.pages, GtidPosition([Gtid(0, 1, number)]), Newest(store.end(), store.state())
            )
            newest = place.state.seq(0, 1)
            assert newest is None or newest < number


def publish_evenly(store, gtids, size):
    """Publish a group of so many bytes for each GTID."""
    for gtid in gtids:
        with store.begin() as group:
            group.write(transaction("t", size))
            group.commit(gtid, wait=False)
    store.sync()


def numbers_that_grow(count, first, growth):
    """Return GTIDs of one server, evenly numbered up to where a power of *growth* is larger."""
    numbers = [first]
    for index in range(1, count):
        numbers.append(max(numbers[-1] + 1, int(growth**index)))
    return [Gtid(0, 1, number) for number in numbers]


@contextmanager
def pages_read(store):
    """Yield the places of the pages that a block reads, cleared by who begins again."""
    real, read = store.pages.read_page, []
    with patch.object(store.pages, "read_page", lambda *at: read.append(at) or real(*at)):
        yield read


def found_by(store, position):
    return find_start(store.pages, position, Newest(store.end(), store.state()))


@pytest.mark.parametrize(("growth", "reads_max"), [(1.0, 5), (1.017, 28)])
def test_few_pages_are_read_and_not_many_more_where_guesses_are_wrong(growth, reads_max):
    options = replace(WIDE, max_binlog_size=4096 * 512, redo_segment_size=4 << 20)
    with Store.open(PLACE, options, disk=SimDisk()) as store:
        logged = numbers_that_grow(2500, 1000, growth)
        publish_evenly(store, logged, 300)
        with pages_read(store) as read:
            for index in range(20, 2480, 61):
                read.clear()
                position = GtidPosition([logged[index]])
                place = found_by(store, position)
                assert len(set(read)) <= reads_max
                assert place.state.newest(0) == logged[index]
                assert sent_from(store, place, position)[0] == logged[index + 1]


LARGE = replace(
    WIDE,
    max_binlog_size=32_768 * 512,
    state_interval=128 * 512,
    redo_segment_size=4 << 20,
)


@pytest.mark.parametrize(("growth", "reads_max", "mean_max"), [(1.0, 5, 4), (1.02, 34, 20)])
def test_large_groups_end_so_far_apart_that_states_are_looked_at_in_place_of_them(
    growth, reads_max, mean_max
):
    reads = []
    with Store.open(PLACE, LARGE, disk=SimDisk()) as store:
        logged = numbers_that_grow(400, 1, growth)
        publish_evenly(store, logged, 30_000)
        with pages_read(store) as read:
            for index in range(20, 380, 9):
                read.clear()
                position = GtidPosition([logged[index]])
                place = found_by(store, position)
                reads.append(len(set(read)))
                assert 0 <= index - logged.index(place.state.newest(0)) <= 3
                assert sent_from(store, place, position)[0] == logged[index + 1]
    assert max(reads) <= reads_max
    assert mean(reads) <= mean_max


@pytest.mark.parametrize(("interval", "searches"), [(128, 0), (1 << 20, 12)])
def test_large_groups_are_looked_among_only_where_there_are_no_states(interval, searches):
    options, logged = replace(LARGE, state_interval=interval * 512), numbers_that_grow(200, 1, 1.0)
    with Store.open(PLACE, options, disk=SimDisk()) as store:
        publish_evenly(store, logged, 30_000)
        with patch.object(gtid_search, "find_behind", wraps=gtid_search.find_behind) as searched:
            for index in range(20, 188, 14):
                position = GtidPosition([logged[index]])
                place = found_by(store, position)
                assert sent_from(store, place, position)[0] == logged[index + 1]
    assert searched.call_count == searches


@pytest.mark.parametrize(("ahead", "rare"), [(0, []), (699, []), (0, [Gtid(7, 1, 1)])])
def test_of_many_domains_states_are_guessed_by_the_one_that_is_furthest_behind(ahead, rare):
    options = replace(WIDE, max_binlog_size=4096 * 512, redo_segment_size=4 << 20)
    often = [Gtid(number % 3, 1 + number % 3, number) for number in range(1, 2401)]
    with Store.open(PLACE, options, disk=SimDisk()) as store:
        publish_evenly(store, [*rare, *often, *(one._replace(seq=2) for one in rare)], 300)
        with pages_read(store) as read:
            for number in range(30, 1500, 60):
                read.clear()
                others = Gtid(1, 2, number + 1 + ahead), Gtid(2, 3, number + 2)
                place = found_by(store, GtidPosition([Gtid(0, 1, number), *others, *rare]))
                assert len(set(read)) <= 5
                assert number - 60 < place.state.seq(0, 1) <= number


@pytest.mark.parametrize("is_switched", [False, True])
def test_a_group_that_came_behind_what_is_known_hides_nobody_elses(is_switched):
    with Store.open(PLACE, WIDE, disk=SimDisk()) as store:
        publish(store, Gtid(0, 1, 1), Gtid(5, 1, 5))
        store.switch_file()
        publish(store, Gtid(0, 1, 2))
        newest = Newest(store.end(), store.state())
        if is_switched:
            publish(store, Gtid(0, 1, 3))
            store.switch_file()
        publish(store, Gtid(5, 1, 6), Gtid(0, 1, 4), Gtid(0, 1, 5))
        position = GtidPosition([Gtid(0, 1, 4), Gtid(5, 1, 5)])
        place = find_start(store.pages, position, newest)
        assert sent_from(store, place, position) == [Gtid(5, 1, 6), Gtid(0, 1, 5)]


def test_a_lower_number_that_came_behind_what_is_known_hides_nobody_elses():
    with Store.open(PLACE, WIDE, disk=SimDisk()) as store:
        publish(store, Gtid(0, 1, 1), Gtid(5, 1, 5), Gtid(0, 1, 9))
        store.switch_file()
        publish(store, Gtid(0, 1, 12))
        newest = Newest(store.end(), store.state())
        publish(store, Gtid(5, 1, 6), Gtid(0, 1, 11), Gtid(0, 1, 13))
        position = GtidPosition([Gtid(0, 1, 11), Gtid(5, 1, 5)])
        place = find_start(store.pages, position, newest)
        assert place.position <= newest.end
