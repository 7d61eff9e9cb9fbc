"""Row changes decoded into Arrow."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from ibb.bench.errors import BenchError
from ibb.bench.figures import Goal, Sample, value
from ibb.bench.peer import PASSWORD, USER, Peer, mariadb_peer
from ibb.bench.row import Row
from ibb.bench.workbench import in_turn
from ibb.protocol.event import LENGTH_OFFSET, TYPE_OFFSET, EventType
from ibb.protocol.fields import U32
from ibb.protocol.rows.table_layout import TableLayout, layout_of
from ibb.protocol.rows.table_map import TableMap
from ibb.protocol.rows.table_schema import ColumnSchema, TableSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ibb.bench.data_set import DataSet, Recipe
    from ibb.bench.workbench import Workbench

FOREIGN_SECONDS_MAX: Final = 900.0
EVENT_BYTES_MAX: Final = 256 << 20  # of events that are held ready
FOREIGN_ROWS: Final = {"bulk": 200_000, "one-row": 40_000}  # a few seconds of theirs
_COLUMNS: Final = (ColumnSchema("id", "int(11)"), ColumnSchema("note", "varchar(8000)", "latin1"))


def row_events(recipe: Recipe) -> tuple[TableLayout, list[bytes]]:
    """Return the table of a data set, and its rows events as stored, as many as may be held."""
    table: bytes | None = None
    events, size = [], 0
    for group in recipe.groups():
        for piece in group:
            begun = 0
            for end in piece.ends:
                event = piece.data[begun:end]
                begun = end
                assert U32.unpack_from(event, LENGTH_OFFSET)[0] == len(event)
                if event[TYPE_OFFSET] == EventType.TABLE_MAP:
                    table = event
                elif event[TYPE_OFFSET] == EventType.WRITE_ROWS_V1:
                    events.append(event)
                    size += len(event)
        if size > EVENT_BYTES_MAX:
            break
    assert table is not None
    return layout_of(TableMap.parse(table), TableSchema(_COLUMNS)), events


def decoded(layout: TableLayout, events: list[bytes]) -> tuple[int, float]:
    """Decode all into Arrow; return the rows, and the processor seconds."""
    from ibb.pipeline.row_batches import RowBatches  # noqa: PLC0415 - Arrow is an extra

    batches, rows = RowBatches(layout), 0
    begun = time.process_time()
    for event in events:
        batches.add(event)
        while batches.is_full:
            rows += batches.take().to_batch().num_rows
    if batches.rows:
        rows += batches.take().to_batch().num_rows
    return rows, time.process_time() - begun


def foreign(peer: Peer, rows: int, *, in_all: bool = False) -> float:
    """
    Return the rows that python-mysql-replication reads in a second of its processor time.

    Args:
        peer: which it reads them from.
        rows: how many.
        in_all: in a second of all that it takes instead.

    Raises:
        BenchError: it failed.
    """
    words = {"port": peer.port, "user": USER, "password": PASSWORD, "rows": rows}
    done = subprocess.run(
        [sys.executable, "-m", "ibb.bench.foreign_rows", json.dumps(words)],
        capture_output=True,
        text=True,
        timeout=FOREIGN_SECONDS_MAX,
        check=False,
    )
    if done.returncode != 0:
        raise BenchError(f"python-mysql-replication: {done.stderr.strip()[-500:]}")
    count, used, took = map(int, done.stdout.split())
    return count / (took if in_all else used) * 1e9


@contextmanager
def _decode(bench: Workbench, kind: str, goal: Goal) -> Iterator[Callable[[int], list[Sample]]]:
    data: DataSet = bench.data(kind)
    layout, events = row_events(data.recipe)
    with ExitStack() as stack:
        peer = None
        if bench.installation is not None and find_spec("pymysqlreplication"):
            peer = stack.enter_context(mariadb_peer(bench.installation, bench.folder, data))

        def ours() -> float:
            rows, used = decoded(layout, events)
            return rows / used

        def measure(turn: int) -> list[Sample]:
            own, other = in_turn(
                turn,
                ours,
                functools.partial(foreign, peer, FOREIGN_ROWS[kind]) if peer else None,
            )
            return [Sample("rows a second of one core", "/s", own, other, goal)]

        yield measure


def _row(kind: str, goal: Goal) -> Row:
    return Row(
        f"decode-{kind}",
        f"rows of {kind} groups into Arrow, events ready; beside python-mysql-replication, "
        "which reads them from mariadbd",
        "warm",
        functools.partial(_decode, kind=kind, goal=goal),
        needs=("pyarrow",),
    )


ROWS = (_row("bulk", value(1e6, 4e6)), _row("one-row", value(3e5, 1e6)))
