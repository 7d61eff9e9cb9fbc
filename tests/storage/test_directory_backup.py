"""A backup from outside holds what was durable, whatever the writer does meanwhile."""

import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store
from ibb.storage.backup import UNFINISHED_NAME
from ibb.storage.directory import BinlogDirectory
from ibb.storage.directory_backup import back_up_directory
from ibb.storage.errors import BackupError
from ibb.storage.file_name import binlog_name, parse_binlog_name
from ibb.storage.inspect.group_range import groups_between
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.verify import verify_directory
from ibb.storage.verify.finding import Kind, Severity
from ibb.storage.verify.redo import check_redo

from ..sample_directories import unpack
from ..server.conftest import SMALL, publish
from . import given_up_file, reset_meanwhile
from .test_purge import fill_to
from .test_purge import options as purge_options


class BusyDisk(OsDisk):
    """Has something done before anything is copied."""

    meanwhile = None

    def make_dir(self, path):
        if path.endswith("/copy"):
            self.meanwhile()
        super().make_dir(path)


def groups_of(directory):
    """Return GTID and bytes of every group in a directory at rest."""
    history = ReadOnlyHistory(OsDisk(), str(directory))
    try:
        found = groups_between(history)
        return [(str(group.gtid), b"".join(group.pieces())) for group in found]
    finally:
        history.close()


def damage_of(directory):
    found = verify_directory(OsDisk(), str(directory))
    return [one.text for one in found if one.severity is not Severity.NOTE]


def verify_directory_kinds(directory):
    return [found.kind for found in verify_directory(OsDisk(), str(directory))]


@pytest.mark.parametrize(
    "name", ["plain-16k-1", "oob-16k-1", "small-pages-512-1", "flushed-1", "xa-small-1"]
)
def test_a_copy_of_a_directory_at_rest_is_equal(name, tmp_path):
    unpack(name, tmp_path / "source")
    before = damage_of(tmp_path / "source")
    done = back_up_directory(OsDisk(), str(tmp_path / "source"), str(tmp_path / "copy"))
    assert damage_of(tmp_path / "copy") == before
    assert done.state == ReadOnlyHistory(OsDisk(), str(tmp_path / "source")).state()
    assert groups_of(tmp_path / "copy") == groups_of(tmp_path / "source")


def test_files_that_are_purged_meanwhile_are_in_the_copy(tmp_path):
    disk = BusyDisk()
    with Store.open(tmp_path / "store", SMALL) as store:
        for seq in range(1, 60):
            publish(store, Gtid(0, 1, seq), size=3000, wait=True)
            if seq % 20 == 0:
                store.switch_file()
        wanted = [str(group.gtid) for group in store.reader() if group.gtid]
    with Store.open(tmp_path / "store", SMALL) as store:
        first = store.pages.first_file()
        disk.meanwhile = lambda: store.purge_to(store.files()[-2].name)
        back_up_directory(disk, str(tmp_path / "store"), str(tmp_path / "copy"))
        assert store.pages.first_file() > first
    assert [gtid for gtid, _ in groups_of(tmp_path / "copy")] == wanted
    assert damage_of(tmp_path / "copy") == []


def test_beside_a_store_at_work_all_that_was_acknowledged_is_copied(tmp_path):
    """The other process sees the store as one of somebody else's, by its lock."""
    with Store.open(tmp_path / "store", replace(SMALL, background=False)) as store:
        for seq in range(1, 40):
            publish(store, Gtid(0, 1, seq), size=3000, wait=True)
        store.switch_file()
        with store.begin():
            for seq in range(40, 50):
                publish(store, Gtid(0, 1, seq), size=100, wait=True)
            command = [sys.executable, "-m", "ibb", "backup"]
            done = subprocess.run(
                [*command, tmp_path / "store", tmp_path / "copy"], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            publish(store, Gtid(0, 1, 50), size=100, wait=True)
        assert "'0-1-49'" in done.stdout
    found = groups_of(tmp_path / "copy")
    assert found == groups_of(tmp_path / "store")[:49]
    with Store.open(tmp_path / "copy", SMALL) as store:
        publish(store, Gtid(0, 1, 51), wait=True)
        assert str(store.state()) == "0-1-51"
    assert not (tmp_path / "copy" / UNFINISHED_NAME).exists()
    assert damage_of(tmp_path / "copy") == []


def test_a_damaged_redo_log_is_no_reason_to_leave_the_newest_groups_out(tmp_path):
    source = tmp_path / "source"
    with Store.open(tmp_path / "store", replace(SMALL, background=False)) as store:
        for seq in range(1, 40):
            publish(store, Gtid(0, 1, seq), size=300, wait=True)
        shutil.copytree(tmp_path / "store", source)  # as a crash leaves it
    log = max(source.glob("ibb-redo-*"), key=lambda path: path.read_bytes().rstrip(b"\0"))
    data = bytearray(log.read_bytes())
    data[len(data.rstrip(b"\0")) // 2] ^= 0xFF
    log.write_bytes(data)
    with pytest.raises(BackupError, match=r"the redo log of .* is damaged"):
        back_up_directory(OsDisk(), str(source), str(tmp_path / "copy"))


def test_what_cannot_be_copied_is_said_and_nothing_is_overwritten(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BackupError, match="holds no event groups"):
        back_up_directory(OsDisk(), str(tmp_path / "empty"), str(tmp_path / "copy"))
    unpack("plain-16k-1", tmp_path / "source")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "letter").write_text("dear")
    with pytest.raises(BackupError, match="is not empty"):
        back_up_directory(OsDisk(), str(tmp_path / "source"), str(tmp_path / "taken"))
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["letter"]


def test_the_copy_of_a_file_that_was_given_up_ends_where_the_next_one_begins(tmp_path):
    """The empty file behind the newest, by which the source shows it, is not in the copy."""
    wanted = given_up_file.make(tmp_path / "source")
    assert given_up_file.read_at_rest(tmp_path / "source") == wanted
    done = back_up_directory(OsDisk(), str(tmp_path / "source"), str(tmp_path / "copy"))
    assert str(done.state) == wanted[-1]
    assert verify_directory_kinds(tmp_path / "copy") == []
    assert given_up_file.read_at_rest(tmp_path / "copy") == wanted
    with Store.open(tmp_path / "copy", given_up_file.OPTIONS) as store:
        assert [str(group.gtid) for group in store.reader() if group.gtid] == wanted
        assert store.copies_set_aside == []


@pytest.mark.parametrize(("before", "after"), reset_meanwhile.SIZES)
def test_a_copy_is_of_one_history_when_the_store_is_begun_anew_meanwhile(before, after):
    """Wherever that falls: the redo log must not be applied to files of the other history."""
    refused = []
    for disk in reset_meanwhile.disks(before, after):
        try:
            done = back_up_directory(disk, "/s", "/copy")
        except BackupError as error:
            refused.append(str(error))
            continue
        seen = reset_meanwhile.groups_of(BinlogDirectory(disk, "/copy"))
        assert reset_meanwhile.one_history(seen)
        domain, seq = seen[-1]
        assert seq == (before if domain == reset_meanwhile.OLD else after)
        assert str(done.state) == f"{domain}-1-{seq}"
    assert set(refused) == {"/s is just being begun anew (RESET MASTER): try again"}


def test_a_purge_under_the_look_at_the_redo_log_is_no_damage(tmp_path, monkeypatch):
    class PurgingDisk(OsDisk):
        purge = None

        def open(self, path, *, create=False, read_only=False):
            if self.purge is not None and parse_binlog_name(path.rpartition("/")[2]) is not None:
                purge, self.purge = self.purge, None
                purge()
            return super().open(path, create=create, read_only=read_only)

    disk, looks = PurgingDisk(), []
    with Store.open(tmp_path / "store", purge_options()) as store:

        def purge():
            fill_to(store, 9)
            assert store.purge_to(binlog_name(8)).kept is None

        def look(*arguments):
            disk.purge = None if looks else purge
            looks.append(check_redo(*arguments))
            return looks[-1]

        monkeypatch.setattr("ibb.storage.directory_backup.check_redo", look)
        fill_to(store, 3)
        back_up_directory(disk, str(tmp_path / "store"), str(tmp_path / "copy"))
    assert looks[0].findings[0].kind is Kind.UNREADABLE
    assert damage_of(tmp_path / "copy") == []
