"""`/healthz`: the process lives. `/readyz`: it does its work, or why not. Both without a login."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from ibb.server.dashboard.not_shown import not_shown_to, told

from .readiness import reasons_not_ready

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


async def _health(request: Request) -> Response:
    """Answer: that the event loop turns is what is asked."""
    del request
    return PlainTextResponse("ok\n")


async def _readiness(request: Request) -> Response:
    """Answer 200 or 503, with the reasons; their texts for who is logged in and may see them."""
    reasons = reasons_not_ready(request.app.state.server)
    content: dict[str, object] = {
        "ready": not reasons,
        "reasons": [reason.code for reason in reasons],
    }
    login = request.state.login
    if login is not None:
        not_shown = not_shown_to(login.account)
        content["texts"] = [told(reason.about, reason.text, not_shown) for reason in reasons]
    return JSONResponse(content, 503 if reasons else 200)


ROUTES: Final = (Route("/healthz", _health), Route("/readyz", _readiness))
