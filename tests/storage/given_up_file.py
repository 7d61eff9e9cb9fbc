"""A directory of another program that gave a file up early, and went on in the next one."""

from pathlib import Path

from ibb.protocol.gtid import Gtid
from ibb.storage import Store, StoreOptions
from ibb.storage.group_reader import GroupReader
from ibb.storage.os_disk import OsDisk
from ibb.storage.position import Position
from ibb.storage.read_only import ReadOnlyHistory

from .events import transaction

PAGE = 512
FILE = 32 * PAGE
OPTIONS = StoreOptions(
    page_size=PAGE, max_binlog_size=FILE, state_interval=2 * PAGE, redo_segment_size=256 << 10,
    format_description="upstream", background=False,
)  # fmt: skip
GROUPS = 20
FIRST_FILE_GROUPS = 10


def publish(store: Store, first: int, last: int) -> None:
    """Publish groups 0-1-first to 0-1-last."""
    for seq in range(first, last + 1):
        with store.begin() as group:
            group.write(transaction(f"{seq} " + "x" * 150))
            group.commit(Gtid(0, 1, seq))


def make(directory: Path, *, unused: int = 1) -> list[str]:
    """
    Make the directory; return the GTIDs of its groups.

    Args:
        directory: to be made. Files 0 and 1 have half of the groups each, and unused pages.
        unused: empty files behind them.
    """
    first = directory / "binlog-000000.ibb"
    with Store.open(directory, OPTIONS) as store:
        publish(store, 1, FIRST_FILE_GROUPS)
    given_up = first.read_bytes()
    with Store.open(directory, OPTIONS) as store:
        store.switch_file()
        publish(store, FIRST_FILE_GROUPS + 1, GROUPS)
    first.write_bytes(given_up)
    for path in directory.iterdir():
        if path.name not in {first.name, "binlog-000001.ibb"}:
            path.unlink()
    for number in range(2, 2 + unused):
        (directory / f"binlog-{number:06}.ibb").write_bytes(bytes(FILE))
    return [f"0-1-{seq}" for seq in range(1, GROUPS + 1)]


def read_at_rest(directory: Path) -> list[str]:
    """Return the GTIDs of what a server that only reads has, file for file."""
    history = ReadOnlyHistory(OsDisk(), str(directory))
    try:
        reader, found = GroupReader(history.pages, Position(0, 0)), []
        while (group := reader.next()) is not None:
            if group.gtid is not None:
                found.append(str(group.gtid))
        return found
    finally:
        history.close()
