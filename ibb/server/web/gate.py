"""
What every request passes: who may see what, what browsers may do with it, and errors.

Everything needs a login but what `OPEN_PATHS` and `STATIC` name, so that no view can forget to ask.
"""

from __future__ import annotations

import asyncio
from email.utils import formatdate
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Final, TypeVar

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse

from ibb.server.log import get_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ibb.server.server import Server

    from .web_sessions import WebSession, WebSessions

T = TypeVar("T")

COOKIE: Final = "ibb_session"
LOGIN: Final = "/login"
LOGOUT: Final = "/logout"
STATIC: Final = "/static/"
OPEN_PATHS: Final = frozenset({LOGIN, "/healthz", "/readyz"})
METRICS: Final = "/metrics"  # asks by itself: Prometheus has no cookie
BODY_BYTES_MAX: Final = 4096  # of a request; only logins have one
_POSTS: Final = frozenset({LOGIN, LOGOUT})

_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # without one, browsers send forms with no origin
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Gate:
    """
    The application behind its door.

    Args:
        app: what answers requests.
        sessions: who is logged in.
    """

    def __init__(self, app: ASGIApp, sessions: WebSessions) -> None:
        self._app = app
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        began = False

        async def send_safely(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                _protect(MutableHeaders(scope=message), scope["path"])
            await send(message)

        answer = self._app
        refusal = self._refusal(scope)
        if refusal is not None:
            answer = refusal
        try:
            await answer(scope, receive, send_safely)
        except ClientDisconnect:  # before its request was there: nobody is left to answer
            return
        except Exception as error:  # noqa: BLE001 - a bug in a view must not end the server
            get_log().exception("admin_view_failed", path=scope["path"], error=repr(error))
            if not began:
                failed = PlainTextResponse("internal error, see the log\n", 500)
                await failed(scope, receive, send_safely)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        """Return what answers in place of the application, None if it may answer itself."""
        path, method, headers = scope["path"], scope["method"], Headers(scope=scope)
        if method not in ("GET", "HEAD") and not (method == "POST" and path in _POSTS):
            return PlainTextResponse("these pages only read\n", 405, {"allow": "GET, HEAD"})
        if method == "POST" and _is_foreign(headers):
            return PlainTextResponse("this request comes from another page\n", 403)
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit() and int(length) <= BODY_BYTES_MAX):
            return PlainTextResponse("the request is too large\n", 413)
        session = self._sessions.find(token_of(headers))
        scope.setdefault("state", {})["login"] = session
        if session is not None or path in (*OPEN_PATHS, METRICS) or path.startswith(STATIC):
            return None
        if "text/html" in headers.get("accept", "") and method != "POST":
            return RedirectResponse(LOGIN, 303)
        return JSONResponse({"error": "log in first"}, 401)


def login_of(request: Request) -> WebSession:
    """Return who asks; for views that only those see who are logged in."""
    session: WebSession | None = request.state.login
    assert session is not None
    return session


async def on_thread(request: Request, work: Callable[[], T]) -> T:
    """Return what *work* does, in a thread for statements: it may look at the disk."""
    server: Server = request.app.state.server
    return await asyncio.get_running_loop().run_in_executor(server.pools.statements, work)


def token_of(headers: Headers) -> str:
    """Return the token of the session's cookie, "" without one."""
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if cookie is None else cookie.value


def _is_foreign(headers: Headers) -> bool:
    """Tell whether a browser says that a page of somebody else sends this."""
    origin = headers.get("origin")
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    return origin is not None and origin.partition("://")[2] != headers.get("host", "")


def _protect(headers: MutableHeaders, path: str) -> None:
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)
    headers.setdefault("cache-control", "no-cache" if path.startswith(STATIC) else "no-store")
    headers["date"] = formatdate(usegmt=True)
