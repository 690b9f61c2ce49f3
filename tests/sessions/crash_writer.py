"""A process that talks until it is killed: `crash_writer.py sessions|chat FOLDER ROUND`. Prints each text once it is kept."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memagent.llm import ModelReply
from memagent.memory import Message
from memagent.sessions.chat_memory import MessageWindowChatMemory
from memagent.sessions.chat_stores import JsonlChatMemoryStore
from memagent.sessions.compaction import CompactionSettings
from memagent.sessions.service import Said, Sessions, SessionSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

KEY = "agent:main:main"


class Summaries:
    async def complete(self, messages: Sequence[Message], *, tools: Sequence[Any] = ()) -> ModelReply:
        return ModelReply(f"summary of {len(messages[-1].content or '')} characters")


def kept(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def desk(folder: Path) -> Sessions:
    rules = CompactionSettings(min_messages=1, keep_recent_tokens=10, window_tokens=100)
    settings = SessionSettings(compaction=rules, sync=False)
    return Sessions(folder, clock=lambda: datetime.now(UTC), settings=settings, model=Summaries())


async def talk(folder: Path, round_: str) -> None:
    sessions = desk(folder)
    for n in count():
        text = f"{round_}.{n}"
        await sessions.receive(KEY, f"q{text}")
        kept(f"q{text}")
        await sessions.record(KEY, [Said(Message("assistant", f"a{text}"))])
        kept(f"a{text}")
        if n % 3 == 1:
            await sessions.compact(KEY)
        if n % 5 == 4:
            await sessions.receive(KEY, "/new")


async def chat(folder: Path, round_: str) -> None:
    memory = MessageWindowChatMemory(
        max_messages=3, id="chat", store=JsonlChatMemoryStore(folder, sync=False)
    )
    for n in count():
        await memory.add(Message("user", f"{round_}.{n}"))
        kept(f"{round_}.{n}")


if __name__ == "__main__":
    work = {"sessions": talk, "chat": chat}[sys.argv[1]]
    asyncio.run(work(Path(sys.argv[2]), sys.argv[3]))
