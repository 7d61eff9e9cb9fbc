"""
Damage to a store's own files and redo log, closed, or killed with its newest groups in the log.

Whatever is damaged: the store opens with every group that it acknowledged, or with a copy of what
it had to clear, or it says which file is wrong and changes nothing; readers of a damaged file get
an error and readers of the others do not.
"""

import random
from functools import cache

import pytest

from ibb.protocol.errors import FormatError, IbbError
from ibb.storage import Store
from ibb.storage.file_name import binlog_name
from ibb.storage.group_reader import GroupReader
from ibb.storage.page import page_is_zero
from ibb.storage.page_seal import sealed_page
from ibb.storage.position import Position
from ibb.storage.record import Xid
from ibb.storage.synced_note import LOCK_NAME

from ..faults.sim_disk import SimDisk
from .events import transaction
from .test_damage_at_opening import check_place, look_at_everything
from .verify.verify_rig import SIZE, SMALL, publish

DIRECTORY = "/s"
GROUPS = 63
KEPT = Xid(1, b"kept", b"")


@cache
def used_disk(killed):
    """Return a disk with a store of several files and a prepared transaction."""
    disk = SimDisk()
    store = Store.open(DIRECTORY, SMALL, disk=disk)
    for number in range(1, GROUPS + 1):
        publish(store, number, (number % 7) * 150)
        if number == GROUPS // 2:
            with store.begin() as group:
                group.write(transaction("prepared", 2000))
                group.prepare(KEPT)
    if killed:
        disk.end_process()
    else:
        store.close()
    return disk


class Target:
    """A copy of the disk, and ways to damage it."""

    def __init__(self, killed):
        self.disk = used_disk(killed).crashed(random.Random(0), keep=1.0)
        files = [name for name in self.disk.list(DIRECTORY) if name.endswith(".ibb")]
        used = [name for name in files if self.data(name).strip(b"\0")]
        self.old, self.newest, self.unused = used[1], used[-1], files[-1]
        self.log = max(SEGMENTS, key=lambda name: self.data(name)[16:24])
        self.groups = max(SEGMENTS, key=lambda name: len(self.data(name).rstrip(b"\0")))
        self.last_page = (len(self.data(self.newest).rstrip(b"\0")) - 1) // SIZE

    def data(self, name):
        return self.disk.contents(f"{DIRECTORY}/{name}")

    def put(self, name, offset, data):
        self.disk.damage(f"{DIRECTORY}/{name}", offset, data)

    def flip(self, name, offset):
        self.put(name, offset, bytes([self.data(name)[offset] ^ 0x10]))

    def seal(self, name, page_no, offset, data):
        page = bytearray(self.data(name)[page_no * SIZE : (page_no + 1) * SIZE])
        page[offset : offset + len(data)] = data
        self.put(name, page_no * SIZE, sealed_page(page))

    def cut(self, name, size):
        self.disk.open(f"{DIRECTORY}/{name}").truncate(size)

    def remove(self, name):
        self.disk.remove(f"{DIRECTORY}/{name}")

    def write(self, name, data):
        self.disk.open(f"{DIRECTORY}/{name}", create=True).write_at(0, data)


SEGMENTS = ("ibb-redo-0.log", "ibb-redo-1.log")
DAMAGES = {
    "a bit of an old page": lambda it: it.flip(it.old, 3 * SIZE + 77),
    "a bit of an old page's checksum": lambda it: it.flip(it.old, 4 * SIZE - 1),
    "an old page of zeros": lambda it: it.put(it.old, 4 * SIZE, bytes(SIZE)),
    "the end of an old page": lambda it: it.seal(it.old, 5, 100, bytes(SIZE - 104)),
    "a bit of an old header": lambda it: it.flip(it.old, 20),
    "an old header page, behind its header": lambda it: it.flip(it.old, SIZE - 2),
    "an old header of zeros": lambda it: it.put(it.old, 0, bytes(SIZE)),
    "an old file of zeros": lambda it: it.put(it.old, 0, bytes(len(it.data(it.old)))),
    "an old file is gone": lambda it: it.remove(it.old),
    "an old file is cut": lambda it: it.cut(it.old, 5 * SIZE),
    "an old file is cut inside a page": lambda it: it.cut(it.old, 5 * SIZE + 99),
    "an old file is cut inside its header": lambda it: it.cut(it.old, 99),
    "a bit of the newest file's first page": lambda it: it.flip(it.newest, SIZE + 9),
    "the newest file's first page of zeros": lambda it: it.put(it.newest, SIZE, bytes(SIZE)),
    "a bit of the last page": lambda it: it.flip(it.newest, it.last_page * SIZE + 9),
    "the last page of zeros": lambda it: it.put(it.newest, it.last_page * SIZE, bytes(SIZE)),
    "bytes behind the last page's end": lambda it: it.seal(it.newest, it.last_page, 490, b"more"),
    "another valid page for the last": lambda it: it.seal(it.newest, it.last_page, 9, b"other"),
    "a page behind the last": lambda it: it.seal(it.newest, it.last_page + 1, 0, b"\x41\x01\0?"),
    "a bit of the newest header": lambda it: it.flip(it.newest, 20),
    "the newest header of zeros": lambda it: it.put(it.newest, 0, bytes(SIZE)),
    "the newest file is gone": lambda it: it.remove(it.newest),
    "the newest file is cut": lambda it: it.cut(it.newest, 2 * SIZE),
    "the newest file is of no length": lambda it: it.cut(it.newest, 0),
    "the two newest files are gone": lambda it: (it.remove(it.newest), it.remove(it.unused)),
    "rubbish in the file made in advance": lambda it: it.put(it.unused, 700, b"rubbish"),
    "rubbish for the header of that file": lambda it: it.put(it.unused, 0, b"rubbish"),
    "the file made in advance is gone": lambda it: it.remove(it.unused),
    "a bit of the log's header": lambda it: it.flip(it.log, 17),
    "a bit of the log's first group": lambda it: it.flip(it.groups, 4096 + 40),
    "a bit of a later group": lambda it: it.flip(it.groups, 4096 + 9000),
    "zeros in the log": lambda it: it.put(it.groups, 8192, bytes(4096)),
    "the log in use is gone": lambda it: it.remove(it.log),
    "both logs are gone": lambda it: [it.remove(name) for name in SEGMENTS],
    "the log is cut": lambda it: it.cut(it.log, 8192),
    "the log is of no length": lambda it: it.cut(it.log, 0),
    "a list of format descriptions": lambda it: it.write("formats.json", b"rubbish"),
    "a reset that nobody began": lambda it: it.write("ibb-reset", b"rubbish"),
}
UNTOLD = {
    # Without a log, nobody can tell that there was more than what the files hold.
    True: {"both logs are gone"},
    # The log of a closed store is not read any more: a page with a right checksum is believed.
    False: {"another valid page for the last"},
}


def readable(store):
    """Return the groups that can be read, file by file, and the files that cannot be read whole."""
    found, bad = set(), set()
    pages = store.pages
    for file_no in range(pages.first_file(), pages.last_file() + 1):
        reader = GroupReader(pages, Position(file_no, 0))
        try:
            while (group := reader.next()) is not None and group.position < (file_no + 1, 0):
                b"".join(group.pieces())
                if group.gtid is not None:
                    found.add(group.gtid.seq)
        except FormatError as error:
            check_place(error)
            bad.add(binlog_name(file_no))
    return found, bad


def is_kept(before, after, name):
    """Tell whether a file is as it was, but for pages that go on or were damaged; or a copy is."""
    data = before[name]
    if any(after.get(f"{name}.aside-{number}") == data for number in range(3)):
        return True
    now = after.get(name)
    return not data.strip(b"\0") or (
        now is not None
        and all(
            page_is_kept(data[at : at + SIZE], now[at : at + SIZE])
            for at in range(0, len(data), SIZE)
        )
    )


def page_is_kept(old, new):
    if page_is_zero(old) or old == new:
        return True
    if len(old) < SIZE or sealed_page(old) != old:
        return True  # torn: recovery writes it again
    return new[:-4].startswith(old[:-4].rstrip(b"\0"))


@pytest.mark.parametrize("killed", [False, True], ids=["closed", "killed"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_whatever_is_damaged_nothing_is_lost_in_silence(damage, killed):
    target = Target(killed)
    undamaged = {name: target.data(name) for name in target.disk.list(DIRECTORY)}
    DAMAGES[damage](target)
    before = contents(target.disk)
    look_at_everything(target.disk, DIRECTORY)
    assert contents(target.disk) == before
    try:
        store = Store.open(DIRECTORY, SMALL, disk=target.disk)
    except IbbError as error:
        check_place(error)
        after = contents(target.disk)
        assert all(is_kept(before, after, name) for name in before if name.endswith(".ibb"))
        return
    publish(store, 1000)
    found, bad = readable(store)
    assert 1000 in found
    store.close()
    told = bool(bad or store.copies_set_aside)
    untold = damage in UNTOLD[killed]
    assert found >= set(range(1, GROUPS + 1)) or told or untold
    assert untold or told or [one.xid for one in store.prepared()] == [KEPT]
    assert bad <= {name for name in before.keys() | undamaged if name.endswith(".ibb")}
    after = contents(target.disk)
    for name in before:
        assert not name.endswith(".ibb") or is_kept(before, after, name), name


def contents(disk):
    return {
        name: disk.contents(f"{DIRECTORY}/{name}")
        for name in disk.list(DIRECTORY)
        if name != LOCK_NAME
    }


def test_the_damages_are_many_and_the_store_has_all_that_they_hit():
    assert len(DAMAGES) >= 38
    for killed in (False, True):
        target = Target(killed)
        assert target.old < target.newest < target.unused
        assert 1 <= target.last_page < 15
        assert target.data(target.groups)[4096 + 9000 :].strip(b"\0")
