"""
What became of the changes of a group: which stand, which were rolled back, which come later.

A transaction that was rolled back is logged all the same if it changed tables of engines that
cannot roll back: it ends with ROLLBACK, or has ROLLBACK TO SAVEPOINT inside. Its other changes
never happened. Changes of an XA transaction are logged when it is prepared, and happen when a
group of its own says XA COMMIT. Source: dump-protocol 5.2, 8.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.errors import FormatError
from ibb.protocol.event import HEADER_SIZE, QUERY_SIZES, TYPE_OFFSET, EventType
from ibb.protocol.fields import FieldReader

from .ddl.effects import CreateTable
from .ddl.statement import effect_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibb.protocol.fields import Buffer

SAVEPOINTS_MAX: Final = 10_000
STATEMENT_BYTES_MAX: Final = 80 << 10  # of a QUERY event that are looked at: more than its settings
_LOAD_BYTES: Final = 13  # about the file, before the settings of an EXECUTE_LOAD_QUERY event
_SIZE_BYTES: Final = 7  # bits of the first byte: how many bytes say the size of the text
_NAME: Final = rb"(`(?:[^`]|``)+`|[^\s`;]+)"
_SAVEPOINT: Final = re.compile(rb"\s*SAVEPOINT\s+" + _NAME, re.IGNORECASE)
_BACK_TO: Final = re.compile(
    rb"\s*ROLLBACK\s+(?:WORK\s+)?TO\s+(?:SAVEPOINT\s+)?" + _NAME, re.IGNORECASE
)
_XA_END: Final = re.compile(rb"\s*XA\s+(COMMIT|ROLLBACK)\b", re.IGNORECASE)
_CHANGES_ROWS: Final = re.compile(
    rb"""
    (?>(?: [\s(;] | /\*M?!\d* | /\*.*?\*/ | \*/ | --(?=\s)[^\n]* | \#[^\n]* )*)
    (?: SET\s+STATEMENT\b.*?\bFOR\s+ )?
    (?: INSERT | UPDATE | DELETE | REPLACE | LOAD\s+(?:DATA|XML) | WITH | CALL | DO | SELECT )\b
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_QUERY: Final = re.compile(rb"\b(?:SELECT|VALUES)\b", re.IGNORECASE)
_QUALIFIER: Final = re.compile(rb"(?:`((?:[^`]|``)+)`|([\w$\x80-\xff]+))\s*\.")


class Statement(NamedTuple):
    """
    The text of a QUERY or EXECUTE_LOAD_QUERY event.

    Attributes:
        database: the session's default one.
        text: of an event that is larger than it is held, the beginning.
    """

    database: str
    text: bytes

    @classmethod
    def parse(cls, event: Buffer) -> Statement:
        """
        Read such an event, or its beginning.

        Raises:
            FormatError: it is cut inside what comes before the text.
        """
        reader = FieldReader(event, HEADER_SIZE, what="Query event")
        name_bytes, status_bytes = QUERY_SIZES.unpack(reader.take(QUERY_SIZES.size))
        if event[TYPE_OFFSET] == EventType.EXECUTE_LOAD_QUERY:
            reader.take(_LOAD_BYTES)
        reader.take(status_bytes)
        database = reader.take(name_bytes).decode(errors="replace")
        reader.take(1)
        text = reader.rest()
        if event[TYPE_OFFSET] == EventType.QUERY_COMPRESSED:
            text = _inflated_beginning(text)
        return cls(database, text)

    @property
    def changes_rows(self) -> bool:
        """Whether it changes rows; TRUNCATE and DDL do not count, but CREATE TABLE ... SELECT."""
        return _CHANGES_ROWS.match(self.text) is not None or self._fills_table

    @property
    def _fills_table(self) -> bool:
        if b"CREATE" not in self.text.upper() or _QUERY.search(self.text) is None:
            return False
        sql = self.text.decode(errors="replace")
        effects = [effect_of(sql, self.database, ansi_quotes=quotes) for quotes in (False, True)]
        return any(isinstance(effect, CreateTable) and effect.fills for effect in effects)

    @property
    def databases(self) -> Iterator[str]:
        """The session's default database, and whatever in the text may be the name of another."""
        yield self.database
        for found in _QUALIFIER.finditer(self.text):
            name = found[2] or found[1].replace(b"``", b"`")
            yield name.decode(errors="replace")


class GroupOutcome:
    """
    Learns from the statements of a group, in order, what its other events came to.

    Attributes:
        xa: `COMMIT` or `ROLLBACK` if the group ends an XA transaction, else empty.
    """

    def __init__(self) -> None:
        self.xa = ""
        self._savepoints: dict[bytes, int] = {}
        self._rolled_back: list[tuple[int, int]] = []

    def add(self, position: int, event: Buffer) -> None:
        """
        Take the event at *position* of the group, of a statement or an INCIDENT, or its beginning.

        Raises:
            FormatError: it goes back to a savepoint that is not there, or is an incident.
        """
        if event[TYPE_OFFSET] == EventType.INCIDENT:
            raise FormatError("the primary says by an INCIDENT event that it has lost changes")
        if event[TYPE_OFFSET] == EventType.QUERY_COMPRESSED:
            return  # never one of those
        text = Statement.parse(event).text
        if text.upper() == b"ROLLBACK":
            self._rolled_back.append((0, position))
        elif (found := _XA_END.match(text)) is not None:
            self.xa = found[1].decode().upper()
        elif (found := _SAVEPOINT.match(text)) is not None:
            if len(self._savepoints) >= SAVEPOINTS_MAX:
                raise FormatError(f"a group with more than {SAVEPOINTS_MAX} savepoints")
            self._savepoints[_plain(found[1])] = position
        elif (found := _BACK_TO.match(text)) is not None:
            start = self._savepoints.get(_plain(found[1]))
            if start is None:
                raise FormatError(
                    f"a group goes back to {found[1].decode(errors='replace')}, which is no"
                    " savepoint of it"
                )
            self._rolled_back.append((start, position))

    def is_rolled_back(self, position: int) -> bool:
        """Tell whether the event at *position* was undone, where its engine can do that."""
        return any(start <= position < end for start, end in self._rolled_back)


def _inflated_beginning(body: bytes) -> bytes:
    """Return the beginning of a compressed text. Source: dump-protocol 4.11."""
    start = 1 + (body[0] & _SIZE_BYTES) if body else 0
    try:
        return zlib.decompressobj().decompress(body[start:], STATEMENT_BYTES_MAX)
    except zlib.error as error:
        raise FormatError(f"a compressed statement cannot be inflated: {error}") from error


def _plain(name: bytes) -> bytes:
    """Return a name without quotes, in one case, as savepoints are compared."""
    if name.startswith(b"`"):
        name = name[1:-1].replace(b"``", b"`")
    return name.decode(errors="replace").lower().encode()
