"""Change tables against their source: counts and checksums at one GTID."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import PipelineError
from .lake import Lake
from .ledger import Ledger
from .mariadb_source import consistent_view
from .row_key import row_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from .config import PipelineConfig
    from .row_changes import TableName


@dataclass(frozen=True)
class Compared:
    """
    One table.

    Args:
        name: of it.
        place: the position at which both were read.
        source: rows and checksum at the server.
        target: the same of the change table; None: there is none.
        reason: why they cannot be equal, if not for rows; empty: they can.
    """

    name: TableName
    place: str
    source: tuple[int, int]
    target: tuple[int, int] | None
    reason: str = ""

    @property
    def is_equal(self) -> bool:
        """Whether both have the same rows."""
        return not self.reason and self.source == self.target

    def line(self) -> str:
        """Return it as a line for people."""
        rows, checksum = self.source
        if self.is_equal:
            return f"equal   {self.name}: {rows} rows, checksum {checksum:016x} at {self.place}"
        if self.reason or self.target is None:
            return f"differs {self.name}: {self.reason or 'there is no change table'}"
        return (
            f"differs {self.name}: {rows} rows, checksum {checksum:016x} at the server; "
            f"{self.target[0]} rows, checksum {self.target[1]:016x} here, at {self.place}"
        )


def check_tables(config: PipelineConfig) -> Iterator[Compared]:
    """
    Yield how each table of *config* compares with the server's.

    Raises:
        PipelineError: there is no server or ledger, or the tables are not as far as the server.
    """
    if config.server is None:
        raise PipelineError("server: is missing: there is nothing to compare with")
    lake = Lake(config)
    with consistent_view(config.server) as view:
        ledger = Ledger.load(lake.state)
        if ledger is None:
            raise PipelineError(f"{config.target}: no pipeline has run here yet")
        if ledger.place.position != view.place.position:
            raise PipelineError(
                f"the tables are at {ledger.place.position} and the server at "
                f"{view.place.position}: let `ibb pipeline run` catch up, while nobody writes"
            )
        if ledger.lower_case:
            config = config.in_lower_case()
        tables = {table.name: table for table in view.tables(config.wants)}
        for name, table in tables.items():
            names = table.schema.names
            source = _summed(view.read(table, 0), names)
            target = lake.open(name)
            found, reason = None, ""
            if target.exists:
                different = set(names) ^ set(target.schema.names)
                reason = f"column {min(different)} is on one side alone" if different else ""
                found = None if different else _summed(target.batches(), names)
            yield Compared(name, str(view.place.position), source, found, reason)
        for name in ledger.tables.keys() - tables.keys():
            yield Compared(name, "", (0, 0), None, "the server has no such table")


def _summed(batches: Iterable[pa.Table], names: Sequence[str]) -> tuple[int, int]:
    """Return count and a checksum that no order of rows changes: the sum of their digests."""
    rows = total = 0
    for batch in batches:
        rows += batch.num_rows
        for digest in row_keys(batch, names):
            total = (total + int(digest[:16], 16)) & (1 << 64) - 1
    return rows, total
