"""Entries of a directory that are no files: nobody waits for them, and all say what they are."""

import os

import pytest

from ibb.protocol.errors import FormatError
from ibb.storage import Store
from ibb.storage.directory_backup import back_up_directory
from ibb.storage.errors import BackupError, DiskError
from ibb.storage.inspect.group_range import groups_between
from ibb.storage.inspect.recovered_view import recovered_view
from ibb.storage.os_disk import OsDisk
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.redo_segment import SEGMENT_NAMES
from ibb.storage.synced_note import LOCK_NAME
from ibb.storage.verify import Kind, verify_directory

from .test_purge import fill_to, options

STRANGE = "binlog-000900.ibb"
MADE = {
    "pipe": os.mkfifo,
    "loop": lambda path: path.symlink_to(path.name),
    "dangling": lambda path: path.symlink_to("nowhere"),
    "folder": os.mkdir,
}
SAID = {
    "pipe": "not a regular file",
    "loop": "Too many levels of symbolic links",
    "dangling": "No such file or directory",
    "folder": "Is a directory",
}


@pytest.fixture
def directory(tmp_path):
    with Store.open(tmp_path / "store", options()) as store:
        fill_to(store, 3)
    return tmp_path / "store"


@pytest.mark.parametrize("what", MADE)
def test_what_lies_behind_the_newest_file_is_told_by_its_name(what, directory, tmp_path):
    MADE[what](directory / STRANGE)
    found = [one for one in verify_directory(OsDisk(), str(directory)) if one.file == STRANGE]
    assert {one.kind for one in found} == {Kind.UNREADABLE}
    assert SAID[what] in found[0].text
    with pytest.raises(BackupError, match=rf"{STRANGE}.*{SAID[what]}.*`ibb verify`"):
        back_up_directory(OsDisk(), str(directory), str(tmp_path / "copy"))
    with pytest.raises(DiskError, match=rf"{STRANGE}.*{SAID[what]}"):
        Store.open(directory, options())


@pytest.mark.parametrize("what", ["pipe", "loop"])
def test_groups_before_it_are_listed(what, directory):
    history = ReadOnlyHistory(OsDisk(), str(directory), follow_unsynced=True)
    wanted = [group.gtid for group in groups_between(history)]
    history.close()
    MADE[what](directory / STRANGE)
    disk = recovered_view(OsDisk(), str(directory))
    history = ReadOnlyHistory(disk, str(directory), follow_unsynced=True)
    found = []
    try:
        with pytest.raises(FormatError, match="missing, or empty, although data follows"):
            found.extend(group.gtid for group in groups_between(history))
    finally:
        history.close()
    assert found == wanted


@pytest.mark.parametrize("name", [SEGMENT_NAMES[0], LOCK_NAME])
def test_nobody_waits_for_a_pipe_in_place_of_other_files(name, directory, tmp_path):
    (directory / name).unlink(missing_ok=True)
    os.mkfifo(directory / name)
    for opens in (
        lambda: list(verify_directory(OsDisk(), str(directory))),
        lambda: back_up_directory(OsDisk(), str(directory), str(tmp_path / "copy")),
    ):
        with pytest.raises(DiskError, match=rf"{name}.*not a regular file"):
            opens()
