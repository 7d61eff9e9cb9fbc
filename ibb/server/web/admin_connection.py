"""One connection to the admin's port: uvicorn's HTTP/1.1, with an end to all waiting."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from h11 import SEND_BODY
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from uvicorn import Config
    from uvicorn.server import ServerState

REQUEST_SECONDS_MAX: Final = 10.0  # until a request is there, TLS behind it
IDLE_SECONDS_MAX: Final = 75.0  # until the next one; Prometheus asks each 15 seconds or so
WRITE_SECONDS_MAX: Final = 30.0  # that a client may not read
HEADER_BYTES_MAX: Final = 16 << 10

# What strangers send would fill the log, and what goes wrong inside the application it logs itself.
_SILENT: Final = logging.getLogger("ibb.web.silent")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class AdminConnection(H11Protocol):
    """
    One client.

    Attributes:
        ended: done when the connection is gone.
    """

    def __init__(self, config: Config, state: ServerState) -> None:
        super().__init__(config, state, {})
        self.logger = self.access_logger = _SILENT
        self.access_log = False
        self.ended: asyncio.Future[None] = self.loop.create_future()
        self._waits_since = self.loop.time()
        self._stuck_since: float | None = None

    @property
    def waits(self) -> bool:
        """Whether no request is at work: the client may be sent away without loss."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def may_go(self) -> bool:
        """Whether the client gives way to others: what goes on now depends on it alone."""
        return self.waits or self._lacks_body or self._stuck_since is not None

    @property
    def _lacks_body(self) -> bool:
        return self.conn.their_state is SEND_BODY

    def abort(self) -> None:
        """Drop the connection with what was not sent."""
        self.transport.abort()

    def end_if_overdue(self, now: float) -> None:
        """Drop the connection if its client had its time; *now* is the loop's."""
        if self._stuck_since is None and self.transport.is_closing():
            self._stuck_since = now
        begins = self.cycle is None or self._lacks_body
        limit = REQUEST_SECONDS_MAX if begins else IDLE_SECONDS_MAX
        too_idle = self.waits and now - self._waits_since > limit
        stuck = self._stuck_since is not None and now - self._stuck_since > WRITE_SECONDS_MAX
        if too_idle or stuck:
            self.abort()

    # What uvicorn and the loop call

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        self._waits_since = self.loop.time()
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell who waits for the end."""
        super().connection_lost(exc)
        if not self.ended.done():
            self.ended.set_result(None)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._waits_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Note that the client does not read."""
        self._stuck_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that it does."""
        self._stuck_since = None
        super().resume_writing()


def protocol_settings(app: Any) -> Config:
    """Return what uvicorn's protocol is made with: HTTP/1.1 alone, without its log."""
    from uvicorn import Config  # noqa: PLC0415 - beside its one use

    settings = Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=int(IDLE_SECONDS_MAX),
        h11_max_incomplete_event_size=HEADER_BYTES_MAX,
    )
    settings.load()
    return settings
