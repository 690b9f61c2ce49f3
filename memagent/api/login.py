"""How a user's browser gets in: a backend asks for a link, the link sets a session that only this server can read."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, ConfigDict, Field

from memagent.api.auth import (
    LINK_AUDIENCE,
    SESSION_AUDIENCE,
    SESSION_COOKIE,
    Credentials,
    May,
    Principal,
    Proven,
    opened,
    signed,
)
from memagent.api.scopes import BY_USER
from memagent.api.shapes import FAULTS
from memagent.errors import Forbidden
from memagent.turn import MAX_ID_CHARS

router = APIRouter(tags=["login"], responses=FAULTS)

LINK_TIME = timedelta(minutes=10)
SESSION_TIME = timedelta(hours=12)


class LinkRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"user": "ada"}]})

    user: str = Field(min_length=1, max_length=MAX_ID_CHARS)


class Link(BaseModel):
    url: str = Field(examples=["https://memory.example.org/login?token=…"])
    expires_at: datetime


@router.post(
    "/v1/login-links", summary="A link that opens a user's pages", status_code=201, response_model=Link
)
async def login_link(request: Request, caller: Proven, wanted: LinkRequest) -> dict[str, Any]:
    """Good for ten minutes; send the user there and nobody else. For API keys that may `admin`, or `read` and `write`."""
    refuse_own(caller)
    state = request.app.state
    expires = state.memory.ports.clock() + LINK_TIME
    base = state.options.public_url or str(request.base_url).rstrip("/")
    return {"url": link(base, wanted.user, state.credentials, expires=expires), "expires_at": expires}


@router.get("/login", summary="Open a session from a link", status_code=303, response_class=RedirectResponse)
async def login(
    request: Request, token: Annotated[str, Query(min_length=1, max_length=4_096)]
) -> RedirectResponse:
    """Sets the session's cookie, which no script can read, and goes on to the user's page."""
    state = request.app.state
    now = state.memory.ports.clock()
    user = opened(token, state.credentials, audience=LINK_AUDIENCE, now=now)
    session = signed(
        user, state.credentials.session_secret, audience=SESSION_AUDIENCE, expires=now + SESSION_TIME
    )
    answer = RedirectResponse(
        "/", 303, headers={"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    )
    answer.set_cookie(
        SESSION_COOKIE,
        session,
        max_age=int(SESSION_TIME.total_seconds()),
        secure=(state.options.public_url or str(request.url)).startswith("https"),
        httponly=True,
        samesite="lax",
    )
    return answer


@router.post("/logout", summary="End the session", status_code=303, response_class=RedirectResponse)
async def logout(_: Proven) -> RedirectResponse:
    answer = RedirectResponse("/", 303)
    answer.delete_cookie(SESSION_COOKIE, httponly=True, samesite="lax")
    return answer


def refuse_own(caller: Principal) -> None:
    """Raise `Forbidden` for whoever could not read and write that user's memories anyway."""
    trusted = May.ADMIN in caller.may or {May.READ, May.WRITE} <= caller.may
    if caller.via in BY_USER or not trusted:
        raise Forbidden("login links are for API keys that may `admin`, or `read` and `write`")


def link(base: str, user: str, accepted: Credentials, *, expires: datetime) -> str:
    """The address that lets this user in until `expires`."""
    return (
        f"{base}/login?token={signed(user, accepted.session_secret, audience=LINK_AUDIENCE, expires=expires)}"
    )
