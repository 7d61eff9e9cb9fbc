"""
Scenarios that MariaDB's own suite knows for its binlog files, done to a store.

Each is a bug that somebody had, or a border that somebody met; docs/testing.md says which of the
server's tests each stands for, and which other tests of ours stand for the rest.
"""

import random
import threading

import pytest

from ibb.protocol.gtid import Gtid, GtidPosition
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import StoreBusy
from ibb.storage.file_name import binlog_name
from ibb.storage.gtid_search import find_start
from ibb.storage.holds import HoldKind
from ibb.storage.record import Xid

from ..faults.sim_disk import SimDisk
from ..oracle.binlog import Binlog
from ..oracle.references import check_references
from ..oracle.states import StateCheck
from .edge_store import EdgeStore, options_for
from .events import query, transaction, xid

DIRECTORY = "/s"
PAGE = 512
FILE = 16 * PAGE
PIECE = 700
LARGEST_GROUP = 3 * FILE


def options(**more):
    return StoreOptions(
        **{
            "page_size": PAGE,
            "max_binlog_size": FILE,
            "state_interval": 2 * PAGE,
            "oob_piece_size": PIECE,
            "redo_segment_size": 256 << 10,
            "format_description": "upstream",
            "background": False,
            **more,
        }
    )


def publish(store, gtid, size=0, *, wait=True):
    with store.begin() as group:
        group.write(transaction(str(gtid), size))
        group.commit(gtid, wait=wait)


def sequence(store, start=None):
    return [group.gtid.seq for group in store.reader(start)]


def contents(store):
    """Return the events of each group, without its GTID event."""
    return [b"".join(group.pieces())[len(group.head) :] for group in store.reader()]


def killed_store(groups=80):
    """Return the disk of a store that was killed, and the numbers of its newest used files."""
    disk = SimDisk()
    store = Store.open(DIRECTORY, options(), disk=disk)
    for seq in range(1, groups + 1):
        publish(store, Gtid(0, 1, seq), 250)
    last = store.end().file_no
    disk.end_process()
    return disk, [last - 1, last]


# Recovery


@pytest.mark.parametrize("header_too", [False, True])
def test_what_no_checkpoint_has_covered_comes_back_from_the_log(header_too):
    """The two newest files of zeros: only they may be damaged by a crash."""
    disk, newest = killed_store()
    assert newest[0] > 1
    for file_no in newest:
        start = 0 if header_too else PAGE
        disk.damage(f"{DIRECTORY}/{binlog_name(file_no)}", start, bytes(FILE - start))
    with Store.open(DIRECTORY, options(), disk=disk) as store:
        assert sequence(store) == list(range(1, 81))
        publish(store, Gtid(0, 1, 81))
        assert sequence(store, "0-1-79") == [80, 81]


def test_the_two_newest_files_may_be_gone_after_a_crash():
    """The one in use and the one made in advance; the log has all that they had."""
    disk, (_, last) = killed_store()
    for name in (binlog_name(last), binlog_name(last + 1)):
        disk.remove(f"{DIRECTORY}/{name}")
    with Store.open(DIRECTORY, options(), disk=disk) as store:
        assert sequence(store) == list(range(1, 81))
        publish(store, Gtid(0, 1, 81))
        assert sequence(store, "0-1-79") == [80, 81]


def test_a_single_file_of_zeros_is_where_a_store_begins():
    disk = SimDisk()
    disk.make_dir(DIRECTORY)
    disk.open(f"{DIRECTORY}/{binlog_name(0)}", create=True).write_at(0, bytes(FILE))
    with Store.open(DIRECTORY, options(), disk=disk) as store:
        publish(store, Gtid(0, 1, 1))
    with Store.open(DIRECTORY, options(), disk=disk) as store:
        assert sequence(store) == [1]


def test_one_write_of_many_times_the_log_is_throttled_and_survives():
    disk, event = SimDisk(), query("w" * (2 << 20))
    store = Store.open(DIRECTORY, options(max_binlog_size=512 * PAGE), disk=disk)
    with store.begin() as group:
        group.write(event + xid(1))
        group.commit(Gtid(0, 1, 1))
    disk.end_process()
    with Store.open(DIRECTORY, options(), disk=disk) as store:
        assert contents(store) == [event + xid(1)]


def test_nobody_starts_from_a_state_that_can_still_get_lost():
    """A replica that connects in mode 0, and the power goes: what it has is in the history."""
    disk = SimDisk()
    store = Store.open(DIRECTORY, options(flush_log_at_commit=0), disk=disk)
    for seq in range(1, 30):
        publish(store, Gtid(0, 1, seq))
    store.sync()
    for seq in range(30, 60):
        publish(store, Gtid(0, 1, seq))
    durable = store.state().position()
    assert durable == GtidPosition.parse("0-1-29")
    start = find_start(store.pages, durable)
    assert start.position <= store.end()
    assert start.state.newest(0).seq <= 29
    disk = disk.crashed(random.Random(1), keep=0.0)
    with Store.open(DIRECTORY, options(), disk=disk) as again:
        assert sequence(again, durable) == list(range(30, again.state().newest(0).seq + 1))


# GTIDs


@pytest.mark.parametrize("file_pages", [4, 16, 1024])
def test_a_replica_may_connect_at_any_gtid_of_any_life(file_pages):
    """Ten domains of five servers, restarts in between, and a hundred positions."""
    rng, disk, published = random.Random(7), SimDisk(), []
    for _life in range(4):
        with Store.open(DIRECTORY, options(max_binlog_size=file_pages * PAGE), disk=disk) as store:
            for _ in range(60):
                gtid = Gtid(rng.randrange(10), rng.randrange(1, 6), len(published) + 1)
                publish(store, gtid, rng.choice((0, 100, 600)), wait=False)
                published.append(gtid)
    with Store.open(DIRECTORY, options(), disk=disk) as store:
        for known in rng.sample(range(len(published)), 100):
            position = GtidPosition(published[: known + 1])
            behind = [
                group.gtid for _, group in zip(range(3), store.reader(position), strict=False)
            ]
            assert behind == published[known + 1 : known + 4]


def test_a_state_at_a_file_s_beginning_tells_what_lies_before_it(tmp_path):
    """Ten commit at once, in files of four pages: none may be in the state of a file it follows."""
    settings = options(max_binlog_size=4 * PAGE, background=True)
    with Store.open(tmp_path, settings) as store:

        def commit(domain):
            for seq in range(1, 21):
                publish(store, Gtid(domain, 1, seq), 40)

        threads = [threading.Thread(target=commit, args=(domain,)) for domain in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        published = [group.gtid for group in store.reader()]
        assert sorted(published) == [
            Gtid(domain, 1, seq) for domain in range(10) for seq in range(1, 21)
        ]
        for known in range(0, 200, 9):
            behind = [group.gtid for group in store.reader(GtidPosition(published[:known]))]
            assert behind == published[known:]
    images = {int(path.stem[7:]): path.read_bytes() for path in tmp_path.glob("*.ibb")}
    binlog = Binlog(images)
    assert len(binlog.files) > 10
    assert (StateCheck(binlog).problems, check_references(binlog)) == ([], [])


# Pieces and savepoints


def test_groups_of_every_size_around_a_piece_and_larger_than_a_file():
    sizes = [
        *range(PIECE - 60, PIECE + 60),
        2 * PIECE,
        FILE - 100,
        FILE,
        LARGEST_GROUP,
        300 * PIECE,
    ]
    published = []
    with Store.open(DIRECTORY, options(), disk=SimDisk()) as store:
        for seq, size in enumerate(sizes, 1):
            events = query("s" * size) + xid(seq)
            with store.begin() as group:
                group.write(events)
                group.commit(Gtid(0, 1, seq), wait=False)
            published.append(events)
        assert contents(store) == published


def test_large_transactions_of_five_connections_interleave():
    with Store.open(DIRECTORY, options(), disk=SimDisk()) as store:
        expected = {}
        for turn in range(5):
            groups = [(store.begin(), []) for _ in range(5)]
            for number in range(100):
                for connection, (group, events) in enumerate(groups):
                    events.append(query(f"{turn} {connection} {number} " + "i" * 200))
                    group.write(events[-1])
            for connection, (group, events) in enumerate(groups):
                group.write(xid(1))
                group.commit(Gtid(connection, 1, turn + 1), wait=False)
                expected[connection, turn + 1] = b"".join([*events, xid(1)])
        found = {}
        for group in store.reader():
            data = b"".join(group.pieces())[len(group.head) :]
            found[group.gtid.domain, group.gtid.seq] = data
        assert found == expected


@pytest.mark.parametrize("inner", [False, True])
def test_going_back_at_every_size_around_the_edge_of_the_buffer(inner):
    """Nested savepoints, the outer or the inner one gone back to, more written behind it."""
    published = []
    with Store.open(DIRECTORY, options(), disk=SimDisk()) as store:
        for seq, size in enumerate(range(PIECE - 125, PIECE + 126), 1):
            first, second, last = query("a" * size), query("b" * 90), query("c") + xid(seq)
            with store.begin() as group:
                group.write(first)
                outer = group.savepoint()
                group.write(second)
                after_second = group.savepoint()
                group.write(query("gone" * size))
                group.rollback_to(after_second if inner else outer)
                group.write(last)
                group.commit(Gtid(0, 1, seq), wait=False)
            published.append(first + (second if inner else b"") + last)
        assert contents(store) == published


# Purge and prepared transactions


def test_purge_after_a_restart_goes_by_the_headers():
    """A reader of file 2 keeps file 0, where the pieces of a group in file 2 are."""
    disk, seqs = SimDisk(), iter(range(1, 1000))
    store = Store.open(DIRECTORY, options(), disk=disk)

    def fill_to(file_no):
        while store.end().file_no < file_no:
            publish(store, Gtid(0, 1, next(seqs)), 300)

    with store.begin() as large:
        large.write(query("x" * 3000))
        fill_to(2)
        large.write(xid(1))
        large.commit(Gtid(9, 1, 1))
    fill_to(5)
    disk.end_process()
    store = Store.open(DIRECTORY, options(), disk=disk)
    hold = store.hold(HoldKind.REPLICA, "server id 7")
    hold.move(2)
    result = store.purge_to(binlog_name(5))
    assert result.removed == []
    assert [reason.endswith("server id 7") for reason in result.reasons] == [True]
    assert query("x" * 3000) + xid(1) in contents(store)
    hold.release()
    assert store.purge_to(binlog_name(5)).removed == [binlog_name(number) for number in range(5)]
    store.close()


def test_pieces_of_a_group_that_is_given_up_hold_nothing_back():
    with Store.open(DIRECTORY, options(), disk=SimDisk()) as store:
        group = store.begin()
        group.write(query("x" * 3000))
        seq = 0
        while store.end().file_no < 3:
            publish(store, Gtid(0, 1, seq := seq + 1), 300)
        assert store.purge_to(binlog_name(2)).removed == []
        group.rollback()
        while store.end().file_no < 5:
            publish(store, Gtid(0, 1, seq := seq + 1), 300)
        removed = store.purge_to(binlog_name(4)).removed
        assert removed == [binlog_name(number) for number in range(4)]


@pytest.mark.parametrize("room", [4, 20, 60, 61, 62, 63, 64, 65, 100])
@pytest.mark.parametrize("killed", [False, True])
def test_a_transaction_prepared_at_the_end_of_a_file_survives(room, killed):
    """Its record fills the file, or goes over the end; closing and RESET MASTER do not wait."""
    edge = EdgeStore(options_for(PAGE, 4))
    name = Xid(1, b"transaction", b"")
    edge.go_to_page(3)
    edge.end_record_at(-room)
    with edge.store.begin() as group:
        group.write(query("x") + xid(1))
        group.prepare(name)
    edge = edge.reopen(killed=killed)
    assert [prepared.xid for prepared in edge.store.prepared()] == [name]
    with pytest.raises(StoreBusy):
        edge.store.reset()
    edge.store.rollback_prepared(name)
    edge.publish()
    edge.check()
    with Store.open("/s", edge.options, disk=edge.disk) as store:
        store.reset()
        assert list(store.reader()) == []
