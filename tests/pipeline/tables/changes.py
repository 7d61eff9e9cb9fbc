"""Change streams made by hand or at random, and what tables must be after them."""

from dataclasses import dataclass, field
from itertools import groupby

import pyarrow as pa

from ibb.pipeline.tables.row_changes import (
    Changed,
    GroupRun,
    MicroBatch,
    Op,
    RowChanges,
    TableName,
)
from ibb.protocol.gtid import Gtid, GtidPosition

ORDERS = TableName("shop", "orders")
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])
TIME = 1_700_000_000
EMPTIES = GroupRun(Gtid(0, 1, 1), TIME, 0)


def image(rows, columns=SCHEMA.names, schema=SCHEMA):
    """Return row images with only *columns*; a row that is None says nothing."""
    part = pa.schema([schema.field(name) for name in columns])
    return pa.Table.from_pylist([row or {} for row in rows], part)


def changes(gtid, *rows, before=None, after=None, schema=SCHEMA, time=TIME):
    """Return changes of one group; each row is (op, before, after)."""
    return RowChanges(
        bytes(op for op, _, _ in rows),
        (GroupRun(gtid, time, len(rows)),),
        image([old for _, old, _ in rows], schema.names if before is None else before, schema),
        image([new for _, _, new in rows], schema.names if after is None else after, schema),
    )


def insert(row):
    return (Op.INSERT, None, row)


def update(old, new):
    return (Op.UPDATE, old, new)


def delete(row):
    return (Op.DELETE, row, None)


def position(text):
    return GtidPosition.parse(text)


@dataclass
class Stream:
    """A history in memory; batches are cut from it anywhere between groups."""

    groups: list = field(default_factory=list)  # (gtid, time, steps)
    state: GtidPosition = field(default_factory=GtidPosition)

    def add(self, domain, make_steps, server=1):
        known = self.state.get(domain)
        gtid = Gtid(domain, server, known.seq + 1 if known else 1)
        time = TIME + len(self.groups)
        self.groups.append((gtid, time, make_steps(gtid, time)))
        self.state.set(gtid)
        return gtid

    def add_rows(self, *rows, name=ORDERS, domain=0, server=1, **shape):
        return self.add(
            domain,
            lambda gtid, time: [Changed(name, changes(gtid, *rows, time=time, **shape))],
            server,
        )

    def behind(self, where):
        """Return how many groups *where* holds."""
        held = GtidPosition()
        for count, (gtid, _, _) in enumerate(self.groups):
            if held == where:
                return count
            held.set(gtid)
        assert held == where, f"{where} is no place of this history"
        return len(self.groups)

    def place(self, count):
        return GtidPosition(gtid for gtid, _, _ in self.groups[:count])

    def batch(self, first, last):
        """Return the groups from number *first* up to *last*."""
        groups = self.groups[first:last]
        steps = [step for _, _, steps in groups for step in steps]
        return MicroBatch(
            self.place(first),
            self.place(last),
            max((time for _, time, _ in groups), default=0),
            tuple(by_table(steps)),
            tuple((gtid, time) for gtid, time, _ in groups),
        )


def by_table(steps):
    """Put rows of a table together between statements, as the reader of the binlog does."""
    for _, run in groupby(steps, lambda step: isinstance(step, Changed)):
        yield from sorted(run, key=lambda step: getattr(step, "name", ORDERS))
