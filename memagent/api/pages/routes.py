"""A user's own pages: what is remembered, what changed, and everything a person may do about it.

Each form posts to an address of its own and goes on to the page that shows what came of it; `page.js` makes that smooth.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, UploadFile
from fastapi.responses import HTMLResponse, Response

from memagent.admission import check_key, normal_key
from memagent.api.pages.answers import HEADERS, NO_STORE, onward, page
from memagent.api.pages.cards import cards, dormant_after, found, usage
from memagent.api.pages.changes import Row, rows
from memagent.api.pages.visit import OwnVisit, Place, Visit
from memagent.api.pages.week import week
from memagent.api.shapes import MAX_VALUE_CHARS
from memagent.errors import BadRequest, InvalidKey, MemagentError
from memagent.memory import MAX_KEY_CHARS, Memory, Scope, ScopeKind
from memagent.service.recall import memory_is_off
from memagent.turn import MAX_ID_CHARS

router = APIRouter(include_in_schema=False)

HISTORY_SHOWN = 200

Words = Annotated[str, Query(max_length=1_000)]
Key = Annotated[str, Form(min_length=1, max_length=MAX_KEY_CHARS)]
FormPlace = Annotated[str, Form(max_length=MAX_ID_CHARS + 10)]
ChangeId = Annotated[str, Query(max_length=64)]


# -- memories ------------------------------------------------------------------------------------------------------------


@router.get("/")
async def memories(
    visit: OwnVisit, q: Words = "", place: Place = "", done: ChangeId = "", change: ChangeId = ""
) -> HTMLResponse:
    return await memories_page(visit, place, words=q, toast=await toast_of(visit, place, done, change))


async def memories_page(
    visit: Visit, place: str, *, words: str = "", status: int = 200, **shown: Any
) -> HTMLResponse:
    """The page of one place; `shown` adds a toast, a fault, or a draft that was refused."""
    memory, ports = visit.memory, visit.memory.ports
    scope = visit.scope(place)
    held = await memory.list(scope)
    ages = dormant_after(ports) if scope.kind is not ScopeKind.GLOBAL else None
    waiting = [each for each in held if not each.trusted]
    trusted = [each for each in held if each.trusted]
    values: dict[str, Any] = {
        "place": place,
        "places": await places(visit, scope),
        "words": words,
        "review": cards(waiting, dormant_after=ages),
        "cards": cards(found(trusted, words), dormant_after=ages),
        "total": len(trusted),
        "usage": usage(held, ports, most=ports.options.max_memories),
        "week": week(held, now=visit.now, dormant_after_days=ages) if ages is not None else None,
        "is_on": await memory.personalization(visit.user),
        "is_off_for_all": memory_is_off(ports),
        "valid_keys": ports.settings.memory.valid_keys,
        "char_limit": ports.settings.memory.char_limit,
        "toast": None,
        "fault": None,
        "draft": None,
    }
    return page(visit, "memories", status=status, **{**values, **shown})


async def places(visit: Visit, here: Scope) -> tuple[Scope, ...]:
    """Where anything is kept of this user, the shared pool first; nothing to choose from is one place."""
    own = Scope(ScopeKind.USER, visit.user)
    return (own, *sorted({*await visit.memory.scopes(visit.user), here} - {own}))


async def toast_of(visit: Visit, place: str, done: str, change: str) -> dict[str, Any] | None:
    """What to say after a form: only what is in the history is said, so no link can put words on the page."""
    if done not in TOASTS:
        return None
    if not change:
        return {"done": done, "key": "", "change": None}
    changes = await visit.memory.history(visit.scope(place), limit=HISTORY_SHOWN)
    named = next((each for each in changes if each.id == change), None)
    return {"done": done, "key": named.key, "change": named.id} if named else None


TOASTS = frozenset({"saved", "deleted", "accepted", "undone", "on", "off"})


@router.post("/memories/save")
async def save(
    visit: OwnVisit,
    key: Key,
    value: Annotated[str, Form(max_length=MAX_VALUE_CHARS)],
    was: Annotated[str, Form(max_length=MAX_KEY_CHARS)] = "",
    place: FormPlace = "",
) -> Response:
    """Add a memory, or change the one that was under `was`."""
    words = value.replace("\r\n", "\n")

    async def work() -> str:
        named = allowed_key(visit, key)
        written = await visit.memory.put(
            visit.scope(place), named, words, create_only=not was, rename_from=was or None
        )
        return written.key

    return await acted(visit, place, "saved", work, draft={"key": key, "value": words, "was": was})


def allowed_key(visit: Visit, key: str) -> str:
    """The key as it was typed, or its words brought into the shape of a key: `Favourite tea` is `favourite_tea`."""
    valid = visit.memory.ports.settings.memory.valid_keys
    try:
        check_key(key.strip(), valid_keys=valid)
    except InvalidKey:
        if not valid and (better := normal_key(key)):
            return better
        raise
    return key.strip()


@router.post("/memories/delete")
async def delete(visit: OwnVisit, key: Key, place: FormPlace = "") -> Response:
    async def work() -> str:
        await visit.memory.forget(visit.scope(place), key)
        return key

    return await acted(visit, place, "deleted", work)


@router.post("/memories/accept")
async def accept(visit: OwnVisit, key: Key, place: FormPlace = "") -> Response:
    async def work() -> str:
        accepted: Memory = await visit.memory.accept(visit.scope(place), key)
        return accepted.key

    return await acted(visit, place, "accepted", work)


@router.post("/undo")
async def undo(
    visit: OwnVisit,
    change: Annotated[str, Form(min_length=1, max_length=64)],
    place: FormPlace = "",
    back: Annotated[str, Form(pattern="^(|/history)$")] = "",
) -> Response:
    async def work() -> str:
        return (await visit.memory.undo(visit.scope(place), change)).key

    return await acted(visit, place, "undone", work, back=back or "/")


@router.post("/switch")
async def switch(visit: OwnVisit, on: Annotated[bool, Form()], place: FormPlace = "") -> Response:
    """Switch memory on or off for this user."""

    async def work() -> str:
        await visit.memory.set_personalization(visit.user, on=on)
        return ""

    return await acted(visit, place, "on" if on else "off", work)


async def acted(
    visit: Visit,
    place: str,
    done: str,
    work: Callable[[], Awaitable[str]],
    *,
    back: str = "/",
    draft: dict[str, str] | None = None,
) -> Response:
    """Do `work`, which names the key it was about, and go on; what is refused is shown with what was typed."""
    try:
        key = await work()
    except MemagentError as fault:
        if fault.status >= 500:  # noqa: PLR2004  nothing of the page can be shown
            raise
        return await memories_page(visit, place, status=fault.status, fault=fault, draft=draft)
    query = {"place": place, "done": done}
    if key:
        newest = await visit.memory.history(visit.scope(place), key=key, limit=1)
        query["change"] = newest[0].id if newest else ""
    return onward(f"{back}?{urlencode({name: value for name, value in query.items() if value})}")


# -- history -------------------------------------------------------------------------------------------------------------


@router.get("/history")
async def history(
    visit: OwnVisit, place: Place = "", done: ChangeId = "", change: ChangeId = ""
) -> HTMLResponse:
    scope = visit.scope(place)
    shown: tuple[Row, ...] = rows(await visit.memory.history(scope, limit=HISTORY_SHOWN))
    return page(
        visit,
        "history",
        place=place,
        places=await places(visit, scope),
        rows=shown,
        toast=await toast_of(visit, place, done, change),
    )


# -- the user's data -----------------------------------------------------------------------------------------------------


@router.get("/data")
async def data(visit: OwnVisit, place: Place = "") -> HTMLResponse:
    return await data_page(visit, place)


async def data_page(visit: Visit, place: str, *, status: int = 200, **shown: Any) -> HTMLResponse:
    scope = visit.scope(place)
    values: dict[str, Any] = {"report": None, "fault": None, "erasure": None}
    where = {"place": place, "places": await places(visit, scope)}
    count = (await visit.memory.totals(scope)).entries
    return page(visit, "data", status=status, count=count, **where, **{**values, **shown})


@router.get("/data/export")
async def export(visit: OwnVisit, place: Place = "") -> Response:
    """The export of one place, as a file."""
    text = json.dumps(await visit.memory.export(visit.scope(place)), ensure_ascii=False, indent=2)
    name = f"memories-{visit.now:%Y-%m-%d}.json"
    kept = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="application/json", headers={**HEADERS, **NO_STORE, **kept})


@router.post("/data/import")
async def bring_in(
    visit: OwnVisit,
    file: UploadFile | None = None,
    text: Annotated[str, Form(max_length=MAX_VALUE_CHARS * 4)] = "",
    place: FormPlace = "",
    *,
    rehearse: Annotated[bool, Form()] = False,
) -> HTMLResponse:
    """Bring memories in from a file, or from what was pasted."""
    try:
        content = await file.read() if file and file.filename else text.encode("utf-8", "surrogatepass")
        report = await visit.memory.import_memories(visit.scope(place), as_data(content), dry_run=rehearse)
    except MemagentError as fault:
        if fault.status >= 500:  # noqa: PLR2004  nothing of the page can be shown
            raise
        return await data_page(visit, place, status=fault.status, fault=fault)
    return await data_page(visit, place, report=report)


def as_data(content: bytes) -> Any:
    """The JSON in a file; raises `BadRequest`."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise BadRequest("this is no JSON: take a file that `export` made") from None


@router.post("/data/erase")
async def erase(visit: OwnVisit, *, sure: Annotated[bool, Form()] = False) -> HTMLResponse:
    """Erase everything of this user, once they say that they are sure."""
    if not sure:
        fault = BadRequest("nothing was erased: tick the box to say that you are sure")
        return await data_page(visit, "", status=fault.status, fault=fault)
    erasure = await visit.request.app.state.queue.erase(visit.user)
    return await data_page(visit, "", erasure=erasure)
