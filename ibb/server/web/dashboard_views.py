"""
What the dashboard's page asks for: JSON by the names of SQL, and overviews as they come.

Each view asks for the privilege that a statement wants which tells as much, see `_VIEWS`.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from ibb.protocol.errors import IbbError
from ibb.protocol.gtid import Gtid
from ibb.server.config import Config
from ibb.server.dashboard.broadcaster import RETRY_MS, TooManyWatchers
from ibb.server.dashboard.group_look import NoSuchGroup, list_groups, look_into
from ibb.server.dashboard.gtid_lookup import find_gtid
from ibb.server.dashboard.live import TooManyLooks
from ibb.server.dashboard.not_shown import READERS, UPSTREAM, not_shown_to, shown_files
from ibb.server.dashboard.reader_table import ORDERS, ReaderQuery, reader_page
from ibb.server.dashboard.samples import SAMPLE_SECONDS, SAMPLES_MAX, Sample
from ibb.server.dashboard.statement_rows import statement_rows
from ibb.server.statements.privileges_needed import DUMP, denied, may
from ibb.storage.file_name import binlog_name, parse_binlog_name
from ibb.storage.position import Position

from .gate import login_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from ibb.server.dashboard.gtid_lookup import FoundGtid
    from ibb.server.dashboard.live import Dashboard
    from ibb.server.dashboard.not_shown import NotShown
    from ibb.server.dashboard.statement_rows import Row
    from ibb.server.login.accounts import Account
    from ibb.server.server import Server

NUMBER_MAX: Final = 1 << 62
TEXT_CHARS_MAX: Final = 200
_NUMBER: Final = re.compile("[0-9]{1,19}")  # no more digits than `NUMBER_MAX` has
_PAGE: Final = Path(__file__).parent / "static" / "dashboard" / "index.html"


class LiveResponse(Response):
    """
    Overviews as they come, until the client goes, logs out, or does not keep up.

    Args:
        dashboard: whose.
        not_shown: what the client is not shown.
        holds: tells whether it is still logged in.
    """

    media_type = "text/event-stream"

    def __init__(
        self, dashboard: Dashboard, not_shown: NotShown, holds: Callable[[], bool]
    ) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._dashboard = dashboard
        self._not_shown = not_shown
        self._holds = holds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until one of them ends it."""
        del scope
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        leaving = asyncio.create_task(_gone(receive))
        sending = asyncio.create_task(self._send(send))
        try:
            await asyncio.wait((leaving, sending), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            sending.cancel()
            await asyncio.gather(leaving, sending, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        with self._dashboard.broadcaster.watching(self._not_shown) as watcher:
            await send(_piece(b"retry: %d\n\n" % RETRY_MS))
            while (message := await watcher.next()) is not None and self._holds():
                await send(_piece(message))
        await send(_piece(b"", more=False))


def _piece(body: bytes, *, more: bool = True) -> dict[str, object]:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class BadRequest(ValueError):  # noqa: N818 - an answer
    """What was asked cannot be read; the message says why."""


class _View(NamedTuple):
    """
    A view that answers in JSON.

    Attributes:
        name: behind /api/.
        answer: what it answers.
        statement: whose privilege it asks for.
    """

    name: str
    answer: Callable[[Request], Awaitable[object]]
    statement: str


def _endpoint(view: _View) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers for a view, errors and refusals in JSON too."""

    async def endpoint(request: Request) -> Response:
        if not may(view.statement, _account(request)):
            return JSONResponse({"error": str(denied(view.statement))}, 403)
        try:
            return JSONResponse(await view.answer(request))
        except BadRequest as error:
            status = 400
            text = str(error)
        except NoSuchGroup as error:
            status, text = 404, str(error)
        except TooManyLooks as error:
            status, text = 503, str(error)
        except IbbError as error:  # a damaged file, a GTID that is none: the person can read it
            status, text = 422, str(error)
        return JSONResponse({"error": text}, status)

    return endpoint


def _account(request: Request) -> Account:
    return login_of(request).account


def _server(request: Request) -> Server:
    server: Server = request.app.state.server
    return server


def _dashboard(request: Request) -> Dashboard:
    dashboard: Dashboard = request.app.state.dashboard
    return dashboard


def _number(request: Request, name: str, default: int = 0) -> int:
    text = request.query_params.get(name, str(default))
    if not (_NUMBER.fullmatch(text) and int(text) <= NUMBER_MAX):
        raise BadRequest(f"{name} is a number, not {text[:TEXT_CHARS_MAX]!r}")
    return int(text)


def _text(request: Request, name: str, default: str = "") -> str:
    text = request.query_params.get(name, default)
    if len(text) > TEXT_CHARS_MAX:
        raise BadRequest(f"{name} has {TEXT_CHARS_MAX} characters at most")
    return text


async def _page(request: Request) -> Response:
    del request
    return FileResponse(_PAGE)


async def _live(request: Request) -> Response:
    dashboard, sessions = _dashboard(request), request.app.state.sessions
    login = login_of(request)
    if dashboard.broadcaster.is_full:
        return JSONResponse({"error": str(TooManyWatchers())}, 503)
    return LiveResponse(dashboard, not_shown_to(login.account), lambda: sessions.holds(login))


async def _refused(request: Request) -> object:
    """Answer with the error of each view that would be refused, by its name."""
    account = _account(request)
    return {
        view.name: str(denied(view.statement))
        for view in _VIEWS
        if not may(view.statement, account)
    }


async def _samples(request: Request) -> object:
    seconds = _number(request, "seconds", 900)
    wanted = min(SAMPLES_MAX, int(seconds / SAMPLE_SECONDS))
    rows = _dashboard(request).samples.last(wanted)
    return {"every": SAMPLE_SECONDS, "columns": Sample._fields, "rows": rows}


async def _readers(request: Request) -> object:
    order = _text(request, "order", "Bytes_behind")
    if order not in ORDERS:
        raise BadRequest(f"order is one of {', '.join(ORDERS)}")
    query = ReaderQuery(
        order,
        _text(request, "descending", "1") == "1",
        _text(request, "text"),
        _number(request, "offset"),
        _number(request, "limit", 50),
    )
    dashboard, server = _dashboard(request), _server(request)
    readers = dashboard.observer.readers
    page = await dashboard.look(lambda: reader_page(server, readers, query))
    return page._asdict()


async def _files(request: Request) -> object:
    offset, limit = _number(request, "offset"), _number(request, "limit", 50)
    dashboard = _dashboard(request)
    page = await dashboard.look(lambda: dashboard.files.page(offset, limit))
    return shown_files(page, not_shown_to(_account(request)))._asdict()


async def _leases(request: Request) -> object:
    return {"rows": await _rows(request, "SHOW BINLOG LEASES")}


async def _rows(request: Request, sql: str) -> list[Row]:
    """Return the rows of a statement, as who asks may have them."""
    server, account = _server(request), _account(request)
    return await _dashboard(request).look(lambda: statement_rows(server, sql, account))


async def _groups(request: Request) -> object:
    history = _server(request).history
    file, offset, limit = _text(request, "file"), _number(request, "offset"), 100
    found = await _dashboard(request).look(lambda: list_groups(history, file, offset, limit))
    return found._asdict()


async def _find(request: Request) -> object:
    found = await _found(request)
    place = found.position
    return {
        "Gtid": str(found.gtid),
        "File": None if place is None else binlog_name(place.file_no),
        "Position": None if place is None else place.offset,
        "answer": found.answer,
    }


async def _found(request: Request) -> FoundGtid:
    history, gtid = _server(request).history, Gtid.parse(_text(request, "gtid"))
    return await _dashboard(request).look(lambda: find_gtid(history, gtid))


async def _group(request: Request) -> object:
    """Answer with what is in a group: by its place, or by its GTID."""
    if "gtid" in request.query_params:
        found = await _found(request)
        if found.position is None:
            raise NoSuchGroup(f"{found.gtid} is {found.answer}")
        position = found.position
    else:
        file, offset = _text(request, "file"), _number(request, "offset")
        number = parse_binlog_name(file)
        if number is None:
            raise NoSuchGroup(f"there is no file {file!r}")
        position = Position(number, offset)
    history, skip = _server(request).history, _number(request, "skip")
    look = await _dashboard(request).look(lambda: look_into(history, position, skip))
    return {
        "Gtid": str(look.gtid),
        "Time": look.timestamp,
        "File": binlog_name(position.file_no),
        "Position": position.offset,
        "bytes": look.size,
        "events": look.events,
        "skip": skip,
        "rows": look.rows,
        "left_out": look.left_out,
    }


async def _upstream(request: Request) -> object:
    return {"rows": await _rows(request, UPSTREAM)}


async def _settings(request: Request) -> object:
    """Answer with the settings that may be seen, and with the variables and status of SQL."""
    config = _server(request).config
    hides_upstream = not may(UPSTREAM, _account(request))
    settings = [
        {
            "name": setting.name,
            "value": getattr(config, setting.name),
            "default": setting.default,
            "unit": setting.metadata["unit"],
            "help": setting.metadata["help"],
        }
        for setting in fields(Config)
        if not setting.name.endswith("password")
        and not (hides_upstream and setting.name.startswith("upstream"))
    ]
    variables = await _rows(request, "SHOW GLOBAL VARIABLES")
    status = await _rows(request, "SHOW GLOBAL STATUS")
    return {"settings": settings, "variables": variables, "status": status}


_VIEWS: Final = (
    _View("refused", _refused, "SHOW GRANTS"),
    _View("samples", _samples, "SHOW BINLOG STATUS"),
    _View("readers", _readers, READERS),
    _View("files", _files, "SHOW BINARY LOGS"),
    _View("leases", _leases, "SHOW BINLOG LEASES"),
    _View("groups", _groups, "SHOW BINLOG EVENTS"),
    _View("find", _find, "SHOW BINLOG EVENTS"),
    _View("group", _group, DUMP),  # its rows, which SHOW BINLOG EVENTS does not tell
    _View("upstream", _upstream, UPSTREAM),
    _View("settings", _settings, "SHOW GLOBAL VARIABLES"),
)
ROUTES: Final = (
    Route("/", _page),
    Route("/api/live", _live),
    *(Route(f"/api/{view.name}", _endpoint(view)) for view in _VIEWS),
)
