"""What may wait in memory is bounded, also while no commit waits for the disk."""

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import StoreFailed
from ibb.storage.redo import _BUFFER_BYTES_MAX

from ..faults.sim_disk import Fault, SimDisk, SimFile
from .events import transaction

RECORD_BYTES_MAX = 40_000


class AskedDisk(SimDisk):
    """Keeps what its directories and names were asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> SimFile:
        self.asked.append(f"open {path}")
        return super().open(path, create=create, read_only=read_only)

    def exists(self, path: str) -> bool:
        self.asked.append(f"exists {path}")
        return super().exists(path)

    def size(self, path: str) -> int:
        self.asked.append(f"size {path}")
        return super().size(path)


def published(options: StoreOptions, bytes_wanted: int, disk: SimDisk | None = None) -> Store:
    store = Store.open("/s", options, disk=disk or SimDisk())
    for number in range(1, bytes_wanted // 30_000 + 1):
        with store.begin() as group:
            group.write(transaction("x", 30_000))
            group.commit(Gtid(0, 1, number))
        assert store._engine._redo._buffered <= _BUFFER_BYTES_MAX + RECORD_BYTES_MAX
        pages = options.fifo_pages_max + RECORD_BYTES_MAX // options.page_size
        assert len(store._engine._fifo) <= pages
    return store


def options(**more) -> StoreOptions:
    return StoreOptions(
        flush_log_at_commit=0, flush_log_interval=1e9, background=False,
        format_description="upstream", **({"max_binlog_size": 64 << 20} | more),
    )  # fmt: skip


def test_the_log_waits_in_memory_up_to_a_limit() -> None:
    store = published(options(fifo_pages_max=4096), 5 << 20)
    assert store.end().offset < 1 << 16  # nothing was synced for that
    store.close()


def test_a_commit_asks_the_disk_nothing() -> None:
    """Each question would hand the interpreter to another thread while everybody waits for it."""
    disk = AskedDisk()
    asked = disk.asked
    with published(options(fifo_pages_max=4096), 30_000, disk) as store:
        before = len(asked)
        assert before > 0
        for number in range(2, 100):
            with store.begin() as group:
                group.write(transaction("x", 30_000))
                group.commit(Gtid(0, 1, number))
        assert asked[before:] == []


def test_full_pages_wait_in_memory_up_to_a_limit() -> None:
    store = published(options(fifo_pages_max=16), 2 << 20)
    assert store.end().offset > 1 << 20  # what left them was synced before
    store.close()


def test_a_disk_that_fails_while_room_is_made_fails_the_store(monkeypatch) -> None:
    """Not only this commit: whether the file before the last is whole is not known any more."""
    disk = SimDisk()
    small = options(page_size=512, max_binlog_size=512 * 8)
    with pytest.raises(StoreFailed), Store.open("/s", small, disk=disk) as store:
        monkeypatch.setattr(store._engine, "_work", lambda: None)  # it would make the file before

        def publish_up_to(last: int) -> None:
            for number in range(len(store.state()) + 1, last + 1):
                with store.begin() as group:
                    group.write(transaction("x", 400))
                    group.commit(Gtid(number, 1, 1))

        publish_up_to(2)
        disk.faults.append(Fault(lambda op: op.kind == "allocate" and op.path.endswith(".ibb")))
        with pytest.raises(StoreFailed, match="cannot allocate"):
            publish_up_to(100)
        publish_up_to(100)
