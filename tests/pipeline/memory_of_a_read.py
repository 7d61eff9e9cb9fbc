"""
Read one large group in a process of its own, and print how much memory that took, in MiB.

    python -m tests.pipeline.memory_of_a_read MODE SHAPE

It is the work that a Python worker of a Spark executor does; the group is made up while it is read.
"""

import re
import sys
from pathlib import Path

import pyarrow as pa

from ibb.pipeline.columns import Column
from ibb.pipeline.options import SourceOptions
from ibb.pipeline.rows import columns_of, rows_of
from ibb.pipeline.table_rows import METADATA_COLUMNS
from ibb.protocol.gtid import Gtid
from ibb.protocol.gtid_event import GtidFlag, encode_gtid_event
from ibb.storage.position import NOWHERE

from ..protocol.rows import row_encoder as enc
from ..storage.events import xid

GROUP_BYTES = 512 << 20
HUGE_BYTES = 64 << 20
PIECE_BYTES = 32 << 10
COLUMNS = [("id", enc.integer(4)), ("data", enc.blob(4))]
SPECS = [spec for _, spec in COLUMNS]
HEAD = encode_gtid_event(Gtid(0, 1, 1), 1_700_000_000, GtidFlag.TRANSACTIONAL)
EVENTS = {
    "large rows": lambda: enc.rows_event(enc.WRITE, SPECS, [[(1, b"x" * (5 << 20))]]),
    "a huge row": lambda: enc.rows_event(enc.WRITE, SPECS, [[(1, b"x" * HUGE_BYTES)]]),
    "a huge event": lambda: enc.rows_event(
        enc.WRITE, SPECS, [[(1, b"x" * 900)]] * (HUGE_BYTES // 900)
    ),
    "small rows": lambda: enc.rows_event(enc.UPDATE, SPECS, [[(1, b"x" * 900)] * 2] * 600),
}


class Group:
    """A group that repeats one rows event."""

    gtid, head, position, timestamp = Gtid(0, 1, 1), HEAD, NOWHERE, 1_700_000_000

    def __init__(self, event):
        self.event = event

    def pieces(self):
        yield HEAD
        yield enc.table_map(COLUMNS, key=[0])
        for _ in range(GROUP_BYTES // len(self.event)):
            for at in range(0, len(self.event), PIECE_BYTES):
                yield memoryview(self.event)[at : at + PIECE_BYTES]
        yield xid(1)


class Task:
    """A partition that has this group alone, open or not."""

    place = "/nowhere"

    def __init__(self, event):
        self.event = event

    def open(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def groups(self):
        yield Group(self.event)

    runs = groups

    def again(self, _group):
        return Group(self.event)


def peak():
    """Return the most memory that this process has had so far, in MiB."""
    told = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(told[1]) / 1024


def read(mode, event):
    given = {"table": "d.t"} if mode == "table" else {"mode": mode}
    options = SourceOptions.parse({"path": Task.place, **given})
    if mode == "table":
        own = (Column("id", pa.int32()), Column("data", pa.binary()))
        columns = (*own, *METADATA_COLUMNS)
    else:
        columns = columns_of(options)
    return sum(batch.num_rows for batch in rows_of(Task(event), options, columns))


if __name__ == "__main__":
    event = EVENTS[sys.argv[2]]()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what there is now
    before = peak()
    rows = read(sys.argv[1], event)
    print(rows, peak() - before)
