"""
What of the dashboard an account is not shown, since SQL does not show it either.

Who may log in has BINLOG MONITOR; who the upstream is and who reads want other privileges. In place
of an alert that would tell of them stands which privilege it wants.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final, TypeAlias

from ibb.server.statements.privileges_needed import denied, may

if TYPE_CHECKING:
    from ibb.server.login.accounts import Account

    from .alerts import Alert
    from .file_table import FilePage
    from .overview import Overview

NotShown: TypeAlias = frozenset[str]

UPSTREAM: Final = "SHOW REPLICA STATUS"
READERS: Final = "SHOW BINLOG READERS"
_PARTS: Final = (UPSTREAM, READERS)
ALL_NOT_SHOWN: Final[tuple[NotShown, ...]] = tuple(
    frozenset(some) for count in range(len(_PARTS) + 1) for some in combinations(_PARTS, count)
)
_OF_ALERTS: Final = {"upstream": UPSTREAM, "reader": READERS, "purge": READERS}


def not_shown_to(account: Account) -> NotShown:
    """Return the statements whose answers an account is not shown: one of `ALL_NOT_SHOWN`."""
    return frozenset(part for part in _PARTS if not may(part, account))


def told(about: str, text: str, not_shown: NotShown) -> str:
    """
    Return what is said of a trouble: its text, or which privilege that wants.

    Args:
        about: as of `Alert`.
        text: the whole.
        not_shown: as `not_shown_to` gives it.
    """
    part = _OF_ALERTS.get(about)
    return f"not shown: {denied(part)}" if part is not None and part in not_shown else text


def shown_overview(overview: Overview, not_shown: NotShown) -> Overview:
    """Return what is left of an overview."""
    alerts: list[Alert] = [
        alert._replace(text=told(alert.about, alert.text, not_shown)) for alert in overview.alerts
    ]
    return overview._replace(
        upstream=None if UPSTREAM in not_shown else overview.upstream,
        readers=overview.readers._replace(rows=[]) if READERS in not_shown else overview.readers,
        alerts=list(dict.fromkeys(alerts)),  # of readers there may be many
    )


def shown_files(page: FilePage, not_shown: NotShown) -> FilePage:
    """Return what is left of a page of files: readers are among those who need them."""
    if READERS not in not_shown:
        return page
    rows = [row | {"Needed_because": None} for row in page.rows]
    return page._replace(rows=rows, needs=[], more_needs=0, last_purge="")
