"""Recall over HTTP: how long with one client, how many a second with 16, with 1,000 to 1,000,000 memories in the store.

    python -m benchmarks.rest [--quick | --full]

One process of `memagent serve`, 100 memories of every user, hashed words as embedder. The client is asyncio's bare streams, in this
process: it takes its share of the same cores.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import measure
from benchmarks.measure import Reach
from benchmarks.serving import Service, service
from benchmarks.turn import CONFIG, SIZES
from memagent.llm.embedders import HashedEmbedder
from memagent.store.redis import RedisStore

EACH = 100
CLIENTS = 16
AT_WORK = 64
"""Users who ask at the same time."""

ROUNDS = {"quick": (3, 50), "default": (5, 200), "full": (5, 400)}
SECONDS = {"quick": 2.0, "default": 6.0, "full": 10.0}


async def ask(connection: Any, users: int, number: int, path: str = "/v1/recall") -> None:
    body = {"text": f"What should I cook on Mondays, and where is my green tea {number % 50}?"}
    status, answer = await connection.ask(path, measure.name_of(number % min(users, AT_WORK)), body)
    if status != 200:
        raise RuntimeError(f"answered {status}: {answer[:300]!r}")


async def many(running: Service, users: int, seconds: float) -> dict[str, float]:
    """Requests a second of `CLIENTS` clients that each ask again as soon as they are answered."""
    took: list[float] = []
    until = perf_counter() + seconds

    async def client(place: int) -> None:
        connection, number = running.connection(), place
        while (started := perf_counter()) < until:
            await ask(connection, users, number)
            took.append((perf_counter() - started) * 1000)
            number += CLIENTS
        connection.close()

    await asyncio.gather(*(client(place) for place in range(CLIENTS)))
    return {
        "per_second": round(len(took) / seconds),
        "p50": round(measure.percentile(took, 0.5), 2),
        "p99": round(measure.percentile(took, 0.99), 2),
    }


async def main(mode: str) -> None:
    embedder = HashedEmbedder()
    figures: dict[str, Any] = {}
    rows = []
    filled = 0
    with tempfile.TemporaryDirectory(prefix="memagent-rest-") as folder:
        async with measure.own_redis() as server:
            store = await RedisStore.open(server.url, embedder_id=embedder.id, dimensions=embedder.dimensions)
            async with service(Path(folder), CONFIG, server.url, workers=0) as running:
                for size in SIZES[mode]:
                    users = size // EACH
                    await measure.fill(
                        store,
                        range(filled, users),
                        EACH,
                        embedder=embedder.id,
                        dimensions=embedder.dimensions,
                    )
                    filled = users
                    connection = running.connection()
                    rounds, each = ROUNDS[mode]
                    one = await measure.timed(
                        lambda number: ask(connection, users, number),  # noqa: B023  called before the next round
                        rounds=rounds, each=each, warm=2 * AT_WORK,
                    )  # fmt: skip
                    connection.close()
                    every = await many(running, users, SECONDS[mode])
                    figures[f"{size}"] = {"one": one, "sixteen": every}
                    rows.append(
                        [f"{size:,}", one, f"{every['per_second']:,}", f"{every['p50']}, p99 {every['p99']}"]
                    )
            await store.close()
    measure.table(["in the store", "one client ms", "a second, 16 clients", "ms, 16 clients"], rows)
    small, large = figures[f"{SIZES[mode][0]}"], figures[f"{SIZES[mode][-1]}"]
    measure.report(
        "rest",
        mode,
        figures,
        [
            Reach(
                f"REST recall p50, {SIZES[mode][-1]:,} over {SIZES[mode][0]:,} memories",
                round(large["one"].p50 / small["one"].p50, 2), 1.25, "times",
            ),
            Reach("REST recall p50", large["one"].p50, 4.0),
            Reach("REST recalls a second, 16 clients", large["sixteen"]["per_second"], 600, "", at_least=True),
        ],
    )  # fmt: skip


if __name__ == "__main__":
    measure.run(main(measure.asked(__doc__)))
