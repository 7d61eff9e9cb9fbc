"""
How long the log of a Delta table knows which files went when, and what its versions were.

A vacuum goes by it: a file that the log has forgotten may have gone yesterday or years ago, and is
judged by when it was written. So the log must know of as many hours as files are to be kept for;
of more it need not: a version without its files is of no use, and each costs time.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from deltalake import DeltaTable

REMOVED_KEY: Final = "delta.deletedFileRetentionDuration"
LOG_KEY: Final = "delta.logRetentionDuration"
OURS_KEY: Final = "ibb.keep_hours"  # for how many hours the pipeline has set these
DEFAULTS: Final = {REMOVED_KEY: timedelta(days=7), LOG_KEY: timedelta(days=30)}  # Delta's own
_INTERVAL: Final = re.compile(
    r"(?:interval\s+)?'?(\d{1,8})'?\s+(second|minute|hour|day|week)s?", re.IGNORECASE
)


def keep_known(table: DeltaTable, hours: int) -> bool:
    """
    Have the log of *table* know of the last *hours*, in a commit of its own if it needs one.

    What somebody else has set to more stays.

    Returns:
        whether removed files had been known for less, so that older ones are forgotten already.
    """
    settings = table.metadata().configuration
    wanted = timedelta(hours=hours)
    changed, shorter = {}, False
    for key, default in DEFAULTS.items():
        text = settings.get(key)
        has = default if text is None else _duration(text)
        is_ours = text in (None, f"interval {settings.get(OURS_KEY)} hours")
        if has is not None and (has < wanted or (is_ours and has > wanted)):
            changed[key] = f"interval {hours} hours"
            shorter = shorter or (key == REMOVED_KEY and has < wanted)
    if changed:
        changed[OURS_KEY] = str(hours)
        table.alter.set_table_properties(changed, raise_if_not_exists=False)
    return shorter


def _duration(text: str) -> timedelta | None:
    """Return what *text* says; None: it is none of the units that have one length."""
    found = _INTERVAL.fullmatch(text.strip())
    return None if found is None else timedelta(**{f"{found[2].lower()}s": int(found[1])})
