"""Where collected rows come from: a line for each rows event, and columns made of such lines."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from ibb.protocol.gtid import Gtid

from .columns import MICROSECONDS, TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ibb.protocol.gtid_event import GtidEvent

NUMBERS: Final = ("domain", "server", "seq_no", "time", "position", "group", "thread")
_NO_THREAD: Final = -1
_KINDS: Final = {"position": pa.int32()}  # others are 64-bit integers


class RowTags:
    """A line for each rows event, by number from 0."""

    def __init__(self) -> None:
        self._columns = {name: array("q") for name in NUMBERS}
        self._statements: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self._columns["domain"])

    def add(self, group: GtidEvent, position: int, number: int, statement: bytes | None) -> None:
        """
        Add a line.

        Args:
            group: when and by which GTID the rows changed.
            position: of their event in the group.
            number: of the group, in its partition.
            statement: that changed them, if that is known.
        """
        columns = self._columns
        if statement is not None:
            self._statements[len(self)] = statement
        columns["domain"].append(group.gtid.domain)
        columns["server"].append(group.gtid.server)
        columns["seq_no"].append(group.gtid.seq)
        columns["time"].append(group.timestamp)
        columns["position"].append(position)
        columns["group"].append(number)
        columns["thread"].append(_NO_THREAD if group.thread_id is None else group.thread_id)

    def extend(self, columns: Mapping[str, pa.Int64Array]) -> None:
        """Add as many lines as the arrays are long, and whose names are `NUMBERS`."""
        for name, values in columns.items():
            start = 8 * values.offset
            whole = memoryview(values.buffers()[1])
            self._columns[name].frombytes(whole[start : start + 8 * len(values)])

    def gtid(self, number: int) -> Gtid:
        """Return the GTID of a line."""
        columns = self._columns
        return Gtid(columns["domain"][number], columns["server"][number], columns["seq_no"][number])

    def column(self, name: str, tags: pa.Int64Array) -> pa.Array:
        """
        Return a column of `CHANGE_COLUMNS` or `GROUP_COLUMN`.

        Args:
            name: its name there.
            tags: of each row the number of its line, ascending; at least one.
        """
        first, stop = tags[0].as_py(), tags[-1].as_py() + 1
        lines = pc.subtract(tags, first)
        if len(tags) <= stop - first:  # those between them are of other tables
            return self._values(name, first, stop, lines)
        return pc.take(self._values(name, first, stop, None), lines, boundscheck=False)

    def _values(self, name: str, first: int, stop: int, lines: pa.Int64Array | None) -> pa.Array:
        """Return a column of the lines from *first* up to *stop*, of some of these if *lines*."""

        def numbers(one: str) -> pa.Int64Array:
            found = self._numbers(one, first, stop)
            return found if lines is None else pc.take(found, lines, boundscheck=False)

        if name == "gtid":
            parts = [numbers(one).cast(pa.string()) for one in ("domain", "server", "seq_no")]
            return pc.binary_join_element_wise(*parts, "-")
        if name == "commit_time":
            return pc.multiply(numbers("time"), MICROSECONDS).cast(TIMESTAMP)
        if name == "statement":
            places = range(stop - first) if lines is None else lines.to_pylist()
            found = [self._statements.get(first + place) for place in places]
            texts = [None if one is None else one.decode(errors="replace") for one in found]
            return pa.array(texts, pa.string())
        values = numbers(name.removeprefix("_"))
        if name == "thread":
            return pc.if_else(pc.equal(values, _NO_THREAD), None, values)
        return values.cast(_KINDS.get(name, pa.int64()))

    def _numbers(self, name: str, first: int, stop: int) -> pa.Int64Array:
        own = memoryview(self._columns[name])[first:stop].tobytes()
        return pa.Array.from_buffers(pa.int64(), stop - first, [None, pa.py_buffer(own)])
