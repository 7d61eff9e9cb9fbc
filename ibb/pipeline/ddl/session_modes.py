"""What a session has set that decides what its statements mean, and do to rows."""

from __future__ import annotations

from typing import Final, NamedTuple


class SessionModes(NamedTuple):
    """
    The modes of a session.

    Args:
        ansi_quotes: `"x"` is a name.
        strict: a value that does not fit is an error; else it is cut, or a `?` put in it.
        explicit_timestamps: a TIMESTAMP is as other columns (explicit_defaults_for_timestamp); else
            it is NOT NULL if nothing else is said, and has a default of the server's choice.
    """

    ansi_quotes: bool = False
    strict: bool = False
    explicit_timestamps: bool = True


DEFAULT_MODES: Final = SessionModes()
