"""A backup holds what was there when it began, whatever is committed meanwhile."""

import errno
import threading
from pathlib import Path

import pytest

from ibb.protocol.errors import FormatError
from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.backup import UNFINISHED_NAME
from ibb.storage.directory_backup import back_up_directory
from ibb.storage.errors import BackupError, DiskError
from ibb.storage.os_disk import OsDisk
from ibb.storage.page_seal import seal_page
from ibb.storage.read_only import ReadOnlyHistory
from ibb.storage.verify import Kind, verify_directory

from ..faults.sim_disk import Fault, SimDisk
from .events import transaction
from .test_purge import fill_to, options
from .test_purge import publish as publish_next


class BusyDisk(OsDisk):
    """Has something done before the first file of a copy is made."""

    def __init__(self):
        self.meanwhile = None

    def open(self, path, *, create=False, read_only=False):
        if "/copy/binlog-" in path and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return super().open(path, create=create, read_only=read_only)


def publish(store, seq):
    with store.begin() as group:
        group.write(transaction(f"number {seq}"))
        return group.commit(Gtid(0, 1, seq))


def test_a_group_that_comes_meanwhile_is_not_in_the_copy(tmp_path):
    disk = BusyDisk()
    options = StoreOptions(page_size=4096, max_binlog_size=1 << 16, background=False)
    with Store.open(tmp_path / "store", options, disk=disk) as store:
        publish(store, 1)
        disk.meanwhile = lambda: publish(store, 2)
        backup = store.backup(tmp_path / "copy")
        assert disk.meanwhile is None
        assert store.end().offset // 4096 == backup.end.offset // 4096, "they share a page"
    assert str(backup.state) == "0-1-1"
    assert not list(verify_directory(disk, str(tmp_path / "copy")))
    with Store.open(tmp_path / "copy", options) as copy:
        assert str(copy.state()) == "0-1-1"
        assert [str(group.gtid) for group in copy.reader() if group.gtid] == ["0-1-1"]


def test_names_are_certain_before_a_backup_counts_as_whole() -> None:
    """Without a format description no sidecar is written whose replacement would see to it."""
    disk = SimDisk()
    with Store.open("/s", options(), disk=disk) as store:
        store.backup("/copy")
    done = [(op.kind, op.path) for op in disk.log]
    finished = done.index(("unlink", f"/copy/{UNFINISHED_NAME}"))
    assert done[finished - 1 : finished + 2 : 2] == [("sync_dir", "/copy")] * 2


def test_a_backup_is_exactly_the_store_at_its_position(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store", options()) as store:
        fill_to(store, 3)
        with store.begin() as pending:
            pending.write(transaction("pending", 5000)[:-50])
            before = [(str(group.gtid), b"".join(group.pieces())) for group in store.reader()]
            backup = store.backup(tmp_path / "copy")
            pending.write(transaction("pending", 5000)[-50:])
            pending.commit(Gtid(3, 1, 1))
        publish_next(store)
        assert str(backup.state) == before[-1][0]
    with Store.open(tmp_path / "copy", options()) as copy:
        assert str(copy.state()) == str(backup.state)
        assert [(str(g.gtid), b"".join(g.pieces())) for g in copy.reader()] == before
        publish_next(copy)
        assert len(list(copy.reader())) == len(before) + 1
    with (
        pytest.raises(Exception, match="not empty"),
        Store.open(tmp_path / "store", options()) as s,
    ):
        s.backup(tmp_path / "copy")


def test_a_backup_while_others_commit_is_a_prefix(tmp_path: Path) -> None:
    settings = StoreOptions(
        page_size=512, max_binlog_size=64 * 512, state_interval=1024, oob_piece_size=1000,
        redo_segment_size=256 << 10, format_description="upstream",
    )  # fmt: skip
    with Store.open(tmp_path / "store", settings) as store:
        fill_to(store, 2)
        done = threading.Event()

        def commit() -> None:
            while not done.is_set():
                publish_next(store)

        thread = threading.Thread(target=commit)
        thread.start()
        copies = []
        for number in range(5):
            backup = store.backup(tmp_path / f"copy{number}")
            copies.append(backup)
        done.set()
        thread.join(30)
        everything = [(str(g.gtid), b"".join(g.pieces())) for g in store.reader()]
    for number, backup in enumerate(copies):
        with Store.open(tmp_path / f"copy{number}", settings) as copy:
            found = [(str(g.gtid), b"".join(g.pieces())) for g in copy.reader()]
            assert found == everything[: len(found)]
            assert found[-1][0] == str(backup.state)


def test_half_a_backup_is_not_taken_for_a_whole_one() -> None:
    """Wherever it breaks off, at the border of two files too."""
    disk = SimDisk()
    with Store.open("/s", options(), disk=disk) as store:
        fill_to(store, 3)
        before = disk.operations
        store.backup("/whole")
        for nth in range(1, disk.operations - before + 1):
            fault = Fault(lambda op: op.path.startswith("/copy"), code=errno.ENOSPC, nth=nth)
            disk.faults.append(fault)
            try:
                store.backup("/copy")
            except DiskError:
                names = disk.list("/copy")
                if UNFINISHED_NAME not in names:  # nothing yet, or all of it
                    begun = [name for name in names if name.endswith(".ibb")]
                    assert not begun or names == disk.list("/whole")
                    continue
                with pytest.raises(FormatError, match="not finished"):
                    Store.open("/copy", options(), disk=disk)
                with pytest.raises(FormatError, match="not finished"):
                    ReadOnlyHistory(disk, "/copy")
                kinds = {finding.kind for finding in verify_directory(disk, "/copy")}
                assert Kind.BACKUP_UNFINISHED in kinds
            else:
                break
            finally:
                disk.faults.clear()
                disk.remove_tree("/copy")
        else:
            raise AssertionError("no backup was made in spite of a fault")
        assert nth > 10
    with Store.open("/whole", options(), disk=disk) as copy:
        assert copy.end().file_no >= 3


@pytest.mark.parametrize("lost", [1, 3])
def test_with_a_file_missing_there_is_no_backup(tmp_path: Path, lost: int) -> None:
    """Its groups would be in the state of the copy, and not in the copy."""
    with Store.open(tmp_path / "store", options()) as store:
        fill_to(store, 4)
    name = f"binlog-{lost:06d}.ibb"
    (tmp_path / "store" / name).unlink()
    with (
        Store.open(tmp_path / "store", options()) as store,
        pytest.raises(BackupError, match=f"{name} is missing"),
    ):
        store.backup(tmp_path / "copy")
    with pytest.raises(BackupError, match=f"{name} is missing"):
        back_up_directory(OsDisk(), str(tmp_path / "store"), str(tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()
    with Store.open(tmp_path / "store", options()) as store:
        assert store.purge_to(f"binlog-{lost + 1:06d}.ibb").kept is None, "as the error advises"
        store.backup(tmp_path / "copy")
    assert not list(verify_directory(OsDisk(), str(tmp_path / "copy")))


def test_a_file_that_lost_its_end_is_in_no_backup(tmp_path: Path) -> None:
    """However many files behind it are whole; its pages are, too."""
    with Store.open(tmp_path / "store", options()) as store:
        fill_to(store, 6)
    file = tmp_path / "store" / "binlog-000001.ibb"
    image = bytearray(file.read_bytes())
    page = image[-512:]
    first = 3 + int.from_bytes(page[1:3], "little")  # bytes of the first chunk
    page[first:] = bytes(512 - first)
    seal_page(page)
    file.write_bytes(image[:-512] + page)
    with Store.open(tmp_path / "store", options()) as store, pytest.raises(FormatError) as caught:
        store.backup(tmp_path / "copy")
    assert (caught.value.file, caught.value.page) == (file.name, 15)
    with pytest.raises(FormatError, match=r"groups up to .* are missing") as caught:
        back_up_directory(OsDisk(), str(tmp_path / "store"), str(tmp_path / "second"))
    assert caught.value.file == file.name
