"""Every fault as one JSON shape: `{"error": {"code", "message", "retryable"}}`, with the fault's own status."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from memagent.errors import BadRequest, Busy, MemagentError, Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger("memagent.api")

CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "unsupported_media_type"}
"""Codes of what the web framework itself refuses."""


def install(app: FastAPI) -> None:
    """Answer every fault of `app` in the one shape."""
    app.add_exception_handler(MemagentError, _fault)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _bug)


def body(code: str, message: str, *, retryable: bool = False) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "retryable": retryable}}


def response(fault: MemagentError) -> JSONResponse:
    headers: dict[str, str] = {}
    if isinstance(fault, Busy):
        headers["Retry-After"] = str(math.ceil(fault.retry_after_s))
    if isinstance(fault, Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(body(fault.code, str(fault), retryable=fault.retryable), fault.status, headers)


async def _fault(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, MemagentError)  # noqa: S101  what the handler is registered for
    if error.status >= 500:  # noqa: PLR2004  server faults
        log.warning("a request failed", extra={"code": error.code, "route": _route(request)})
    return response(error)


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101  what the handler is registered for
    faults = [f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in error.errors()[:10]]
    return JSONResponse(body(BadRequest.code, f"the request cannot be read: {'; '.join(faults)}"), 422)


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101  what the handler is registered for
    headers: Mapping[str, str] | None = error.headers
    return JSONResponse(
        body(CODES.get(error.status_code, "http_error"), str(error.detail)), error.status_code, headers
    )


async def _bug(request: Request, error: Exception) -> JSONResponse:
    # The message may quote what a user said; the kind and the route are enough to find it.
    log.error("a bug", extra={"kind": type(error).__name__, "route": _route(request)})
    return JSONResponse(
        body("internal_error", "this is a bug in memagent; the log has its kind and place"), 500
    )


def _route(request: Request) -> str:
    route = request.scope.get("route")
    return str(getattr(route, "path", "unknown"))
