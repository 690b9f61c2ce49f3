"""What things weigh in Redis, and what a turn costs: the figures that docs/scale.md reckons with.

    python -m benchmarks.size [--quick | --full]

Bytes are what `used_memory` grows by, per piece, over a thousand users, so tables that double are in them; the second table has
what single keys take. `log` is what the append-only file grows by, which is also
what goes to a replica. `redis ms` and `python ms` are processor time of the server and of this process, which accepts the turns
and learns from them. The model answers at once; vectors are there already.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from benchmarks import measure
from benchmarks.measure import Instant, Known
from benchmarks.turn import opened
from memagent.llm import ModelReply, Usage
from memagent.store.redis import RedisStore
from memagent.turn import Turn
from memagent.worker import open_queue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.llm import ToolSpec
    from memagent.memory import Message
    from memagent.service import Memagent

USERS = 1_024
"""As many memories as the index takes room for at a time, so that one for each user fills it."""

EACH = {"quick": 5, "default": 20, "full": 100}
"""Memories of a user when everything is there."""

TURNS = {"quick": 300, "default": 2_000, "full": 10_000}


class Silent:
    """A model that finds nothing worth keeping."""

    async def complete(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> ModelReply:  # noqa: ARG002
        return ModelReply("nothing to keep", (), Usage(900, 5), "silent", "stop")


class Scales:
    """What Redis holds, has written and has worked since it was looked at last, per piece."""

    def __init__(self, store: RedisStore) -> None:
        self._client = store.client
        self._last: dict[str, float] = {}

    async def per(self, pieces: int) -> dict[str, float]:
        info = await self._client.info()
        now = {
            "bytes": float(info["used_memory"]) - float(info["mem_clients_normal"]),
            "log": float(info["aof_current_size"]) + float(info.get("aof_buffer_length", 0)),
            "redis_ms": 1000 * (float(info["used_cpu_user"]) + float(info["used_cpu_sys"])),
            "python_ms": 1000 * time.process_time(),
        }
        grown = {name: (value - self._last.get(name, 0)) / pieces for name, value in now.items()}
        self._last = now
        return {name: round(each, 3 if name.endswith("ms") else 1) for name, each in grown.items()}


def turn_of(number: int, users: int) -> Turn:
    user = measure.name_of(number % users)
    return Turn(user, f"message{number}", measure.chat(number), conversation_id=f"c{number % users}")


async def learned(memory: Memagent, numbers: range, users: int) -> None:
    """Context and learning, one turn after another, without a queue."""
    for number in numbers:
        turn = turn_of(number, users)
        found = await memory.context(turn)
        await memory.observe(turn, recalled=found.note)


async def fill(store: RedisStore, users: range, memories: range) -> None:
    for number in users:
        texts = measure.facts(memories.stop, seed=number)[memories.start :]
        vectors = list(measure.vectors(memories.stop, seed=number)[memories.start :])
        rows = measure.edits(texts, vectors, "known", first=memories.start)
        await store.apply(
            measure.own(measure.name_of(number)), rows, limits=measure.FREE, now=datetime.now(UTC)
        )


async def weigh(store: RedisStore, each: int, turns: int) -> dict[str, dict[str, float]]:
    scales, found, users = Scales(store), {}, USERS
    await store.client.config_set("auto-aof-rewrite-percentage", 0)
    await fill(store, range(users, 2 * users), range(1))  # scripts and tables that are there once
    await scales.per(1)
    await fill(store, range(users), range(1))
    found["a user with one memory"] = await scales.per(users)
    await fill(store, range(users), range(1, each))
    found["a memory"] = await scales.per(users * (each - 1))
    found["a user without memories"] = {
        "bytes": round(found["a user with one memory"]["bytes"] - found["a memory"]["bytes"], 1)
    }
    silent, keen = (opened(store, Known("known"), model) for model in (Silent(), Instant(each)))
    for name, memory, first in (
        ("a turn that taught nothing", silent, 0),
        ("a turn that taught one thing", keen, 10_000_000),
    ):
        await learned(memory, range(first, first + users), users)  # what every user has once
        await scales.per(1)
        await learned(memory, range(first + users, first + users + turns), users)
        found[name] = await scales.per(turns)
    async with open_queue(keen, worker=False) as queue:
        numbers = range(20_000_000, 20_000_000 + turns)
        for number in numbers[:20]:
            await queue.accept(turn_of(number, users))
        await scales.per(1)
        for number in numbers[20:]:
            await queue.accept(turn_of(number, users))
        found["a turn that waits"] = await scales.per(turns - 20)
    async with open_queue(keen, worker=True) as queue:
        while (await queue._queues.waiting()).turns:  # noqa: ASYNC110, SLF001  another process would raise no event either
            await asyncio.sleep(0.05)
        gone = await scales.per(turns)
    found["a turn that waited and taught"] = {
        name: round(found["a turn that waits"][name] + gone[name], 3) for name in gone
    }
    return found


KINDS = {
    "m": "a memory's hash, with its vector",
    "r": "a receipt",
    "h": "a history, all lines",
    "t": "a turn that is over",
}
"""Of what there is one or many per user; all other kinds are a user's own few sets and counters."""


async def kinds(store: RedisStore) -> dict[str, dict[str, float]]:
    """Mean bytes of the keys of each kind, and of everything else that a user has; the index is in none of them."""
    found: dict[str, list[int]] = {}
    lines = 0
    names = [name async for name in store.client.scan_iter(match=f"{store.prefix}:?:*", count=1_000)]
    for first in range(0, len(names), 1_000):
        some = names[first : first + 1_000]
        async with store.client.pipeline(transaction=False) as pipeline:
            for name in some:
                pipeline.memory_usage(name, samples=0)
            sizes = await pipeline.execute()
        for name, size in zip(some, sizes, strict=True):
            kind = name.decode().split(":")[1]
            by_hand = kind == "r" and b"=" not in name  # gone after minutes
            if size is not None and not by_hand:
                found.setdefault(kind if kind in KINDS else "", []).append(size)
            if kind == "h":
                lines += await store.client.llen(name)
    rest = found.pop("", [])
    users = len(found["h"])
    table = {
        KINDS[kind]: {"keys": len(sizes), "bytes": round(sum(sizes) / len(sizes), 1)}
        for kind, sizes in found.items()
    }
    table["a line of a history"] = {"keys": lines, "bytes": round(sum(found["h"]) / lines, 1)}
    table["all other keys of a user"] = {"keys": len(rest), "bytes": round(sum(rest) / users, 1)}
    return table


async def main(mode: str) -> None:
    async with measure.own_redis() as server:
        store = await RedisStore.open(
            server.url, embedder_id="known", dimensions=measure.DIMENSIONS, history_changes=200
        )
        figures: dict[str, Any] = await weigh(store, EACH[mode], TURNS[mode])
        parts = await kinds(store)
        await store.close()
    measure.table(
        ["", "bytes", "log", "redis ms", "python ms"],
        [
            [name, *(each.get(column, "") for column in ("bytes", "log", "redis_ms", "python_ms"))]
            for name, each in figures.items()
        ],
    )
    measure.table(["", "keys", "bytes"], [[name, *each.values()] for name, each in parts.items()])
    measure.report("size", mode, {**figures, "kinds": parts}, [])


if __name__ == "__main__":
    asyncio.run(main(measure.asked(__doc__)))
