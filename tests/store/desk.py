"""A desk with a drawer: one scope of a real store, days that are numbers, vectors whose cosines are chosen."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from memagent.memory import Memory, Scope, ScopeKind, Source
from memagent.store import Applied, Limits, Recalled, RecallQuery, SetMemory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from memagent.llm import Vector
    from memagent.store.redis import RedisStore

EMBEDDER = "test-embedder"
DIMENSIONS = 16
DAY_ZERO = datetime(2026, 3, 1, tzinfo=UTC)


def at(day: int, hour: float = 12) -> datetime:
    return DAY_ZERO + timedelta(days=day, hours=hour)


def direction(axis: int) -> Vector:
    vector = np.zeros(DIMENSIONS, dtype=np.float32)
    vector[axis] = 1
    return vector


def near(cosine: float, axis: int) -> Vector:
    """A unit vector at this cosine from `direction(0)`, and apart from every other axis."""
    return np.asarray(cosine * direction(0) + np.sqrt(1 - cosine**2) * direction(axis), dtype=np.float32)


@dataclass
class Desk:
    """Shorthand around one store: saying less in a test lets the rule be seen."""

    store: RedisStore
    scope: Scope = field(default_factory=lambda: Scope(ScopeKind.USER, "alice"))
    searched: bool = False

    async def save(
        self,
        key: str,
        *,
        day: int = 0,
        hour: float = 10,
        value: str | None = None,
        vector: Vector | None = None,
        axis: int | None = 1,
        limits: Limits | None = None,
        scope: Scope | None = None,
        source: Source = Source.AGENT,
        embedder: str = EMBEDDER,
        message_id: str | None = None,
        **more: Any,
    ) -> Applied:
        if vector is None and axis is not None:
            vector = direction(axis)
        edit = SetMemory(
            key=key,
            value=value or f"Words kept under {key}",
            tokens=more.pop("tokens", 5),
            source=source,
            vector=vector,
            embedder=embedder if vector is not None else "",
            **more,
        )
        return await self.store.apply(
            scope or self.scope, [edit], limits=limits or Limits(), now=at(day, hour), message_id=message_id
        )

    async def chat(
        self,
        day: int,
        *,
        hour: float = 12,
        about: int | None = 15,
        vector: Vector | None = None,
        scopes: tuple[Scope, ...] | None = None,
        context_terms: tuple[str, ...] = (),
        **query: Any,
    ) -> Recalled:
        """One turn of a chat. Axis 15 is what nobody remembers; `about` None is a failed search."""
        if vector is None and about is not None:
            vector = direction(about)
        asked = RecallQuery(
            now=at(day, hour),
            vector=vector,
            embedder=query.pop("embedder", EMBEDDER),
            context_terms=lambda: context_terms,
            **query,
        )
        return await self.store.recall(scopes or (self.scope,), asked)

    async def unmatched(self, *days: int) -> None:
        for day in days:
            await self.chat(day)

    async def memory(self, key: str, scope: Scope | None = None) -> Memory:
        found = await self.store.get(scope or self.scope, key)
        assert found is not None
        return found

    async def unused(self, key: str, scope: Scope | None = None) -> int:
        return (await self.memory(key, scope)).unused_days

    async def keys(self, scope: Scope | None = None) -> set[str]:
        return {memory.key for memory in await self.store.list(scope or self.scope)}


def keys(recalled: Recalled) -> list[str]:
    return [memory.key for memory in recalled.active]


def used(recalled: Recalled) -> list[str]:
    return [hit.memory.key for hit in recalled.hits if hit.used]


async def found_again(desk: Desk, **query: Any) -> Recalled:
    """A new index reads what is there in the background; until it has, a search says that it does not count."""
    while True:
        found = await desk.chat(1, vector=direction(0), **query)
        if found.searched:
            return found
        await asyncio.sleep(0.02)


@asynccontextmanager
async def opened(redis_url: str, prefix: str, **more: Any) -> AsyncIterator[RedisStore]:
    """A store for a test that makes its own event loops."""
    from memagent.store.redis import RedisStore

    store = await RedisStore.open(
        redis_url, prefix=prefix, **{"embedder_id": EMBEDDER, "dimensions": DIMENSIONS, **more}
    )
    try:
        yield store
    finally:
        await store.close()
