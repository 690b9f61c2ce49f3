"""What every contender does in a process of its own: first turns, a fill, rounds of turns and searches, and a count at the end.

Only the standard library: each contender's environment holds that library and nothing of ours. The job comes as a line of JSON
on standard input, then one word a line, so that contenders take turns; each is answered by a line on standard output.
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
ANSWER = "beside: "
"""In front of every answer; whatever else a library prints is not one."""
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
    given = json.loads(sys.stdin.readline())

    async def to_the_end() -> None:
        async with contender(given) as opened:
            match = _Match(opened, given)
            steps = {"prepare": match.prepared, "round": match.round, "count": match.counted}
            while word := (await asyncio.to_thread(sys.stdin.readline)).strip():
                print(ANSWER + json.dumps(await steps[word]()), flush=True)

    asyncio.run(to_the_end())


class _Match:
    def __init__(self, contender: Contender, given: dict[str, Any]) -> None:
        self.contender, self.given = contender, given
        self.turns = [(f"turn{number}", turn) for number, turn in enumerate(given["turns"])]
        self.left = list(self.turns)
        self.took: dict[str, list[float]] = {}

    async def prepared(self) -> dict[str, Any]:
        """Ten users say something at once in the empty store; then everybody's memories are held, and a few turns warm up."""
        cold = self.given["cold"]
        await asyncio.gather(
            *(self.contender.learn(f"cold{n}", f"cold{n}", turn["messages"]) for n, turn in enumerate(cold))
        )
        await self.contender.settle()
        kept = [turn["said"] in await self.contender.texts(f"cold{n}") for n, turn in enumerate(cold)]
        for user, texts in self.given["held"].items():
            await self.contender.fill(user, texts)
        await self.contender.settle()
        for _ in range(self.given["warm"]):
            await self._turn()
        return {"cold_told": len(cold), "cold_kept": sum(kept)}

    async def round(self) -> dict[str, list[float]]:
        """Milliseconds of some turns, and of some searches more."""
        self.took = {"search": [], "learn": [], "turn": [], "answered": []}
        for _ in range(self.given["turns_a_round"]):
            await self._turn()
        for number in range(self.given["searches_a_round"]):
            await self._search(*self.turns[number % len(self.turns)])
        return self.took

    async def counted(self) -> dict[str, Any]:
        """The Redis commands of the turns that are left, and how much of all that was told is kept."""
        commands: dict[str, dict[str, int]] = {"search": {}, "learn": {}}
        told = len(self.turns)
        with _Monitor(self.given["redis_url"]) as monitor:
            for name, turn in self.left:
                monitor.commands()
                _mark(self.given["base_url"], "search")
                await self.contender.search(USER, name, turn["messages"])
                await self.contender.settle()
                _add(commands["search"], monitor.commands())
                _mark(self.given["base_url"], "learn")
                await self.contender.learn(USER, name, turn["messages"])
                await self.contender.settle()
                _add(commands["learn"], monitor.commands())
                _mark(self.given["base_url"], "end")
        texts = await self.contender.texts(USER)
        kept = sum(turn["said"] in texts for _, turn in self.turns)
        return {"commands": commands, "counted": len(self.left), "told": told, "kept": kept}

    async def _search(self, name: str, turn: dict[str, Any]) -> float:
        started = time.perf_counter()
        await self.contender.search(USER, name, turn["messages"])
        return self._note("search", (time.perf_counter() - started) * 1000)

    async def _turn(self) -> None:
        name, turn = self.left.pop(0)
        searched = await self._search(name, turn)
        started = time.perf_counter()
        learned = await self.contender.learn(USER, name, turn["messages"])
        took = (time.perf_counter() - started) * 1000
        if learned is not None:
            self._note("answered", learned.answered_ms)
            took -= learned.idle_ms
        if learned is None or not learned.lost:
            self._note("learn", took)
            self._note("turn", searched + took)
        await self.contender.settle()

    def _note(self, what: str, took: float) -> float:
        self.took.setdefault(what, []).append(took)
        return took


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
