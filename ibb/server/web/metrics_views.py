"""
`/metrics` for Prometheus: what exists is read when it is asked for, so that nothing else pays.

It is open to this machine, though not through a proxy on it, to who is logged in or sends user and
password by HTTP's basic authentication, and with `metrics_open` to everybody.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from ibb.server.config import is_loopback

from .families import counter, gauge
from .gate import METRICS, on_thread
from .history_metrics import HistoryMetrics
from .login_views import LACKS, Refusal, address_of
from .reader_metrics import SentBytes, reader_metrics
from .replica_metrics import replica_metrics
from .server_metrics import server_metrics
from .storage_metrics import storage_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric
    from starlette.requests import Request

    from ibb.server.server import Server

    from .admin_listener import AdminListener
    from .web_sessions import WebSessions

# Headers by which a proxy says that it asks for somebody else; so do all that begin with the last.
_FORWARDED: Final = ("forwarded", "via", "x-real-ip", "x-forwarded-")
_CHALLENGE: Final = {"www-authenticate": 'Basic realm="ibb", charset="UTF-8"'}


class Metrics:
    """
    All metrics of one server, in a registry of its own.

    Args:
        server: whose they are.
        sessions: of its pages.
        listener: of its pages.

    Attributes:
        registry: where they are.
        scraping: held by who reads them: one at a time.
    """

    def __init__(self, server: Server, sessions: WebSessions, listener: AdminListener) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.scraping = asyncio.Lock()
        self._server = server
        self._sessions = sessions
        self._listener = listener
        self._history = HistoryMetrics(server)
        self._sent = SentBytes()
        ProcessCollector(registry=self.registry)
        self.registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Yield all; looks at the disk."""
        yield from server_metrics(self._server)
        yield from self._history.collect()
        yield from storage_metrics(self._server)
        yield from reader_metrics(self._server, self._sent)
        yield from replica_metrics(self._server)
        listener = self._listener
        yield gauge("ibb_admin_connections", "Connections to the admin's port.", len(listener))
        yield counter(
            "ibb_admin_connections_refused",
            "Those that found all places taken.",
            listener.turned_away,
        )
        yield gauge("ibb_admin_sessions", "Browsers that have logged in.", len(self._sessions))


async def _show(request: Request) -> Response:
    state = request.app.state
    if not _is_open(request) and (refused := await _refusal(request)) is not None:
        return refused
    encode, content_type = choose_encoder(request.headers.get("accept", ""))
    async with state.metrics.scraping:  # else a few who ask often take all threads for statements
        text = await on_thread(request, lambda: encode(state.metrics.registry))
    return Response(text, headers={"content-type": content_type})


def _is_open(request: Request) -> bool:
    """Tell whether anybody may see them who comes from there."""
    config = request.app.state.server.config
    if config.metrics_open or request.state.login is not None:
        return True
    # With skip_ssl something before us encrypts: this machine's address may be anybody's. nginx
    # without settings of its own says only by HTTP/1.0, which no scraper speaks, that it is there.
    if config.skip_ssl or request.scope["http_version"] == "1.0":
        return False
    if any(name.startswith(_FORWARDED) for name in request.headers):
        return False
    # By name, somebody else's page could have the browser of an administrator ask.
    return is_loopback(address_of(request)) and is_loopback(request.url.hostname or "")


async def _refusal(request: Request) -> Response | None:
    """Return what answers whoever sends no user and password that open them."""
    asking = PlainTextResponse("log in, or send user and password\n", 401, _CHALLENGE)
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return asking
    try:
        user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return asking
    answer = await request.app.state.logins.check(address_of(request), user, password)
    if not isinstance(answer, Refusal):
        return None
    if answer.wait_seconds or answer.text == LACKS:
        return JSONResponse({"error": answer.text}, answer.status, answer.headers)
    return asking


ROUTES: Final = (Route(METRICS, _show),)
