"""The same conversation through memagent and through other memory libraries.

    python -m benchmarks.beside [--quick | --full]

Everybody has the same Redis, the same scripted model and the same hashed embeddings over HTTP on loopback, and the same turns: the
user says something, memory is searched, and what was said is learned from. The model answers at once and keeps what was said. Each library
runs in an environment of its own below build/rivals, made with

    uv venv build/rivals/mem0    && uv pip install --python build/rivals/mem0/bin/python 'mem0ai==2.2.1' \\
        'redisvl>=0.6,<0.10' nltk
    uv venv build/rivals/langmem && uv pip install --python build/rivals/langmem/bin/python 'langmem==0.0.30' \\
        langchain-openai langgraph-checkpoint-redis 'redisvl>=0.15,<0.16'

What is not installed is skipped with a word. Redis' agent-memory-server 0.15 needs Python 3.12 and a server of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import measure
from benchmarks.measure import Figure, Reach
from memagent.llm.script import Answer, Script, call
from memagent.llm.scripted import ScriptedServer
from memagent.store.embedded import answers, configuration, find_binaries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROOT = Path(__file__).resolve().parent.parent
RIVALS = ROOT / "build" / "rivals"
HELD = 100
TURNS = {"quick": 10, "default": 60, "full": 200}
WARM = 5
MARK = "Note this down: "


class Learns(Script):
    """A model that keeps what the user just said, in the words of whichever library asks."""

    def __init__(self) -> None:
        super().__init__([])
        self.chats = 0

    def play(self, user: str, *, offers_tools: bool) -> Answer:
        self.chats += 1
        said = user.rpartition(MARK)[2].splitlines()[0].split('"')[0].split("</")[0].strip(" ]}\\")
        if not offers_tools:  # mem0 asks for JSON
            return Answer(json.dumps({"memory": [{"id": "0", "text": said, "attributed_to": "user"}]}))
        return Answer(calls=(call(*self.tool, **self.arguments(said)),))

    tool: tuple[str] = ("set_memory",)

    def arguments(self, said: str) -> dict[str, Any]:
        return {"key": f"note_{self.chats}", "value": said}


class LangMemLearns(Learns):
    tool = ("Memory",)

    def arguments(self, said: str) -> dict[str, Any]:
        return {"content": said}


CONTENDERS: dict[str, type[Learns]] = {"memagent": Learns, "mem0": Learns, "langmem": LangMemLearns}


@asynccontextmanager
async def redis_with_json() -> AsyncIterator[str]:
    """A fresh server, with the JSON module too, which LangGraph's store needs."""
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


def conversation(turns: int) -> list[dict[str, Any]]:
    found = []
    for number in range(turns):
        said = [*measure.facts(3, seed=30_000_000 + number), MARK + measure.learned(number)]
        roles = ("user", "assistant", "assistant", "user")
        found.append(
            {"messages": [{"role": role, "content": text} for role, text in zip(roles, said, strict=True)]}
        )
    return found


async def run(name: str, mode: str) -> dict[str, Any] | str:
    """Figures of one library, or why there are none."""
    python = Path(sys.executable) if name == "memagent" else RIVALS / name / "bin" / "python"
    if not python.exists():
        return f"not installed in {python.parent.parent.relative_to(ROOT)}"
    script = CONTENDERS[name]()
    async with redis_with_json() as url, ScriptedServer(script) as server:
        given = {
            "redis_url": url,
            "base_url": server.base_url,
            "dimensions": measure.DIMENSIONS,
            "held": measure.facts(HELD, seed=HELD),
            "turns": conversation(WARM + TURNS[mode]),
        }
        process = await asyncio.create_subprocess_exec(
            str(python), str(ROOT / "benchmarks" / "rivals" / f"with_{name}.py"), json.dumps(given),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=tempfile.gettempdir(),
            env={"PATH": os.environ["PATH"], "HOME": tempfile.gettempdir(), "PYTHONPATH": str(ROOT) if name == "memagent" else ""},
        )  # fmt: skip
        out, errors = await process.communicate()
        if process.returncode:
            return f"failed: {errors.decode().strip().splitlines()[-1][:300]}"
        answer = json.loads(out.decode().splitlines()[-1])
        turns = WARM + TURNS[mode]
        embedded = sum(request.path.endswith("embeddings") for request in server.requests)
        took = answer["took_ms"][WARM:]
        third = max(1, len(took) // 3)
        return {
            "turn": Figure.of([took[:third], took[third : 2 * third], took[2 * third :]]),
            "model_calls": round(script.chats / turns, 2),
            "embedding_calls": round((embedded - HELD) / turns, 2),
            "kept": round(answer["kept"] / turns, 2),
        }


async def main(mode: str) -> None:
    figures: dict[str, Any] = {}
    for name in CONTENDERS:
        figures[name] = await run(name, mode)
    ours = figures["memagent"]["turn"].p50
    rows = []
    for name, each in figures.items():
        if isinstance(each, str):
            rows.append([name, each, "", "", "", ""])
            continue
        each["ratio"] = round(each["turn"].p50 / ours, 2)
        rows.append(
            [
                name,
                each["turn"],
                f"{each['ratio']} x",
                each["model_calls"],
                each["embedding_calls"],
                each["kept"],
            ]
        )
    measure.table(["", "turn ms", "of memagent's", "model calls", "embedding calls", "kept of 1"], rows)
    reach = [
        Reach(f"a turn with {name} over one with memagent", each["ratio"], 1.0, "times", at_least=True)
        for name, each in figures.items()
        if name != "memagent" and not isinstance(each, str)
    ]
    measure.report("beside", mode, figures, reach)


if __name__ == "__main__":
    asyncio.run(main(measure.asked(__doc__)))
