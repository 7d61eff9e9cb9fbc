"""
How far the pipeline as a whole is, and how far it left each table.

A table is written only when something of it changed, so its own place lags behind. The ledger
says which place of a table belongs to the pipeline's: a table that has another one was written
by a batch that was cut short, or put back from a backup, and `applier` tells which.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ibb.pipeline.history_mark import NO_MARK, HistoryMark
from ibb.protocol.errors import SqlError
from ibb.protocol.gtid import Gtid

from .errors import PipelineError
from .place import Place, covers, is_behind
from .prepared_xa import Prepared, prepared_from_json
from .row_changes import TableName
from .server_traits import USUAL, ServerTraits
from .table_shape import TableShape

if TYPE_CHECKING:
    from .state_folder import StateFolder

DOCUMENT: Final = "ledger.json"
VERSION: Final = 1


@dataclass
class Ledger:
    """
    What is known of the pipeline.

    Args:
        place: every table holds all that is not behind it.
        tables: the place that each table stored at its last change.
        ahead: those whose place is further than the pipeline's: a batch was cut short behind them.
        traits: how the source is.
        prepared: the XA transactions that are prepared there, by their XID.
        mark: of the history, to tell another one under the same GTIDs (RESET MASTER).
        letters: how far what could not be decoded is kept; None: its table knows.
        going: tables that have gone or are about to, and the groups they go by, which the
            pipeline has not reached yet: a batch was cut short, or is under way.
        due: patterns of tables that are to be read anew; a crash leaves some of them done.
        shapes: of those that were read anew ahead of the pipeline, what they are where it is; None:
            that is not known.
        histories: the same of the history tables: `tables`, `ahead` and `going`.
    """

    place: Place
    tables: dict[TableName, Place] = field(default_factory=dict)
    ahead: set[TableName] = field(default_factory=set)
    traits: ServerTraits = USUAL
    prepared: dict[str, Prepared] = field(default_factory=dict)
    mark: HistoryMark = NO_MARK
    letters: Place | None = None
    going: dict[TableName, Gtid] = field(default_factory=dict)
    due: tuple[str, ...] = ()
    shapes: dict[TableName, TableShape | None] = field(default_factory=dict)
    histories: Ledger | None = None

    @classmethod
    def load(cls, folder: StateFolder) -> Ledger | None:
        """
        Read the ledger in *folder*; None when there is none.

        Raises:
            PipelineError: it is not a ledger.
        """
        value: Any = folder.read(DOCUMENT)
        if value is None:
            return None
        try:
            if value["version"] != VERSION:
                raise PipelineError(f"{DOCUMENT} is of version {value['version']}, not {VERSION}")
            ledger = cls(Place.from_json(value))
            traits = {key: bool(value[key]) for key in ServerTraits._fields if key in value}
            ledger.traits = ServerTraits(**traits)
            ledger.prepared = prepared_from_json(value.get("prepared", {}))
            ledger.mark = HistoryMark(**value.get("mark", {}))
            letters = value.get("letters")
            ledger.letters = None if letters is None else Place.from_json(letters)
            ledger.due = tuple(value.get("due", ()))
            for entry in value.get("shapes", ()):
                known = entry["shape"]
                ledger.shapes[_name(entry)] = None if known is None else TableShape.from_json(known)
            _take_tables(ledger, value)
            if "histories" in value:
                _take_tables(ledger.known_histories(), value["histories"])
        except (KeyError, TypeError, ValueError, SqlError) as error:
            raise PipelineError(f"{DOCUMENT} is damaged: {error!r}") from error
        return ledger

    def copy(self) -> Ledger:
        """Return one that can be changed by itself."""
        return replace(
            self,
            tables=dict(self.tables),
            ahead=set(self.ahead),
            going=dict(self.going),
            shapes=dict(self.shapes),
            histories=self.histories.copy() if self.histories else None,
        )

    def known_histories(self) -> Ledger:
        """Return what is known of the history tables, which are as far as the pipeline."""
        if self.histories is None:
            self.histories = Ledger(self.place)
        return self.histories

    def left_at(self, name: TableName, place: Place, *, ahead: bool) -> None:
        """Take note of the *place* that a table has stored."""
        self.tables[name] = place
        if ahead:
            self.ahead.add(name)

    def forget(self, name: TableName) -> None:
        """Take note that there is no such table any more."""
        self.tables.pop(name, None)
        self.ahead.discard(name)
        self.shapes.pop(name, None)

    def move(self, place: Place) -> None:
        """Take note that every table has all that is not behind *place*."""
        self.place = place
        self.ahead = {
            name for name in self.ahead if not covers(place.position, self.tables[name].position)
        }
        self.shapes = {name: kept for name, kept in self.shapes.items() if name in self.ahead}
        self.going = {
            name: gtid for name, gtid in self.going.items() if is_behind(gtid, place.position)
        }
        if self.histories is not None:
            self.histories.move(place)

    def store(self, folder: StateFolder) -> None:
        """Write the ledger into *folder*."""
        document: dict[str, object] = {
            "version": VERSION,
            **self.place.as_json(),
            **self.traits._asdict(),
            "prepared": {xid: found.as_json() for xid, found in self.prepared.items()},
            "mark": self.mark._asdict(),
            "letters": None if self.letters is None else self.letters.as_json(),
            "due": list(self.due),
            "shapes": [
                {**name._asdict(), "shape": None if kept is None else kept.as_json()}
                for name, kept in self.shapes.items()
            ],
            **_tables_as_json(self),
        }
        if self.histories is not None:
            document["histories"] = _tables_as_json(self.histories)
        folder.write(DOCUMENT, document)


def _tables_as_json(ledger: Ledger) -> dict[str, object]:
    tables = [
        {**name._asdict(), **place.as_json(), "ahead": name in ledger.ahead}
        for name, place in ledger.tables.items()
    ]
    going = [{**name._asdict(), "gtid": str(gtid)} for name, gtid in ledger.going.items()]
    return {"going": going, "tables": tables}


def _take_tables(ledger: Ledger, value: dict[str, Any]) -> None:
    for entry in value.get("going", ()):
        ledger.going[_name(entry)] = Gtid.parse(entry["gtid"])
    for entry in value["tables"]:
        name = _name(entry)
        ledger.tables[name] = Place.from_json(entry)
        if entry["ahead"]:
            ledger.ahead.add(name)


def _name(entry: dict[str, Any]) -> TableName:
    return TableName(entry["database"], entry["table"])
