"""
How fast rows become Arrow batches, beside python-mysql-replication on the same server.

Rows of six columns, in events of 8 KB and one by one in transactions of their own. Ours is measured
over the binlog file in memory, every event of it looked at and its checksum left out; theirs over a
connection. What counts is the CPU time of this process, so that waiting for the server does not.
"""

from __future__ import annotations

import argparse
import time
from struct import Struct
from typing import TYPE_CHECKING

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import WriteRowsEvent

from ibb.kernels import side
from ibb.pipeline.row_batches import RowBatches
from ibb.protocol.event import EventType
from ibb.protocol.rows.table_layout import layout_of
from ibb.protocol.rows.table_map import TableMap

from ..integration.conftest import new_rig
from ..integration.installations import mariadb_10_11
from ..integration.mariadb_server import PASSWORD, USER

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ..integration.mariadb_server import MariadbServer

ROUNDS = 3
HEAD = Struct("<4xB4xI")  # of an event: type and length
TABLE_MAP, WRITE_ROWS = int(EventType.TABLE_MAP), int(EventType.WRITE_ROWS_V1)
LAYOUT_OFFSET = 27  # of a table map's description, behind the number of the table
OPTIONS = ("--binlog-format=ROW", "--binlog-checksum=NONE", "--binlog-row-metadata=FULL")
TABLE = (
    "CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, big BIGINT, word VARCHAR(60),"
    " amount DECIMAL(12,3), moment DATETIME, flag TINYINT)"
)
INSERT = "INSERT INTO d.t (big, word, amount, moment, flag)"
VALUES = "seq * 1000003, CONCAT('a word of row ', seq), seq / 7, NOW(), 1"


def fill(server: MariadbServer, rows: int) -> dict[str, Path]:
    """Write *rows* rows in bulk, and as many one by one; return the files that have them."""
    server.run("CREATE DATABASE d", TABLE, "FLUSH BINARY LOGS")
    server.run(f"{INSERT} SELECT {VALUES} FROM d.seq_1_to_{rows}")
    bulk = server.binlog_files()[-1]
    loop = f"FOR seq IN 1..{rows} DO {INSERT} VALUES ({VALUES}); END FOR"
    server.run("FLUSH BINARY LOGS", f"BEGIN NOT ATOMIC {loop}; END")
    return {"bulk": bulk, "one-row": server.binlog_files()[-1]}


def ours(path: Path) -> float:
    """Return how many rows a second of CPU become batches."""
    data = path.read_bytes()
    view = memoryview(data)
    known, batches = b"", None
    began = time.process_time()
    rows, at, size = 0, 4, len(data)
    while at < size:
        code, length = HEAD.unpack_from(data, at)
        end = at + length
        if code == TABLE_MAP and data[at + LAYOUT_OFFSET : end] != known:
            known = data[at + LAYOUT_OFFSET : end]
            batches = RowBatches(layout_of(TableMap.parse(view[at:end])))
        elif code == WRITE_ROWS and batches is not None:
            batches.add(view[at:end])
            while batches.is_full:
                rows += batches.take().rows
        at = end
    assert batches is not None
    rows += batches.take().rows
    return rows / (time.process_time() - began)


def theirs(server: MariadbServer, path: Path, rows: int) -> float:
    """Return how many rows a second of CPU python-mysql-replication reads, of the first *rows*."""
    reader = BinLogStreamReader(
        connection_settings={
            "host": "127.0.0.1",
            "port": server.port,
            "user": USER,
            "password": PASSWORD,
        },
        server_id=4300,
        is_mariadb=True,
        log_file=path.name,
        log_pos=4,
        only_events=[WriteRowsEvent],
    )
    began = time.process_time()
    found = 0
    try:
        for event in reader:
            found += len(event.rows)
            if found >= rows:
                break
        return found / (time.process_time() - began)
    finally:
        reader.close()


def main(arguments: Sequence[str] | None = None) -> dict[str, tuple[float, float]]:
    """Print a line for each kind of rows; return rows a second, ours and theirs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--theirs", type=int, default=20_000, help="how many of them they read")
    chosen = parser.parse_args(arguments)
    found = {}
    with new_rig() as rig:
        server = rig.primary(mariadb_10_11(), *OPTIONS)
        server.run(f"GRANT ALL ON *.* TO {USER}@'127.0.0.1'")
        for kind, path in fill(server, chosen.rows).items():
            best = max(ours(path) for _ in range(ROUNDS))
            other = theirs(server, path, min(chosen.rows, chosen.theirs))
            found[kind] = (best, other)
            print(
                f"{kind:8} {best:12,.0f} rows/s ({side()})"
                f" {other:10,.0f} by python-mysql-replication, {best / other:.0f} times"
            )
    return found


if __name__ == "__main__":
    main()
