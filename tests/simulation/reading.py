"""All that a store or a directory holds, read by our own reader and by the independent one."""

from __future__ import annotations

from ibb.protocol.errors import FormatError
from ibb.protocol.event import EventHeader
from ibb.storage.directory import BinlogDirectory
from ibb.storage.group_reader import GroupReader, StoredGroup
from ibb.storage.page_source import PageSource
from ibb.storage.position import Position
from ibb.storage.state_scan import find_state
from ibb.storage.xa import find_prepared

from ..faults.sim_disk import SimDisk
from ..oracle.binlog import Binlog
from ..oracle.references import check_references
from ..oracle.states import StateCheck
from .model import Found, Seen


def is_own(group: StoredGroup) -> bool:
    """Tell a format description that the store made by itself."""
    return group.gtid is None and EventHeader.unpack(group.head).server_id == 0


def read_all(pages: PageSource) -> list[Seen]:
    """Return all that there is, but for what the store made by itself."""
    stream, first = [], pages.first_file()
    reader = GroupReader(pages, Position(first, 0))
    while (group := reader.next()) is not None:
        one = read_group(group, first)
        if not is_own(group):
            stream.append(one)
    return stream


def read_group(group: StoredGroup, first_file: int) -> Seen:
    """Read a group; its contents may be out of reach only if pieces of it were purged."""
    try:
        data = b"".join(group.pieces())
    except FormatError:
        if all(reference.first.file_no >= first_file for reference in group.lists):
            raise
        return Seen(group.gtid, None, group.position)
    return Seen(group.gtid, data if group.gtid is None else data[len(group.head) :], group.position)


def found_at_rest(disk: SimDisk, path: str) -> Found:
    """Return what a closed directory holds."""
    directory = BinlogDirectory(disk, path)
    first = directory.first_file()
    stream = read_all(directory)
    return Found(first, stream, find_state(directory).state, frozenset(find_prepared(directory)))


def oracle_problems(disk: SimDisk, path: str, *, states: bool) -> list[str]:
    """Return what the independent reader finds wrong; it knows of no domain that was deleted."""
    images = {
        int(name[len("binlog-") : -len(".ibb")]): disk.contents(f"{path}/{name}")
        for name in disk.list(path)
        if name.endswith(".ibb")
    }
    binlog = Binlog(images)
    first = min(binlog.files)
    if any(file.header.oob_reference < first for file in binlog.files.values()):
        return []  # a piece that was purged looks like damage
    problems = [*binlog.problems, *(StateCheck(binlog).problems if states else ())]
    return [str(problem) for problem in problems or check_references(binlog)]
