"""Change tables against their source: counts and checksums at one GTID."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import PipelineError
from .history_reading import overlap
from .lake import Lake
from .ledger import Ledger
from .row_key import row_keys
from .snapshot_view import view_of_tables
from .source_tables import TableRedefined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from .change_target import KeptTable
    from .config import PipelineConfig
    from .history_rows import HistoryRows
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
        versions: of a history, how many it has; its current ones are the rows. None: no history.
    """

    name: TableName
    place: str
    source: tuple[int, int]
    target: tuple[int, int] | None
    reason: str = ""
    versions: int | None = None

    @property
    def is_equal(self) -> bool:
        """Whether both have the same rows."""
        return not self.reason and self.source == self.target

    def line(self) -> str:
        """Return it as a line for people."""
        rows, checksum = self.source
        name = str(self.name) if self.versions is None else f"history of {self.name}"
        if self.is_equal:
            more = "" if self.versions is None else f", {self.versions} versions"
            return f"equal   {name}: {rows} rows, checksum {checksum:016x} at {self.place}{more}"
        if self.reason or self.target is None:
            return f"differs {name}: {self.reason or 'there is no change table'}"
        return (
            f"differs {name}: {rows} rows, checksum {checksum:016x} at the server; "
            f"{self.target[0]} rows, checksum {self.target[1]:016x} here, at {self.place}"
        )


def check_tables(config: PipelineConfig) -> Iterator[Compared]:
    """
    Yield how each table of *config* compares with the server's.

    Raises:
        PipelineError: there is no server or ledger, the server is none of which `view_of_tables`
            can tell, or the tables are not as far as it, or one is defined anew meanwhile.
    """
    server = config.server
    if server is None:
        raise PipelineError("server: is missing: there is nothing to compare with")
    lake = Lake(config)
    if _ledger(lake, config).traits.lower_case:
        config = config.in_lower_case()
    with view_of_tables(server, config.wants, goes_on=False) as (view, tables):
        ledger = _ledger(lake, config)
        if ledger.place.position != view.place.position:
            raise PipelineError(
                f"the tables are at {ledger.place.position} and the server at "
                f"{view.place.position}: let `ibb pipeline run` catch up, while nobody writes"
            )
        for number, table in enumerate(tables):
            try:
                view.keep_name(table, tables[number + 1 :])
            except TableRedefined as error:
                raise PipelineError(f"{error}: compare once more") from error
            name, names = table.name, table.schema.names
            source = _summed(view.read(table, 0), names)
            place = str(view.place.position)
            yield Compared(name, place, source, *_found(lake.open(name), names))
            if name in ledger.known_histories().tables:
                history = lake.open_history(name)
                found, reason = _found(history, names)
                reason = reason or overlap(history)
                yield Compared(name, place, source, found, reason, history.versions)
        for name in ledger.tables.keys() - {table.name for table in tables}:
            yield Compared(name, "", (0, 0), None, "the server has no such table")


def _ledger(lake: Lake, config: PipelineConfig) -> Ledger:
    """Return what the pipeline has stored; raises PipelineError if it has not run."""
    ledger = Ledger.load(lake.state)
    if ledger is None:
        raise PipelineError(f"{config.target}: no pipeline has run here yet")
    return ledger


def _found(
    target: KeptTable | HistoryRows, names: Sequence[str]
) -> tuple[tuple[int, int] | None, str]:
    """Return rows and checksum of a change table, or why it has none with these columns."""
    if not target.exists:
        return None, ""
    different = set(names) ^ set(target.schema.names)
    if different:
        return None, f"column {min(different)} is on one side alone"
    return _summed(target.batches(), names), ""


def _summed(batches: Iterable[pa.Table], names: Sequence[str]) -> tuple[int, int]:
    """Return count and a checksum that no order of rows changes: the sum of their digests."""
    rows = total = 0
    for batch in batches:
        rows += batch.num_rows
        for digest in row_keys(batch, names):
            total = (total + int(digest[:16], 16)) & (1 << 64) - 1
    return rows, total
