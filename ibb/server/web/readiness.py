"""Whether the server does what it is there for, and if not, why: for those who restart servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ibb.server.storage_watch import DISK_HANGS, HISTORY_DAMAGED, storage_troubles
from ibb.storage.errors import DiskError, StoreFailed, StoreFull
from ibb.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibb.server.server import Server

STORE_STOPPED: Final = "store_stopped"
DISK_FULL: Final = "disk_full"
UPSTREAM_STOPPED: Final = "upstream_stopped"
UPSTREAM_LOST: Final = "upstream_lost"
REASONS: Final = (
    *(HISTORY_DAMAGED, DISK_HANGS, STORE_STOPPED, DISK_FULL),
    *(UPSTREAM_STOPPED, UPSTREAM_LOST),
)


class Reason(NamedTuple):
    """
    Something that is not as it should be.

    Attributes:
        code: one word, for programs; it tells strangers nothing of the place.
        text: a sentence for those who are logged in.
    """

    code: str
    text: str

    @property
    def about(self) -> str:
        """What of the server it is about, as alerts have it."""
        return self.code.partition("_")[0]


def reasons_not_ready(server: Server) -> list[Reason]:
    """Return what keeps *server* from its work, nothing if it is ready."""
    return [*_of_store(server), *_of_upstream(server)]


def _of_store(server: Server) -> Iterator[Reason]:
    troubles = storage_troubles(server)
    for code, text in troubles.items():
        yield Reason(code, text)
    if DISK_HANGS in troubles or not isinstance(server.history, Store):
        return  # a store that waits for its disk may have who asks it wait, too
    try:
        server.history.begin().rollback()
    except StoreFailed as error:
        yield Reason(STORE_STOPPED, str(error))


def _of_upstream(server: Server) -> Iterator[Reason]:
    upstream = server.upstream
    if upstream is None or not upstream.is_configured:
        return
    trouble = upstream.trouble
    if isinstance(trouble, StoreFull) or (isinstance(trouble, DiskError) and trouble.full):
        yield Reason(DISK_FULL, str(trouble))
        return
    if not upstream.is_running:
        why = "it was told to stop" if trouble is None else upstream.told(trouble)
        yield Reason(UPSTREAM_STOPPED, f"the relay stands still: {why}")
    elif not upstream.is_connected:
        why = "" if trouble is None else f": {upstream.told(trouble)}"
        yield Reason(UPSTREAM_LOST, f"the upstream does not send{why}")
