"""Sessions over HTTP: a user's own, listed, shown, reset, compacted, exported. The owner is whom the credential proves.

A key may hold any character, so everything that is not about showing one hangs on the collection with a colon.
"""

from __future__ import annotations

import json
from datetime import datetime
from enum import StrEnum
from pathlib import Path as Folder
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Path, Query, Request, Response
from pydantic import BaseModel, Field

from memagent.api.auth import May, Principal, needs
from memagent.api.shapes import FAULTS
from memagent.errors import NoSuchSession, Unauthenticated
from memagent.report.sessions import markdown
from memagent.service import Memagent
from memagent.service.sessions import open_sessions
from memagent.sessions import desk
from memagent.sessions.course import course
from memagent.sessions.keys import MAIN, fold
from memagent.sessions.owners import workspace
from memagent.sessions.service import Sessions

router = APIRouter(prefix="/v1", tags=["sessions"], responses=FAULTS)

MAX_KEY_CHARS = 1_000
MAX_INSTRUCTIONS_CHARS = 4_000

Key = Annotated[str, Body(embed=True, min_length=1, max_length=MAX_KEY_CHARS, examples=["agent:main:main"])]
Named = Annotated[str, Path(min_length=1, max_length=MAX_KEY_CHARS, description="A session's key or id.")]
Agent = Annotated[str, Query(max_length=256, description="With which agent.")]


class Form(StrEnum):
    MARKDOWN = "markdown"
    JSON = "json"
    JSONL = "jsonl"


MEDIA = {
    Form.MARKDOWN: "text/markdown; charset=utf-8",
    Form.JSON: "application/json",
    Form.JSONL: "application/x-ndjson",
}


class Counters(BaseModel):
    input: int = 0
    output: int = 0
    cacheRead: int = 0  # noqa: N815  as sessions.json has it
    cacheWrite: int = 0  # noqa: N815


class SessionRow(BaseModel, extra="allow"):
    """One row of the sessions store."""

    key: str
    kind: str = Field(description="`direct`, `group` or `thread`.")
    sessionId: str  # noqa: N815
    lastAccessAt: datetime | None = None  # noqa: N815
    totalTokens: int | None = Field(default=None, description="The size of the context.")  # noqa: N815
    compactionCount: int = 0  # noqa: N815


class ArchivedRow(BaseModel):
    sessionId: str  # noqa: N815
    reason: str = Field(description="`reset`, `compacted`, `deleted` or `broken`.")
    at: datetime
    file: str
    bytes: int


class SessionList(BaseModel):
    sessions: list[SessionRow]
    archived: list[ArchivedRow]


class CallView(BaseModel):
    at: datetime
    tokens: int = Field(description="What the model was shown.")
    output: int
    sessionId: str  # noqa: N815


class SessionView(BaseModel, extra="allow"):
    """One session with what was said since its last compaction; `course` has the calls before it too."""

    key: str | None = Field(description="Null for one that has ended.")
    sessionId: str  # noqa: N815
    parentSession: str | None = None  # noqa: N815
    startedAt: datetime | None = None  # noqa: N815
    model: str | None = None
    totals: Counters | None = None
    summary: str | None = None
    messages: list[dict[str, Any]]
    course: list[CallView]


class Begun(BaseModel):
    key: str
    sessionId: str  # noqa: N815


class CompactionView(BaseModel):
    status: str = Field(description="`compacted`, `skipped` or `failed`.")
    reason: str
    before: int | None = None
    after: int | None = None
    sessionId: str | None = None  # noqa: N815
    notice: str


def folder_of(memory: Memagent, caller: Principal, agent: str) -> Folder:
    """Where this caller's sessions are; raises `Unauthenticated` when no user is named.

    Whoever runs memagent for themselves owns the data folder, so they see the sessions of its agents.
    """
    if caller.user is None:
        raise Unauthenticated("no user is named: send `X-Memagent-User` with the API key")
    owner = None if caller.via == "fixed" else caller.user
    return workspace(memory.ports.options.data_dir, owner=owner, agent=agent)


def bound(memory: Memagent, caller: Principal, agent: str) -> Sessions:
    """The caller's sessions, to be worked on."""
    return open_sessions(memory, str(caller.user), agent=agent, own=caller.via != "fixed")


async def readable(
    request: Request, caller: Annotated[Principal, Depends(needs(May.READ))], agent: Agent = MAIN
) -> Folder:
    return folder_of(request.app.state.memory, caller, agent)


async def writable(
    request: Request, caller: Annotated[Principal, Depends(needs(May.WRITE))], agent: Agent = MAIN
) -> Sessions:
    folder_of(request.app.state.memory, caller, agent)
    return bound(request.app.state.memory, caller, agent)


ReadFolder = Annotated[Folder, Depends(readable)]
OwnSessions = Annotated[Sessions, Depends(writable)]


async def shown(folder: Folder, session: str) -> dict[str, Any]:
    """A session as JSON, with the course of its context; raises `NoSuchSession`, which names no folder of the server."""
    try:
        found = await desk.shown(folder, session)
    except NoSuchSession:
        raise missing(session) from None
    calls = await course(folder, found["sessionId"])
    return {**found, "course": [call.to_json() for call in calls]}


async def listed(folder: Folder) -> dict[str, Any]:
    return {"sessions": await desk.listed(folder), "archived": desk.archived(folder)}


async def exported(folder: Folder, session: str, form: Form) -> Response:
    """A session as a document, as JSON, or its transcript byte for byte."""
    if form is Form.JSONL:
        try:
            content: bytes | str = await desk.transcript(folder, session)
        except NoSuchSession:
            raise missing(session) from None
    else:
        found = await shown(folder, session)
        content = (
            markdown(found) if form is Form.MARKDOWN else json.dumps(found, ensure_ascii=False, indent=2)
        )
    if isinstance(content, str):
        content = content.encode("utf-8", "replace")
    return Response(content, media_type=MEDIA[form])


def missing(session: str) -> NoSuchSession:
    return NoSuchSession(f"there is no session {session!r} of this user; the list shows those there are")


@router.get("/sessions", summary="A user's sessions, the latest used first", response_model=SessionList)
async def list_sessions(folder: ReadFolder) -> dict[str, Any]:
    """Those that live, by their keys, and the transcripts of those that ended."""
    return await listed(folder)


@router.get("/sessions/{session:path}", summary="Show a session", response_model=SessionView)
async def show_session(folder: ReadFolder, session: Named) -> dict[str, Any]:
    """By its key, or by its id, of which the first eight characters do; one that ended by its id."""
    return await shown(folder, session)


@router.get(
    "/sessions:export",
    summary="A session as a document",
    response_class=Response,
    responses={200: {"content": {media: {} for media in MEDIA.values()}}},
)
async def export_session(
    folder: ReadFolder,
    session: Annotated[str, Query(min_length=1, max_length=MAX_KEY_CHARS)],
    format: Form = Form.MARKDOWN,  # noqa: A002  the query's name
) -> Response:
    """Markdown, JSON, or the transcript byte for byte."""
    return await exported(folder, session, format)


@router.post("/sessions:reset", summary="End a session and begin a new one", response_model=Begun)
async def reset_session(sessions: OwnSessions, key: Key) -> dict[str, str]:
    """What it is about to lose is learned first; the old transcript is archived."""
    try:
        received = await sessions.reset(key)
    except NoSuchSession:
        raise missing(key) from None
    return {"key": fold(key), "sessionId": received.session_id}


@router.post("/sessions:compact", summary="Summarise a session to save room", response_model=CompactionView)
async def compact_session(
    sessions: OwnSessions,
    key: Key,
    instructions: Annotated[
        str, Body(embed=True, max_length=MAX_INSTRUCTIONS_CHARS, description="What the summary should heed.")
    ] = "",
) -> dict[str, Any]:
    """With the memory agent's model, after it has learned what is worth keeping."""
    try:
        done = await sessions.compact(key, instructions=instructions)
    except NoSuchSession:
        raise missing(key) from None
    return {
        "status": str(done.status),
        "reason": done.reason,
        "before": done.before,
        "after": done.after,
        "sessionId": done.session_id,
        "notice": done.notice,
    }
