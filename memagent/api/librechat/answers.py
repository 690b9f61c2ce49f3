"""Faults in LibreChat's words: `{"error": …}`, or `{"message": …}` where a permission is missing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from memagent.api.librechat.permissions import INSUFFICIENT
from memagent.errors import (
    BadRequest,
    Busy,
    Conflict,
    Forbidden,
    MemagentError,
    NoSuchMemory,
    NotFound,
    PersonalizationOff,
    Unauthenticated,
)

log = logging.getLogger("memagent.api")

FAILED = {
    "GET": "Failed to retrieve memories.",
    "POST": "Failed to create memory.",
    "PATCH": "Failed to update memory.",
    "DELETE": "Failed to delete memory.",
}


class LibreChatRoute(APIRoute):
    """A route whose faults are answered as LibreChat answers them."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except MemagentError as fault:
                return answer(fault, method=request.method)
            except HTTPException as refused:
                return JSONResponse({"message": refused.detail}, refused.status_code, refused.headers)

        return handled


def answer(fault: MemagentError, *, method: str) -> JSONResponse:
    """A fault's status and words; a fault of ours says only that it failed, as LibreChat does."""
    status, body = fault.status, {"error": str(fault)}
    match fault:
        case Unauthenticated():
            body = {"error": "Unauthorized."}
        case PersonalizationOff():
            body = {"message": INSUFFICIENT, "error": str(fault)}
        case Forbidden():
            body = {"message": INSUFFICIENT}
        case NoSuchMemory():
            body = {"error": "Memory not found."}
        case Conflict():
            body = {"error": "Memory with this key already exists."}
        case NotFound() | BadRequest() | Busy():
            pass
        case _:
            log.warning("a request failed", extra={"code": fault.code, "route": "librechat"})
            status, body = 500, {"error": FAILED[method]}
    headers = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else None
    return JSONResponse(body, status, headers)


def error(text: str, status: int) -> JSONResponse:
    return JSONResponse({"error": text}, status)
