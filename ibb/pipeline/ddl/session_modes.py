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
        empty_is_null: `''` is NULL.
        pads_chars: a CHAR is read with spaces up to its length.
        bytewise: texts in statements are bytes (character_set_client is binary), which columns take
            as they are, whatever character set is theirs.
        types: words that name another type than by default, and which.
    """

    ansi_quotes: bool = False
    strict: bool = False
    explicit_timestamps: bool = True
    empty_is_null: bool = False
    pads_chars: bool = False
    bytewise: bool = False
    types: tuple[tuple[str, str], ...] = ()


DEFAULT_MODES: Final = SessionModes()
