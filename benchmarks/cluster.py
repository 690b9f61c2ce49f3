"""A Redis Cluster of three shards beside one server: recall, turns, how even the shards are, and a failover amid turns.

    python -m benchmarks.cluster [--quick | --full]

Seven servers on this machine's loopback: one alone, and three primaries with a replica each. All of them, and the clients, share
its cores, so that a rate shows what a cluster costs and not what it brings: that takes a machine per shard. `several slots` is a recall
that takes a shared scope of another shard along. In the failovers eight chats go on; a write that is refused is tried again until it
is taken, as a worker does, and then everything is counted.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks import measure
from benchmarks.local_cluster import NODE_TIMEOUT_MS, LocalCluster
from benchmarks.measure import Figure, Instant, Known, Reach
from benchmarks.recall import ASKED, EACH, WORDS
from benchmarks.turn import CHATS, Turns, opened
from memagent.errors import StoreUnavailable
from memagent.memory import Scope, ScopeKind
from memagent.store import RecallQuery
from memagent.store.connection import cluster_of
from memagent.store.keys import slot_tag
from memagent.store.redis import RedisStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

EMBEDDER = "known"
USERS = {"quick": 60, "default": 300, "full": 3_000}
ROUNDS = {"quick": (3, 40), "default": (5, 120), "full": (5, 400)}
CLIENTS = (1, 8, 32)
AT_WORK = 8
TALKING = 8
TEAM = Scope(ScopeKind.SHARED, "team")

AFTER_S = 0.7
"""The chats of a failover go on for this long before it, and again once it is over."""

PAUSE_S = 0.02
"""Before a refused write is tried again."""


@asynccontextmanager
async def cluster() -> AsyncIterator[LocalCluster]:
    folder = Path(tempfile.mkdtemp(prefix="memagent-bench-"))
    try:
        async with LocalCluster(folder) as started:
            yield started
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# -- latency and rate ------------------------------------------------------------------------------------------------------


async def search(store: RedisStore, scopes: Sequence[Scope], number: int) -> None:
    query = RecallQuery(
        now=datetime.now(UTC), vector=ASKED[number % len(ASKED)], embedder=EMBEDDER, terms=WORDS
    )
    if not (await store.recall(scopes, query)).searched:
        raise RuntimeError("a search did not count")


def own(number: int, users: int) -> Scope:
    return measure.own(measure.name_of(7 * number % users))


async def rate(store: RedisStore, users: int, clients: int, seconds: float) -> int:
    until, done = perf_counter() + seconds, count()

    async def client(place: int) -> None:
        for number in count(place, clients):
            if perf_counter() > until:
                return
            await search(store, [own(place, users)], number)
            next(done)

    await asyncio.gather(*(client(place) for place in range(clients)))
    return round(next(done) / seconds)


async def speed(store: RedisStore, users: int, mode: str) -> dict[str, Any]:
    rounds, each = ROUNDS[mode]

    async def timed(work: Callable[[int], Awaitable[Any]]) -> Figure:
        return await measure.timed(work, rounds=rounds, each=each)

    found: dict[str, Any] = {
        "recall": await timed(lambda at: search(store, [own(at % AT_WORK, users)], at)),
        "several slots": await timed(lambda at: search(store, [own(at % AT_WORK, users), TEAM], at)),
    }
    model = Instant(EACH)
    model.number = start = next(CHATS)
    turns = Turns(opened(store, Known(EMBEDDER), model), own(0, users).owner, start=start, count=2_000)
    found["turn"] = await measure.timed(turns, rounds=rounds, each=each // 4)
    seconds = 1.0 if mode == "quick" else 3.0
    found["a second"] = {clients: await rate(store, users, clients, seconds) for clients in CLIENTS}
    return found


# -- shards ----------------------------------------------------------------------------------------------------------------


async def used(store: RedisStore) -> list[int]:
    """Bytes in use at each primary, or at the one server."""
    whole = cluster_of(store.client)
    servers = await whole.primaries() if whole else [store.client]
    return [(await server.info("memory"))["used_memory"] for server in servers]


async def shards(store: RedisStore, users: int, empty: list[int]) -> dict[str, Any]:
    whole = cluster_of(store.client)
    if whole is None:
        return {"bytes_per_memory": [round((sum(await used(store)) - sum(empty)) / users / EACH)]}
    primaries = await whole.primaries()
    names = [await whole.holder(slot_tag(measure.own(measure.name_of(user)))) for user in range(users)]
    at_each = [sum(name is server for name in names) for server in primaries]
    grown = [now - before for now, before in zip(await used(store), empty, strict=True)]
    return {
        "users": at_each,
        "most_over_mean": round(max(at_each) * len(at_each) / users, 3),
        "bytes_per_memory": [
            round(each / there / EACH) for each, there in zip(grown, at_each, strict=True) if there
        ],
    }


# -- failovers ---------------------------------------------------------------------------------------------------------------


@dataclass
class Stream:
    """Chats that go on whatever happens. Every message keeps one memory of its own, so that all can be counted."""

    store: RedisStore
    name: str
    acknowledged: dict[Scope, list[str]] = field(default_factory=dict)
    refused: list[tuple[float, float]] = field(default_factory=list)
    """From the first refusal of a message to its acknowledgement."""
    slowest_s: float = 0.0
    going: bool = True

    async def chat(self, place: int) -> None:
        scope = Scope(ScopeKind.USER, f"{self.name}{place}")
        held = self.acknowledged.setdefault(scope, [])
        vectors = measure.vectors(64, seed=place)
        for number in count():
            if not self.going:
                return
            (edit,) = measure.edits(
                [f"{self.name} {place} {number}"], [vectors[number % 64]], EMBEDDER, first=number
            )
            first_refusal, began = None, perf_counter()
            while True:
                try:
                    await self.store.apply(
                        scope, [edit], limits=measure.FREE, now=datetime.now(UTC), message_id=edit.key
                    )
                    break
                except StoreUnavailable:
                    first_refusal = first_refusal or perf_counter()
                    await asyncio.sleep(PAUSE_S)
            held.append(edit.key)
            self.slowest_s = max(self.slowest_s, perf_counter() - began)
            if first_refusal:
                self.refused.append((first_refusal, perf_counter()))

    async def counted(self) -> tuple[int, int]:
        """Acknowledged messages whose memory is not there, and memories that were written more than once."""
        lost = twice = 0
        for scope, held in self.acknowledged.items():
            there = {memory.key for memory in await self.store.list(scope)}
            written = [line.key for line in await self.store.history(scope, limit=100_000)]
            lost += len(set(held) - there)
            twice += len(written) - len(set(written))
        return lost, twice


async def failover(store: RedisStore, servers: LocalCluster, *, kill: bool) -> dict[str, Any]:
    stream = Stream(store, "killed" if kill else "handed")
    chats = asyncio.gather(*(stream.chat(place) for place in range(TALKING)))
    await asyncio.sleep(AFTER_S)
    slot = slot_tag(next(iter(stream.acknowledged)))
    started = perf_counter()
    async with AsyncExitStack() as lasting:
        if kill:
            killed = await lasting.enter_async_context(servers.without(slot))
            while await servers.holder(slot) is killed:  # noqa: ASYNC110  another process raises no event here
                await asyncio.sleep(PAUSE_S)
        else:
            await servers.hand_over(slot)
        took = perf_counter() - started
        await asyncio.sleep(AFTER_S)
        stream.going = False
        await chats
        lost, twice = await stream.counted()
    return {
        "acknowledged": sum(map(len, stream.acknowledged.values())),
        "messages_refused": len(stream.refused),
        "longest_refused_s": round(max((end - start for start, end in stream.refused), default=0), 2),
        "slowest_s": round(stream.slowest_s, 2),
        "known_to_all_s": round(took, 2),
        "lost": lost,
        "twice": twice,
    }


# -- all of it ---------------------------------------------------------------------------------------------------------------


async def measured(url: str, users: int, mode: str) -> tuple[RedisStore, dict[str, Any]]:
    store = await RedisStore.open(
        url, embedder_id=EMBEDDER, dimensions=measure.DIMENSIONS, history_changes=100_000
    )
    empty = await used(store)
    await measure.fill(store, range(users), EACH, embedder=EMBEDDER)
    standing = await shards(store, users, empty)
    rows = measure.edits(measure.facts(EACH, seed=5), list(measure.vectors(EACH, seed=5)), EMBEDDER)
    await store.apply(TEAM, rows, limits=measure.FREE, now=datetime.now(UTC))
    return store, {**await speed(store, users, mode), "shards": standing}


async def main(mode: str) -> None:
    users = USERS[mode]
    async with measure.own_redis() as server:
        store, one = await measured(server.url, users, mode)
        await store.close()
    async with cluster() as servers:
        store, several = await measured(servers.url, users, mode)
        handed = await failover(store, servers, kill=False)
        killed = await failover(store, servers, kill=True)
        await store.close()
    measure.table(
        ["", "recall ms", "with another slot ms", "turn ms", "recalls a second at 1 / 8 / 32"],
        [
            [name, each["recall"], each["several slots"], each["turn"], " / ".join(map(str, each["a second"].values()))]
            for name, each in (("one server", one), ("three shards", several))
        ],
    )  # fmt: skip
    standing = several["shards"]
    measure.table(
        ["shard", "users", "bytes per memory"],
        [[at, *row] for at, row in enumerate(zip(standing["users"], standing["bytes_per_memory"], strict=True), 1)]
        + [["one server", users, *one["shards"]["bytes_per_memory"]]],
    )  # fmt: skip
    measure.table(
        [
            "failover",
            "acknowledged",
            "refused",
            "longest s",
            "slowest write s",
            "known to all s",
            "lost",
            "twice",
        ],
        [["asked for", *_shown(handed)], [f"kill -9, node timeout {NODE_TIMEOUT_MS} ms", *_shown(killed)]],
    )
    ratio = round(several["recall"].p50 / one["recall"].p50, 2)
    measure.report(
        "cluster",
        mode,
        {"one": one, "several": several, "asked_for": handed, "killed": killed, "recall_ratio": ratio},
        [
            Reach("recall on three shards over one server", ratio, 3.0, "times"),
            Reach("longest refusal in a failover that is asked for", handed["longest_refused_s"], 1.0, "s"),
            Reach("acknowledged and lost, failover asked for", handed["lost"], 0, "turns"),
            Reach("acknowledged and lost, primary killed", killed["lost"], 0, "turns"),
            Reach("applied twice", handed["twice"] + killed["twice"], 0, "turns"),
            Reach("users of the fullest shard over the mean", standing["most_over_mean"], 1.25, "times"),
        ],
    )


def _shown(found: dict[str, Any]) -> list[Any]:
    return list(found.values())


if __name__ == "__main__":
    asyncio.run(main(measure.asked(__doc__)))
