"""Recall at the store: how long, how many a second, how exact, how many bytes per memory.

    python -m benchmarks.recall [--quick | --full]

10,000 users of 100 memories in full mode, 1,000 by default, 100 in quick mode. A memory has 384 dimensions in half precision.
`search` is one search whose prefix the process knows already, as in a chat that goes on; `first` one whose prefix it has to
read. `server` is what Redis itself took. Clients are tasks of one Python process.
"""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import measure
from benchmarks.measure import Figure, Reach
from memagent.store import RecallQuery
from memagent.store.redis import RedisStore

if TYPE_CHECKING:
    from memagent.store import Recalled

USERS = {"quick": (10, 100), "default": (10, 1_000), "full": (10, 1_000, 10_000)}
EACH = 100
ROUNDS = {"quick": (3, 60), "default": (5, 200), "full": (5, 400)}
CLIENTS = (1, 8, 32)
EMBEDDER = "random"
AT_WORK = 8
"""Users whose chats go on: every client has one."""


async def search(store: RedisStore, user: int, number: int, *, terms: tuple[str, ...] = ()) -> Recalled:
    query = RecallQuery(
        now=datetime.now(UTC), vector=ASKED[number % len(ASKED)], embedder=EMBEDDER, terms=terms
    )
    return await store.recall([measure.own(measure.name_of(user))], query)


ASKED = measure.vectors(512, seed=1_000_000)
WORDS = ("green", "tea", "cook", "tonight")
"""About every tenth memory shares one."""


async def latency(store: RedisStore, users: int, mode: str) -> dict[str, Figure]:
    rounds, each = ROUNDS[mode]
    some = [(7 * number) % users for number in range(AT_WORK)]
    dice = random.Random(3)
    warm = await measure.timed(
        lambda number: search(store, some[number % AT_WORK], number, terms=WORDS), rounds=rounds, each=each
    )
    await store.client.config_resetstat()
    for number in range(each):
        await search(store, some[number % AT_WORK], number, terms=WORDS)
    spent = (await store.client.info("commandstats"))["cmdstat_evalsha"]["usec_per_call"] / 1000
    first = await measure.timed(
        lambda number: search(store, dice.randrange(users), number, terms=WORDS),
        rounds=rounds,
        each=each // 2,
    )
    return {"search": warm, "first": first, "server": Figure.of([[spent]])}


async def rate(store: RedisStore, users: int, clients: int, seconds: float) -> dict[str, float]:
    until, took = perf_counter() + seconds, []

    async def client(place: int) -> None:
        number = place
        while (started := perf_counter()) < until:
            await search(store, place % users, number, terms=WORDS)
            took.append((perf_counter() - started) * 1000)
            number += clients

    await asyncio.gather(*(client(place) for place in range(clients)))
    return {
        "per_second": round(len(took) / seconds),
        "p50": round(measure.percentile(took, 0.5), 2),
        "p99": round(measure.percentile(took, 0.99), 2),
    }


async def exactness(store: RedisStore, users: int, asked: int) -> float:
    """Share of searches whose ten best are as near, place by place, as the ten that comparing with every memory finds.

    Compared is what an index of half precision holds: vectors of length one, rounded. From those of single precision, cosines
    are off by 0.00001 at most, so that two memories as near to each other as that may change places with theirs.
    """
    right = 0
    for number in range(asked):
        user = (13 * number) % users
        hits = (await search(store, user, number)).hits
        rows, query = held(measure.vectors(EACH, seed=user)), held(ASKED[number % len(ASKED)])
        cosines = np.maximum(rows @ query, 0)
        found = cosines[[int(hit.memory.key.removeprefix("key_")) for hit in hits]]
        right += bool(np.allclose(found, np.sort(cosines)[::-1][: len(hits)], rtol=0, atol=1e-6))
    return right / asked


def held(vectors: np.ndarray) -> np.ndarray:
    """Vectors as the index keeps them."""
    sent = vectors.astype(np.float16).astype(np.float32)
    unit = (sent / np.linalg.norm(sent, axis=-1, keepdims=True)).astype(np.float16)
    return unit.astype(np.float64)


async def main(mode: str) -> None:
    figures: dict[str, Any] = {}
    rows: list[list[Any]] = []
    async with measure.own_redis() as server:
        store = await RedisStore.open(server.url, embedder_id=EMBEDDER, dimensions=measure.DIMENSIONS)
        empty = (await store.client.info("memory"))["used_memory"]
        filled = 0
        for users in USERS[mode]:
            seconds = await measure.fill(store, range(filled, users), EACH, embedder=EMBEDDER)
            used = (await store.client.info("memory"))["used_memory"] - empty
            found = await latency(store, users, mode)
            rates = {
                clients: await rate(store, users, clients, 2.0 if mode == "quick" else 5.0)
                for clients in CLIENTS
            }
            figures[f"{users * EACH}"] = {
                **found,
                "clients": rates,
                "exact": await exactness(store, users, 100),
                "bytes_per_memory": round(used / (users * EACH)),
                "written_per_second": round((users - filled) * EACH / seconds),
            }
            filled = users
            rows.append([
                f"{users * EACH:,}", found["search"], found["first"], f"{found['server'].p50:.2f}",
                " / ".join(f"{each['per_second']:,}" for each in rates.values()),
                f"{rates[32]['p50']:.1f}, p99 {rates[32]['p99']:.1f}",
                figures[f"{users * EACH}"]["exact"], figures[f"{users * EACH}"]["bytes_per_memory"],
            ])  # fmt: skip
        await store.close()
    measure.table(
        [
            "memories",
            "search ms",
            "first ms",
            "server ms",
            "a second at 1 / 8 / 32",
            "ms at 32",
            "exact",
            "bytes",
        ],
        rows,
    )
    small, large = (figures[f"{users * EACH}"] for users in (USERS[mode][0], USERS[mode][-1]))
    most = f"at {USERS[mode][-1] * EACH:,} memories"
    figures["ratio_large_to_small"] = round(large["search"].p50 / small["search"].p50, 2)
    measure.report(
        "recall",
        mode,
        figures,
        [
            Reach(
                f"search p50 {most}, {USERS[mode][-1] * EACH // small_size(mode):,} times the memories, over the smallest store's",
                figures["ratio_large_to_small"],
                1.5,
                "times",
            ),
            Reach(f"search p50 {most}", large["search"].p50, 1.0),
            Reach(f"search p99 {most}", large["search"].p99, 5.0),
            Reach("exact, against every memory compared", large["exact"], 1.0, "of searches", at_least=True),
            Reach("bytes per memory, history and index included", large["bytes_per_memory"], 3_072, "bytes"),
        ],
    )


def small_size(mode: str) -> int:
    return USERS[mode][0] * EACH


if __name__ == "__main__":
    measure.run(main(measure.asked(__doc__)))
