"""The same conversation through memagent and through other memory libraries.

    python -m benchmarks.beside [--quick | --full]

Everybody has a fresh Redis of the same kind, the same scripted model and the same hashed embeddings over HTTP on loopback, the same
memories to begin with, and the same turns: the user says something, memory is searched, and what was said is learned from. The
model answers at once and keeps what was said. First, in the empty store of a process that just started, ten users say something at
once; in the end it is counted what was kept. Each library runs in an environment of its own below build/rivals, made with

    uv venv build/rivals/mem0
    uv pip install --python build/rivals/mem0/bin/python 'mem0ai==2.2.1' 'redisvl>=0.6,<0.10' nltk
    uv venv build/rivals/langmem
    uv pip install --python build/rivals/langmem/bin/python 'langmem==0.0.30' \\
        langchain-openai langgraph-checkpoint-redis 'redisvl>=0.15,<0.16'
    uv venv --python 3.12 build/rivals/agent_memory_server
    uv pip install --python build/rivals/agent_memory_server/bin/python 'agent-memory-server==0.15.0' \\
        'agent-memory-client==0.14.0' 'redisvl==0.28.0'

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
from contextlib import asynccontextmanager, suppress
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
WARM, COUNTED = 3, 3
MARK = "Note this down: "


@dataclass(frozen=True, slots=True)
class Mode:
    sizes: tuple[int, ...]
    """Memories in the store, of all users."""
    turns: int
    searches: int
    patience_s: float


MODES = {
    "quick": Mode((100,), 10, 30, 120),
    "default": Mode((1_000,), 21, 100, 180),
    "full": Mode((100, 10_000), 100, 300, 900),
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


async def run(name: str, mode: Mode, size: int) -> dict[str, Any] | str:
    """Figures of one library, or why there are none."""
    python = Path(sys.executable) if name == OURS else RIVALS / name / "bin" / "python"
    if not python.exists():
        return f"not installed in {python.parent.parent.relative_to(ROOT)}"
    async with redis_with_json() as url, ScriptedServer(CONTENDERS[name]()) as server:
        given = {
            "redis_url": url,
            "base_url": server.base_url,
            "dimensions": DEFAULT_DIMENSIONS,
            "held": held(size),
            "cold": conversation(1_000, COLD),
            "turns": conversation(0, WARM + mode.turns + COUNTED),
            "warm": WARM,
            "counted": COUNTED,
            "searches": mode.searches,
        }
        try:
            answer = await played(python, name, given, mode.patience_s)
        except RuntimeError as error:
            return f"failed: {error}"
        return figures(answer, server.requests)


async def played(python: Path, name: str, given: dict[str, Any], patience_s: float) -> dict[str, Any]:
    """What one library's process prints; raises `RuntimeError` with a line on why it printed nothing."""
    process = await asyncio.create_subprocess_exec(
        str(python), str(ROOT / "benchmarks" / "rivals" / f"with_{name}.py"),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        cwd=tempfile.gettempdir(), start_new_session=True,
        env={"PATH": os.environ["PATH"], "HOME": tempfile.gettempdir(), "PYTHONPATH": str(ROOT) if name == OURS else ""},
    )  # fmt: skip
    try:
        async with asyncio.timeout(patience_s):
            out, errors = await process.communicate(json.dumps(given).encode())
    except TimeoutError:
        raise RuntimeError(f"no end after {patience_s:.0f} s") from None
    finally:
        with suppress(ProcessLookupError):  # What it started goes with it.
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        raise RuntimeError((errors.decode().strip() or "without a word").splitlines()[-1][:200])
    return json.loads(out.decode().splitlines()[-1])  # type: ignore[no-any-return]


def figures(answer: dict[str, Any], requests: Sequence[Recorded]) -> dict[str, Any]:
    asked: dict[str, list[Recorded]] = {"search": [], "learn": []}
    phase = "end"
    for request in requests:
        if "/mark/" in request.path:
            phase = request.path.rpartition("/")[2]
        elif phase in asked:
            asked[phase].append(request)
    both = [*asked["search"], *asked["learn"]]
    chats = [request for request in both if request.path.endswith("/chat/completions")]
    found = {
        each: Figure.of(thirds(answer[f"{each}_ms"]))
        for each in ("search", "learn", "turn", "answered")
        if answer[f"{each}_ms"]
    }
    return {
        **found,
        "search_commands": round(sum(answer["commands"]["search"].values()) / COUNTED, 1),
        "learn_commands": round(sum(answer["commands"]["learn"].values()) / COUNTED, 1),
        "embedding_calls": round(sum(each.path.endswith("/embeddings") for each in both) / COUNTED, 1),
        "model_calls": round(len(chats) / COUNTED, 1),
        "prompt_chars": round(
            sum(len(json.dumps(each.body, ensure_ascii=False)) for each in chats) / COUNTED
        ),
        "commands": answer["commands"],
        **{key: answer[key] for key in ("kept", "told", "cold_kept", "cold_told")},
    }


def thirds(values: list[float]) -> list[list[float]]:
    third = max(1, len(values) // 3)
    return [part for part in (values[:third], values[third : 2 * third], values[2 * third :]) if part]


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
        found = {name: await run(name, MODES[mode], size) for name in CONTENDERS}
        print(f"{size:,} memories in the store, {EACH} of them the user's\n")
        measure.table(HEAD, [row(name, each) for name, each in found.items()])
        every[str(size)] = found
        reach += reaches(size, found)
    measure.report("beside", mode, every, reach)


if __name__ == "__main__":
    asyncio.run(main(measure.asked(__doc__)))
