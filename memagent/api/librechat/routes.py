"""The routes of `/api/memories`. Fixed paths stand before `/{key}`, as they do in LibreChat."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import JSONResponse

from memagent.admission import RESERVED_KEY
from memagent.api.librechat.answers import LibreChatRoute, error
from memagent.api.librechat.entries import entry, everything, of_id, usage
from memagent.api.librechat.permissions import user_who_may
from memagent.api.librechat.requests import Checks, Given, Partition, partition
from memagent.api.librechat.shapes import (
    AGENT,
    KEY,
    REFUSALS,
    SWITCH,
    VALUE,
    Created,
    Deleted,
    Entries,
    PreferencesUpdated,
    Updated,
    takes,
)
from memagent.config.environment import MemoryPermission
from memagent.errors import BadRequest, Conflict, InvalidKey, NoSuchMemory
from memagent.memory import Memory, Scope, ScopeKind
from memagent.service import Memagent
from memagent.tokens import count_tokens

router = APIRouter(prefix="/api/memories", tags=["librechat"], route_class=LibreChatRoute, responses=REFUSALS)

Reader = Annotated[str, Depends(user_who_may(MemoryPermission.READ))]
Creator = Annotated[str, Depends(user_who_may(MemoryPermission.CREATE))]
Updater = Annotated[str, Depends(user_who_may(MemoryPermission.UPDATE))]
Chooser = Annotated[str, Depends(user_who_may(MemoryPermission.OPT_OUT))]


async def opened(request: Request) -> Memagent:
    memory: Memagent = request.app.state.memory
    return memory


Opened = Annotated[Memagent, Depends(opened)]


def checks_of(memory: Memagent) -> Checks:
    return Checks(memory.ports.settings.memory)


@router.get("", summary="All memories of the user", responses={200: {"model": Entries}})
@router.get("/", include_in_schema=False)
async def list_memories(memory: Opened, user: Reader) -> dict[str, Any]:
    """Of every partition, newest update first; the totals are those of the shared pool."""
    found = await everything(memory, user)
    total = (await memory.totals(user)).tokens
    limit = memory.ports.settings.memory.token_limit
    return {
        "memories": [entry(scope, each) for scope, each in found],
        "totalTokens": total,
        "tokenLimit": limit or None,
        "charLimit": checks_of(memory).char_limit,
        "usagePercentage": usage(total, limit),
    }


@router.post(
    "",
    summary="Create a memory",
    status_code=201,
    responses={201: {"model": Created}},
    openapi_extra=takes("agentId", key=KEY, value=VALUE, agentId=AGENT),
)
@router.post("/", include_in_schema=False, status_code=201)
async def create(memory: Opened, user: Creator, given: Given) -> JSONResponse:
    checks = checks_of(memory)
    raw = given.get("key")
    if not isinstance(raw, str) or not raw.strip():
        raise BadRequest("Key is required and must be a non-empty string.")
    value = checks.value(given.get("value"))
    checks.key_length(raw)
    key = raw.strip()
    checks.key_format(key)
    checks.value_length(value)
    scope = Scope(ScopeKind.USER, user, partition(given.get("agentId")))
    held = await memory.totals(scope)
    checks.tokens(held=held.tokens, before=0, after=count_tokens(value))
    if key.casefold() == RESERVED_KEY:
        return error("Failed to create memory.", 500)
    written = await memory.put(scope, key, value.strip(), create_only=True)
    if written.key != key:
        return error(f'The same words are remembered already, under the key "{written.key}".', 409)
    return JSONResponse({"created": True, "memory": entry(scope, written)}, 201)


@router.patch(
    "/preferences",
    summary="Switch memory off or on for the user",
    responses={200: {"model": PreferencesUpdated}},
    openapi_extra=takes(memories=SWITCH),
)
async def set_preferences(memory: Opened, user: Chooser, given: Given) -> dict[str, Any]:
    """Off, nothing is read or written for a chat; what is remembered stays until the user deletes it."""
    wanted = given.get("memories")
    if not isinstance(wanted, bool):
        raise BadRequest("memories must be a boolean value.")
    await memory.set_personalization(user, on=wanted)
    return {"updated": True, "preferences": {"memories": await memory.personalization(user)}}


EntryId = Annotated[str, Path(examples=["69a555907c0f4b2d9e61a3f8"])]
Key = Annotated[str, Path(examples=["diet"])]


@router.patch(
    "/id/{entry_id}",
    summary="Change or rename the memory of an id",
    responses={200: {"model": Updated}},
    openapi_extra=takes("key", key=KEY, value=VALUE),
)
async def update_by_id(
    memory: Opened, user: Updater, given: Given, agent: Partition, entry_id: EntryId
) -> JSONResponse:
    checks = checks_of(memory)
    value = checks.value(given.get("value"))
    key = given.get("key")
    if "key" in given and (not isinstance(key, str) or not key.strip()):
        raise BadRequest("Key must be a non-empty string when provided.")
    key = key.strip() if key else ""
    checks.key_length(key)
    try:
        scope, held = await of_id(memory, user, entry_id, agent=agent)
    except NoSuchMemory:
        if key:
            checks.key_format(key)
        checks.value_length(value)
        raise
    if key.casefold() == RESERVED_KEY:
        raise NoSuchMemory("nothing can be remembered under this key")
    return await changed(memory, scope, held, key=key or held.key, value=value)


@router.delete("/id/{entry_id}", summary="Delete the memory of an id", responses={200: {"model": Deleted}})
async def delete_by_id(memory: Opened, user: Updater, agent: Partition, entry_id: EntryId) -> dict[str, Any]:
    scope, held = await of_id(memory, user, entry_id, agent=agent)
    await memory.forget(scope, held.key)
    return {"deleted": True}


ABSENT = (None, False, 0, "")
"""What JavaScript takes for no key at all."""


@router.patch(
    "/{key:path}",
    summary="Change or rename a memory",
    responses={200: {"model": Updated}},
    openapi_extra=takes("key", key=KEY, value=VALUE),
)
async def update(memory: Opened, user: Updater, given: Given, agent: Partition, key: Key) -> JSONResponse:
    """A changed value counts against the token limit too, and a rename is one step."""
    checks = checks_of(memory)
    value = checks.value(given.get("value"))
    wanted = given.get("key")
    if wanted in ABSENT:
        wanted = key
    if not isinstance(wanted, str):
        raise BadRequest("Key must be a string.")
    if wanted != key:
        wanted = wanted.strip()
    checks.key_length(wanted)
    if wanted != key:
        checks.key_format(wanted)
    checks.value_length(value)
    scope = Scope(ScopeKind.USER, user, agent)
    held = await memory.get(scope, key)
    if wanted.casefold() == RESERVED_KEY:
        return error("Failed to create new memory.", 500)
    return await changed(memory, scope, held, key=wanted, value=value)


@router.delete("/{key:path}", summary="Delete a memory", responses={200: {"model": Deleted}})
async def delete(memory: Opened, user: Updater, agent: Partition, key: Key) -> dict[str, Any]:
    try:
        await memory.forget(Scope(ScopeKind.USER, user, agent), key)
    except InvalidKey:
        raise NoSuchMemory("no memory can be under such a key") from None
    return {"deleted": True}


async def changed(memory: Memagent, scope: Scope, held: Memory, *, key: str, value: str) -> JSONResponse:
    """Write a value over a memory that is there, under its key or another, in one step."""
    checks = checks_of(memory)
    if key != held.key:
        checks.key_format(key)
    checks.value_length(value)
    if key != held.key and any(each.key == key for each in await memory.list(scope)):
        raise Conflict(f"there is a memory under `{key}` already")
    total = await memory.totals(scope)
    checks.tokens(held=total.tokens, before=held.tokens, after=count_tokens(value))
    written = await memory.put(scope, key, value, rename_from=held.key)
    return JSONResponse({"updated": True, "memory": entry(scope, written)})
