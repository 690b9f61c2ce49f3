"""The read-only pages of a user's sessions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import HTMLResponse, Response

from memagent.api import sessions
from memagent.api.auth import Principal
from memagent.api.pages.answers import HEADERS, NO_STORE, page
from memagent.api.pages.plot import plot
from memagent.api.pages.visit import OwnVisit, Visit
from memagent.api.sessions import MAX_KEY_CHARS, Form, exported, folder_of, listed
from memagent.sessions.course import course
from memagent.sessions.keys import MAIN

router = APIRouter(include_in_schema=False)

Agent = Annotated[str, Query(max_length=256)]


def caller_of(visit: Visit) -> Principal:
    assert visit.caller is not None  # noqa: S101  a visit of its own has a caller
    return visit.caller


@router.get("/sessions")
async def session_list(visit: OwnVisit, agent: Agent = MAIN) -> HTMLResponse:
    found = await listed(folder_of(visit.memory, caller_of(visit), agent))
    return page(visit, "sessions", agent=agent, **found)


@router.get("/sessions/export")
async def session_export(
    visit: OwnVisit,
    session: Annotated[str, Query(min_length=1, max_length=MAX_KEY_CHARS)],
    agent: Agent = MAIN,
    format: Form = Form.MARKDOWN,  # noqa: A002  the query's name
) -> Response:
    """The document as a file."""
    answer = await exported(folder_of(visit.memory, caller_of(visit), agent), session, format)
    end = {Form.MARKDOWN: "md", Form.JSON: "json", Form.JSONL: "jsonl"}[format]
    kept = {"Content-Disposition": f'attachment; filename="session.{end}"'}
    answer.headers.update({**HEADERS, **NO_STORE, **kept})
    return answer


@router.get("/sessions/{session:path}")
async def session_page(
    visit: OwnVisit, session: Annotated[str, Path(max_length=MAX_KEY_CHARS)], agent: Agent = MAIN
) -> HTMLResponse:
    folder = folder_of(visit.memory, caller_of(visit), agent)
    found: dict[str, Any] = await sessions.shown(folder, session)
    calls = await course(folder, found["sessionId"])
    return page(visit, "session", agent=agent, session=found, plot=plot(calls), calls=calls)
