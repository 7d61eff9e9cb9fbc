"""What could not be decoded, kept with its bytes in a table of its own: nothing is dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from .errors import PipelineError
from .place import Place, covers, is_behind, place_properties, stored_place
from .replay import check_replay, furthest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .row_changes import MicroBatch, Undecoded

SCHEMA: Final = pa.schema(
    [
        ("gtid", pa.string()),
        ("time", pa.timestamp("s", "UTC")),
        ("database", pa.string()),
        ("table", pa.string()),
        ("reason", pa.string()),
        ("data", pa.binary()),
    ]
)


class DeadLetters:
    """
    The table at *uri*, made when the first letter comes.

    Args:
        uri: where it is.
        application: the pipeline's name.
        keep: whether letters are kept; else each stops the pipeline.
        storage: options of the object store.
    """

    def __init__(
        self, uri: str, application: str, *, keep: bool, storage: Mapping[str, str] | None = None
    ) -> None:
        self._uri = uri
        self._application = f"{application}/dead-letters"
        self._keep = keep
        self._storage = dict(storage or {})

    def add(
        self, letters: Sequence[Undecoded], batch: MicroBatch, known: Place | None
    ) -> Place | None:
        """
        Keep *letters* once, in one commit.

        Args:
            letters: all those of *batch*.
            batch: under way.
            known: the place of the table, if it is known to have nothing of the batch.

        Returns:
            The place of the table if it has nothing behind the batch, else None.

        Raises:
            PipelineError: letters are not kept, or it cannot be told which are there.
        """
        letter = letters[0]
        if not self._keep:
            raise PipelineError(
                f"{letter.name} at {letter.gtid}: {letter.reason}. Nothing behind it was applied; "
                'tables.undecoded = "keep" puts such rows into a table of dead letters'
            )
        place = None
        if DeltaTable.is_deltatable(self._uri, self._storage):
            table = DeltaTable(self._uri, storage_options=self._storage)
            place = stored_place(table, self._application)
        position = batch.end
        if place is not None and place != known and not covers(batch.start, place.position):
            check_replay(batch, place)
            held = place.position
            letters = [letter for letter in letters if is_behind(letter.gtid, held)]
            position = furthest(position, held)
            if not letters:
                return None
        place = Place(position, max(batch.time, place.time if place else 0))
        rows = [
            {
                "gtid": str(letter.gtid),
                "time": letter.time,
                "database": letter.name.database,
                "table": letter.name.table,
                "reason": letter.reason,
                "data": letter.data,
            }
            for letter in letters
        ]
        write_deltalake(
            self._uri,
            pa.Table.from_pylist(rows, SCHEMA),
            mode="append",
            storage_options=self._storage,
            commit_properties=place_properties(self._application, place),
        )
        return place if position == batch.end else None
