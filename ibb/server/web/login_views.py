"""Logging in to the pages and out again, with the accounts that replicas and people have."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, RedirectResponse
from starlette.routing import Route

from ibb.protocol.error_codes import SPECIFIC_ACCESS_DENIED_ERROR
from ibb.server.addresses import plain_address
from ibb.server.login.login_guard import address_key
from ibb.server.login.password_check import account_opened_by

from .gate import BODY_BYTES_MAX, COOKIE, LOGIN, LOGOUT, token_of
from .web_sessions import PRIVILEGE, SESSION_SECONDS_MAX

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from ibb.server.login.accounts import Account
    from ibb.server.server import Server

LOGINS_MAX: Final = 8  # that are being checked; each takes its turn in one thread
FORM_SECONDS_MAX: Final = 5.0  # for the form to arrive
BUSY_SECONDS: Final = 1.0  # until who finds all of them at work tries again
LACKS: Final = str(SPECIFIC_ACCESS_DENIED_ERROR.error(PRIVILEGE))  # behind a right password only
_WRONG: Final = "Wrong user or password."
_BLOCKED: Final = "Too many failed logins from this address. Wait a while."
_BUSY: Final = "Too many people log in right now. Try again."

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Log in - ibb</title>
<link rel="icon" href="/static/dashboard/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/static/dashboard/style.css">
<link rel="stylesheet" href="/static/login.css">
<script src="/static/dashboard/theme.js"></script>
</head>
<body>
<main>
<h1>ibb</h1>
<p class="note">With an account of this server that has BINLOG MONITOR (REPLICATION CLIENT).</p>
<form method="post" action="/login">
{message}<label for="user">User</label>
<input id="user" name="user" autocomplete="username" autofocus required maxlength="128">
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<button>Log in</button>
</form>
</main>
</body>
</html>
"""


class Refusal(NamedTuple):
    """
    Why a login is refused.

    Attributes:
        text: for who logs in.
        wait_seconds: 0 for a login that is wrong, else when it may be tried again.
    """

    text: str
    wait_seconds: float = 0.0

    @property
    def status(self) -> int:
        """Of HTTP: 403, or 429 for who has to wait."""
        return 429 if self.wait_seconds else 403

    @property
    def headers(self) -> dict[str, str]:
        """What says when it may be tried again."""
        seconds = math.ceil(self.wait_seconds)
        return {"retry-after": str(seconds)} if seconds else {}


class Logins:
    """
    Checks passwords that come by the web, as strictly as those that come by MariaDB's protocol.

    Failures have a count of their own: whatever scrapes with an old password must not lock out the
    replicas of its address. Each count blocks as the other does, and a login by one forgives
    nothing of the other: so who guesses by both has twice the guesses, and no more.

    Args:
        server: whose accounts they are.
        encrypted: whether the port has TLS.
    """

    def __init__(self, server: Server, *, encrypted: bool) -> None:
        self._server = server
        self._encrypted = encrypted
        self._checking = 0

    async def check(self, address: str, user: str, password: str) -> Account | Refusal:
        """
        Return the account that may look, or why there is none.

        Args:
            address: the client's.
            user: as it was typed.
            password: the same.
        """
        server, key = self._server, _guard_key(address)
        if seconds := server.guard.seconds_blocked(key):
            return Refusal(_BLOCKED, seconds)
        if self._checking >= LOGINS_MAX:
            return Refusal(_BUSY, BUSY_SECONDS)
        self._checking += 1
        try:
            account = await asyncio.get_running_loop().run_in_executor(
                server.pools.logins, self._account, user, password, hosts_of(address)
            )
        finally:
            self._checking -= 1
        if account is None or not account.may(PRIVILEGE):
            server.aborted_connects += 1
            reason = "wrong user or password" if account is None else f"lacks {PRIVILEGE}"
            server.refusals.tell(key, "admin_login_refused", address=address, reason=reason)
            if account is None and (seconds := server.guard.failed(key, user)):
                server.refusals.tell(key, "address_blocked", address=key, seconds=seconds)
            return Refusal(_WRONG if account is None else LACKS)
        server.guard.succeeded(key, user)
        return account

    def _account(self, user: str, password: str, hosts: tuple[str, ...]) -> Account | None:
        server = self._server
        return account_opened_by(
            server.accounts, server.methods, user, password, hosts, encrypted=self._encrypted
        )


def address_of(request: Request) -> str:
    """Return the address of who asks; of a proxy's clients, the proxy's."""
    return "" if request.client is None else plain_address(request.client.host)


def hosts_of(address: str) -> tuple[str, ...]:
    """Return address and names by which accounts may know a client, the one to show first."""
    return ("localhost", address) if address in ("127.0.0.1", "::1") else (address,)


def _guard_key(address: str) -> str:
    """Return what the server's `LoginGuard` counts failures of the web by, at *address*."""
    return f"web:{address_key(address)}"


async def _show(request: Request) -> Response:
    if request.state.login is not None:
        return RedirectResponse("/", 303)
    return _page("", 200)


async def _log_in(request: Request) -> Response:
    fields = await _form(request)
    if fields is None:
        return _page("The form is too large, or took too long.", 413)
    address, state = address_of(request), request.app.state
    answer = await state.logins.check(address, fields.get("user", ""), fields.get("password", ""))
    if isinstance(answer, Refusal):
        return _page(answer.text, answer.status, answer.headers)
    state.sessions.end(token_of(request.headers))
    token = state.sessions.begin(answer, hosts_of(address))
    reply = RedirectResponse("/", 303)
    reply.set_cookie(
        COOKIE,
        token,
        max_age=int(SESSION_SECONDS_MAX),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return reply


async def _log_out(request: Request) -> Response:
    request.app.state.sessions.end(token_of(request.headers))
    reply = RedirectResponse(LOGIN, 303)
    reply.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return reply


async def _form(request: Request) -> dict[str, str] | None:
    """Return the fields of the form, None if there is more of it than there may be."""
    body = b""
    try:
        async with asyncio.timeout(FORM_SECONDS_MAX):
            async for piece in request.stream():
                body += piece
                if len(body) > BODY_BYTES_MAX:
                    return None
    except TimeoutError:
        return None
    found = parse_qs(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=8)
    return {name: values[-1] for name, values in found.items()}


def _page(message: str, status: int, headers: dict[str, str] | None = None) -> Response:
    shown = f'<p role="alert">{message}</p>\n' if message else ""
    return HTMLResponse(_PAGE.replace("{message}", shown), status, headers)


ROUTES: Final = (
    Route(LOGIN, _show, methods=["GET"]),
    Route(LOGIN, _log_in, methods=["POST"]),
    Route(LOGOUT, _log_out, methods=["POST"]),
)
