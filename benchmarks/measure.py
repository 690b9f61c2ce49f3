"""What the benchmarks share: percentiles with their spread, one table, one JSON object, seeded memories, a Redis of their own."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import shutil
import statistics
import tempfile
import timeit
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import uvloop

from memagent.lexicon import terms
from memagent.llm import ModelReply, Usage
from memagent.memory import Message, Scope, ScopeKind, ToolCall
from memagent.store import Limits, SetMemory
from memagent.store.embedded import EmbeddedRedis
from memagent.tokens import count_tokens

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence

    from memagent.llm import ToolSpec, Vector
    from memagent.store.redis import RedisStore

MODES = ("quick", "default", "full")
DIMENSIONS = 384
FREE = Limits(entries=None)


def asked(doc: str | None) -> str:
    """`quick`, `default` or `full`, from the command line."""
    return str(options(doc).parse_args().mode)


def options(doc: str | None) -> argparse.ArgumentParser:
    """What every benchmark with modes understands."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", dest="mode", action="store_const", const="quick", default="default")
    parser.add_argument("--full", dest="mode", action="store_const", const="full")
    return parser


# -- figures -----------------------------------------------------------------------------------------------------------


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of all are at or below."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]


@dataclass(frozen=True, slots=True)
class Figure:
    """Milliseconds, or any other unit: the median of all rounds' medians, their lowest and highest, and p99 of everything."""

    p50: float
    low: float
    high: float
    p99: float
    samples: int

    @classmethod
    def of(cls, rounds: Sequence[Sequence[float]]) -> Figure:
        medians = [statistics.median(each) for each in rounds]
        every = [value for each in rounds for value in each]
        numbers = (statistics.median(medians), min(medians), max(medians), percentile(every, 0.99))
        return cls(*(round(number, 3) for number in numbers), samples=len(every))

    def __str__(self) -> str:
        return f"{self.p50:.2f} ({self.low:.2f} to {self.high:.2f}), p99 {self.p99:.2f}"


def run(main: Coroutine[Any, Any, None]) -> None:
    """On the loop that the service and its workers run on."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


WARM = 20
"""Rounds that are not counted, where a benchmark does not say otherwise."""


async def timed(work: Callable[[int], Awaitable[Any]], *, rounds: int, each: int, warm: int = WARM) -> Figure:
    """Milliseconds of `work(number)`, one after another; the first `warm` are not counted."""
    for number in range(warm):
        await work(number)
    found: list[list[float]] = []
    for turn in range(rounds):
        found.append([])
        for number in range(each):
            started = perf_counter()
            await work(warm + turn * each + number)
            found[-1].append((perf_counter() - started) * 1000)
    return Figure.of(found)


@dataclass(frozen=True, slots=True)
class Reach:
    """What was aimed at, and whether it was reached: `value` at most `limit`, or at least."""

    what: str
    value: float
    limit: float
    unit: str = "ms"
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        return f"{'reached' if self.met else 'MISSED ':8} {self.what}: {self.value:,.4g} {self.unit} ({sign} {self.limit:,g})"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    lines = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    print(flush=True)


def report(name: str, mode: str, figures: dict[str, Any], reach: Sequence[Reach]) -> None:
    """Print what was reached, then everything as one JSON object on the last line."""
    for each in reach:
        print(each)
    where = machine()
    print(f"pace of this machine: {where['pace_ms']:.0f} ms")
    met = [asdict(each) | {"met": each.met} for each in reach]
    result = {"benchmark": name, "mode": mode, "machine": where, "figures": figures, "reach": met}
    print(json.dumps(result, default=asdict, ensure_ascii=False), flush=True)


def pace() -> float:
    """Milliseconds of a fixed piece of Python, the best of five: figures of two runs compare by it, where a machine is uneven."""
    work = "sum(number * number % 7 for number in range(1_000_000))"
    return round(min(timeit.repeat(work, number=1, repeat=5)) * 1000, 1)


def machine() -> dict[str, Any]:
    processor = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": processor[0] if processor else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**30),
        "python": platform.python_version(),
        "redis_py": version("redis"),
        "pace_ms": pace(),
        "load_average": [round(each, 1) for each in os.getloadavg()],
        "at": datetime.now(UTC).isoformat(timespec="minutes"),
    }


# -- data --------------------------------------------------------------------------------------------------------------

WHO = ["the user", "their sister", "their neighbour", "a friend of theirs", "their boss", "their daughter"]
DOES = [
    "likes",
    "avoids",
    "is learning",
    "works with",
    "often talks about",
    "has given up",
    "is allergic to",
    "collects",
    "teaches",
]
WHAT = [
    "green tea",
    "long trains",
    "peanuts",
    "chess problems",
    "mountain maps",
    "old radios",
    "the cello",
    "wild herbs",
    "Rust",
    "sourdough",
    "tax law",
    "sailing knots",
    "orchids",
    "night photography",
    "Vietnamese",
    "marathons",
    "clay ovens",
    "satellites",
    "sea birds",
    "woodcuts",
]
WHEN = [
    "on Mondays",
    "since last spring",
    "after work",
    "with the children",
    "in Lisbon",
    "for the club",
    "when it rains",
    "at night",
]


def facts(count: int, *, seed: int) -> list[str]:
    """Sentences as an agent keeps them, a dozen words each, no two the same."""
    dice = random.Random(seed)
    return [
        f"{dice.choice(WHO).capitalize()} {dice.choice(DOES)} {dice.choice(WHAT)} {dice.choice(WHEN)}, "
        f"and note {seed}-{number} is about {dice.choice(WHAT)}."
        for number in range(count)
    ]


def vectors(count: int, *, seed: int, dimensions: int = DIMENSIONS) -> np.ndarray:
    found = np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def own(user: str) -> Scope:
    return Scope(ScopeKind.USER, user)


def name_of(number: int) -> str:
    return f"user{number}"


def edits(
    texts: Sequence[str], matrix: Sequence[Vector], embedder: str, *, first: int = 0
) -> list[SetMemory]:
    return [
        SetMemory(
            f"key_{number}",
            text,
            count_tokens(text),
            vector=vector,
            embedder=embedder,
            terms=terms(text),
        )
        for number, (text, vector) in enumerate(zip(texts, matrix, strict=True), first)
    ]


async def fill(
    store: RedisStore, users: range, each: int, *, embedder: str, dimensions: int = DIMENSIONS
) -> float:
    """Give every user `each` memories with random vectors, through the store's own write; the seconds it took.

    The append-only file is not rewritten meanwhile: that would be measured later, as somebody else's work.
    """
    started = perf_counter()
    left = iter(users)

    async def writer() -> None:
        for number in left:
            rows = edits(
                facts(each, seed=number), list(vectors(each, seed=number, dimensions=dimensions)), embedder
            )
            await store.apply(own(name_of(number)), rows, limits=FREE, now=datetime.now(UTC))

    await store.client.config_set("auto-aof-rewrite-percentage", 0)
    await asyncio.gather(writer(), writer())
    return perf_counter() - started


# -- surroundings --------------------------------------------------------------------------------------------------------


class Instant:
    """A `ChatModel` that takes no time: it keeps what the user just said, under one key after another."""

    def __init__(self, keys: int) -> None:
        self._keys, self.number = keys, 0

    async def complete(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> ModelReply:  # noqa: ARG002
        said = json.dumps({"key": f"key_{self.number % self._keys}", "value": learned(self.number)})
        self.number += 1
        return ModelReply(
            "", (ToolCall("call", "set_memory", said),), Usage(900, 40), "instant", "tool_calls"
        )


@lru_cache(maxsize=16_384)
def learned(number: int) -> str:
    """What the user says in the turn of this number, and the model keeps."""
    return facts(1, seed=10_000_000 + number)[0]


class Known:
    """An embedder whose vectors are there already, so that only the rest of a turn is measured."""

    def __init__(self, embedder: str) -> None:
        self.id, self.dimensions, self.floor = embedder, DIMENSIONS, 0.2
        self._vectors = vectors(512, seed=99)

    async def query(self, text: str) -> Vector:
        return self._vectors[len(text) % 512]  # type: ignore[no-any-return]

    async def passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        return [self._vectors[len(text) % 512] for text in texts]


def chat(number: int, *, length: int = 12) -> tuple[Message, ...]:
    """The end of a chat: a dozen messages, the newest the user's."""
    said = [*facts(length - 1, seed=20_000_000 + number), learned(number)]
    return tuple(
        Message("user" if (length - place) % 2 else "assistant", text) for place, text in enumerate(said)
    )


@asynccontextmanager
async def own_redis() -> AsyncIterator[EmbeddedRedis]:
    """A Redis of this benchmark's own, as `memagent serve` starts it, in a folder that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="memagent-bench-"))
    try:
        async with await EmbeddedRedis.open(folder) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)
