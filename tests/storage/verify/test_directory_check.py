"""The check of whole directories: sound ones, stores in use or after a power loss, odd files."""

import json
import random
from dataclasses import replace

import pytest

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.gtid import Gtid
from ibb.storage import Store
from ibb.storage.checked_json import CHECKSUM_KEY
from ibb.storage.errors import DiskError
from ibb.storage.group_reader import GroupReader
from ibb.storage.oob_forest import OobForest
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.verify import Totals, verify_directory
from ibb.storage.verify.finding import Kind, Severity

from ...faults.sim_disk import Fault, PowerLost, SimDisk
from ...sample_directories import NAMES
from ..binlog_builder import event
from ..random_history import DIRECTORY, RandomHistory
from .binlog_to_damage import write_binlog
from .verify_rig import SIZE, SMALL, Binlog, digest, findings, publish, told


def check(disk, path="/s"):
    """Return the findings, as (kind, severity), and the totals."""
    totals = Totals()
    found = list(verify_directory(disk, path, totals=totals))
    return [(str(finding.kind), finding.severity) for finding in found], totals


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_sound(sample, name):
    path, expected = sample(name)
    totals, before = Totals(), digest(path)
    assert list(verify_directory(OsDisk(), str(path), totals=totals)) == []
    assert digest(path) == before
    assert totals.groups == len(expected["groups"])
    assert totals.last == BinlogState.parse(",".join(expected["state"]))
    assert totals.files == expected["files"][1] - expected["files"][0] + 2
    assert totals.size == sum(file.stat().st_size for file in path.iterdir())


def test_an_empty_directory_is_sound(tmp_path):
    assert findings(tmp_path) == []


def test_progress_ends_with_all_bytes(sample):
    path, _ = sample("oob-16k-1")
    steps = []
    list(verify_directory(OsDisk(), str(path), progress=lambda *step: steps.append(step)))
    assert steps == sorted(steps)
    assert steps[-1][0] == steps[-1][1] == sum(file.stat().st_size for file in path.iterdir())


# Stores


def test_a_store_that_was_closed_is_sound(tmp_path):
    with Store.open(tmp_path, SMALL) as store:
        for number, size in enumerate((0, 700, 3000, 0, 9000, 10), start=1):
            publish(store, number, size)
    assert findings(tmp_path) == []


def test_a_store_in_use_is_sound_and_its_newest_groups_are_seen(tmp_path):
    """The last pages are only in the redo log: a note, and no group is missing."""
    with Store.open(tmp_path, SMALL) as store:
        for number in range(1, 30):
            publish(store, number, 200)
            found, totals = check(OsDisk(), str(tmp_path))
            assert {kind for kind, _ in found} <= {"not-closed"}
            assert totals.groups == number
            assert str(totals.last) == f"0-1-{number}"


LARGER = replace(SMALL, page_size=4096, max_binlog_size=65536, state_interval=8192)


@pytest.mark.parametrize("options", [SMALL, LARGER])
def test_groups_that_come_while_the_check_runs_are_no_finding(options):
    """Files fill up, pages grow and the redo log goes over to its other segment meanwhile."""
    disk = SimDisk()
    with Store.open("/s", options, disk=disk) as store:
        for number in range(1, 40):
            publish(store, number, 300)
        last = 39

        def go_on(done, total):
            nonlocal last
            for _ in range(random.Random(done).randrange(12)):
                last += 1
                publish(store, last, 400 if last % 7 else 9000)

        totals = Totals()
        found = list(verify_directory(disk, "/s", progress=go_on, totals=totals))
        assert {finding.severity for finding in found} <= {Severity.NOTE}
        assert totals.groups >= 39
        assert last > 60


@pytest.mark.parametrize("seed", range(60))
def test_after_a_power_loss_every_durable_group_is_there(seed):
    """What recovery will bring back counts; torn pages that it will write again do not cost any."""
    rng = random.Random(seed)
    disk = SimDisk()
    durable = 0
    try:
        with Store.open("/s", SMALL, disk=disk) as store:
            disk.crash_at = disk.operations + rng.randrange(20, 400)
            for number in range(1, 1000):
                publish(store, number, rng.choice((0, 100, 400, 3000)))
                durable = number
    except PowerLost:
        after = disk.crashed(rng, rng.random())
    after.faults.append(Fault(lambda op: op.kind not in ("open", "read")))
    totals = Totals()
    found = list(verify_directory(after, "/s", totals=totals))
    after.faults.clear()
    for finding in found:
        assert finding.severity is Severity.NOTE or finding.text.endswith("has this page whole")
        assert finding.lost == "nothing"
    assert totals.groups in (durable, durable + 1)
    with Store.open("/s", SMALL, disk=after) as store:
        assert str(store.state()) == str(totals.last)


# What lies beside the files


def test_a_sidecar_that_is_no_list(tmp_path):
    Binlog(tmp_path).groups(3).write()
    (tmp_path / "formats.json").write_text('{"version": 7}')
    assert told(tmp_path) == [("sidecar", "formats.json", None, None, "nothing")]


def test_a_sidecar_that_does_not_agree_with_the_records(tmp_path):
    with Store.open(tmp_path, SMALL) as store:
        publish(store, 1)
        place = ReadOnlyHistory(OsDisk(), str(tmp_path)).pages.first_file()
    listed = json.loads((tmp_path / "formats.json").read_text())
    assert listed["entries"][0][:2] == [0, 517]
    listed["entries"][0][1] = 530
    del listed[CHECKSUM_KEY]
    (tmp_path / "formats.json").write_text(json.dumps(listed))
    found = findings(tmp_path)
    assert [(str(f.kind), f.file, f.offset) for f in found] == [
        ("sidecar", "binlog-000000.ibb", 5),
        ("sidecar-entry", "formats.json", None),
    ]
    assert place == 0


# Other writers, and the disk


def test_a_page_that_another_program_is_writing_is_read_again(tmp_path):
    binlog = Binlog(tmp_path).groups(20).write()
    newest = binlog.builder.position

    class TornDisk(OsDisk):
        torn = 2

        def open(self, path, *, create=False, read_only=False):
            file = super().open(path, create=create, read_only=read_only)
            read_at = file.read_at

            def torn(offset, size):
                data = read_at(offset, size)
                page = newest.offset - newest.offset % SIZE
                if path == str(binlog.file(newest.file_no)) and offset <= page < offset + size:
                    if size > SIZE * 8:
                        return data[: page - offset] + b"torn" + data[page - offset + 4 :]
                    if self.torn:
                        TornDisk.torn -= 1
                        return b"torn" + data[4:]
                return data

            file.read_at = torn
            return file

    assert list(verify_directory(TornDisk(), str(tmp_path))) == []


def test_files_that_another_program_fills_while_the_check_runs(tmp_path):
    binlog = Binlog(tmp_path, interval=4).groups(30).write()

    def go_on(done, total):
        binlog.groups(5).write()

    totals = Totals()
    assert list(verify_directory(OsDisk(), str(tmp_path), progress=go_on, totals=totals)) == []
    assert totals.groups >= 30


def test_a_page_that_the_disk_does_not_give(tmp_path):
    """The pages around it are read one by one."""
    binlog = Binlog(tmp_path).groups(40).write()
    bad = str(binlog.file(1)), 3 * SIZE

    class BadDisk(OsDisk):
        def open(self, path, *, create=False, read_only=False):
            file = super().open(path, create=create, read_only=read_only)
            read_at = file.read_at

            def read(offset, size):
                if path == bad[0] and offset <= bad[1] < offset + size and offset:
                    raise DiskError(5, "bad sector", operation="read", path=path, offset=offset)
                return read_at(offset, size)

            file.read_at = read
            return file

    found = list(verify_directory(BadDisk(), str(tmp_path)))
    assert [(str(f.kind), f.page, f.lost) for f in found] == [("unreadable", 3, "0-1-19..21")]


def test_a_header_page_that_is_damaged_behind_its_fields(sample_copy):
    path, _ = sample_copy("plain-16k-1")
    image = bytearray((path / "binlog-000002.ibb").read_bytes())
    image[600] ^= 1
    (path / "binlog-000002.ibb").write_bytes(image)
    found = findings(path)
    assert [(str(f.kind), f.file, f.page) for f in found] == [
        ("header-page-checksum", "binlog-000002.ibb", 0)
    ]
    assert found[0].lost.startswith("0-")


@pytest.mark.parametrize(("lsn", "kinds"), [(1000, set()), (999, {"header-lsn"})])
def test_a_header_with_the_lsn_of_the_file_before(tmp_path, lsn, kinds):
    """What was logged between the two may be nothing; it is never less than nothing."""
    binlog = write_binlog(tmp_path)
    assert binlog.file(0).read_bytes()[32:40] == (1000).to_bytes(8, "little")
    binlog.header(1, 32, lsn.to_bytes(8, "little"))
    assert {str(finding.kind) for finding in findings(tmp_path)} == kinds


def test_files_before_the_damage_are_read_and_those_behind_it_from_their_states(tmp_path):
    binlog = Binlog(tmp_path).groups(60).write()
    binlog.raw(Position(1, 3 * SIZE + 7), b"\xff")
    history = ReadOnlyHistory(OsDisk(), str(tmp_path))
    reader, seen = GroupReader(history.pages, Position(2, 0)), []
    while (group := reader.next()) is not None:
        seen.append(group.gtid.seq)
    assert seen[-1] == 60
    assert findings(tmp_path)[0].lost == "0-1-19..21"


def test_a_gap_of_many_domains_names_the_first_of_them(tmp_path):
    binlog = Binlog(tmp_path, pages=40, interval=8)
    for domain in range(30):
        binlog.builder.commit(Gtid(domain, 1, 1), event(100))
    binlog.places[1] = None
    while binlog.builder.place < 17 * SIZE:
        binlog.groups(1)
    binlog.write()
    binlog.raw(Position(0, 2 * SIZE + 7), b"\xff")
    (found,) = findings(tmp_path)
    assert found.lost == "3-1-1, 4-1-1, 5-1-1, 6-1-1, 7-1-1"


class VerifiedHistory(RandomHistory):
    """Checks its directory each time before it is opened."""

    def _open_store(self):
        if not self.disk.exists(DIRECTORY):
            return super()._open_store()
        totals = Totals()
        found = list(verify_directory(self.disk, DIRECTORY, totals=totals))
        for finding in found:
            whole_in_redo = finding.text.endswith("has this page whole")
            assert finding.severity is Severity.NOTE or whole_in_redo, finding
            assert finding.lost == "nothing"
        store = super()._open_store()
        if totals.groups:
            assert store.state() == totals.last
        return store


@pytest.mark.parametrize("seed", range(1000, 1030))
def test_nothing_is_found_in_any_life_of_a_store(seed):
    """Large and prepared groups, lists, rollbacks, switches, other settings, power losses."""
    history = VerifiedHistory(seed)
    history.run()
    found, totals = check(history.disk, DIRECTORY)
    assert set(found) <= {(Kind.DOMAIN_DELETED, Severity.NOTE)}
    assert totals.groups == len(history.diary.published)


def test_a_large_file_that_another_program_fills_while_it_is_read(tmp_path):
    """What the first look at it had not, the second has: groups with pieces, too."""
    binlog = Binlog(tmp_path, page_size=16384, pages=200, interval=4).groups(40, 9000).write()
    steps = []

    def go_on(done, total):
        steps.append(done)
        if len(steps) == 1:
            forest = OobForest()
            for _ in range(3):
                binlog.builder.oob(forest, event(5000))
            binlog.builder.commit(Gtid(5, 1, 1), lists=[forest.reference()])
            binlog.groups(150, 9000).write()

    totals = Totals()
    assert list(verify_directory(OsDisk(), str(tmp_path), progress=go_on, totals=totals)) == []
    assert totals.groups == 191
