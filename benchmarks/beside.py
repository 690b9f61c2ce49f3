"""The same conversation through memagent and through other memory libraries.

    python -m benchmarks.beside [--quick | --full]

Everybody has a fresh Redis of the same kind, the same scripted model and the same hashed embeddings over HTTP on loopback, the
same memories to begin with, and the same turns: the user says something, memory is searched, and what was said is learned from.
The model answers at once and keeps what was said. First, in the empty store of a process that just started, ten users say
something at once; in the end it is counted what was kept. Each library runs in an environment of its own below build/rivals,
made with

    uv venv build/rivals/mem0
    uv pip install --python build/rivals/mem0/bin/python 'mem0ai==2.2.1' 'redisvl>=0.6,<0.10' nltk
    uv venv build/rivals/langmem
    uv pip install --python build/rivals/langmem/bin/python 'langmem==0.0.30' \\
        langchain-openai langgraph-checkpoint-redis 'redisvl>=0.15,<0.16'
    uv venv --python 3.12 build/rivals/agent_memory_server
    uv pip install --python build/rivals/agent_memory_server/bin/python 'agent-memory-server==0.14.0' \\
        'agent-memory-client==0.14.0' 'redisvl==0.28.0' 'mcp<2'

What is not installed is skipped with a word, and what fails says so. docs/benchmarks.md says what each does differently.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import measure
from benchmarks.measure import Figure, Reach
from memagent.llm.script import Answer, Script, call
from memagent.llm.scripted import DEFAULT_DIMENSIONS, ScriptedServer
from memagent.store.embedded import answers, configuration, find_binaries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from memagent.llm.scripted import Recorded
    from memagent.memory import ToolCall

ROOT = Path(__file__).resolve().parent.parent
RIVALS = ROOT / "build" / "rivals"
OURS = "memagent"
EACH = 100
"""Memories of every user, the one who speaks among them."""
COLD = 10
WARM, ROUNDS, COUNTED = 3, 3, 3
ANSWER = "beside: "
"""In front of what a library's process answers (rivals/contender.py)."""
MARK = "Note this down: "


@dataclass(frozen=True, slots=True)
class Mode:
    sizes: tuple[int, ...]
    """Memories in the store, of all users."""
    turns: int
    """Of every round, like the searches after them."""
    searches: int
    patience_s: float
    """For any one answer of a library."""


MODES = {
    "quick": Mode((100,), 4, 10, 60),
    "default": Mode((1_000,), 7, 40, 120),
    "full": Mode((100, 10_000), 30, 100, 900),
}


class Learns(Script):
    """A model that keeps what the user just said, in the words of whichever library asks."""

    def __init__(self) -> None:
        super().__init__([])
        self.chats = 0

    def play(self, user: str, *, offers_tools: bool) -> Answer:
        self.chats += 1
        said = user.rpartition(MARK)[2].splitlines()[0].split('"')[0].split("</")[0].strip(" ]}\\")
        return Answer(calls=(self.kept(said),)) if offers_tools else Answer(json.dumps(self.json(said)))

    def kept(self, said: str) -> ToolCall:
        return call("set_memory", key=f"note_{self.chats}", value=said)

    def json(self, said: str) -> dict[str, Any]:
        raise NotImplementedError(said)


class LangMemLearns(Learns):
    def kept(self, said: str) -> ToolCall:
        return call("Memory", content=said)


class Mem0Learns(Learns):
    def json(self, said: str) -> dict[str, Any]:
        return {"memory": [{"id": "0", "text": said, "attributed_to": "user"}]}


class AgentMemoryServerLearns(Learns):
    """It asks for memories, then for their topics, then for their entities."""

    def json(self, said: str) -> dict[str, Any]:
        memory = {
            "type": "semantic",
            "text": said,
            "topics": ["notes"],
            "entities": ["User"],
            "event_date": None,
        }
        return {"memories": [memory], "topics": ["notes"], "entities": ["User"]}


CONTENDERS: dict[str, type[Learns]] = {
    OURS: Learns,
    "mem0": Mem0Learns,
    "langmem": LangMemLearns,
    "agent_memory_server": AgentMemoryServerLearns,
}


@asynccontextmanager
async def redis_with_json() -> AsyncIterator[str]:
    """A fresh server, with the JSON module too, which LangGraph's store and agent-memory-server need."""
    folder = Path(tempfile.mkdtemp(prefix="memagent-beside-"))
    binaries, socket = find_binaries(), folder / "redis.sock"
    text = configuration(folder, socket, binaries.engine, "everysec")
    (folder / "redis.conf").write_text(f"{text}\nloadmodule {binaries.engine.with_name('rejson.so')}\n")
    process = await asyncio.create_subprocess_exec(str(binaries.server), str(folder / "redis.conf"))
    try:
        async with asyncio.timeout(30):
            while not await answers(socket):  # noqa: ASYNC110  another process raises no event here
                await asyncio.sleep(0.02)
        yield f"unix://{socket}"
    finally:
        process.terminate()
        await process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def conversation(first: int, turns: int) -> list[dict[str, Any]]:
    found = []
    for number in range(first, first + turns):
        said = measure.learned(number)
        texts = [*measure.facts(3, seed=30_000_000 + number), MARK + said]
        roles = ("user", "assistant", "assistant", "user")
        messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
        found.append({"said": said, "messages": messages})
    return found


def held(size: int) -> dict[str, list[str]]:
    others = {f"other{number}": measure.facts(EACH, seed=number) for number in range(1, size // EACH)}
    return {"user": measure.facts(EACH, seed=0), **others}


@dataclass(frozen=True, slots=True)
class Player:
    """One library in a process of its own, with a Redis and a scripted endpoint of its own."""

    process: asyncio.subprocess.Process
    said: Path
    """What it wrote to standard error."""
    server: ScriptedServer
    patience_s: float

    def give(self, job: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps(job)}\n".encode())

    async def ask(self, word: str) -> dict[str, Any]:
        """Its answer to a word; raises `RuntimeError` with a line on why there is none."""
        reader, writer = self.process.stdout, self.process.stdin
        assert reader is not None
        assert writer is not None
        try:
            async with asyncio.timeout(self.patience_s):
                writer.write(f"{word}\n".encode())
                await writer.drain()
                while answer := (await reader.readline()).decode():
                    if answer.startswith(ANSWER):
                        return json.loads(answer.removeprefix(ANSWER))  # type: ignore[no-any-return]
        except TimeoutError:
            raise RuntimeError(f"no answer within {self.patience_s:.0f} s") from None
        except ConnectionError:
            pass
        raise RuntimeError((self.said.read_text().strip() or "without a word").splitlines()[-1][:200])


@asynccontextmanager
async def player(name: str, mode: Mode, size: int) -> AsyncIterator[Player]:
    """A library that is ready for its first round; raises `RuntimeError` with a line on why there is none."""
    python = Path(sys.executable) if name == OURS else RIVALS / name / "bin" / "python"
    if not python.exists():
        raise RuntimeError(f"not installed in build/rivals/{name}")
    async with redis_with_json() as url, ScriptedServer(CONTENDERS[name]()) as server:
        given = {
            "redis_url": url,
            "base_url": server.base_url,
            "dimensions": DEFAULT_DIMENSIONS,
            "held": held(size),
            "cold": conversation(1_000, COLD),
            "turns": conversation(0, WARM + ROUNDS * mode.turns + COUNTED),
            "warm": WARM,
            "turns_a_round": mode.turns,
            "searches_a_round": mode.searches,
        }
        with tempfile.NamedTemporaryFile(prefix=f"bench-{name}-") as said:
            process = await asyncio.create_subprocess_exec(
                str(python), str(ROOT / "benchmarks" / "rivals" / f"with_{name}.py"),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=said,
                cwd=tempfile.gettempdir(), start_new_session=True,
                env={"PATH": os.environ["PATH"], "HOME": tempfile.gettempdir(), "PYTHONPATH": str(ROOT) if name == OURS else ""},
            )  # fmt: skip
            try:
                opened = Player(process, Path(said.name), server, mode.patience_s)
                opened.give(given)
                yield opened
            finally:
                with suppress(ProcessLookupError):  # What it started goes with it.
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()


def figures(
    rounds: list[dict[str, Any]], rest: dict[str, Any], requests: Sequence[Recorded]
) -> dict[str, Any]:
    asked: dict[str, list[Recorded]] = {"search": [], "learn": []}
    phase = "end"
    for request in requests:
        if "/mark/" in request.path:
            phase = request.path.rpartition("/")[2]
        elif phase in asked:
            asked[phase].append(request)
    both, counted = [*asked["search"], *asked["learn"]], rest.pop("counted")
    chats = [request for request in both if request.path.endswith("/chat/completions")]
    characters = sum(len(json.dumps(each.body, ensure_ascii=False)) for each in chats)
    commands = {phase: sum(rest["commands"][phase].values()) for phase in asked}
    return {
        **{what: Figure.of([each[what] for each in rounds]) for what in rounds[0] if rounds[0][what]},
        **{f"{phase}_commands": round(number / counted, 1) for phase, number in commands.items()},
        "embedding_calls": round(sum(each.path.endswith("/embeddings") for each in both) / counted, 1),
        "model_calls": round(len(chats) / counted, 1),
        "prompt_chars": round(characters / counted),
        **rest,
    }


async def compare(mode: Mode, size: int) -> dict[str, dict[str, Any] | str]:
    """Every library's figures, or a line on why it has none. They play round by round, so that a busy minute hits them all."""
    found: dict[str, dict[str, Any] | str] = {}
    rests: dict[str, dict[str, Any]] = {}
    rounds: dict[str, list[dict[str, Any]]] = {}
    async with AsyncExitStack() as opened:
        players: dict[str, Player] = {}

        def playing() -> list[str]:
            return [name for name in players if name not in found]

        async def ask(name: str, word: str) -> dict[str, Any]:
            try:
                return await players[name].ask(word)
            except RuntimeError as error:
                found[name] = f"failed: {error}"
                return {}

        for name in CONTENDERS:
            try:
                players[name] = await opened.enter_async_context(player(name, mode, size))
            except RuntimeError as error:
                found[name] = str(error)
                continue
            rests[name] = await ask(name, "prepare")
        for _ in range(ROUNDS):
            for name in playing():
                rounds.setdefault(name, []).append(await ask(name, "round"))
        for name in playing():
            rests[name] |= await ask(name, "count")
        for name in playing():
            found[name] = figures(rounds[name], rests[name], players[name].server.requests)
    return {name: found[name] for name in CONTENDERS}


HEAD = (
    "",
    "search ms",
    "learn ms",
    "turn ms",
    "Redis commands",
    "embeddings",
    "model calls",
    "prompt chars",
    "kept",
    "kept cold",
)


def row(name: str, each: dict[str, Any] | str) -> list[Any]:
    if isinstance(each, str):
        return [name, each, *[""] * (len(HEAD) - 2)]
    return [
        name,
        *(f"{each[what].p50:.1f}, p99 {each[what].p99:.1f}" for what in ("search", "learn", "turn")),
        f"{each['search_commands']:g} + {each['learn_commands']:g}",
        each["embedding_calls"],
        each["model_calls"],
        f"{each['prompt_chars']:,}",
        f"{each['kept']}/{each['told']}",
        f"{each['cold_kept']}/{each['cold_told']}",
    ]  # fmt: skip


def reaches(size: int, found: dict[str, dict[str, Any] | str]) -> list[Reach]:
    ours = found[OURS]
    if isinstance(ours, str):
        return []
    return [
        Reach(f"a {what} with {name} over one with memagent, {size:,} memories",
              round(each[what].p50 / ours[what].p50, 2), 1.0, "times", at_least=True)
        for name, each in found.items() if name != OURS and not isinstance(each, str)
        for what in ("search", "turn")
    ]  # fmt: skip


async def main(mode: str) -> None:
    every: dict[str, Any] = {}
    reach: list[Reach] = []
    for size in MODES[mode].sizes:
        found = await compare(MODES[mode], size)
        print(f"{size:,} memories in the store, {EACH} of them the user's\n")
        measure.table(HEAD, [row(name, each) for name, each in found.items()])
        for name, each in found.items():
            if not isinstance(each, str) and "answered" in each:
                print(
                    f"{name} answers a write after {each['answered'].p50:.1f} ms, before it has learned from it\n"
                )
        every[str(size)] = found
        reach += reaches(size, found)
    measure.report("beside", mode, every, reach)


if __name__ == "__main__":
    measure.run(main(measure.asked(__doc__)))
