"""Those who use the service: users whose turns are handed over, chats that ask for context, and the model."""

from __future__ import annotations

import asyncio
import random
import re
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

import httpx

from benchmarks.chaos.report import CALM, Answers
from memagent.api.auth import USER_HEADER
from memagent.llm.script import Answer, Script, calling

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.chaos.report import Plan, Report
    from benchmarks.chaos.town import Town

FACT = re.compile(r"fact (user|probe)(\d+)_n(\d+)")
LONG = " It is a long story that takes a good many more words to tell than the others do."

TRY_AGAIN = frozenset({429, 503, 504})
"""What `POST /v1/turns` may answer while something is down; 504 stands in docs/service.md beside 503."""
PULSE_S = 0.02
NOTICED_S = 0.3
"""The end of a process is noticed within this."""


def value_of(user: str, turn: int) -> str:
    """What is to be remembered of one turn: every second user says more."""
    number = int(user.removeprefix("user")) if user.startswith("user") else 0
    return f"It is {user}_n{turn}." + LONG * (number % 2)


class Facts(Script):
    """A model that keeps what it is told under the name it is told."""

    def __init__(self) -> None:
        super().__init__([])

    def play(self, user: str, *, offers_tools: bool) -> Answer:  # noqa: ARG002  the script's signature
        named = FACT.findall(user)
        if not named:
            return Answer("nothing")
        kind, number, turn = named[-1]
        who = f"{kind}{number}"
        return calling("set_memory", key=f"{who}_n{turn}", value=value_of(who, int(turn)))


def share(plan: Plan, number: int) -> int:
    """How many turns are this user's."""
    return plan.turns // plan.users + (number < plan.turns % plan.users)


def turn_of(user: str, turn: int) -> dict[str, Any]:
    return {
        "message_id": f"m{turn}",
        "messages": [{"role": "user", "content": f"Note fact {user}_n{turn} please"}],
    }


@dataclass
class Stage:
    """Where a run stands: which fault is on, and how far users may go."""

    plan: Plan
    town: Town
    client: httpx.AsyncClient
    report: Report
    now: str = CALM
    rounds: int = 0
    closing: bool = False
    lag_ms: float = 0.0
    """For how long, in all, the machine kept this process from running: no fault of whom it asked."""
    _moved: asyncio.Condition = field(default_factory=asyncio.Condition)
    _served: set[int] = field(default_factory=set)

    async def pulse(self) -> None:
        """Keep `lag_ms`."""
        while not self.closing:
            started = perf_counter()
            await asyncio.sleep(PULSE_S)
            self.lag_ms += max(0.0, perf_counter() - started - PULSE_S) * 1000

    async def next_round(self) -> None:
        async with self._moved:
            self.rounds += 1
            self._moved.notify_all()

    async def may(self, turn: int, of: int) -> None:
        """Wait until so much of the run is over: turns are handed over in the middle of every fault."""
        async with self._moved:
            await self._moved.wait_for(lambda: turn * self.plan.rounds < of * self.rounds)

    async def ask(
        self,
        backend: httpx.AsyncClient,
        path: str,
        user: str,
        body: Mapping[str, Any],
        seen: Mapping[str, Answers],
        **params: Any,
    ) -> tuple[httpx.Response | None, float]:
        """One request, which counts for the fault that is on, and its time in ms without this process' own delays.

        None when nobody was there to answer.
        """
        before, api, lag_ms, started = self.now, self.town.running["api"], self.lag_ms, perf_counter()
        code, answer, served = "", None, api.pid in self._served
        try:
            answer = await backend.post(path, json=body, headers={USER_HEADER: user}, params=params)
            code = str(answer.status_code)
            self._served.add(api.pid)
        except httpx.TimeoutException:
            code = "timeout"
            self.report.faults.append(f"{path}: no answer within {backend.timeout.read:g} s ({before})")
        except httpx.TransportError as error:
            code = "unreachable"
            await asyncio.sleep(NOTICED_S)
            alive = api is self.town.running["api"] and api.returncode is None and served
            if alive and isinstance(error, httpx.ConnectError):
                self.report.faults.append(f"{path}: {type(error).__name__} while the API was up ({before})")
        ms = (perf_counter() - started) * 1000
        noted = seen[before if self.now == CALM else self.now]
        noted.codes[code] += 1
        if answer is not None:
            noted.ms.append(ms)
        return answer, ms - (self.lag_ms - lag_ms)


async def hand_over(stage: Stage, number: int, luck: float) -> None:
    """One backend's user: hands turns over in order, each until it is accepted, some twice."""
    dice, user, turns = random.Random(luck), f"user{number}", share(stage.plan, number)
    async with stage.town.client() as backend:
        for turn in range(turns):
            await stage.may(turn, turns)
            await asyncio.sleep(dice.random() * stage.plan.hold_s)
            while not await posted(stage, backend, user, turn_of(user, turn)):  # noqa: ASYNC110  a service that is down tells nobody
                await asyncio.sleep(0.1 + dice.random() * 0.4)
            stage.report.accepted += 1
            if dice.random() < 0.2:
                await posted(stage, backend, user, turn_of(user, turn))


async def posted(stage: Stage, backend: httpx.AsyncClient, user: str, body: Mapping[str, Any]) -> bool:
    """Whether the turn was accepted; that it was answered in time, and with what it may be, is looked at."""
    report = stage.report
    report.posts += 1
    answer, ms = await stage.ask(backend, "/v1/turns", user, body, report.hand_over)
    if answer is None:
        return False
    if answer.status_code not in {200, 202, *TRY_AGAIN}:
        report.faults.append(f"{user}: answered {answer.status_code} ({stage.now}): {answer.text[:200]}")
    if answer.status_code in TRY_AGAIN and not answer.json()["error"]["retryable"]:
        report.faults.append(
            f"{user}: answered {answer.status_code} as if it were final: {answer.text[:200]}"
        )
    if ms > stage.plan.post_ms:
        report.faults.append(f"a turn was answered after {ms:.0f} ms ({stage.now}, {answer.status_code})")
    return answer.status_code in {200, 202}


async def chat(stage: Stage, luck: float) -> None:
    """One backend that asks for context, again and again: within the budget, and never refused."""
    dice, plan, report, asked = random.Random(luck), stage.plan, stage.report, 0
    async with stage.town.client() as backend:
        while not stage.closing:
            user, asked = f"user{dice.randrange(plan.users)}", asked + 1
            body = turn_of(user, dice.randrange(share(plan, 0)))
            body["message_id"] = f"chat-{luck}-{asked}"
            answer, ms = await stage.ask(backend, "/v1/context", user, body, report.chat)
            if answer is not None:
                _look(stage, answer, ms)
            await asyncio.sleep(0.02 + dice.random() * 0.06)


def _look(stage: Stage, answer: httpx.Response, ms: float) -> None:
    plan, report = stage.plan, stage.report
    noted = report.chat[stage.now]
    if answer.status_code != 200:
        report.faults.append(f"context answered {answer.status_code} ({stage.now}): {answer.text[:200]}")
        return
    found = answer.json()
    error = found["matched"].get("error")
    if error:
        noted.codes[f"200 {error}"] += 1
        if found["prefix"] or found["tail"]:
            report.faults.append(f"context with {error} and with text ({stage.now})")
    if ms > plan.budget_ms + plan.grace_ms:
        itself = answer.headers["server-timing"]
        report.faults.append(f"context took {ms:.0f} ms ({itself}; {stage.now}, {error or 'with memories'})")


async def learned(stage: Stage, probe: str) -> bool:
    """Hand over one turn and wait until it is learned from; False when that took more than the plan allows."""
    started = perf_counter()
    while perf_counter() - started < stage.plan.recovery_s:
        await stage.town.revive()
        try:
            answer = await stage.client.post(
                "/v1/turns",
                json=turn_of(probe, 0),
                headers={USER_HEADER: probe},
                params={"wait": "true"},
                timeout=5,
            )
            if answer.status_code == 200 and answer.json()["status"] == "done":
                return True
        except httpx.TransportError:
            pass
        await asyncio.sleep(0.1)
    return False
