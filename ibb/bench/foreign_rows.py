"""
Rows as python-mysql-replication decodes them, in a process of its own.

Run as `python -m ibb.bench.foreign_rows '{"port": ..., "user": ..., "password": ..., "rows": N}'`;
prints how many rows there were, and the nanoseconds that they took: of the processor, and in all.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Final

from .data_set import LEGACY_NAME, LEGACY_START

_SERVER_ID: Final = 69_001


def main() -> None:
    """Read rows until there are as many as asked for, or no more."""
    given = json.loads(sys.argv[1])
    wanted, done = given.pop("rows"), 0
    library = importlib.import_module("pymysqlreplication")
    kinds = importlib.import_module("pymysqlreplication.row_event")
    reader = library.BinLogStreamReader(
        connection_settings={"host": "127.0.0.1", **given},
        server_id=_SERVER_ID,
        is_mariadb=True,
        only_events=[kinds.WriteRowsEvent],
        log_file=LEGACY_NAME,
        log_pos=LEGACY_START,
        resume_stream=True,
        ignore_decode_errors=True,  # it takes texts in latin1 for UTF-8
    )
    begun, began = time.process_time_ns(), time.perf_counter_ns()
    for event in reader:
        done += len(event.rows)
        if done >= wanted:
            break
    used, took = time.process_time_ns() - begun, time.perf_counter_ns() - began
    reader.close()
    sys.stdout.write(f"{done} {used} {took}\n")


if __name__ == "__main__":
    main()
