"""Kill the API, the workers and Redis at random while many users' turns are on their way; then count.

`make chaos`, or `python -m benchmarks.chaos --turns 2000 --users 50 --seed 7`. Every turn that was accepted must be applied
exactly once, in its user's order, and no limit may be passed. Exit code 1 with the differences if not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import socket
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import httpx

from memagent.api.auth import USER_HEADER, May, new_key
from memagent.llm.script import Answer, Script, calling
from memagent.llm.scripted import ScriptedServer
from memagent.memory import Scope, ScopeKind
from memagent.store.embedded import answers, configuration, find_binaries
from memagent.store.redis import RedisStore

CONFIG = """
version: '1.3.17'
endpoints:
  custom:
    - {name: Gateway, apiKey: key, baseURL: 'BASEURL', models: {default: [small], fetch: false}}
memory:
  disabled: false
  agent: {enabled: true, provider: Gateway, model: small}
"""
FACT = re.compile(r"fact (\w+)")
STALLED_S = 120.0
"""Without any turn ending for this long, something hangs."""


class Facts(Script):
    """A model that keeps what it is told under the name it is told."""

    def __init__(self) -> None:
        super().__init__([])

    def play(self, user: str, *, offers_tools: bool) -> Answer:  # noqa: ARG002  the script's signature
        named = FACT.findall(user)
        return (
            calling("set_memory", key=named[-1], value=f"It is {named[-1]}.") if named else Answer("nothing")
        )


@dataclass(frozen=True, slots=True)
class Plan:
    turns: int
    users: int
    seed: int
    kills: int
    between_s: float
    """Between two kills, about."""
    workers: int = 2
    entries: int = 30
    """`MEMAGENT_MAX_MEMORIES`: what comes after is refused, and must be."""


@dataclass
class Report:
    accepted: int = 0
    posts: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Town:
    """All processes of one run, each started again whenever it is gone."""

    def __init__(self, folder: Path, plan: Plan, base_url: str) -> None:
        self.folder, self.plan = folder, plan
        self.key, row = new_key("chaos", frozenset({May.TURNS, May.READ, May.ADMIN}))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.socket = folder / "redis.sock"
        (folder / "librechat.yaml").write_text(CONFIG.replace("BASEURL", base_url))
        (folder / "redis.conf").write_text(
            configuration(folder, self.socket, find_binaries().engine, "everysec")
        )
        self.environ = {
            **os.environ,
            "MEMAGENT_CONFIG": str(folder / "librechat.yaml"),
            "MEMAGENT_REDIS_URL": f"unix://{self.socket}",
            "MEMAGENT_EMBEDDER": "hashed",
            "MEMAGENT_API_KEYS": row,
            "MEMAGENT_TURN_LEASE_S": "1",
            "MEMAGENT_TURN_BACKOFF_S": "0.1",
            "MEMAGENT_TURN_ATTEMPTS": "50",
            "MEMAGENT_MAX_MEMORIES": str(plan.entries),
            "MEMAGENT_RATE_LIMIT": "0",
            "MEMAGENT_DRAIN_S": "5",
            "MEMAGENT_LOG_LEVEL": "warning",
        }
        self.running: dict[str, asyncio.subprocess.Process] = {}
        self.names = ["redis", "api", *(f"worker{number}" for number in range(plan.workers))]

    async def start(self, name: str) -> None:
        memagent = (sys.executable, "-m", "memagent")
        command: tuple[str, ...] = {
            "redis": (str(find_binaries().server), str(self.folder / "redis.conf")),
            "api": (*memagent, "serve", "--no-worker", "--port", str(self.port)),
        }.get(name, (*memagent, "worker"))
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = await asyncio.create_subprocess_exec(
                *command, env=self.environ, cwd=self.folder, stdout=log, stderr=log
            )
        if name == "redis":
            async with asyncio.timeout(30):
                while not await answers(self.socket):  # noqa: ASYNC110  another process raises no event here
                    await asyncio.sleep(0.02)

    async def open(self) -> None:
        for name in self.names:
            await self.start(name)

    async def kill(self, name: str) -> None:
        """As a machine would: no warning, no last words; and then it comes back."""
        process = self.running[name]
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await self.start(name)

    async def revive(self) -> None:
        """What ended by itself, because Redis was gone when it started, is started again."""
        for name, process in list(self.running.items()):
            if process.returncode is not None:
                await self.start(name)

    async def close(self) -> None:
        for name in reversed(self.names):
            if name in self.running and self.running[name].returncode is None:
                self.running[name].send_signal(signal.SIGTERM)
                with suppress(TimeoutError):
                    async with asyncio.timeout(20):
                        await self.running[name].wait()
                if self.running[name].returncode is None:
                    self.running[name].kill()
                    await self.running[name].wait()


async def run(plan: Plan, folder: Path) -> Report:
    """One run; `faults` of the report are what must not be."""
    report, dice, started = Report(), random.Random(plan.seed), monotonic()
    async with ScriptedServer(Facts()) as model:
        town = Town(folder, plan, model.base_url)
        try:
            await town.open()
            headers = {"Authorization": f"Bearer {town.key}"}
            async with httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{town.port}", headers=headers, timeout=10
            ) as client:
                posting = [
                    asyncio.create_task(
                        _user(client, report, f"user{number}", _share(plan, number), dice.random())
                    )
                    for number in range(plan.users)
                ]
                await _killed(town, plan, dice, report, posting)
                await asyncio.gather(*posting)
                await _drained(client, town, report)
                await _receipts(client, plan, report)
            await _count(town, plan, report)
        finally:
            await town.close()
    report.seconds = monotonic() - started
    return report


def _share(plan: Plan, number: int) -> int:
    return plan.turns // plan.users + (number < plan.turns % plan.users)


async def _user(client: httpx.AsyncClient, report: Report, user: str, turns: int, luck: float) -> None:
    """One backend's user: hands turns over in order, each until it is accepted, some twice."""
    dice = random.Random(luck)
    for number in range(turns):
        body = {
            "message_id": f"m{number}",
            "messages": [{"role": "user", "content": f"Note fact {user}_n{number} please"}],
        }
        while not await _posted(client, report, user, body):  # noqa: ASYNC110  a service that is down tells nobody
            await asyncio.sleep(0.1 + dice.random() * 0.2)
        report.accepted += 1
        if dice.random() < 0.2:
            await _posted(client, report, user, body)


async def _posted(client: httpx.AsyncClient, report: Report, user: str, body: dict[str, Any]) -> bool:
    report.posts += 1
    try:
        answer = await client.post("/v1/turns", json=body, headers={USER_HEADER: user})
    except httpx.TransportError:
        return False
    if answer.status_code not in {200, 202, 429, 500, 503, 504}:
        report.faults.append(f"{user}: answered {answer.status_code}: {answer.text[:200]}")
    return answer.status_code in {200, 202}


async def _killed(
    town: Town, plan: Plan, dice: random.Random, report: Report, posting: list[asyncio.Task[None]]
) -> None:
    """Kill one after another, and see to it that nothing stays down while turns are handed over."""
    order = dice.sample(town.names, len(town.names))
    while sum(report.kills.values()) < plan.kills or not all(task.done() for task in posting):
        await asyncio.sleep(plan.between_s * (0.5 + dice.random()))
        killed = sum(report.kills.values())
        if killed < plan.kills:
            name = order[killed % len(order)]
            await town.kill(name)
            report.kills[name.rstrip("0123456789")] += 1
        await town.revive()


async def _drained(client: httpx.AsyncClient, town: Town, report: Report) -> None:
    """Until no turn waits any more."""
    waiting, since = -1.0, monotonic()
    while monotonic() - since < STALLED_S:
        await town.revive()
        with suppress(httpx.TransportError):
            text = (await client.get("/metrics")).text
            found = re.search(r"^memagent_turns_waiting (\S+)$", text, re.MULTILINE)
            if found and float(found[1]) == 0:
                return
            if found and float(found[1]) != waiting:
                waiting, since = float(found[1]), monotonic()
        await asyncio.sleep(0.1)
    report.faults.append(f"{waiting:.0f} turns hang")


async def _receipts(client: httpx.AsyncClient, plan: Plan, report: Report) -> None:
    """Every turn, handed over once more, is known, is done, and says what became of it."""
    for number in range(plan.users):
        user = f"user{number}"
        for turn in range(_share(plan, number)):
            body = {"message_id": f"m{turn}", "messages": [{"role": "user", "content": "again"}]}
            answer = (await client.post("/v1/turns", json=body, headers={USER_HEADER: user})).json()
            receipt = answer.get("receipt") or {}
            wanted = ([f"{user}_n{turn}"], []) if turn < plan.entries else ([], ["list_full"])
            became = (list(receipt.get("set", ())), [each["why"] for each in receipt.get("refused", ())])
            if answer.get("status") != "done" or became != wanted:
                report.faults.append(f"{user} m{turn}: {answer.get('status')}, {became}, not {wanted}")


async def _count(town: Town, plan: Plan, report: Report) -> None:
    """What the store holds, against what was accepted."""
    store = await RedisStore.open(town.environ["MEMAGENT_REDIS_URL"])
    try:
        for number in range(plan.users):
            user = f"user{number}"
            scope = Scope(ScopeKind.USER, user)
            changes = [change for change in await store.history(scope, limit=10_000) if change.op == "set"]
            applied = [change.key for change in reversed(changes)]
            wanted = [f"{user}_n{turn}" for turn in range(min(_share(plan, number), plan.entries))]
            if applied != wanted:
                report.faults.append(f"{user}: applied {applied}, not {wanted}")
            totals = await store.totals(scope)
            if totals.entries > plan.entries:
                report.faults.append(f"{user}: {totals.entries} memories, past the limit of {plan.entries}")
    finally:
        await store.close()


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--turns", type=int, default=2_000)
    options.add_argument("--users", type=int, default=50)
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--kills", type=int, default=40)
    given = options.parse_args()
    plan = Plan(given.turns, given.users, given.seed, kills=given.kills, between_s=4.0)
    with tempfile.TemporaryDirectory(prefix="memagent-chaos-") as folder:
        report = asyncio.run(run(plan, Path(folder)))
    shown = {
        "accepted": report.accepted,
        "posts": report.posts,
        "kills": dict(report.kills),
        "seconds": round(report.seconds),
    }
    print(json.dumps({**shown, "faults": report.faults[:50]}, indent=2))
    return 1 if report.faults or report.accepted != plan.turns else 0


if __name__ == "__main__":
    sys.exit(main())
