"""What every contender does in a process of its own: first turns, fill, turns, searches, and a few turns that are counted.

Only the standard library: each contender's environment holds that library and nothing of ours. The job comes as JSON on standard
input, the figures go as JSON to the last line of standard output.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import urllib.error
import urllib.request
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from socket import AF_UNIX, socket
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable

USER = "user"
OURS = "not-counted"
"""A Redis command with this word in it is the benchmark's own."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What a library that answers before it has learned tells beside the time until what was said can be found."""

    answered_ms: float
    idle_ms: float
    """What it waits by its settings; not counted as work."""
    lost: bool


class Contender(Protocol):
    async def fill(self, user: str, texts: list[str]) -> None:
        """Hold these already, without a model."""

    async def search(self, user: str, turn: str, messages: list[dict[str, str]]) -> Any:
        """What is asked before the answer: ten memories for the newest message, where a number can be said."""

    async def learn(self, user: str, turn: str, messages: list[dict[str, str]]) -> Learned | None:
        """What comes after the answer; returns when what was said can be found."""

    async def settle(self) -> None:
        """Return when nothing is left to do from what was learned."""

    async def texts(self, user: str) -> list[str]:
        """Everything kept of a user."""


def play(contender: Callable[[dict[str, Any]], AbstractAsyncContextManager[Contender]]) -> None:
    given = json.load(sys.stdin)

    async def all_of_it() -> dict[str, Any]:
        async with contender(given) as opened:
            return await _Match(opened, given).played()

    print(json.dumps(asyncio.run(all_of_it())))


class _Match:
    def __init__(self, contender: Contender, given: dict[str, Any]) -> None:
        self.contender, self.given = contender, given
        self.searches: list[float] = []
        self.learns: list[float] = []
        self.turns: list[float] = []
        self.answers: list[float] = []

    async def played(self) -> dict[str, Any]:
        cold = self.given["cold"]
        await asyncio.gather(
            *(self.contender.learn(f"cold{n}", f"cold{n}", turn["messages"]) for n, turn in enumerate(cold))
        )
        await self.contender.settle()
        cold_kept = sum(
            [turn["said"] in await self.contender.texts(f"cold{n}") for n, turn in enumerate(cold)]
        )
        for user, texts in self.given["held"].items():
            await self.contender.fill(user, texts)
        await self.contender.settle()
        turns = [(f"turn{n}", turn) for n, turn in enumerate(self.given["turns"])]
        warm, counted = self.given["warm"], self.given["counted"]
        for number, (name, turn) in enumerate(turns[: len(turns) - counted]):
            if number == warm:
                for kept in (self.searches, self.learns, self.turns, self.answers):
                    kept.clear()
            await self._turn(name, turn)
        for number in range(self.given["searches"]):
            await self._search(*turns[number % len(turns)])
        commands = await self._counted(turns[len(turns) - counted :])
        texts = await self.contender.texts(USER)
        return {
            "search_ms": self.searches,
            "learn_ms": self.learns,
            "turn_ms": self.turns,
            "answered_ms": self.answers,
            "commands": commands,
            "told": len(turns),
            "kept": sum(turn["said"] in texts for _, turn in turns),
            "cold_told": len(cold),
            "cold_kept": cold_kept,
        }

    async def _search(self, name: str, turn: dict[str, Any]) -> float:
        started = time.perf_counter()
        await self.contender.search(USER, name, turn["messages"])
        self.searches.append((time.perf_counter() - started) * 1000)
        return self.searches[-1]

    async def _turn(self, name: str, turn: dict[str, Any]) -> None:
        searched = await self._search(name, turn)
        started = time.perf_counter()
        learned = await self.contender.learn(USER, name, turn["messages"])
        took = (time.perf_counter() - started) * 1000
        if learned is not None:
            self.answers.append(learned.answered_ms)
            took -= learned.idle_ms
        if learned is None or not learned.lost:
            self.learns.append(took)
            self.turns.append(searched + took)
        await self.contender.settle()

    async def _counted(self, turns: list[tuple[str, dict[str, Any]]]) -> dict[str, dict[str, int]]:
        """Which commands reach Redis; marks tell the model's server where a search and a turn begin."""
        found: dict[str, dict[str, int]] = {"search": {}, "learn": {}}
        with _Monitor(self.given["redis_url"]) as monitor:
            for name, turn in turns:
                monitor.commands()
                _mark(self.given["base_url"], "search")
                await self.contender.search(USER, name, turn["messages"])
                await self.contender.settle()
                _add(found["search"], monitor.commands())
                _mark(self.given["base_url"], "learn")
                await self.contender.learn(USER, name, turn["messages"])
                await self.contender.settle()
                _add(found["learn"], monitor.commands())
                _mark(self.given["base_url"], "end")
        return found


def _add(total: dict[str, int], names: list[str]) -> None:
    for name in names:
        total[name] = total.get(name, 0) + 1


def _mark(base_url: str, word: str) -> None:
    with suppress(urllib.error.HTTPError):  # Nobody answers there; that it was asked is what counts.
        urllib.request.urlopen(f"{base_url}/mark/{word}").close()


class _Monitor:
    """The names of the commands that clients sent, those of scripts that run inside Redis left out."""

    def __init__(self, redis_url: str) -> None:
        self._path = redis_url.removeprefix("unix://")
        self._marks = 0

    def __enter__(self) -> Self:
        self._watch, self._speak = socket(AF_UNIX), socket(AF_UNIX)
        for each in (self._watch, self._speak):
            each.connect(self._path)
        self._lines, self._echo = self._watch.makefile("rb"), self._speak.makefile("rb")
        self._watch.sendall(b"MONITOR\r\n")
        self._lines.readline()
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._lines, self._echo, self._watch, self._speak):
            each.close()

    def commands(self) -> list[str]:
        """Those since the last call."""
        self._marks += 1
        mark = f"{OURS}-{self._marks}"
        self._speak.sendall(f"ECHO {mark}\r\n".encode())
        self._echo.readline()
        self._echo.readline()
        found: list[str] = []
        while mark not in (line := self._lines.readline().decode(errors="replace")):
            head, _, command = line.partition("] ")
            if not head.endswith(" lua") and OURS not in line:
                found.append(command.partition('" ')[0].strip().strip('"').upper())
        return found
