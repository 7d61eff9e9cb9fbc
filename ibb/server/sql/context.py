"""What one statement is answered in: its session, its time, its row, and what it is warned of."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.protocol.character_sets import DESCRIPTIONS, encoded
from ibb.protocol.error_codes import QUERY_INTERRUPTED

from .time_zone import session_zone_of
from .types import as_text, leading_number

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence
    from datetime import tzinfo

    from ibb.server.login.accounts import Account
    from ibb.server.statements.variables import ServerFacts, SessionVariables

    from .types import SqlType, SqlValue, Typed

WARNINGS_MAX: Final = 64  # of one statement, max_error_count
MESSAGE_CHARS_MAX: Final = 512  # of a warning; the text of a statement may be in it


class Warned(NamedTuple):
    """A line of SHOW WARNINGS; *level* is Note, Warning or Error."""

    level: str
    code: int
    message: str


class Diagnostics:
    """
    What the last statement was warned of that was warned of anything, or looked at a table.

    Attributes:
        warnings: the first of them.
        count: of all of them.
        new: how many are of the statement that is answered.
    """

    def __init__(self) -> None:
        self.warnings: list[Warned] = []
        self.count = 0
        self.new = 0

    def begin(self) -> None:
        """Begin a statement: its first warning takes the place of those before."""
        self.new = 0

    def clear(self) -> None:
        """Forget all."""
        self.warnings = []
        self.count = self.new = 0

    def add(self, level: str, code: int, message: str) -> None:
        """Note a warning."""
        if not self.new:
            self.clear()
        self.new += 1
        self.count += 1
        if len(self.warnings) < WARNINGS_MAX:
            self.warnings.append(Warned(level, code, message[:MESSAGE_CHARS_MAX]))

    def errors(self) -> list[Warned]:
        """Return those that are errors."""
        return [warned for warned in self.warnings if warned.level == "Error"]


@dataclass
class Context:
    """
    One session as its statements see it.

    Attributes:
        facts: what may be known of the server.
        variables: of the session.
        connection_id: of the session.
        user: `name@host`, as it logged in.
        account: whose privileges count; None for a session of our own, which may everything.
        database: that USE chose.
        diagnostics: of the last statement.
        now: when the statement began, seconds since 1970; or what the session said it is.
        found_rows, row_count: of the statement before.
        values: of the placeholders of a prepared statement.
        waited: how waits for something ended, and
        waits: how many the statement has come to (`wait`).
        probing: only the columns are wanted: nothing waits.
        encryption: cipher and version of the connection's TLS, empty without.
        interrupted: somebody has ended the command, see `stop_if_interrupted`.
        user_types: of user variables that the statement sets, as it found them: theirs to its end.
        row: columns of the table's row that is looked at, by lower-case name; None: no table.
    """

    facts: ServerFacts
    variables: SessionVariables
    connection_id: int
    user: str
    account: Account | None = None
    database: str | None = None
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    now: float = 0.0
    found_rows: int = 0
    row_count: int = 0
    values: Sequence[Typed] = ()
    row: Mapping[str, Typed] | None = None
    user_types: dict[str, SqlType] = field(default_factory=dict)
    encryption: tuple[str, str] = ("", "")
    waited: dict[Hashable, bool] = field(default_factory=dict)
    waits: int = 0
    probing: bool = False
    interrupted: bool = False

    @contextmanager
    def probe(self) -> Iterator[None]:
        """Evaluate for the types only, inside: nothing waits, nothing is assigned."""
        before, self.probing = self.probing, True
        try:
            yield
        finally:
            self.probing = before

    def stop_if_interrupted(self) -> None:
        """Raise SqlError 1317 if the client is gone, or was killed, or what it asked for was."""
        if self.interrupted:
            raise QUERY_INTERRUPTED.error()

    def literal_bytes(self, text: str) -> bytes:
        """Return a text's bytes, as if it were a literal of a statement."""
        return encoded(text, self.variables.charsets.of_literals)

    def literal_character_bytes(self) -> int:
        """Return how many bytes a literal's character may have."""
        return DESCRIPTIONS[self.variables.charsets.of_literals][1]

    def in_transaction(self) -> bool:
        """Tell whether BEGIN has been said."""
        return self.variables.in_transaction

    def zone(self) -> tzinfo | None:
        """Return the session's time zone, None for the machine's."""
        return session_zone_of(str(self.variables.read("time_zone", "", self)))

    def warning_count(self) -> int:
        """Return how much the last statement was warned of."""
        return self.diagnostics.count

    def number(self, value: SqlValue) -> int | float | None:
        """Return *value* as a number; a text that is none only in part is warned of."""
        text = as_text(value)
        if text is None:
            return None
        found, whole = leading_number(text)
        if not whole:
            self.diagnostics.add("Warning", 1292, f"Truncated incorrect DOUBLE value: '{text}'")
        return found
