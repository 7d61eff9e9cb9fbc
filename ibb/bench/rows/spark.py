"""What Spark reads of binlog files on this machine, in batches and as a stream."""

from __future__ import annotations

import functools
import json
import statistics
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Self

from ibb.bench.errors import BenchError
from ibb.bench.figures import Goal, Sample, ratio, value
from ibb.bench.peer import mariadb_peer
from ibb.bench.row import Row
from ibb.bench.workbench import in_turn

from .decode import FOREIGN_ROWS, foreign

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ibb.bench.data_set import DataSet
    from ibb.bench.workbench import Workbench

CORES: Final = 2
ANSWER_CHARACTERS_MAX: Final = 1 << 20
STREAM_BATCHES: Final = 8  # of all groups
SMALL_BATCHES: Final = 10  # of one group each: what a micro-batch costs by itself
PARTITIONS: Final = 2 * CORES
WARM_READS_MAX: Final = 4
WARMER: Final = 1.05  # times as fast as before: not warm yet
_TABLE: Final = "bench.orders"
_SCHEMA: Final = {
    _TABLE: {
        "columns": [
            {"name": "id", "type": "int(11)"},
            {"name": "note", "type": "varchar(8000)", "charset": "latin1"},
        ]
    }
}


class SparkReader:
    """
    A Spark of `CORES` cores that reads a data set when asked to; a context manager that ends it.

    Args:
        bench: where its files are.
        data: what is read.
    """

    def __init__(self, bench: Workbench, data: DataSet) -> None:
        schema = bench.folder / "spark-schema.json"
        schema.write_text(json.dumps(_SCHEMA))
        options = {
            "path": str(data.store),
            "table": _TABLE,
            "schemaFile": str(schema),
            "minPartitions": str(PARTITIONS),
        }
        self._rows = 0
        self._log = (bench.folder / "spark.log").open("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ibb.bench.spark_program", json.dumps(_words(options))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __enter__(self) -> Self:
        """Wait until it is warm: Java has compiled, and reads get no faster any more."""
        try:
            self._rows = int(self._answer()["rows"])
            before = 0.0
            for _ in range(WARM_READS_MAX):
                rate = self.rate("batch")
                if rate < WARMER * before:
                    break
                before = rate
        except BenchError:
            self._end()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        """End it."""
        self._end()

    def rate(self, read: str, **options: str) -> float:
        """
        Return the rows a second of a read of everything.

        Raises:
            BenchError: it failed, or had other rows than before.
        """
        found = self.ask(read=read, options=options)
        if found["rows"] != self._rows:
            raise BenchError(f"Spark read {found['rows']} rows as a {read}, {self._rows} before")
        return float(found["rows"] / found["seconds"])

    def ask(self, **asked: Any) -> dict[str, Any]:
        """
        Return what `spark_program` answers.

        Raises:
            BenchError: it failed.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline(ANSWER_CHARACTERS_MAX)
        if not line.endswith("\n"):
            self._log.seek(0)
            raise BenchError(f"Spark: {self._log.read().strip()[-500:]}")
        found: dict[str, Any] = json.loads(line)
        return found

    def _end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._log.close()


def _words(options: dict[str, str]) -> dict[str, Any]:
    return {"options": options, "cores": CORES}


@contextmanager
def _read(bench: Workbench, kind: str, goal: Goal) -> Iterator[Callable[[int], list[Sample]]]:
    data = bench.data(kind)
    with ExitStack() as stack:
        peer = None
        if bench.installation is not None and find_spec("pymysqlreplication"):
            peer = stack.enter_context(mariadb_peer(bench.installation, bench.folder, data))
        reader = stack.enter_context(SparkReader(bench, data))

        def measure(turn: int) -> list[Sample]:
            ours = functools.partial(reader.rate, "batch")
            rows = FOREIGN_ROWS[kind]
            theirs = functools.partial(foreign, peer, rows, in_all=True) if peer else None
            own, other = in_turn(turn, ours, theirs)
            return [Sample(f"rows a second on {CORES} cores", "/s", own, other, goal)]

        yield measure


@contextmanager
def _stream(bench: Workbench, kind: str, goal: Goal) -> Iterator[Callable[[int], list[Sample]]]:
    data = bench.data(kind)
    groups = data.facts.groups
    each = {"maxGroupsPerTrigger": str(-(-groups // STREAM_BATCHES))}
    behind = data.facts.last._replace(seq=max(groups - SMALL_BATCHES, 1))
    single = {"maxGroupsPerTrigger": "1", "startingGtid": str(behind)}
    with SparkReader(bench, data) as reader:

        def measure(_turn: int) -> list[Sample]:
            rate = reader.rate("stream", **each)
            small = reader.ask(read="stream", options=single)
            cost = statistics.median(small["batches"]) * 1000
            return [
                Sample(f"rows a second on {CORES} cores", "/s", rate, None, goal),
                Sample("a micro-batch of one group", "ms", cost),
            ]

        yield measure


def _row(name: str, kind: str, goal: Goal) -> Row:
    if name == "read":
        about = f"Spark reads a table of {kind} groups; beside python-mysql-replication"
        opened = functools.partial(_read, kind=kind, goal=goal)
    else:
        about = f"Spark streams a table of {kind} groups in {STREAM_BATCHES} micro-batches"
        opened = functools.partial(_stream, kind=kind, goal=goal)
    return Row(f"{name}-{kind}", about, "warm", opened, needs=("pyspark", "pyarrow"))


ROWS = (
    _row("read", "bulk", ratio(20, 40)),
    _row("read", "one-row", ratio(20, 60)),
    _row("stream", "bulk", value(50_000)),
    _row("stream", "one-row", value(50_000)),
)
