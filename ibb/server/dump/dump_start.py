"""
Where a dump begins that names a file instead of a GTID position.

A name that SHOW BINARY LOGS lists begins at the first group committed in that file, no name and
the name of the stream at the oldest group; a position inside a file is refused with advice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ibb.protocol.binlog_state import BinlogState
from ibb.protocol.error_codes import MASTER_FATAL_ERROR_READING_BINLOG
from ibb.protocol.gtid import GtidPosition
from ibb.protocol.rotate import FIRST_POSITION
from ibb.server.config import STREAM_NAME
from ibb.storage.file_name import parse_binlog_name
from ibb.storage.gtid_search import StartPlace, find_file_start, find_start

if TYPE_CHECKING:
    from ibb.storage.history import History

BEGUN_ANEW: Final = (
    "The binlog was deleted and begun anew (RESET MASTER) by the server that writes it, while it "
    "was being read; connect again from a position that is in it."
)
PURGED: Final = (
    "Could not find GTID state requested by slave in any binlog files. Probably the slave state "
    "is too old and required binlog files have been purged."
)
_USE_GTID: Final = "connect with a GTID position (MASTER_USE_GTID=slave_pos) instead"


def find_named_start(history: History, name: str, position: int) -> StartPlace:
    """
    Return where a client begins that asks for *position* in the file *name*.

    Raises:
        SqlError: 1236, there is no such file, or it does not begin there.
        TooOld: no name, and the oldest groups were purged.
    """
    oldest_wanted = name in ("", STREAM_NAME)
    file_no = None if oldest_wanted else parse_binlog_name(name)
    known = oldest_wanted or any(file.name == name for file in history.files())
    if not known:
        raise MASTER_FATAL_ERROR_READING_BINLOG.error(
            f"Could not find first log file name in binary log index file; {_USE_GTID}"
        )
    if position != FIRST_POSITION and (name or position):
        raise MASTER_FATAL_ERROR_READING_BINLOG.error(
            "Client requested master to start replication from impossible position; the first "
            f"event '{name}' at {position}, the last event read from '{name}' at 4, the last "
            f"byte read from '{name}' at 4.; {_USE_GTID}"
        )
    pages = history.pages
    if file_no is None:
        return find_start(pages, GtidPosition())
    if file_no > pages.last_file():  # made in advance, nothing in it yet
        return StartPlace(history.end(), BinlogState())
    return StartPlace(find_file_start(pages, file_no), BinlogState())
