"""Checking a librechat.yaml over HTTP. What is sent is checked and forgotten: it is neither kept nor logged.

The check asks nothing of this server, so its findings tell nothing about it. It costs time, so it is for admins' keys and
for whoever runs memagent for themselves, unless MEMAGENT_PUBLIC_VALIDATE opens it to everybody.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import anyio
import anyio.to_thread
from fastapi import APIRouter, Depends, FastAPI, Request
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from memagent.api.auth import May, principal
from memagent.api.findings import Check, checked
from memagent.api.shapes import FAULTS
from memagent.errors import Forbidden
from memagent.report.machine import to_json

router = APIRouter(prefix="/v1", tags=["operation"], responses=FAULTS)

MAX_TEXT_BYTES = 512 * 1024
"""A hundred times a long librechat.yaml."""

CHECKS_AT_ONCE = 2
"""More at a time would take the turns' share of the processor."""


class FindingView(BaseModel, extra="allow"):
    code: str = Field(examples=["MEM101"])
    name: str
    severity: str = Field(description="`error` or `warning`.")
    librechat: str = Field(description="What LibreChat does: `rejects`, `ignores` or `accepts`.")
    message: str
    path: str
    location: dict[str, int] | None
    help: str | None


class CheckView(BaseModel):
    version: int
    outcome: str = Field(
        description="How LibreChat starts with this: `starts`, `defaults`, `exits`, `crashes`."
    )
    summary: dict[str, int] = Field(examples=[{"files": 1, "errors": 2, "warnings": 0}])
    findings: list[FindingView]


def install(app: FastAPI) -> None:
    app.state.checks = anyio.CapacityLimiter(CHECKS_AT_ONCE)


async def may_check(request: Request) -> None:
    """Raise `Forbidden` or `Unauthenticated` for whoever may not have a file checked here."""
    if request.app.state.options.public_validate:
        return
    caller = await principal(request)
    if May.ADMIN not in caller.may and caller.via != "fixed":
        raise Forbidden("checking files here is for an admin's key (or set MEMAGENT_PUBLIC_VALIDATE)")


async def run_check(app: FastAPI, text: bytes) -> Check:
    """Check a text beside the event loop; raises 413 for one that is too large."""
    if len(text) > MAX_TEXT_BYTES:
        raise HTTPException(413, f"the file is larger than {MAX_TEXT_BYTES // 1024} kB")
    return await anyio.to_thread.run_sync(checked, text, limiter=app.state.checks)


@router.post(
    "/validate",
    summary="Check a librechat.yaml",
    response_model=CheckView,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/yaml": {"schema": {"type": "string"}, "example": "version: '1.3.17'\n"}},
        }
    },
)
async def validate(request: Request, _: Annotated[None, Depends(may_check)]) -> dict[str, Any]:
    """The body is the file as it is. For an admin's key, or for everybody with MEMAGENT_PUBLIC_VALIDATE."""
    found = await run_check(request.app, await request.body())
    told = json.loads(to_json([framed.finding for framed in found.findings], files=1))
    return {"outcome": found.outcome, **told}
