"""How the server is that change tables come from, as far as its statements depend on it."""

from __future__ import annotations

from typing import Final, NamedTuple


class ServerTraits(NamedTuple):
    """
    How a server is.

    Args:
        lower_case: it compares names of tables in lower case. With lower_case_table_names of 1 it
            stores them so too, with 2 as they were given; with 0 names that differ in case are
            different tables.
        logs_generated: it logs generated columns.
    """

    lower_case: bool = False
    logs_generated: bool = True


USUAL: Final = ServerTraits()
