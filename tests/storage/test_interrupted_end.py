"""A commit or prepare that is interrupted anywhere publishes the whole group, or none of it."""

import sys

import pytest

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.errors import GroupError, StoreFailed
from ibb.storage.record import Xid

from ..faults.sim_disk import SimDisk
from .events import query, rows_event, xid

MODULES = (
    "group_committer.py",
    "event_list.py",
    "group_writer.py",
    "oob_run.py",
    "oob.py",
    "engine.py",
    "writer.py",
)
EVENTS = query("insert") + rows_event(2500) + rows_event(100) + xid(7)
OPTIONS = StoreOptions(
    page_size=4096,
    max_binlog_size=64 << 10,
    state_interval=64 << 10,
    oob_piece_size=1000,
    redo_segment_size=256 << 10,
    format_description="upstream",
    background=False,
)
NAME = Xid(1, b"transaction", b"")


class Interrupt:
    """Interrupts at the *nth* line of the storage layer."""

    def __init__(self, nth):
        self.left = nth

    def __call__(self, frame, event, _):
        if not frame.f_code.co_filename.endswith(MODULES):
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


def interrupted(action, nth):
    """Carry an action out up to its *nth* line; tell whether it has so many."""
    interrupt, before = Interrupt(nth), sys.gettrace()
    sys.settrace(interrupt)
    try:
        action()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return interrupt.left <= 0


def groups_of(store):
    """Return the events of all groups, prepared ones too."""
    for found in store.prepared():
        store.commit_prepared(found.xid, Gtid(0, 1, 1))
    store.sync()
    return [b"".join(group.pieces())[len(group.head) :] for group in store.reader()]


@pytest.mark.parametrize("prepares", [False, True])
def test_no_line_is_a_place_where_a_second_try_makes_a_broken_group(prepares):
    nth, again = 0, 0
    while True:
        nth += 1
        disk = SimDisk()
        store = Store.open("/s", OPTIONS, disk=disk)
        group = store.begin()
        group.write(EVENTS)

        def end(group=group):
            return group.prepare(NAME) if prepares else group.commit(Gtid(0, 1, 1))

        if not interrupted(end, nth):
            break
        try:
            end()
            again += 1
        except (GroupError, StoreFailed):
            pass  # given up, ended before, or the store has stopped
        try:
            groups = groups_of(store)
        except StoreFailed:
            disk.end_process()
            with Store.open("/s", OPTIONS, disk=disk) as opened:
                groups = groups_of(opened)
        assert groups in ([], [EVENTS]), nth
    assert nth > 100
    assert 0 < again < nth / 4  # before anything was done
