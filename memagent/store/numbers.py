"""The numbers of what is said, on Redis: each thing in a conversation once, however often and in whatever window it comes.

The rows themselves are kept elsewhere (`sessions.turns`); here stands that a number is taken, and whether its row is written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memagent.store import CONSENT
from memagent.store.faults import redis_errors
from memagent.store.keys import (
    consent_key,
    conversation_name,
    conversations_key,
    numbers_key,
    owner_in,
    receipt_key,
    spoken_key,
)
from memagent.store.rows import dumps
from memagent.store.scripts import numbers_script

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from redis.asyncio import Redis

    from memagent.memory import Scope

SHOWN_KEPT = 32
"""Citations of a conversation that are remembered as put into it: those of the last turns, which a window still shows."""

_DOING = "numbering turns"
_ERASING = "erasing what was said"


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that was said. `names` are what it is known by, any of them; `marks` are what an answer finds it by.

    An answer comes `after` one of these names or marks, and takes no number when none is known.
    """

    names: tuple[str, ...]
    marks: tuple[str, ...] = ()
    after: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Numbered:
    """`number` counts from 1; `at` is when it was first handed over; `written` says that its row is there for certain."""

    number: int
    at: datetime
    written: bool


@dataclass(frozen=True, slots=True)
class Claimed:
    """Numbers in the order of the claims, None for an answer to nothing known; citations put in lately, newest last.

    `refused`: the user has memory switched off, or was erased while this turn was under way.
    """

    numbers: tuple[Numbered | None, ...] = ()
    shown: tuple[str, ...] = ()
    refused: bool = False


class TurnNumbers:
    """Numbers of all conversations, on the store's own connection. Every call may raise `StoreFault`."""

    def __init__(self, client: Redis, *, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._script = client.register_script(numbers_script())

    async def claim(
        self,
        scope: Scope,
        conversation: str,
        claims: Sequence[Claim],
        *,
        at: datetime,
        message_id: str,
        shown: Sequence[str] = (),
    ) -> Claimed:
        """Number what is new, in one atomic step that looks at consent; what is known keeps its number and its time.

        `message_id` is the turn's, which an erasure may have closed; `shown` are citations that went into its context.
        """
        name = conversation_name(scope, conversation)
        keys = [
            numbers_key(self._prefix, name),
            conversations_key(self._prefix, scope.owner),
            consent_key(self._prefix, scope),
            receipt_key(self._prefix, scope, f"={message_id}"),
        ]
        request = {
            "consent": CONSENT,
            "at": at.isoformat(),
            "name": name,
            "rows": [_row(claim) for claim in claims],
            "shown": list(shown),
            "most": SHOWN_KEPT,
        }
        with redis_errors(_DOING):
            answer = json.loads(await self._script(keys=keys, args=[dumps(request).encode()]))
        if answer.get("refused"):
            return Claimed(refused=True)
        # Lua writes an empty list as an empty object.
        return Claimed(tuple(_numbered(row) for row in answer["rows"] or ()), tuple(answer["shown"] or ()))

    async def written(
        self, scope: Scope, conversation: str, claims: Sequence[Claim], numbers: Sequence[Numbered]
    ) -> bool:
        """Note that the rows of these numbers are there; False when the user was erased meanwhile."""
        key = numbers_key(self._prefix, conversation_name(scope, conversation))
        with redis_errors(_DOING):
            async with self._client.pipeline(transaction=True) as pipeline:
                pipeline.hmget(key, [claim.names[0] for claim in claims])
                pipeline.hdel(key, *(f"?{each.number}" for each in numbers))
                held, _ = await pipeline.execute()
        return [_held(each) for each in numbers] == [
            None if value is None else value.decode() for value in held
        ]

    # -- owners ----------------------------------------------------------------------------------------------------------

    async def spoke(self, owner: str, embedder: str) -> None:
        """Note whose turns are searched: with vectors of `embedder` all of them, as far as known; empty is certainly not."""
        with redis_errors(_DOING):
            if embedder:
                await self._client.hsetnx(spoken_key(self._prefix), owner, embedder)
            else:
                await self._client.hset(spoken_key(self._prefix), owner, "")

    async def caught_up(self, owner: str, embedder: str) -> None:
        """Note that all turns of an owner have vectors of `embedder`."""
        with redis_errors(_DOING):
            await self._client.hset(spoken_key(self._prefix), owner, embedder)

    async def behind(self, embedder: str) -> tuple[str, ...]:
        """Owners some of whose turns have no vector of `embedder`."""
        with redis_errors(_DOING):
            found = [
                owner.decode()
                async for owner, held in self._client.hscan_iter(spoken_key(self._prefix), count=1_000)
                if held.decode() != embedder
            ]
        return tuple(sorted(found))

    async def erase(self, user: str) -> tuple[str, ...]:
        """Forget all numbers of a user; the names of the conversations, for `erased` when their rows are gone too."""
        with redis_errors(_ERASING):
            members: Any = await self._client.smembers(conversations_key(self._prefix, user))
            names = tuple(sorted(name.decode() for name in members))
            if names:
                await self._client.unlink(*(numbers_key(self._prefix, name) for name in names))
        return names

    async def erased(self, user: str, names: Sequence[str]) -> None:
        """Forget these conversations altogether. Until then another erasure finds them again."""
        if names:
            with redis_errors(_ERASING):
                await self._client.srem(conversations_key(self._prefix, user), *names)
                await self._client.hdel(spoken_key(self._prefix), *{owner_in(name) for name in names})


def _row(claim: Claim) -> Mapping[str, Any]:
    row: dict[str, Any] = {"names": list(claim.names), "marks": list(claim.marks)}
    return row if claim.after is None else {**row, "after": list(claim.after)}


def _numbered(row: Mapping[str, Any]) -> Numbered | None:
    if not row["value"]:
        return None
    number, at = row["value"].split(" ", 1)
    return Numbered(int(number), datetime.fromisoformat(at), bool(row["written"]))


def _held(numbered: Numbered) -> str:
    return f"{numbered.number} {numbered.at.isoformat()}"
