"""
The application behind the admin's port: its views, and what they share.

A view is a starlette `Route` in its module's `ROUTES`, which are put together here. In a view,
`request.app.state.server` is the server, `login_of(request)` who asks, and `on_thread` does what
may touch the disk.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from . import health_views, login_views
from .gate import STATIC, Gate
from .login_views import Logins
from .web_sessions import WebSessions

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from ibb.server.server import Server

STATIC_FOLDER: Final = Path(__file__).parent / "static"
T = TypeVar("T")


def make_app(server: Server, *, encrypted: bool) -> ASGIApp:
    """
    Return the application of *server*.

    Args:
        server: it has started.
        encrypted: whether the port has TLS.
    """
    static = Mount(STATIC.rstrip("/"), StaticFiles(directory=STATIC_FOLDER))
    app = Starlette(routes=[*login_views.ROUTES, *health_views.ROUTES, static])
    app.state.server = server
    app.state.sessions = WebSessions(lambda: server.accounts, time.monotonic)
    app.state.logins = Logins(server, encrypted=encrypted)
    return Gate(app, app.state.sessions)


async def on_thread(request: Request, work: Callable[[], T]) -> T:
    """Return what *work* does, in a thread for statements: it may look at the disk."""
    server: Server = request.app.state.server
    return await asyncio.get_running_loop().run_in_executor(server.pools.statements, work)
