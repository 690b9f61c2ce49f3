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


OPENAI_PATHS = frozenset({"/v1/chat/completions", "/v1/models"})
"""Where OpenAI's clients ask; they read its shape of a fault, and pass over what else is in it."""

OPENAI_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def shaped(path: str, status: int, content: dict[str, Any]) -> dict[str, Any]:
    """A fault's body as the callers of this path read it."""
    if path not in OPENAI_PATHS:
        return content
    other = "api_error" if status >= 500 else "invalid_request_error"  # noqa: PLR2004  server faults
    return {"error": {**content["error"], "type": OPENAI_TYPES.get(status, other), "param": None}}


def response(fault: MemagentError, *, path: str = "") -> JSONResponse:
    headers: dict[str, str] = {}
    if isinstance(fault, Busy):
        headers["Retry-After"] = str(math.ceil(fault.retry_after_s))
    if isinstance(fault, Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    told = shaped(path, fault.status, body(fault.code, str(fault), retryable=fault.retryable))
    return JSONResponse(told, fault.status, headers)


async def _fault(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, MemagentError)  # noqa: S101  what the handler is registered for
    if error.status >= 500:  # noqa: PLR2004  server faults
        log.warning("a request failed", extra={"code": error.code, "route": _route(request)})
    return response(error, path=request.url.path)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101  what the handler is registered for
    faults = [f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in error.errors()[:10]]
    told = body(BadRequest.code, f"the request cannot be read: {'; '.join(faults)}")
    return JSONResponse(shaped(request.url.path, 422, told), 422)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101  what the handler is registered for
    headers: Mapping[str, str] | None = error.headers
    told = body(CODES.get(error.status_code, "http_error"), str(error.detail))
    return JSONResponse(shaped(request.url.path, error.status_code, told), error.status_code, headers)


async def _bug(request: Request, error: Exception) -> JSONResponse:
    # The message may quote what a user said; the kind and the route are enough to find it.
    log.error("a bug", extra={"kind": type(error).__name__, "route": _route(request)})
    told = body("internal_error", "this is a bug in memagent; the log has its kind and place")
    return JSONResponse(shaped(request.url.path, 500, told), 500)


def _route(request: Request) -> str:
    route = request.scope.get("route")
    return str(getattr(route, "path", "unknown"))
