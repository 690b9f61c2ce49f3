"""One log line per request: the route as it is declared, so that no key or id of its path is in it, status and time."""

from __future__ import annotations

import logging
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("memagent.requests")

ID_HEADER = b"x-request-id"
TIMING_HEADER = b"server-timing"
"""How long the answer took here, in ms; what a caller waited beyond that was spent on the way (W3C Server Timing)."""


class RequestLog:
    """Logs every request, under an id that its answer carries too, beside the time it took."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        started, status, request_id = perf_counter(), 500, uuid4().hex

        def ms() -> float:
            return round((perf_counter() - started) * 1000, 1)

        async def named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", ()),
                    (ID_HEADER, request_id.encode()),
                    (TIMING_HEADER, f"app;dur={ms()}".encode()),
                ]
            await send(message)

        try:
            await self.app(scope, receive, named)
        finally:
            extra = {
                "request_id": request_id,
                "method": scope["method"],
                "route": getattr(scope.get("route"), "path", "unknown"),
                "status": status,
                "ms": ms(),
            }
            log.info("a request", extra=extra)
        return None
