"""What must hold, looked at in the middle of a run and counted at its end."""

from __future__ import annotations

import asyncio
import json
import random
import re
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

import httpx

from benchmarks.chaos.people import share, turn_of, value_of
from memagent.api.auth import USER_HEADER
from memagent.errors import StoreFault
from memagent.memory import Scope, ScopeKind
from memagent.store.keys import scope_id
from memagent.store.redis import RedisStore
from memagent.tokens import count_tokens

if TYPE_CHECKING:
    from benchmarks.chaos.people import Stage
    from benchmarks.chaos.report import Plan

STALLED_S = 120.0
"""Without any turn ending for this long, something hangs."""

LOOKED_AT_ONCE = 8
CALLERS = 16


def scope_of(user: str) -> Scope:
    return Scope(ScopeKind.USER, user)


def expected(plan: Plan, number: int) -> list[tuple[bool, set[str]]]:
    """Of each turn of one user, in order: whether its memory is kept, and the reasons that refuse it else."""
    user, entries, tokens, found = f"user{number}", 0, 0, []
    for turn in range(share(plan, number)):
        cost = count_tokens(value_of(user, turn))
        if tokens + cost > plan.tokens:
            found.append((False, {"would_exceed", "already_exceeded"}))
        elif entries >= plan.entries:
            found.append((False, {"list_full"}))
        else:
            entries, tokens = entries + 1, tokens + cost
            found.append((True, set()))
    return found


async def watch(stage: Stage) -> None:
    """Look at some users' limits and counted dates, past every wire, until the run closes."""
    dice, dates = random.Random(stage.plan.seed), dict[str, list[int]]()
    store: RedisStore | None = None
    try:
        while not stage.closing:
            await asyncio.sleep(0.25)
            with suppress(StoreFault):
                store = store or await RedisStore.open(stage.town.url, timeout_s=1.0)
                for _ in range(LOOKED_AT_ONCE):
                    await _look(stage, store, f"user{dice.randrange(stage.plan.users)}", dates)
    finally:
        if store is not None:
            await store.close()


async def _look(stage: Stage, store: RedisStore, user: str, dates: dict[str, list[int]]) -> None:
    plan, faults = stage.plan, stage.report.faults
    totals = await store.totals(scope_of(user))
    if totals.entries > plan.entries or totals.tokens > plan.tokens:
        faults.append(
            f"{user}: {totals.entries} memories of {totals.tokens} tokens, past a limit ({stage.now})"
        )
    try:
        lanes = await store.client.hgetall(f"{store.prefix}:l:{scope_id(scope_of(user))}")
    except Exception:  # noqa: BLE001  it is paused, or being killed
        return
    stage.report.samples += 1
    for name, lane in lanes.items():
        counted = list(json.loads(lane)["dates"])  # an empty table of Lua is an object
        before = dates.get(f"{user} {name}", [])
        if counted != sorted(set(counted)) or counted[: len(before)] != before:
            faults.append(f"{user}: counted {counted} after {before} ({stage.now})")
        dates[f"{user} {name}"] = counted


async def drained(stage: Stage) -> None:
    """Until no turn waits any more."""
    waiting, since = -1.0, monotonic()
    while monotonic() - since < STALLED_S:
        await stage.town.revive()
        with suppress(httpx.TransportError):
            text = (await stage.client.get("/metrics")).text
            found = re.search(r"^memagent_turns_waiting (\S+)$", text, re.MULTILINE)
            if found and float(found[1]) == 0:
                return
            if found and float(found[1]) != waiting:
                waiting, since = float(found[1]), monotonic()
        await asyncio.sleep(0.1)
    stage.report.faults.append(f"{waiting:.0f} turns hang")


async def receipts(stage: Stage) -> None:
    """Every turn, handed over once more, is known, is done, and says what became of it; none was given up."""
    some = asyncio.Semaphore(CALLERS)
    await asyncio.gather(*(_receipts_of(stage, number, some) for number in range(stage.plan.users)))
    dead = (await stage.client.get("/v1/dead-letters")).json()
    if dead:
        stage.report.faults.append(f"given up: {json.dumps(dead)[:500]}")


async def _receipts_of(stage: Stage, number: int, some: asyncio.Semaphore) -> None:
    user = f"user{number}"
    async with some:
        for turn, (kept, whys) in enumerate(expected(stage.plan, number)):
            answer = (
                await stage.client.post("/v1/turns", json=turn_of(user, turn), headers={USER_HEADER: user})
            ).json()
            receipt = answer.get("receipt") or {}
            became = (receipt.get("set", []), {each["why"] for each in receipt.get("refused", ())})
            named = [f"{user}_n{turn}"] if kept else []
            if (
                answer.get("status") != "done"
                or became[0] != named
                or not whys >= became[1] >= (whys and set())
            ):
                stage.report.faults.append(
                    f"{user} m{turn}: {answer.get('status')}, {became}, not {named}, {whys}"
                )
            elif not kept and not became[1]:
                stage.report.faults.append(f"{user} m{turn}: not kept, and the receipt does not say why")


async def count(stage: Stage) -> None:
    """What the store holds, against what was accepted: every change once, in its user's order, and no line with anybody in it."""
    store = await RedisStore.open(stage.town.url)
    report = stage.report
    try:
        for number in range(stage.plan.users):
            user = f"user{number}"
            changes = list(await store.history(scope_of(user), limit=10_000))
            applied = [(change.op, change.key) for change in reversed(changes)]
            wanted = [
                ("set", f"{user}_n{turn}")
                for turn, (kept, _) in enumerate(expected(stage.plan, number))
                if kept
            ]
            if applied != wanted:
                report.faults.append(f"{user}: applied {applied}, not {wanted}")
            held = await store.list(scope_of(user))
            totals = await store.totals(scope_of(user))
            if (len(held), sum(each.tokens for each in held)) != (totals.entries, totals.tokens):
                report.faults.append(f"{user}: holds {len(held)} memories, and counts {totals}")
            if {each.key for each in held} != {key for _, key in wanted}:
                report.faults.append(f"{user}: holds {sorted(each.key for each in held)}")
    finally:
        await store.close()
