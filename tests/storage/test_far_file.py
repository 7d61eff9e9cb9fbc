"""A file whose number is far behind the others costs no look at every number between them."""

from dataclasses import replace

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import GtidPosition
from ibb.storage import Store
from ibb.storage.chunk import FILLER
from ibb.storage.file_header import FileHeader
from ibb.storage.file_name import binlog_name
from ibb.storage.gtid_search import find_start
from ibb.storage.inspect.group_range import groups_between
from ibb.storage.os_disk import OsDisk
from ibb.storage.page_seal import seal_page
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.verify import Kind, verify_directory
from ibb.storage.xa import find_prepared

from .test_purge import fill_to, options

FAR = 100_000_000
OPENED_MAX = 200  # files, by everything that is asked for below


class CountingDisk(OsDisk):
    """Counts how often a file is opened, and stops what goes on too long."""

    opened = 0

    def open(self, path, *, create=False, read_only=False):
        self.opened += 1
        assert self.opened < OPENED_MAX
        return super().open(path, create=create, read_only=read_only)


def test_missing_numbers_are_not_looked_for_one_by_one(tmp_path):
    with Store.open(tmp_path, options()) as store:
        fill_to(store, 4)
        wanted = [str(group.gtid) for group in store.reader() if group.gtid]
    header = FileHeader.parse((tmp_path / binlog_name(1)).read_bytes(), 1)
    page = bytearray([FILLER]) + bytes(511)
    seal_page(page)
    (tmp_path / binlog_name(FAR)).write_bytes(replace(header, file_no=FAR).encode() + page)
    disk = CountingDisk()
    history = ReadOnlyHistory(disk, str(tmp_path), follow_unsynced=True)
    try:
        listed = []
        with pytest.raises(FormatError, match="missing, or empty") as caught:
            listed.extend(str(group.gtid) for group in groups_between(history))
        assert listed == wanted
        found = find_start(history.pages, GtidPosition.parse(wanted[-1]))
        assert found.position.file_no == 4
        with pytest.raises(FormatError, match="missing, or empty"):
            find_prepared(history.pages)
    finally:
        history.close()
    found = {one.kind: one.file for one in verify_directory(OsDisk(), str(tmp_path))}
    assert found[Kind.MISSING_FILE] == caught.value.file == binlog_name(5)
