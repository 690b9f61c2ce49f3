"""Turns handed over and learned from: how many a second, what waits under overload, what the processes hold after many.

    python -m benchmarks.throughput [--quick | --full]

One API process and one or two workers with a Redis of their own; the model answers at once, over HTTP. First only the API, with
nobody at work: turns accepted a second. Then with workers, with more turns than they can learn from: learned a second, the age of
the oldest that waits, and resident memory. Last, one process plays 100,000 turns of 200 users (10,000 by default, 1,000 in quick
mode) with a model in process, context and learning, and its memory is looked at from time to time.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks import measure
from benchmarks.measure import Instant, Known, Reach
from benchmarks.serving import Service, resident_mb, service
from benchmarks.turn import CONFIG, opened
from memagent.llm.script import Answer, Script, calling
from memagent.llm.scripted import ScriptedServer
from memagent.store.redis import RedisStore
from memagent.turn import Turn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TURNS = {"quick": 600, "default": 1_500, "full": 10_000}
PLAYED = {"quick": 1_000, "default": 10_000, "full": 100_000}
ACCEPTED_S = {"quick": 2.0, "default": 6.0, "full": 15.0}
WORKERS = (1, 2)
CLIENTS = 16
USERS = 200
WAITING = 1_000
"""Turns that may wait in all: past that the API refuses, which is what keeps an overload from growing."""

SAMPLED_S = 0.5
WARM = 100
"""Turns before anything is counted."""


class Notes(Script):
    """A model that keeps every third thing it is told, under one of twenty keys."""

    def __init__(self) -> None:
        super().__init__([])
        self._asked = 0

    def play(self, user: str, *, offers_tools: bool) -> Answer:  # noqa: ARG002  the script's signature
        self._asked += 1
        if self._asked % 3:
            return Answer("nothing to keep")
        said = user.strip().splitlines()[-1]
        return calling("set_memory", key=f"key_{self._asked % 20}", value=said.partition(": ")[2] or said)


class Chats:
    """Backends that hand over one turn after another, each as soon as the last is accepted."""

    def __init__(self, running: Service) -> None:
        self.running = running
        self.accepted = self.refused = self.number = 0
        self.took: list[float] = []

    async def client(self, until: float, most: int) -> None:
        connection = self.running.connection()
        while perf_counter() < until and self.accepted < most:
            self.number += 1
            number = self.number
            body = {
                "message_id": f"m{number}",
                "conversation_id": f"c{number % USERS}",
                "messages": [{"role": "user", "content": measure.learned(number)}],
            }
            started = perf_counter()
            status, answer = await connection.ask("/v1/turns", measure.name_of(number % USERS), body)
            self.took.append((perf_counter() - started) * 1000)
            if status == 202:
                self.accepted += 1
            elif status == 429:
                self.refused += 1
                await asyncio.sleep(0.2)
            else:
                raise RuntimeError(f"answered {status}: {answer[:300]!r}")
        connection.close()

    async def run(self, *, seconds: float = 3_600, most: int = 10**9) -> float:
        started = perf_counter()
        await asyncio.gather(*(self.client(started + seconds, most) for _ in range(CLIENTS)))
        return perf_counter() - started


@asynccontextmanager
async def running(base_url: str, *, workers: int, waiting: int) -> AsyncIterator[Service]:
    environ = {"MEMAGENT_QUEUE_TOTAL": str(waiting), "MEMAGENT_QUEUE_PER_USER": "100000"}
    with tempfile.TemporaryDirectory(prefix="memagent-throughput-") as folder:
        async with (
            measure.own_redis() as server,
            service(
                Path(folder),
                CONFIG.replace("BASEURL", base_url),
                server.url,
                workers=workers,
                environ=environ,
            ) as up,
        ):
            yield up


async def accepted(base_url: str, seconds: float) -> dict[str, float]:
    async with running(base_url, workers=0, waiting=1_000_000) as up:
        chats = Chats(up)
        await chats.run(seconds=1.0)
        chats.accepted, chats.took = 0, []
        took = await chats.run(seconds=seconds)
        return {
            "per_second": round(chats.accepted / took),
            "p50": round(measure.percentile(chats.took, 0.5), 2),
            "p99": round(measure.percentile(chats.took, 0.99), 2),
        }


async def learned(base_url: str, workers: int, turns: int) -> dict[str, Any]:
    async with running(base_url, workers=workers, waiting=WAITING) as up:
        ages: list[float] = []
        resident: list[dict[str, float]] = []
        chats = Chats(up)

        async def watch() -> None:
            while True:
                ages.append(await up.metric("memagent_queue_age_seconds"))
                resident.append(up.resident_mb())
                await asyncio.sleep(SAMPLED_S)

        await chats.run(most=WARM)  # every worker loads what it needs
        await drained(up)
        chats.accepted = 0
        watching = asyncio.create_task(watch())
        started = perf_counter()
        await chats.run(most=turns)
        await drained(up)
        took = perf_counter() - started
        watching.cancel()
        dead = await up.metric("memagent_dead_letters")
        return {
            "per_second": round(chats.accepted / took, 1),
            "turns": chats.accepted,
            "refused": chats.refused,
            "lost": dead,
            "oldest_s": round(max(ages), 1),
            "resident_mb": growth(resident),
        }


async def drained(up: Service) -> None:
    while await up.metric("memagent_turns_waiting"):  # noqa: ASYNC110  another process raises no event here
        await asyncio.sleep(0.05)


async def played(turns: int) -> dict[str, Any]:
    """Megabytes that this process holds after each tenth of so many turns; in the last fifth its caches are full."""
    async with measure.own_redis() as server:
        store = await RedisStore.open(server.url, embedder_id="known", dimensions=measure.DIMENSIONS)
        memory = opened(store, Known("known"), Instant(20))
        held: list[float] = []
        started = perf_counter()
        for number in range(turns):
            said = measure.chat(number)
            turn = Turn(measure.name_of(number % USERS), f"m{number}", said, conversation_id="c")
            await memory.observe(turn, recalled=(await memory.context(turn)).note)
            if (number + 1) % (turns // 10) == 0:
                gc.collect()
                held.append(resident_mb("self"))
        await store.close()
    return {
        "turns": turns,
        "per_second": round(turns / (perf_counter() - started)),
        "resident_mb": [round(each, 1) for each in held],
        "growth_mb": round(held[-1] - held[7], 1),
    }


def growth(samples: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Of each process: megabytes after a fifth of the time, when caches are filled, and at the end."""
    warm, end = samples[len(samples) // 5], samples[-1]
    return {name: {"warm": round(warm[name], 1), "end": round(end[name], 1)} for name in warm}


async def main(mode: str) -> None:
    figures: dict[str, Any] = {}
    async with ScriptedServer(Notes()) as model:
        figures["accepted"] = await accepted(model.base_url, ACCEPTED_S[mode])
        for workers in WORKERS:
            turns = TURNS[mode] if workers == WORKERS[-1] else min(TURNS[mode], TURNS["default"])
            figures[f"{workers} workers"] = await learned(model.base_url, workers, turns)
            model.requests.clear()
    figures["played"] = await played(PLAYED[mode])
    rows = [["accepted, nobody at work", figures["accepted"]["per_second"], "", "", "", ""]]
    for workers in WORKERS:
        each = figures[f"{workers} workers"]
        held = ", ".join(
            f"{name} {mb['warm']:.0f} → {mb['end']:.0f}" for name, mb in each["resident_mb"].items()
        )
        rows.append(
            [
                f"learned, {workers} at work",
                each["per_second"],
                each["turns"],
                each["refused"],
                each["oldest_s"],
                held,
            ]
        )
    measure.table(["", "a second", "turns", "refused", "oldest s", "resident MB"], rows)
    held = figures["played"]["resident_mb"]
    print(
        f"one process, {figures['played']['turns']:,} turns: {', '.join(f'{each:.0f}' for each in held)} MB\n"
    )
    last = figures[f"{WORKERS[-1]} workers"]
    grown = max(mb["end"] - mb["warm"] for mb in last["resident_mb"].values())
    measure.report(
        "throughput",
        mode,
        figures,
        [
            Reach("workers' gain, two over one", round(last["per_second"] / figures["1 workers"]["per_second"], 2), 1.0, "times", at_least=True),
            Reach("turns given up", last["lost"], 0, ""),
            Reach(f"growth of any process over the last four fifths of {last['turns']:,} turns", round(grown, 1), 20, "MB"),
            Reach(f"growth of one process over the last fifth of {figures['played']['turns']:,} turns", figures["played"]["growth_mb"], 5, "MB"),
        ],
    )  # fmt: skip


if __name__ == "__main__":
    measure.run(main(measure.asked(__doc__)))
