"""Turns that wait, on Redis: one line per user, in the slot of that user; of everybody only handles. `lua/queue*.lua`."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memagent.store import CONSENT
from memagent.store.connection import at
from memagent.store.faults import redis_errors
from memagent.store.keys import (
    dead_key,
    news_channel,
    of_handle,
    queue_keys,
    queue_name,
    swept_key,
    turn_handle,
    waiting_key,
)
from memagent.store.rows import dumps
from memagent.store.scripts import QUEUE_PARTS, queue_script

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from redis.asyncio import Redis


@dataclass(frozen=True, slots=True)
class Line:
    """How one user's line stands; `statuses` are those of the asked ids, empty for one that is not there."""

    length: int
    held: bool
    wait_ms: float
    statuses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """What a worker got of a line: a turn's fields and what was said; `held` by another, or to come back in `wait_ms`."""

    turn: Mapping[str, str] | None = None
    payload: str = field(default="", repr=False)
    held: bool = False
    wait_ms: float = 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """Everybody's turns that wait: how many, and for how long the oldest does."""

    turns: int
    age_ms: float = 0.0


class Queues:
    """Lines of turns on the store's own connection. Every call may raise `StoreFault`; fields are texts, as Redis has them.

    What waits, for how long, and who is next to sweep is told by Redis' own clock alone: many processes share it, and a clock
    that jumps in one of them must not hide a turn from the others.
    """

    def __init__(self, client: Redis, *, prefix: str) -> None:
        self.client = client
        self.prefix = prefix
        self._scripts = {name: client.register_script(queue_script(name)) for name in QUEUE_PARTS}

    # -- a user's line --------------------------------------------------------------------------------------------------

    async def accept(
        self,
        user: str,
        turn_id: str,
        payload: str,
        fields: Mapping[str, str],
        *,
        most: int,
        skipped: Mapping[str, str],
        ttl_ms: int,
        off: bool = False,
    ) -> tuple[Mapping[str, str] | None, bool]:
        """Put a turn into the line, once per id: its fields, and whether it was known. None when the line is full.

        Of a user who has memory switched off, and with `off` of anybody, nothing that was said is kept: the turn is done,
        with the fields of `skipped`.
        """
        skip = {"switch": CONSENT, "all": off, "ttl": ttl_ms, **skipped}
        request = {"id": turn_id, "most": most, "fields": fields, "skip": skip}
        answer = await self._run("accept", user, request, payload)
        decoded = json.loads(answer)
        return decoded.get("turn"), bool(decoded.get("known"))

    async def take(self, user: str, token: str, *, lease_ms: int) -> Taken:
        """The first turn of the line for the holder of `token`, who holds the line for `lease_ms` from here on."""
        answer = await self._run("take", user, {"token": token, "lease": lease_ms})
        decoded = json.loads(answer[0])
        if decoded.get("held"):
            return Taken(held=True)
        if "wait" in decoded:
            return Taken(turn=decoded["turn"], wait_ms=decoded["wait"])
        return Taken(decoded.get("turn"), answer[1].decode() if len(answer) > 1 else "")

    async def renew(self, user: str, token: str, *, lease_ms: int) -> bool:
        """Hold the line for longer; False when it is another's by now."""
        return bool(await self._run("renew", user, {"token": token, "lease": lease_ms}))

    async def settle(
        self,
        user: str,
        turn_id: str,
        token: str,
        *,
        status: str,
        fields: Mapping[str, str],
        ttl_ms: int = 0,
        delay_ms: int = 0,
        on: bool = False,
    ) -> int | None:
        """Write down what became of a turn: how many wait behind it, or None when the line or the turn is gone.

        `on` keeps the lease for the next turn; a turn that is queued again waits `delay_ms` and gives it back.
        """
        request = {
            "id": turn_id,
            "token": token,
            "status": status,
            "fields": fields,
            "ttl": ttl_ms,
            "delay": delay_ms,
            "on": on,
        }
        left = int(await self._run("settle", user, request))
        return None if left < 0 else left

    async def replay(self, user: str, turn_id: str) -> bool:
        """Let a turn that was given up wait again; False when it is not there."""
        return bool(await self._run("replay", user, {"id": turn_id}))

    async def look(self, user: str, ids: Sequence[str]) -> Line:
        found = json.loads(await self._run("look", user, {"ids": list(ids)}))
        return Line(found["length"], found["held"], found["wait"], tuple(found["statuses"]))

    async def turn(self, user: str, turn_id: str) -> Mapping[str, str] | None:
        """A turn's fields without what was said."""
        with redis_errors("reading a turn"):
            row: Mapping[Any, Any] = await self.client.hgetall(queue_keys(self.prefix, user)[3] + turn_id)
        fields = {name.decode(): value.decode() for name, value in row.items() if name != b"payload"}
        return {"id": turn_id, **fields} if "status" in fields else None

    async def synced(self, user: str, turn_id: str, *, timeout_ms: int) -> bool:
        """Whether this turn's state is on the disk of the primary: asked of `WAITAOF 1 0`, and only then written down."""
        keys = queue_keys(self.prefix, user)
        script = self._scripts["mark"]
        outcome: list[Any]
        request = {"id": turn_id, "done": False, **self._told(user)}
        with redis_errors("waiting for the disk"):
            server = await at(self.client, keys[0])
            async with server.pipeline(transaction=False) as pipeline:
                await script(keys=keys, args=[dumps(request).encode()], client=pipeline)
                pipeline.execute_command("WAITAOF", 1, 0, timeout_ms)
                outcome = await pipeline.execute(raise_on_error=False)
        status, answered = outcome
        if (
            isinstance(status, Exception)
            or not isinstance(answered, list)
            or not status
            or int(answered[0]) < 1
        ):
            return False
        await self._run("mark", user, {"id": turn_id, "done": True})
        return True

    async def erase(self, user: str) -> list[dict[str, str]]:
        """Take away all turns of a user; what they were."""
        found = json.loads(await self._run("erase", user, {}))
        with redis_errors("erasing turns"):
            handles = [turn_handle(user, turn["id"]) for turn in found]
            if handles:
                await self.client.zrem(waiting_key(self.prefix), *handles)
                await self.client.zrem(dead_key(self.prefix), *handles)
        return list(found)

    # -- everybody's handles ---------------------------------------------------------------------------------------------

    async def waiting(self) -> Waiting:
        key = waiting_key(self.prefix)
        with redis_errors("counting turns"):
            async with self.client.pipeline(transaction=False) as pipeline:
                pipeline.zcard(key)
                pipeline.zrange(key, 0, 0, withscores=True)
                pipeline.time()
                turns, oldest, now = await pipeline.execute()
        return Waiting(int(turns), max(0.0, _ms(now) - oldest[0][1]) if oldest else 0.0)

    async def announce(self, user: str, turn_id: str, *, most: int) -> bool:
        """Before a turn is put in line, so that none can ever wait unseen; False when too many wait."""
        request = {"handle": turn_handle(user, turn_id), "most": most}
        with redis_errors("announcing a turn"):
            noted = await self._scripts["announce"](
                keys=[waiting_key(self.prefix)], args=[dumps(request).encode()]
            )
        return bool(noted)

    async def withdraw(self, handles: Sequence[tuple[str, str]]) -> None:
        if handles:
            with redis_errors("withdrawing turns"):
                names = [turn_handle(user, turn_id) for user, turn_id in handles]
                await self.client.zrem(waiting_key(self.prefix), *names)

    async def announced(self, *, for_ms: float, limit: int) -> tuple[tuple[str, str, float], ...]:
        """Users, ids and ages in ms of the turns that were announced so long ago, oldest first."""
        with redis_errors("looking for turns"):
            now_ms = _ms(await self.client.time())
            found: list[Any] = await self.client.zrangebyscore(
                waiting_key(self.prefix), "-inf", now_ms - for_ms, 0, limit, withscores=True
            )
        return tuple((*of_handle(handle.decode()), now_ms - float(at)) for handle, at in found)

    async def next_to_sweep(self, *, every_ms: int) -> bool:
        """Whether it is the caller who sweeps: one of all who ask within `every_ms`."""
        with redis_errors("looking for turns"):
            return bool(await self.client.set(swept_key(self.prefix), 1, nx=True, px=every_ms))

    async def bury(self, user: str, turn_id: str, *, keep_ms: float) -> None:
        """Note a turn that was given up; those whose time is over go."""
        key = dead_key(self.prefix)
        with redis_errors("keeping a dead letter"):
            now_ms = _ms(await self.client.time())
            await self.client.zadd(key, {turn_handle(user, turn_id): now_ms})
            await self.client.zremrangebyscore(key, "-inf", now_ms - keep_ms)

    async def unbury(self, user: str, turn_id: str) -> None:
        with redis_errors("replaying a dead letter"):
            await self.client.zrem(dead_key(self.prefix), turn_handle(user, turn_id))

    async def buried(self, *, limit: int) -> tuple[tuple[str, str], ...]:
        """Users and ids of what was given up, newest first."""
        with redis_errors("listing dead letters"):
            found: list[Any] = await self.client.zrevrange(dead_key(self.prefix), 0, limit - 1)
        return tuple(of_handle(handle.decode()) for handle in found)

    async def dead(self) -> int:
        with redis_errors("counting dead letters"):
            return int(await self.client.zcard(dead_key(self.prefix)))

    # -- news ---------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def news(self) -> AsyncIterator[AsyncIterator[str | None]]:
        """Handles of turns whose state changes, from now on, and None now and then when none does.

        Ends with `StoreFault` when the connection does.
        """
        listener = self.client.pubsub(ignore_subscribe_messages=True)

        async def heard() -> AsyncIterator[str | None]:
            while True:
                with redis_errors("listening for news of turns"):
                    message = await listener.get_message(timeout=1.0)
                yield None if message is None else message["data"].decode()

        try:
            with redis_errors("listening for news of turns"):
                await listener.subscribe(news_channel(self.prefix))
            yield heard()
        finally:
            await listener.aclose()  # type: ignore[no-untyped-call]

    # -- the one door ----------------------------------------------------------------------------------------------------

    def _told(self, user: str) -> dict[str, str]:
        return {"channel": news_channel(self.prefix), "lane": queue_name(user)}

    async def _run(self, name: str, user: str, request: Mapping[str, Any], payload: str = "") -> Any:
        body = dumps({**request, **self._told(user)}).encode()
        with redis_errors("keeping turns in order"):
            return await self._scripts[name](
                keys=queue_keys(self.prefix, user), args=[body, payload.encode()] if payload else [body]
            )


def _ms(time: tuple[int, int]) -> float:
    """What `TIME` answers, as Unix ms."""
    seconds, microseconds = time
    return seconds * 1000 + microseconds / 1000
