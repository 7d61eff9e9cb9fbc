"""Groups that are published many at a time are those that one by one would be."""

import random
from dataclasses import replace

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidEvent
from ibb.storage import Store
from ibb.storage.engine import Engine
from ibb.storage.errors import StoreFull
from ibb.storage.group_reader import GroupReader
from ibb.storage.options import StoreOptions
from ibb.storage.position import Position
from ibb.storage.record import encode_state
from ibb.storage.verify.directory_check import verify_directory
from ibb.storage.verify.finding import Severity

from ..faults.sim_disk import SimDisk
from .events import query, transaction, xid
from .runs import run_of

DIRECTORY = "/s"
SHAPES = [(512, 8, 2), (512, 64, 4), (1024, 16, 1), (4096, 8, 64), (16384, 64, 4)]


def options_for(page_size, pages, interval):
    return StoreOptions(
        page_size=page_size, max_binlog_size=page_size * pages,
        state_interval=page_size * interval, redo_segment_size=8 << 20, fifo_pages_max=8,
        format_description="upstream", background=False,
    )  # fmt: skip


def random_groups(rng, count):
    """Return GTIDs and groups of three domains with two servers each."""
    made = []
    for seq in range(1, count + 1):
        gtid = Gtid(rng.randrange(3), rng.randrange(1, 3), seq)
        events = transaction(f"group {seq}", rng.choice((0, 0, 9, 300, 470, 900, 2500)))
        made.append((gtid, GtidEvent(gtid, 5, 0x0C).encode() + events))
    return made


def publish_runs(store, groups, rng):
    """Publish by runs, some of them short; those too large for one go by themselves."""
    at = 0
    while at < len(groups):
        part = groups[at : at + rng.choice((1, 2, 7, 50))]
        run = run_of((data for _, data in part), store.piece_size - 1)
        if run.count:
            store.commit_run(run)
            at += run.count
        else:
            publish_one(store, *groups[at])
            at += 1


def publish_all(store, groups, _):
    for gtid, data in groups:
        publish_one(store, gtid, data)


def publish_one(store, gtid, data):
    with store.begin() as group:
        group.write(data)
        group.commit(gtid, wait=False)


def contents(store):
    store.sync()
    reader = GroupReader(store.pages, Position(0, 0))
    found = []
    while (group := reader.next()) is not None:
        found.append((group.gtid, b"".join(group.pieces())))
    return found


def files_of(disk):
    names = [name for name in disk.list(DIRECTORY) if name.endswith(".ibb")]
    images = {name: disk.open(f"{DIRECTORY}/{name}").read_at(0, 1 << 30) for name in names}
    return {name: image for name, image in images.items() if any(image)}  # begun, not only made


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_the_files_are_the_same_to_the_byte(shape, seed):
    groups = random_groups(random.Random(seed), 300)
    disks = SimDisk(), SimDisk()
    for disk, publish in zip(disks, (publish_runs, publish_all), strict=True):
        with Store.open(DIRECTORY, options_for(*shape), disk=disk) as store:
            publish(store, groups, random.Random(seed))
            assert contents(store) == groups
            state = str(store.state())
        with Store.open(DIRECTORY, options_for(*shape), disk=disk) as store:
            assert str(store.state()) == state
    assert files_of(disks[0]) == files_of(disks[1])
    findings = verify_directory(disks[0], DIRECTORY)
    assert [found for found in findings if found.kind.severity is Severity.ERROR] == []


def test_a_file_that_begins_without_a_state_goes_on_like_that():
    """Where files are too small for the state, a cut one leaves the next without its page 1."""
    rng = random.Random(5)
    wide = [(Gtid(3, at, 1), GtidEvent(Gtid(3, at, 1), 5, 0x0C).encode() + transaction("x"))
            for at in range(1, 900)]  # fmt: skip
    groups = [group for group in random_groups(rng, 40) if len(group[1]) < 700]
    disks = SimDisk(), SimDisk()
    for disk, by_run in zip(disks, (True, False), strict=True):
        with Store.open(DIRECTORY, options_for(512, 8, 2), disk=disk) as store:
            for gtid, data in wide:
                publish_one(store, gtid, data)
            store.switch_file()
            publish = publish_runs if by_run else publish_all
            publish(store, groups, random.Random(5))
    assert files_of(disks[0]) == files_of(disks[1])


def state_of(pairs, last):
    """Return a state of so many servers; *last* is the number of the last one."""
    return BinlogState(Gtid(7, at, last if at == pairs else 1) for at in range(1, pairs + 1))


def test_a_state_that_fills_its_page_exactly_has_none_behind_it():
    state = next(
        state
        for pairs in range(40, 200)
        for last in (1, 1 << 8, 1 << 16, 1 << 24, 1 << 32)
        if len(encode_state((state := state_of(pairs, last)).entries(), None)) == 512 - 4 - 3
    )
    groups = [group for group in random_groups(random.Random(4), 60) if len(group[1]) < 1500]
    disks = SimDisk(), SimDisk()
    for disk, by_run in zip(disks, (True, False), strict=True):
        with Store.open(DIRECTORY, options_for(512, 16, 4), disk=disk) as store:
            store.set_binlog_state(state)
            publish = publish_runs if by_run else publish_all
            publish(store, groups, random.Random(4))
    assert files_of(disks[0]) == files_of(disks[1])


@pytest.mark.parametrize("seed", range(4))
def test_what_was_synced_survives_a_power_loss(seed):
    rng = random.Random(seed)
    groups, disk = random_groups(rng, 120), SimDisk()
    store = Store.open(DIRECTORY, options_for(512, 16, 2), disk=disk)
    publish_runs(store, groups[:80], rng)
    store.sync()
    publish_runs(store, groups[80:], rng)
    disk = disk.crashed(rng, keep=0.5)
    with Store.open(DIRECTORY, options_for(512, 16, 2), disk=disk) as store:
        found = contents(store)
    assert groups[: len(found)] == found
    assert len(found) >= 80


def test_a_full_disk_stops_between_two_groups():
    groups = [group for group in random_groups(random.Random(1), 200) if len(group[1]) < 1500]
    disk = SimDisk()
    store = Store.open(DIRECTORY, options_for(512, 16, 2), disk=disk)
    disk.capacity = disk.used + 3 * 16 * 512
    run = run_of((data for _, data in groups), store.piece_size - 1)
    with pytest.raises(StoreFull):
        store.commit_run(run)
    disk.capacity = None
    found = contents(store)
    assert 0 < len(found) < run.count
    assert found == groups[: len(found)]
    for gtid, data in groups[len(found) :]:
        publish_one(store, gtid, data)
    assert contents(store) == groups
    store.close()


class Gate:
    """Counts what a semi-synchronous gate is told."""

    def __init__(self):
        self.told = []

    def expect(self, gtid):
        self.told.append(("expect", gtid))

    def written(self, position):
        self.told.append(("written", position.gtid))

    def give_up(self, gtid):
        self.told.append(("give up", gtid))

    def wait(self, position):
        self.told.append(("wait", position.gtid))


def test_a_gate_is_told_of_each_group():
    groups = random_groups(random.Random(2), 20)
    with Store.open(DIRECTORY, options_for(4096, 64, 4), disk=SimDisk()) as store:
        store.commits.gate = gate = Gate()
        position = store.commit_run(run_of(data for _, data in groups))
        store.wait_for(position)
        expected = [(word, gtid) for gtid, _ in groups for word in ("expect", "written")]
        assert gate.told == [*expected, ("wait", groups[-1][0])]
        assert contents(store) == groups


@pytest.mark.parametrize("page_size", [512, 1024, 2048, 4096])
@pytest.mark.parametrize("size", [0, 15, 75])
def test_no_run_takes_more_of_the_log_than_room_was_made_for(monkeypatch, page_size, size):
    """A byte too few for each of thousands of groups was more than the bound had to spare."""
    spare, append_run = [], Engine.append_run

    def watched(engine, run, bound, newest):
        appended = append_run(engine, run, bound, newest)
        spare.append(bound.redo_bytes - page_size - run.redo_size)  # the page is for logging anew
        return appended

    monkeypatch.setattr(Engine, "append_run", watched)
    options = replace(options_for(page_size, 8192, 8192), fifo_pages_max=8192)
    groups = [
        GtidEvent(Gtid(0, 1, seq), 5, 0x0C).encode() + b"".join([query("x" * size)] * (size > 0))
        + xid(1)
        for seq in range(1, 4097)
    ]  # fmt: skip
    with Store.open(DIRECTORY, options, disk=SimDisk()) as store:
        publish_one(store, Gtid(0, 1, 9), groups[8])
        run = run_of(groups, store.piece_size - 1)
        store.commit_run(run)
    assert run.count > 1000
    assert spare
    assert min(spare) >= 0


@pytest.mark.parametrize(
    ("sizes", "together"), [([20], 0), ([20, 900], 0), ([20] * 3, 3), ([5000], 1), ([2500] * 2, 2)]
)
def test_few_small_groups_are_written_one_by_one(sizes, together, monkeypatch):
    """One that comes alone is waited for, and a run takes longer to begin than to write it."""
    runs, append_run = [], Engine.append_run

    def watched(engine, run, *rest):
        appended = append_run(engine, run, *rest)
        runs.append(run.next)
        return appended

    monkeypatch.setattr(Engine, "append_run", watched)
    groups = [
        (Gtid(0, 1, seq), GtidEvent(Gtid(0, 1, seq), 5, 0x0C).encode() + transaction("g", size))
        for seq, size in enumerate(sizes, 1)
    ]
    with Store.open(DIRECTORY, options_for(16384, 64, 64), disk=SimDisk()) as store:
        publish_one(store, Gtid(0, 1, 100), GtidEvent(Gtid(0, 1, 100), 5, 0x0C).encode() + xid(1))
        before = len(contents(store))
        store.commit_run(run_of(data for _, data in groups))
        assert sum(runs) == together
        assert contents(store)[before:] == groups
