"""A backup holds what was there when it began, whatever is committed meanwhile."""

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.disk import OsDisk
from ibb.storage.verify import verify_directory

from .events import transaction


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
