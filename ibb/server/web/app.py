"""
The application behind the admin's port: its views, and what they share.

A view is a starlette `Route` in its module's `ROUTES`, which are put together here. In a view,
`request.app.state.server` is the server, `login_of(request)` who asks, and `on_thread` does what
may touch the disk.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from . import dashboard_views, health_views, login_views, metrics_views
from .gate import STATIC, Gate
from .login_views import Logins
from .metrics_views import Metrics
from .web_sessions import WebSessions

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from ibb.server.server import Server

    from .admin_listener import AdminListener

STATIC_FOLDER: Final = Path(__file__).parent / "static"


def make_app(server: Server, listener: AdminListener, *, encrypted: bool) -> ASGIApp:
    """
    Return the application of *server*.

    Args:
        server: it has started.
        listener: of the port.
        encrypted: whether the port has TLS.
    """
    static = Mount(STATIC.rstrip("/"), StaticFiles(directory=STATIC_FOLDER))
    views = (
        *(*login_views.ROUTES, *health_views.ROUTES),
        *(*metrics_views.ROUTES, *dashboard_views.ROUTES),
    )
    app = Starlette(routes=[*views, static])
    app.state.server = server
    app.state.dashboard = listener.dashboard
    app.state.sessions = WebSessions(lambda: server.accounts, time.monotonic)
    app.state.logins = Logins(server, encrypted=encrypted)
    app.state.metrics = Metrics(server, app.state.sessions, listener)
    return Gate(app, app.state.sessions)
