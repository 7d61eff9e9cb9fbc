"""docs/reference/metrics.md: every metric of the admin's port."""

import asyncio
import tempfile
from typing import Any

from ibb.server.config import Config
from ibb.server.login.accounts import AccountBook
from ibb.server.measured_disk import MeasuredDisk
from ibb.server.relay.relay_control import RelayControl
from ibb.server.relay.upstream import UpstreamAddress
from ibb.server.relay.upstream_tls import UpstreamTls
from ibb.server.server import Server
from ibb.server.storage_figures import StorageFigures
from ibb.server.web.metrics_views import Metrics
from ibb.server.web.web_sessions import WebSessions
from ibb.storage.store import Store

from ...tiny import SMALL
from .markdown import NOTICE, code, table

INTRODUCTION = """\
# Metrics

`/metrics` of the admin's port ([Watching a server](../monitoring.md)). Those of the relay are there
while an upstream is named, those of redo log, page FIFO and syncs where `ibb serve` writes the
store. Beside them are `process_*`, as in all of Prometheus' Python clients.
"""
_SUFFIXES = {"counter": "_total", "info": "_info"}


def metrics_page() -> str:
    """Return the page."""
    head = ("metric", "kind", "labels", "meaning")
    return "\n".join([NOTICE, INTRODUCTION, table(head, map(_line, families()))])


def families() -> list[Any]:
    """Return every family that a server with an upstream has."""
    with tempfile.TemporaryDirectory() as folder:
        disk = MeasuredDisk(folder)
        with Store.open(folder, SMALL, disk=disk) as store:
            figures = StorageFigures(store, folder, disk, SMALL)
            return asyncio.run(_families(store, folder, figures))


async def _families(store: Store, folder: str, figures: StorageFigures) -> list[Any]:
    accounts = AccountBook()
    server = Server(store, config=Config(listen="127.0.0.1:0"), accounts=accounts, place=folder)
    tls = UpstreamTls.from_config(server.config)
    address = UpstreamAddress("primary", 3306, "repl", "", tls)
    server.upstream = RelayControl(store, server, address, tls)
    server.storage = figures
    sessions = WebSessions(lambda: accounts, server.uptime)
    listener: Any = _Listener()
    return list(Metrics(server, sessions, listener).collect())


class _Listener:
    turned_away = 0

    def __len__(self) -> int:
        return 0


def shown_name(family: Any) -> str:
    """Return a family's name as Prometheus has it in queries."""
    return str(family.name) + _SUFFIXES.get(family.type, "")


def _line(family: Any) -> tuple[str, str, str, str]:
    labels = ", ".join(map(code, getattr(family, "_labelnames", ())))
    return code(shown_name(family)), family.type, labels, family.documentation
