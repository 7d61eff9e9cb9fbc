"""What SHOW PROCESSLIST shows of a statement: no text that passwords may stand in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ibb.server.sql.ast import ChangeMaster, Execute, Prepare

if TYPE_CHECKING:
    from ibb.server.sql.parser import Parsed


def shown_text(parsed: Parsed) -> str:
    """Return a statement's text, or its first words where a CHANGE MASTER may be inside."""
    match parsed.statement:
        case ChangeMaster():
            return "CHANGE MASTER"
        case Prepare():
            return "PREPARE"
        case Execute() if parsed.statement.text is not None:
            return "EXECUTE IMMEDIATE"
    return parsed.text
