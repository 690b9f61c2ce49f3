"""The conversation through memagent, as its README says: `context` before the answer, `observe` after it."""

from __future__ import annotations

import os
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contender import play

import memagent
from memagent.service.imports import Format

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CONFIG = """
version: '1.3.17'
endpoints:
  custom:
    - {name: Scripted, apiKey: key, baseURL: 'BASEURL', models: {default: [gpt-4o-mini], fetch: false}}
memory:
  disabled: false
  agent: {enabled: true, provider: Scripted, model: gpt-4o-mini}
"""


class WithMemagent:
    def __init__(self, memory: memagent.Memagent) -> None:
        self.memory = memory
        self.note: Any = None

    async def fill(self, user: str, texts: list[str]) -> None:
        entries = [{"key": f"held_{n}", "value": text, "userId": user} for n, text in enumerate(texts)]
        await self.memory.import_memories(user, entries, source=Format.LIBRECHAT)

    async def search(self, user: str, turn: str, messages: list[dict[str, str]]) -> memagent.Context:
        found = await self.memory.context(turn_of(user, turn, messages))
        self.note = found.note
        return found

    async def learn(self, user: str, turn: str, messages: list[dict[str, str]]) -> None:
        await self.memory.observe(turn_of(user, turn, messages), recalled=self.note)

    async def settle(self) -> None:
        """Nothing goes on after `observe`."""

    async def texts(self, user: str) -> list[str]:
        return [each.value for each in await self.memory.list(user)]


def turn_of(user: str, turn: str, messages: list[dict[str, str]]) -> memagent.Turn:
    said = tuple(memagent.Message(each["role"], each["content"]) for each in messages)
    return memagent.Turn(user, turn, said, conversation_id="c")


@asynccontextmanager
async def opened(given: dict[str, Any]) -> AsyncIterator[WithMemagent]:
    environ = {
        **os.environ,
        "MEMAGENT_REDIS_URL": given["redis_url"],
        "MEMAGENT_EMBEDDER": "openai/text-embedding-3-small",
        "MEMAGENT_EMBEDDER_DIMENSIONS": str(given["dimensions"]),
        "MEMAGENT_MAX_MEMORIES": "5000",
        "MEMAGENT_RECALL_BUDGET_MS": "10000",
        "OPENAI_API_KEY": "key",
        "OPENAI_BASE_URL": given["base_url"],
    }
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(CONFIG.replace("BASEURL", given["base_url"]))
        file.flush()
        async with memagent.open(Path(file.name), environ=environ, warm=True) as memory:
            yield WithMemagent(memory)


play(opened)
