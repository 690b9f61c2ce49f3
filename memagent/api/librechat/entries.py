"""A memory as LibreChat stores and shows it (spec/librechat.md §6), and finding one by its id."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC
from typing import TYPE_CHECKING, Any

from memagent.errors import NoSuchMemory
from memagent.memory import Scope, ScopeKind

if TYPE_CHECKING:
    from datetime import datetime

    from memagent.memory import Memory
    from memagent.service import Memagent


def entry(scope: Scope, memory: Memory) -> dict[str, Any]:
    """LibreChat's document; `trusted` is ours, and only there while the user has not accepted what a tool brought in."""
    shown: dict[str, Any] = {
        "_id": memory.id,
        "userId": scope.owner,
        "key": memory.key,
        "value": memory.value,
        "tokenCount": memory.tokens,
        "updated_at": moment(memory.updated_at),
    }
    if scope.agent:
        shown["agentId"] = scope.agent
    if not memory.trusted:
        shown["trusted"] = False
    return shown


def moment(at: datetime) -> str:
    """As JavaScript writes it: milliseconds, and Z."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def everything(memory: Memagent, user: str) -> list[tuple[Scope, Memory]]:
    """All memories of all the user's partitions, newest update first."""
    scopes = sorted({Scope(ScopeKind.USER, user), *await memory.scopes(user)})
    lists = await asyncio.gather(*(memory.list(scope) for scope in scopes))
    found = [(scope, each) for scope, held in zip(scopes, lists, strict=True) for each in held]
    return sorted(found, key=lambda pair: (-pair[1].updated_at.timestamp(), pair[1].key, pair[0]))


async def of_id(memory: Memagent, user: str, entry_id: str, *, agent: str) -> tuple[Scope, Memory]:
    """The memory of this id in one partition; without an agent, the global memories are in reach too.

    Raises `NoSuchMemory` for an id that is not there, not the user's, or in another partition.
    """
    for scope, each in await everything(memory, user):
        if scope.agent == agent and each.id == entry_id:
            return scope, each
    raise NoSuchMemory("there is no memory of this id")


def usage(tokens: int, limit: int | None) -> int | None:
    """Of the limit, in percent as JavaScript rounds it, at most 100; None without a limit over zero."""
    return min(100, math.floor(tokens / limit * 100 + 0.5)) if limit and limit > 0 else None
