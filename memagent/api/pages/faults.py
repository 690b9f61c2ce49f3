"""What a browser is shown when something fails: a page in the visitor's language; programs get their JSON as ever."""

from __future__ import annotations

import json
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from memagent.api.pages.answers import page
from memagent.api.pages.visit import stranger
from memagent.errors import MemagentError, Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

FOR_PROGRAMS = ("/v1", "/api", "/mcp", "/health", "/ready", "/metrics")
"""Paths that answer in JSON to whoever asks."""


def install(app: FastAPI) -> None:
    """Put a page in front of each handler of faults that `app` has."""
    for kind in (MemagentError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _first_a_page(app.exception_handlers[kind]))


def _first_a_page(answer: Callable[..., Any]) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handled(request: Request, error: Exception) -> Response:
        told = answer(request, error)
        response: Response = await told if isawaitable(told) else told
        if not for_people(request):
            return response
        if isinstance(error, Unauthenticated):
            is_link = request.url.path == "/login"
            return page(stranger(request), "door", status=response.status_code, is_link=is_link)
        code, detail = _told(response)
        return page(stranger(request), "fault", status=response.status_code, code=code, detail=detail)

    return handled


def for_people(request: Request) -> bool:
    """Whether a browser asks for a page."""
    wants = request.headers.get("accept", "")
    path = request.url.path
    return "text/html" in wants and not any(
        path == each or path.startswith(f"{each}/") for each in FOR_PROGRAMS
    )


def _told(response: Response) -> tuple[str, str]:
    """The code and the words of the answer that programs get."""
    try:
        told = json.loads(bytes(response.body))["error"]
        return str(told["code"]), str(told["message"])
    except (ValueError, KeyError, TypeError):
        return "http_error", ""
