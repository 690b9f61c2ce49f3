"""What forgetting costs: writes per turn and per new day, against how much is remembered.

    python -m benchmarks.decay [--quick | --full]

memagent's counters are measured on its own Redis: write commands and bytes of the append-only file for a turn that matches nothing,
for one that matches, and for the first turn of a new day. Beside it what is usually done: one UPDATE a day over every row, in
SQLite. The user has 10 to 10,000 memories (100,000 in full mode); SQLite holds as many rows.
"""

from __future__ import annotations

import sqlite3
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks import measure
from benchmarks.measure import Reach
from memagent.store import RecallQuery
from memagent.store.redis import RedisStore

if TYPE_CHECKING:
    from redis.asyncio import Redis

COUNTS = {
    "quick": (10, 1_000),
    "default": (10, 100, 1_000, 10_000),
    "full": (10, 100, 1_000, 10_000, 100_000),
}
START = datetime(2026, 3, 1, 9, tzinfo=UTC)
AT_ONCE = 1_000
REPEATS = 20


class Ledger:
    """What one piece of work wrote: commands that write, and bytes of the append-only file."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._writes: set[str] = set()

    async def of(self, work: Any) -> dict[str, float]:
        if not self._writes:
            rows = await self._client.execute_command("COMMAND")  # type: ignore[no-untyped-call]
            self._writes = {name.lower() for name, row in rows.items() if "write" in row["flags"]}
        size = await self._size()
        await self._client.config_resetstat()
        started = perf_counter()
        await work
        took = (perf_counter() - started) * 1000
        stats = await self._client.info("commandstats")
        calls = {name.removeprefix("cmdstat_").partition("|")[0]: row["calls"] for name, row in stats.items()}
        written = sum(count for name, count in calls.items() if name in self._writes)
        return {"commands": written, "bytes": await self._size() - size, "ms": took}

    async def _size(self) -> int:
        return int((await self._client.info("persistence"))["aof_current_size"])


async def in_redis(store: RedisStore, count: int) -> dict[str, dict[str, float]]:
    user, ledger = f"holds{count}", Ledger(store.client)
    vectors = measure.vectors(count, seed=count)
    for start in range(0, count, AT_ONCE):
        texts = [f"{text} ({start})" for text in measure.facts(min(AT_ONCE, count - start), seed=start)]
        rows = measure.edits(texts, list(vectors[start : start + len(texts)]), "known", first=start)
        await store.apply(measure.own(user), rows, limits=measure.FREE, now=START)

    def turn(at: datetime, *, matches: bool) -> Any:
        vector = vectors[0] if matches else -vectors[:10].sum(axis=0)
        query = RecallQuery(now=at, vector=vector, embedder="known", floor=0.9)
        return store.recall([measure.own(user)], query)

    found: dict[str, list[dict[str, float]]] = {"new day": [], "no match": [], "match": []}
    for day in range(1, REPEATS + 1):
        at = START + timedelta(days=day)
        found["new day"].append(await ledger.of(turn(at, matches=False)))
        found["no match"].append(await ledger.of(turn(at, matches=False)))
        found["match"].append(await ledger.of(turn(at, matches=True)))
    return {name: medians(rows[2:]) for name, rows in found.items()}


def medians(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: round(measure.percentile([row[name] for row in rows], 0.5), 2) for name in rows[0]}


def in_sqlite(folder: Path, count: int) -> dict[str, float]:
    """One day of the naive way: every memory's counter goes up by one."""
    file = folder / f"{count}.db"
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA wal_autocheckpoint=0")
        database.execute(
            "CREATE TABLE memories (id INTEGER PRIMARY KEY, value TEXT, vector BLOB, unused INTEGER)"
        )
        vector = bytes(2 * measure.DIMENSIONS)
        texts = measure.facts(min(count, AT_ONCE), seed=1)
        rows = ((texts[number % len(texts)], vector) for number in range(count))
        database.executemany("INSERT INTO memories (value, vector, unused) VALUES (?, ?, 0)", rows)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    wal = file.with_name(file.name + "-wal")
    days = []
    for _ in range(5):
        before = wal.stat().st_size if wal.exists() else 0
        started = perf_counter()
        with database:
            changed = database.execute("UPDATE memories SET unused = unused + 1").rowcount
        took = (perf_counter() - started) * 1000
        days.append({"rows": changed, "bytes": wal.stat().st_size - before, "ms": took})
    database.close()
    return medians(days)


async def main(mode: str) -> None:
    figures: dict[str, Any] = {}
    async with measure.own_redis() as server:
        store = await RedisStore.open(server.url, embedder_id="known", dimensions=measure.DIMENSIONS)
        await store.client.config_set("auto-aof-rewrite-percentage", 0)
        for count in COUNTS[mode]:
            with tempfile.TemporaryDirectory(prefix="memagent-decay-") as folder:
                figures[f"{count}"] = {
                    **await in_redis(store, count),
                    "sqlite day": in_sqlite(Path(folder), count),
                }
        await store.close()
    rows = [
        [f"{int(count):,}", *(f"{each[name]['commands']:.0f} / {each[name]['bytes']:,.0f}" for name in KINDS),
         f"{each['sqlite day']['rows']:,.0f} / {each['sqlite day']['bytes']:,.0f}"]
        for count, each in figures.items()
    ]  # fmt: skip
    print("write commands / bytes written; rows / bytes for SQLite\n")
    measure.table(["memories", *KINDS, "a day by UPDATE"], rows)
    small, large = figures[f"{COUNTS[mode][0]}"], figures[f"{COUNTS[mode][-1]}"]
    most = f"{COUNTS[mode][-1]:,} memories over {COUNTS[mode][0]:,}"
    reach = [
        Reach(f"a day by UPDATE over a day of memagent, bytes, {COUNTS[mode][-1]:,} memories",
              round(large["sqlite day"]["bytes"] / large["new day"]["bytes"]), 10, "times", at_least=True),
        *(Reach(f"write commands of `{name}`, {most}", large[name]["commands"] - small[name]["commands"], 0, "more")
          for name in KINDS),
        *(Reach(f"bytes written by `{name}`, {most}", large[name]["bytes"] - small[name]["bytes"], 64, "more")
          for name in KINDS),
    ]  # fmt: skip
    measure.report("decay", mode, figures, reach)


KINDS = ("new day", "no match", "match")

if __name__ == "__main__":
    measure.run(main(measure.asked(__doc__)))
