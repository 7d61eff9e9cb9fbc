"""A format description is noted before it is written; what hinders that hinders nothing else."""

import errno

import pytest

from ibb.protocol.event import HEAD_BYTES_MAX
from ibb.protocol.format_description import FormatDescription
from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import DiskError, GroupError, StoreFull

from ..faults.sim_disk import Fault, SimDisk
from .events import transaction

OPTIONS = StoreOptions(
    page_size=512, max_binlog_size=512 * 16, state_interval=1024, redo_segment_size=256 << 10,
    format_description="upstream", background=False,
)  # fmt: skip
DESCRIPTION = FormatDescription.default("11.8.2-MariaDB", 3, 77).to_store()


def publish(store, seq, size=0):
    with store.begin() as group:
        group.write(transaction(f"group {seq}", size))
        group.commit(Gtid(0, 1, seq))


def too_long():
    event = bytearray(DESCRIPTION + bytes(HEAD_BYTES_MAX))
    event[9:13] = len(event).to_bytes(4, "little")
    return bytes(event)


@pytest.mark.parametrize("size", range(0, 1100, 37))
def test_the_note_is_of_the_place_where_it_begins(size):
    """Behind the group before it there may be a state, a filled page or a new file first."""
    disk = SimDisk()
    with Store.open("/s", OPTIONS, disk=disk) as store:
        for seq in range(1, 14):
            publish(store, seq, size if seq % 3 == 0 else 40)
            store.write_format_description(DESCRIPTION)
            store.sync()
            (newest,) = [entry.position for entry in store.formats._entries[-1:]]
            assert store.formats._is_true(store.formats._entries[-1])
            assert newest < store.end()
        assert len(store.formats._entries) == 13


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE])
@pytest.mark.parametrize("kind", ["open", "write", "sync"])
def test_without_room_for_the_note_the_store_goes_on_without_the_description(code, kind):
    disk = SimDisk()
    with Store.open("/s", OPTIONS, disk=disk) as store:
        publish(store, 1)
        before = store.end()
        disk.faults = [Fault(lambda op: op.kind == kind and "formats.json" in op.path, code)]
        with pytest.raises(StoreFull, match=r"no room for a note of the format: .*formats\.json"):
            store.write_format_description(DESCRIPTION)
        assert store.end() == before
        publish(store, 2)
        assert store.formats.in_force(store.end()) is None
        store.write_format_description(DESCRIPTION)
        publish(store, 3)
        assert store.formats.in_force(store.end()) == DESCRIPTION
    with Store.open("/s", OPTIONS, disk=disk) as store:
        found = [str(group.gtid) for group in store.reader() if group.gtid is not None]
        assert found == ["0-1-1", "0-1-2", "0-1-3"]


def test_a_note_that_the_disk_refuses_is_told():
    disk = SimDisk()
    with Store.open("/s", OPTIONS, disk=disk) as store:
        disk.faults = [Fault(lambda op: op.kind == "write" and "formats.json" in op.path)]
        with pytest.raises(DiskError, match=r"formats\.json"):
            store.write_format_description(DESCRIPTION)
        publish(store, 1)
        assert store.formats.in_force(store.end()) is None


def test_a_description_that_no_reader_would_take_is_refused():
    disk = SimDisk()
    with Store.open("/s", OPTIONS, disk=disk) as store:
        with pytest.raises(GroupError, match=r"Format_desc event of \d+ bytes cannot be stored"):
            store.write_format_description(too_long())
        publish(store, 1)
    with Store.open("/s", OPTIONS, disk=disk) as store:
        assert [str(group.gtid) for group in store.reader()] == ["0-1-1"]
