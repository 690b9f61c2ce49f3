"""What is remembered, over HTTP: list, read, write, delete, history, undo, accept, export, import, and the user's own switch.

A key may hold any character, so everything that is not about one key hangs on the collection with a colon.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Path, Query, Request, Response

from memagent.api.auth import ReadUser, WriteUser
from memagent.api.scopes import ReadScope, WriteScope
from memagent.api.shapes import FAULTS, ChangeView, ImportView, Listing, MemoryView, MemoryWrite, Preferences
from memagent.memory import MAX_KEY_CHARS
from memagent.service import Memagent
from memagent.service.imports import Format, decode
from memagent.service.transfer import as_json, change_json
from memagent.turn import MAX_ID_CHARS

router = APIRouter(prefix="/v1", tags=["memories"], responses=FAULTS)

Key = Annotated[str, Path(min_length=1, max_length=MAX_KEY_CHARS, examples=["preferences"])]


def memory_of(request: Request) -> Memagent:
    opened: Memagent = request.app.state.memory
    return opened


@router.get("/memories", summary="List what is remembered", response_model=Listing)
async def list_memories(request: Request, scope: ReadScope) -> dict[str, Any]:
    """All memories, newest update first, with what they take of the limits."""
    memory = memory_of(request)
    found = await memory.list(scope)
    return {
        "memories": [as_json(each) for each in found],
        "tokens": sum(each.tokens for each in found),
        "token_limit": memory.ports.settings.memory.token_limit or None,
    }


@router.get("/memories/{key:path}", summary="Read one memory", response_model=MemoryView)
async def get_memory(request: Request, scope: ReadScope, key: Key) -> dict[str, Any]:
    return as_json(await memory_of(request).get(scope, key))


@router.put("/memories/{key:path}", summary="Write one memory by hand", response_model=MemoryView)
async def put_memory(request: Request, scope: WriteScope, key: Key, write: MemoryWrite) -> dict[str, Any]:
    """What a person writes is protected from being forgotten."""
    written = await memory_of(request).put(
        scope,
        key,
        write.value,
        tags=tuple(write.tags),
        create_only=write.create_only,
        rename_from=write.rename_from,
    )
    return as_json(written)


@router.delete("/memories/{key:path}", summary="Delete one memory", status_code=204)
async def delete_memory(request: Request, scope: WriteScope, key: Key) -> Response:
    """`undo` brings it back for as long as the history holds it."""
    await memory_of(request).forget(scope, key)
    return Response(status_code=204)


@router.get("/memories:history", summary="What changed, newest first", response_model=list[ChangeView])
async def history(
    request: Request,
    scope: ReadScope,
    key: Annotated[
        str | None, Query(max_length=MAX_KEY_CHARS, description="Only changes of this memory.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 50,
) -> list[dict[str, Any]]:
    return [change_json(each) for each in await memory_of(request).history(scope, key=key, limit=limit)]


@router.post("/memories:undo", summary="Take back one change", response_model=ChangeView)
async def undo(
    request: Request,
    scope: WriteScope,
    change: Annotated[
        str | None, Body(embed=True, max_length=64, description="Its id; without it the newest change.")
    ] = None,
) -> dict[str, Any]:
    """Undoing an undo does it again."""
    return change_json(await memory_of(request).undo(scope, change))


@router.get("/memories:review", summary="What waits for the user", response_model=list[MemoryView])
async def review(request: Request, scope: ReadScope) -> list[dict[str, Any]]:
    """Brought in by a tool or a quotation, and in no prompt until it is accepted."""
    return [as_json(each) for each in await memory_of(request).review(scope)]


@router.post("/memories:accept", summary="Accept a memory that was not trusted", response_model=MemoryView)
async def accept(
    request: Request,
    scope: WriteScope,
    key: Annotated[str, Body(embed=True, min_length=1, max_length=MAX_KEY_CHARS)],
) -> dict[str, Any]:
    """A memory from a tool or a quotation counts as the user's own words from here on."""
    return as_json(await memory_of(request).accept(scope, key))


@router.get(
    "/memories:export",
    summary="Everything remembered, as `import` takes it back, or as Markdown",
    response_model=None,
    responses={200: {"content": {"application/json": {}, "text/markdown": {}}}},
)
async def export(
    request: Request,
    scope: ReadScope,
    form: Annotated[Literal["json", "markdown"], Query(alias="format")] = "json",
) -> dict[str, Any] | Response:
    memory = memory_of(request)
    if form == "markdown":
        return Response(await memory.export_markdown(scope), media_type="text/markdown")
    return await memory.export(scope)


@router.post("/memories:import", summary="Bring memories in", response_model=ImportView)
async def import_memories(
    request: Request,
    scope: WriteScope,
    data: Annotated[
        dict[str, Any] | list[Any] | str,
        Body(examples=[{"memagent": 1, "memories": [{"key": "diet", "value": "Ada eats no meat."}]}]),
    ],
    *,
    source: Annotated[
        Format | None, Query(alias="from", description="The format; without it, it is found out.")
    ] = None,
    owner: Annotated[
        str | None, Query(max_length=MAX_ID_CHARS, description="Whose, where data holds several people's.")
    ] = None,
    dry_run: Annotated[bool, Query(description="Say what would happen, and change nothing.")] = False,
) -> dict[str, Any]:
    """An export of memagent, LibreChat, mem0 or agent-memory-server as it is, or OpenClaw's Markdown as a JSON text.

    What does not fit is named with its reason, never cut.
    """
    decoded = decode(data) if isinstance(data, str) else data
    report = await memory_of(request).import_memories(
        scope, decoded, source=source, owner=owner, dry_run=dry_run
    )
    return report.to_json()


@router.get("/preferences", summary="The user's own switches", response_model=Preferences)
async def preferences(request: Request, user: ReadUser) -> dict[str, bool]:
    return {"memories": await memory_of(request).personalization(user)}


@router.patch("/preferences", summary="Switch memory off or on for the user", response_model=Preferences)
async def set_preferences(request: Request, user: WriteUser, wanted: Preferences) -> dict[str, bool]:
    """Off, nothing is learned or recalled, turns that wait included; what is remembered stays until it is deleted."""
    memory = memory_of(request)
    await memory.set_personalization(user, on=wanted.memories)
    return {"memories": await memory.personalization(user)}
