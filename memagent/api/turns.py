"""Turns over HTTP: hand one over, follow it, ask for context, look with a text."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import fields, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from memagent.api.auth import May, Principal, ReadUser, TurnUser, needs, principal
from memagent.api.faults import body as fault_body
from memagent.api.scopes import BY_USER
from memagent.api.shapes import FAULTS
from memagent.errors import Forbidden, MemagentError, NoSuchMemory, Unauthenticated
from memagent.memory import Scope, ScopeKind
from memagent.service import Context
from memagent.turn import MAX_ID_CHARS, MAX_QUERY_CHARS, Id, Turn, TurnInput, well_formed
from memagent.turns import Status, Ticket
from memagent.turns.queue import FSYNC_MS, TurnQueue

router = APIRouter(prefix="/v1", tags=["turns"], responses=FAULTS)

WAIT_SHARE = 0.8
"""Of a request's time for waiting; the rest is for answering."""

EXAMPLE: JsonDict = {
    "message_id": "m1",
    "conversation_id": "c1",
    "messages": [{"role": "user", "content": "I stopped eating meat.", "id": "m1"}],
}


class TurnRequest(TurnInput):
    """One turn: the chat up to and including its newest user message. `user` may be left out: the header names them."""

    model_config = ConfigDict(json_schema_extra={"examples": [dict(EXAMPLE)]})

    user: Id = ""

    @model_validator(mode="before")
    @classmethod
    def _whole_text(cls, data: Any) -> Any:
        # JavaScript's JSON lets half a surrogate pair through; the rest of the turn is worth keeping.
        return well_formed(data)

    def of(self, user: str) -> Turn:
        """The turn of the proven user; raises `Forbidden` when the body names another."""
        if self.user not in {"", user}:
            raise Forbidden("the turn names another user than the request")
        return replace(self.turn(), user=user)


class TicketView(BaseModel):
    """A turn that was handed over. `receipt` holds keys, never values; `durability` is what is certain about `status`."""

    id: str = Field(examples=["t0f3c…"])
    message_id: str
    conversation_id: str
    agent_id: str
    status: Status
    durability: str = Field(description="`accepted`, `applied`, or `fsynced`: on the disk of Redis' primary.")
    accepted_at: str
    attempts: int = Field(description="How many attempts failed so far.")
    error: dict[str, Any] | None = Field(description="Of the last attempt that failed.")
    receipt: dict[str, Any] | None = Field(
        description="What was decided, asked, changed and recalled, and its cost."
    )


class ContextView(BaseModel):
    """`prefix` first in the prompt, byte-identical until a memory changes state; `tail` beside the newest message."""

    prefix: str = Field(examples=["# Existing memory about the user:\n…"])
    tail: str
    matched: dict[str, Any] = Field(
        description="What the search found: scope, key, score and why, never a value; `error` when it went without. "
        "`passages` are turns and notes that came along, with source, citation and score."
    )


class RecallRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"text": "What can I cook tonight?"}]}
    )

    text: str = Field(min_length=1, max_length=MAX_QUERY_CHARS)
    agent_id: str = Field(default="", max_length=MAX_ID_CHARS)
    shared: list[Id] = Field(default_factory=list, max_length=16)
    sources: list[Literal["memories", "turns", "notes"]] | None = Field(
        default=None, min_length=1, description="Ask these only; without it, what a turn would ask."
    )


def queue_of(request: Request) -> TurnQueue:
    queue: TurnQueue = request.app.state.queue
    return queue


async def reader(caller: Annotated[Principal, Depends(principal)]) -> str:
    """Who may see a user's turns: that user, and whoever hands them over."""
    if not caller.may & {May.READ, May.TURNS}:
        raise Forbidden("this credential may neither `read` nor hand over `turns`")
    if caller.user is None:
        raise Unauthenticated("no user is named: send `X-Memagent-User` with the API key")
    return caller.user


Reader = Annotated[str, Depends(reader)]
TurnId = Annotated[
    str, Path(min_length=1, max_length=64, description="The id that `POST /v1/turns` answered with.")
]


@router.post(
    "/turns",
    summary="Hand over a turn",
    status_code=202,
    response_model=TicketView,
    responses={200: {"model": TicketView, "description": "The turn is over"}},
)
async def hand_over(
    request: Request,
    response: Response,
    user: TurnUser,
    given: TurnRequest,
    *,
    wait: Annotated[
        bool, Query(description="Answer when the turn is over, or as it stands when time is up.")
    ] = False,
    fsync: Annotated[
        bool, Query(description="Answer when it is on the disk of Redis; see `durability`.")
    ] = False,
) -> dict[str, Any]:
    """Accepted, a turn survives the end of any process. The same message id again answers with the same turn."""
    queue = queue_of(request)
    ticket = await queue.accept(given.of(user))
    if wait and not ticket.over:
        seconds = request.app.state.options.request_timeout_s * WAIT_SHARE
        ticket = await queue.finished(user, ticket.id, timeout_s=seconds)
    if fsync or wait:
        # Where Redis flushes every write, this is known at once; otherwise only who asks for it waits for the disk.
        ticket = await queue.synced(ticket, timeout_ms=FSYNC_MS if fsync else 1)
    response.status_code = 200 if ticket.over else 202
    response.headers["Location"] = f"/v1/turns/{ticket.id}"
    return shown(ticket)


@router.get("/turns/{turn_id}", summary="How a turn stands", response_model=TicketView)
async def turn(request: Request, user: Reader, turn_id: TurnId) -> dict[str, Any]:
    return shown(await queue_of(request).ticket(user, turn_id))


EVENTS = (
    "`queued`, `running`, one `attachment` per memory as LibreChat shapes it, then `done` with the receipt"
)


async def existing(request: Request, user: Reader, turn_id: TurnId) -> Ticket:
    """The turn, before a stream begins: afterwards no status could say that there is none."""
    return await queue_of(request).ticket(user, turn_id)


@router.get(
    "/turns/{turn_id}/events",
    summary="Follow a turn",
    response_class=EventSourceResponse,
    responses={200: {"description": EVENTS}},
)
async def events(
    request: Request, found: Annotated[Ticket, Depends(existing)]
) -> AsyncIterator[ServerSentEvent]:
    """Server-sent events. A turn that is tried again is `queued` once more; a stream may be opened at any time."""
    told: list[str] = []
    try:
        async for ticket in queue_of(request).follow(found.user, found.id):
            for event in steps(ticket, told):
                told.append(event)
                yield ServerSentEvent(event=event, data={"id": ticket.id, "attempts": ticket.attempts})
            if ticket.over:
                for artifact in await attachments(request, ticket):
                    yield ServerSentEvent(event="attachment", data=artifact)
                yield ServerSentEvent(event="done", data=shown(ticket))
    except MemagentError as fault:
        # The stream has begun, so the fault is its last word: erased meanwhile, or a store that is gone.
        yield ServerSentEvent(
            event="error", data=fault_body(fault.code, str(fault), retryable=fault.retryable)
        )


def steps(ticket: Ticket, told: list[str]) -> list[str]:
    """The events that lead to where the turn stands, without those that were told: what was too quick to see happened too."""
    if ticket.status is Status.QUEUED:
        return ["queued"]
    return [
        event
        for event in ("queued", "running")
        if event not in told or (event, told[-1]) == ("running", "queued")
    ]


async def attachments(request: Request, ticket: Ticket) -> list[dict[str, Any]]:
    """What a turn changed, as LibreChat's chat attaches it to a message (spec/librechat.md §4.6)."""
    receipt = ticket.receipt or {}
    agent = {"agentId": ticket.agent_id} if ticket.agent_id else {}
    scope = Scope(ScopeKind.USER, ticket.user, ticket.agent_id)
    found: list[dict[str, Any]] = []
    for key in receipt.get("set", ()):
        try:
            memory = await request.app.state.memory.get(scope, key)
        except NoSuchMemory:
            continue  # gone meanwhile: there is nothing to show
        found.append(
            {"key": key, "value": memory.value, "tokenCount": memory.tokens, "type": "update", **agent}
        )
    found += [{"key": key, "type": "delete", **agent} for key in receipt.get("deleted", ())]
    found += overflows(request, receipt)
    ids = {"toolCallId": "", "messageId": ticket.message_id, "conversationId": ticket.conversation_id}
    return [{"type": "memory", **ids, "memory": artifact} for artifact in found]


def overflows(request: Request, receipt: Mapping[str, Any]) -> list[dict[str, Any]]:
    """LibreChat's error artifact for what no longer fitted. Our totals are those after the turn."""
    limit = request.app.state.memory.ports.settings.memory.token_limit or 0
    total = receipt.get("tokens") or 0
    found = []
    for refusal in receipt.get("refused", ()):
        if refusal["why"] in OVERFLOWS:
            detail = {
                "errorType": refusal["why"],
                "tokenCount": max(0, total - limit),
                "totalTokens": total,
                "tokenLimit": limit,
            }
            found.append({"key": "system", "type": "error", "value": json.dumps(detail), "tokenCount": total})
    return found


OVERFLOWS = frozenset({"already_exceeded", "would_exceed"})


@router.post("/context", summary="Memories for the answer to a turn", response_model=ContextView)
async def context(request: Request, user: TurnUser, given: TurnRequest) -> dict[str, Any]:
    """Within the recall budget, and never an error for a memory that is down: then both texts are empty and `matched` says why.

    Counts the day. Handing the turn over afterwards, with the same message id, does not search again.
    """
    return matched(await queue_of(request).context(given.of(user)))


@router.post("/recall", summary="Look with a text", response_model=ContextView)
async def recall(
    request: Request,
    caller: Annotated[Principal, Depends(needs(May.READ))],
    user: ReadUser,
    given: RecallRequest,
) -> dict[str, Any]:
    """What a message would bring back. Counts nothing, and raises what `context` would be silent about."""
    if given.shared and caller.via in BY_USER:
        raise Forbidden("a user's own credential opens that user's memories only, no shared scope")
    found = await request.app.state.memory.recall(
        user,
        given.text,
        agent=given.agent_id,
        shared=tuple(given.shared),
        commit=False,
        sources=given.sources,
    )
    return matched(found)


def shown(ticket: Ticket) -> dict[str, Any]:
    return {each.name: getattr(ticket, each.name) for each in fields(ticket) if each.name != "user"}


def matched(found: Context) -> dict[str, Any]:
    return {"prefix": found.prefix, "tail": found.tail, "matched": found.note.to_json()}
