"""What an older file that ends early has lost is in no backup; one that FLUSH cut is copied."""

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid
from ibb.storage import Store
from ibb.storage.directory import BinlogDirectory
from ibb.storage.directory_backup import back_up_directory
from ibb.storage.errors import BackupError
from ibb.storage.os_disk import OsDisk
from ibb.storage.page_seal import seal_page
from ibb.storage.position import Position
from ibb.storage.record import RecordType, Xid
from ibb.storage.record_reader import NESTED_TYPES, RecordReader
from ibb.storage.short_files import check_ends
from ibb.storage.verify import verify_directory

from .events import query, xid
from .test_purge import fill_to, options, publish

OLDER = "binlog-000001.ibb"
XID = Xid(1, b"name", b"")


def refusals(source, target):
    """Return what `ibb backup` and `Store.backup` say of a directory that they do not copy."""
    said = []
    with pytest.raises((FormatError, BackupError)) as caught:
        back_up_directory(OsDisk(), str(source), str(target))
    said.append(str(caught.value))
    with (
        Store.open(source, options()) as store,
        pytest.raises((FormatError, BackupError)) as caught,
    ):
        store.backup(target)
    said.append(str(caught.value))
    assert not target.exists()
    return said


@pytest.mark.parametrize("pages", [1, 2, 3, 9, 15])
def test_a_file_that_was_cut_is_in_no_backup(pages, tmp_path):
    with Store.open(tmp_path / "store", options()) as store:
        fill_to(store, 5)
    path = tmp_path / "store" / OLDER
    assert path.stat().st_size == 16 * 512
    with path.open("r+b") as file:
        file.truncate(pages * 512)
    for said in refusals(tmp_path / "store", tmp_path / "copy"):
        assert OLDER in said
        assert "nothing was copied; `ibb verify` says what is lost" in said


def test_a_file_that_is_cut_while_the_store_is_open_is_in_no_backup(tmp_path):
    with Store.open(tmp_path / "store", options()) as store:
        fill_to(store, 5)
        with (tmp_path / "store" / OLDER).open("r+b") as file:
            file.truncate(9 * 512)
        with pytest.raises(FormatError, match="nothing was copied"):
            store.backup(tmp_path / "copy")
        assert not (tmp_path / "copy").exists()


def test_an_older_file_that_is_empty_is_in_no_backup(tmp_path):
    with Store.open(tmp_path / "store", options()) as store:
        fill_to(store, 5)
    (tmp_path / "store" / OLDER).write_bytes(b"")
    for said in refusals(tmp_path / "store", tmp_path / "copy"):
        assert OLDER in said
        assert "`ibb verify` says" in said


def flushed(directory, *, prepared):
    """Make a store of which file 0 was flushed in the middle of a large group or transaction."""
    with Store.open(directory, options()) as store:
        publish(store)
        large = store.begin()
        for _ in range(12):
            large.write(query("x" * 200))
        store.switch_file()
        large.write(query("x" * 900) + xid(1))
        if prepared:
            large.prepare(XID)
        else:
            large.commit(Gtid(1, 1, 1))
        fill_to(store, 4)


@pytest.mark.parametrize("prepared", [False, True])
def test_a_file_that_was_flushed_in_a_group_is_copied(prepared, tmp_path):
    store = tmp_path / "store"
    flushed(store, prepared=prepared)
    back_up_directory(OsDisk(), str(store), str(tmp_path / "copy"))
    with Store.open(store, options()) as opened:
        opened.backup(tmp_path / "second")
        assert [xa.xid for xa in opened.prepared()] == [XID] * prepared
    for copy in (tmp_path / "copy", tmp_path / "second"):
        assert not list(verify_directory(OsDisk(), str(copy)))
        with Store.open(copy, options()) as opened:
            assert [xa.xid for xa in opened.prepared()] == [XID] * prepared


def test_what_is_logged_behind_the_end_of_a_backup_is_not_looked_at(tmp_path):
    with Store.open(tmp_path / "store", options()) as store:
        publish(store)
        large = store.begin()
        for _ in range(12):
            large.write(query("x" * 200))
        store.switch_file()
        publish(store)
        end = store.end()
        large.write(query("x" * 900) + xid(1))
        large.prepare(XID)
        store.refresh()
        assert store.end().file_no == end.file_no
        check_ends(store.pages, list(range(end.file_no + 1)), end)


@pytest.mark.parametrize("prepared", [False, True])
def test_a_file_that_lost_only_pieces_of_a_later_group_is_in_no_backup(prepared, tmp_path):
    """All GTIDs of the file, and all its records that have begun, are there."""
    store = tmp_path / "store"
    flushed(store, prepared=prepared)
    with Store.open(store, options()) as opened:
        lose_last_piece(store)
        with pytest.raises(FormatError, match="nothing was copied"):
            opened.backup(tmp_path / "copy")
    with pytest.raises(FormatError, match="nothing was copied; `ibb verify` says what is lost"):
        back_up_directory(OsDisk(), str(store), str(tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()


def lose_last_piece(store):
    """Cut the first file before its last record, which is a piece, as if it ended there."""
    pages = BinlogDirectory(OsDisk(), str(store))
    records = RecordReader(pages, Position(0, 512))
    while (record := records.next()) is not None and record.position.file_no == 0:
        if record.type not in NESTED_TYPES:
            last = record
    pages.close()
    assert last.type == RecordType.OOB
    path = store / "binlog-000000.ibb"
    page_no, place = divmod(last.position.offset, 512)
    page = bytearray(512)
    page[:place] = path.read_bytes()[page_no * 512 :][:place]
    seal_page(page)
    with path.open("r+b") as file:
        file.truncate(page_no * 512)
        file.seek(page_no * 512)
        file.write(page if place else b"")
