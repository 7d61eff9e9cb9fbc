"""The check of a sound store while its writer does what writers do: nothing is found."""

from dataclasses import replace
from itertools import count

import pytest

from ibb.storage import Store
from ibb.storage.backup import UNFINISHED_NAME
from ibb.storage.directory import BinlogDirectory
from ibb.storage.file_name import binlog_name
from ibb.storage.format_catalogue import SIDECAR_NAME
from ibb.storage.group_reader import GroupReader
from ibb.storage.gtid_search import find_oldest
from ibb.storage.inspect.recovered_view import recovered_view
from ibb.storage.verify import pages, verify_directory
from ibb.storage.verify.files_now import FilesNow
from ibb.storage.verify.finding import Severity

from ...faults.sim_disk import SimDisk
from .verify_rig import SMALL, publish

PLAIN = replace(SMALL, page_size=4096, max_binlog_size=8 * 4096, state_interval=4 * 4096)


class InterruptedDisk(SimDisk):
    """Lets something happen at one of the calls by which the check looks at its disk."""

    def __init__(self):
        super().__init__()
        self.when = None  # tells by a path whether it is time, once
        self.act = None

    def _called(self, path):
        if self.when is not None and self.when(path):
            self.when = None
            self.act()

    def open(self, path, *, create=False, read_only=False):
        if read_only:
            self._called(path)
        return super().open(path, create=create, read_only=read_only)

    def size(self, path):
        self._called(path)
        return super().size(path)

    def exists(self, path):
        self._called(path)
        return super().exists(path)


class Writer:
    """A store that goes on from where it was."""

    def __init__(self, disk, options=PLAIN):
        self.disk = disk
        self.options = options
        self.store = Store.open("/s", options, disk=disk)
        self.number = 0

    def publish(self, many, size=300):
        for _ in range(many):
            self.number += 1
            publish(self.store, self.number, size)

    def restart(self):
        self.store.close()
        self.store = Store.open("/s", self.options, disk=self.disk)


def wrong(found):
    return [finding for finding in found if finding.severity is not Severity.NOTE]


def groups(disk):
    """Return the sequence numbers of all groups."""
    directory = BinlogDirectory(disk, "/s")
    reader, seen = GroupReader(directory, find_oldest(directory)), []
    while (group := reader.next()) is not None:
        if group.gtid is not None:
            seen.append(group.gtid.seq)
    return seen


@pytest.fixture
def restarted():
    """Return the writer of a store that was opened anew in the middle of a page."""
    writer = Writer(InterruptedDisk())
    writer.publish(3)
    writer.restart()
    writer.publish(2)
    return writer


def test_a_page_that_a_checkpoint_wrote_in_part_and_that_is_full_by_now(restarted):
    """The page in the redo log and the one beneath it in its file are both sealed, both old."""

    def go_on():
        restarted.publish(60)
        restarted.store._engine.settle()

    restarted.disk.act = go_on
    restarted.disk.when = lambda path: path.endswith(UNFINISHED_NAME)  # the log has been read
    assert wrong(verify_directory(restarted.disk, "/s")) == []
    assert restarted.disk.when is None


def test_a_view_follows_a_page_that_a_checkpoint_wrote_in_part(restarted):
    view = recovered_view(restarted.disk, "/s")
    restarted.publish(60)
    restarted.store._engine.settle()
    seen = groups(view)
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) > 50


def full(writer):
    """Let several files be full."""
    writer.publish(60, 1500)
    assert writer.store.files()[-1].file_no > 2


def flush(writer):
    writer.store.switch_file()
    writer.publish(3)


def purge(writer):
    writer.store.purge_to(binlog_name(writer.store.end().file_no))
    writer.publish(3)


def purge_a_domain(writer):
    """What has the domain's only group goes, and so may the domain."""
    writer.store.switch_file()
    writer.publish(3)
    writer.store.switch_file()
    purge(writer)
    writer.store.switch_file([7])
    writer.publish(3)


def reset(writer):
    writer.store.reset()
    writer.number = 0
    writer.publish(5)


def reset_and_fill(writer):
    reset(writer)
    full(writer)


def restart(writer):
    writer.restart()
    writer.publish(3)
    writer.restart()


@pytest.mark.parametrize("act", [flush, purge, purge_a_domain, reset, reset_and_fill, restart])
@pytest.mark.parametrize("upstream", [False, True])
def test_whatever_the_writer_does_while_the_check_runs_is_no_finding(act, upstream):
    """At any third call, one check each."""
    shape = {"format_description": "upstream"} if upstream else {}
    for at in range(0, 1000, 3):
        disk = InterruptedDisk()
        writer = Writer(disk, replace(PLAIN, **shape))
        publish(writer.store, 1, domain=7)
        full(writer)
        calls = count(1)
        disk.when = lambda _path, calls=calls, at=at: next(calls) > at
        disk.act = lambda writer=writer: act(writer)
        found = wrong(verify_directory(disk, "/s"))
        assert found == [], at
        if disk.when is not None:
            break
        writer.store.close()
        assert wrong(verify_directory(disk, "/s")) == []
    assert 20 < at < 200


def test_format_descriptions_that_are_written_while_the_check_runs():
    """The list of them is read again when it does not tell of one."""
    writer = Writer(InterruptedDisk())
    writer.publish(3)

    def go_on():
        for _ in range(3):
            restart(writer)
        writer.store._engine.settle()

    writer.disk.act = go_on
    writer.disk.when = lambda path: path.endswith(UNFINISHED_NAME)  # the list has been read
    assert wrong(verify_directory(writer.disk, "/s")) == []
    assert writer.disk.when is None


def test_files_that_are_flushed_behind_the_log_was_read():
    """In the log the first of them is as long as it was made; by now two later ones are used."""
    writer = Writer(InterruptedDisk())
    writer.publish(3)

    def go_on():
        for _ in range(3):
            flush(writer)
        writer.store._engine.settle()

    writer.disk.act = go_on
    writer.disk.when = lambda path: path.endswith(SIDECAR_NAME)  # files have not been listed
    assert wrong(verify_directory(writer.disk, "/s")) == []
    assert writer.disk.when is None


def test_an_older_file_that_ends_early_is_told_of_a_store_in_use():
    writer = Writer(InterruptedDisk())
    for _ in range(6):
        flush(writer)
    writer.disk.damage("/s/binlog-000001.ibb", 4096, bytes(4096))
    writer.disk.act = lambda: writer.publish(3)
    writer.disk.when = lambda path: path.endswith(UNFINISHED_NAME)
    (found,) = wrong(verify_directory(writer.disk, "/s"))
    assert (found.file, found.severity) == ("binlog-000001.ibb", Severity.DAMAGE)
    assert writer.disk.when is None


@pytest.mark.parametrize("at", range(0, 24, 3))
def test_a_file_that_is_flushed_while_it_is_read(at, monkeypatch):
    """It ends before the place that the check has come to, or that it is going to."""
    monkeypatch.setattr(pages, "WINDOW_BYTES", PLAIN.page_size)
    writer = Writer(InterruptedDisk(), replace(PLAIN, format_description="upstream"))
    full(writer)
    writer.store.switch_file()
    writer.publish(3)
    writer.restart()  # nothing is in the redo log alone
    newest = writer.store.end().file_no
    steps = count()

    def go_on(_done, _total):
        if next(steps) == at:
            flush(writer)

    assert wrong(verify_directory(writer.disk, "/s", progress=go_on)) == []
    assert writer.store.end().file_no > newest


def test_files_without_a_header_are_seen_to_be_begun_anew():
    """All others were purged, and that of the newest is not written yet."""
    disk = SimDisk()
    for file_no in (3, 4):
        disk.open(f"/s/{binlog_name(file_no)}", create=True).allocate(4096)
    files_now = FilesNow(disk, "/s")
    assert not files_now.are_begun_anew()
    disk.open("/s/binlog-000000.ibb", create=True).allocate(4096)
    assert files_now.are_begun_anew()
