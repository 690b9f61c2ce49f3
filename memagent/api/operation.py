"""Running the service: is it well, its figures, what was given up, and erasing a user."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

from memagent.api.auth import Admin, May, Principal, Proven
from memagent.api.shapes import FAULTS
from memagent.api.turns import TicketView, queue_of
from memagent.errors import Forbidden, MemagentError, StoreFault
from memagent.service.doctor import Verdict
from memagent.service.wellness import Wellness
from memagent.turn import MAX_ID_CHARS

router = APIRouter(tags=["operation"], responses=FAULTS)

LOOK_TIMEOUT_S = 5.0
"""For one look at everything: a monitor gives up about then."""


class Health(BaseModel):
    status: str = Field(description="`ok`, `degraded` (chats go on, something does not), or `failed`.")
    checks: list[dict[str, str]] = Field(examples=[[{"name": "redis", "verdict": "ok"}]])


class DeadLetter(TicketView):
    user: str


class Letter(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"user": "ada", "id": "t0f3c"}]}
    )

    user: str = Field(min_length=1, max_length=MAX_ID_CHARS)
    id: str = Field(min_length=1, max_length=64)


class Erasure(BaseModel):
    user: str
    erased: dict[str, int] = Field(
        examples=[{"memories": 12, "vectors": 12, "changes": 31, "receipts": 90, "turns": 2}]
    )
    remains: list[dict[str, str]] = Field(description="What is left, where, and until when.")
    keys_left: int = Field(description="Keys of this user that Redis still has: switches and marks.")


@router.get(
    "/health", summary="Is everything well", response_model=Health, responses={503: {"model": Health}}
)
async def health(request: Request) -> JSONResponse:
    """Store, index, workers, embedder. Names and verdicts only; `memagent doctor` says more."""
    wellness: Wellness = request.app.state.wellness
    try:
        async with asyncio.timeout(LOOK_TIMEOUT_S):
            checks = [*await wellness.look(), await _workers(request)]
    except TimeoutError:
        checks = [("redis", Verdict.FAILED)]
    verdicts = {verdict for _, verdict in checks}
    down = any(name == "redis" and verdict is Verdict.FAILED for name, verdict in checks)
    status = "failed" if down else "degraded" if Verdict.FAILED in verdicts else "ok"
    shown = [{"name": name, "verdict": verdict.value} for name, verdict in checks]
    return JSONResponse({"status": status, "checks": shown}, 503 if down else 200)


async def _workers(request: Request) -> tuple[str, Verdict]:
    try:
        alive = await queue_of(request).wakes.workers()
    except StoreFault:
        alive = 0
    return "workers", Verdict.OK if alive else Verdict.FAILED


@router.get("/ready", summary="May requests be sent here")
async def ready(request: Request) -> dict[str, str]:
    """503 while Redis cannot be reached."""
    await queue_of(request).measure()
    return {"status": "ready"}


@router.get("/metrics", summary="Figures for Prometheus", response_class=PlainTextResponse)
async def metrics(request: Request, _: Admin) -> PlainTextResponse:
    """No label holds an id, a key or a text."""
    from prometheus_client import generate_latest  # noqa: PLC0415  only where somebody asks
    from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4  # noqa: PLC0415

    queue = queue_of(request)
    with suppress(MemagentError):  # the counters stand, and a store that is down shows elsewhere
        await queue.measure()
    text = generate_latest(queue.meters.registry).decode()
    return PlainTextResponse(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)


@router.get(
    "/v1/dead-letters", summary="Turns that were given up, newest first", response_model=list[DeadLetter]
)
async def dead_letters(
    request: Request, _: Admin, limit: Annotated[int, Query(ge=1, le=1_000)] = 100
) -> list[dict[str, Any]]:
    """Ids and reasons; what was said is not shown to an admin."""
    return [asdict(ticket) for ticket in await queue_of(request).dead_letters(limit=limit)]


@router.post(
    "/v1/dead-letters:replay", summary="Try a dead letter again", status_code=202, response_model=DeadLetter
)
async def replay(request: Request, _: Admin, letter: Letter) -> dict[str, Any]:
    """It waits behind what its user has said since."""
    return asdict(await queue_of(request).replay(letter.user, letter.id))


@router.delete("/v1/users/{user:path}", summary="Erase a user", response_model=Erasure)
async def erase(
    request: Request,
    caller: Proven,
    user: Annotated[str, Path(min_length=1, max_length=MAX_ID_CHARS)],
    *,
    preferences: Annotated[
        bool,
        Query(description="The user's own switches too: memory is on again for whoever had switched it off."),
    ] = False,
) -> dict[str, Any]:
    """Memories, vectors, history, receipts, turns that wait or are under way, dead letters. For admins, and for that user."""
    refuse_others(caller, user)
    return (await queue_of(request).erase(user, preferences=preferences)).to_json()


def refuse_others(caller: Principal, user: str) -> None:
    """Raise `Forbidden` unless this caller may erase that user."""
    if May.ADMIN not in caller.may and not (May.WRITE in caller.may and caller.user == user):
        raise Forbidden("only an admin's key, or the user's own credential, erases a user")
