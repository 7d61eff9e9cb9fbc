"""What the packets of a dump are made from, whoever makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ibb.storage.history import History

    from .dump_request import DumpRequest
    from .pacing import Pace


@dataclass(frozen=True, slots=True)
class DumpTerms:
    """
    One dump, as it was asked for and as it is served.

    Attributes:
        history: where groups come from.
        request: what the client wants.
        server_id: our own, in the events that we make.
        server_version: for the format description where the history has none.
        now: seconds since 1970, for the events that `mariadb-binlog` reads the time of.
        pace: how fresh the client is served.
    """

    history: History
    request: DumpRequest
    server_id: int
    server_version: str
    now: int
    pace: Pace
