"""The conversation through mem0: `search` before the answer, `add` after it, in its Redis vector store."""

from __future__ import annotations

import asyncio
import os
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contender import play

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mem0 import Memory

HOME = tempfile.mkdtemp(prefix="bench-mem0-")
os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": HOME, "OPENAI_API_KEY": "key", "NLTK_DATA": HOME}

# Its keyword search reads NLTK's stop words, which are a download that it asks for at every search; a few of them do here.
words = Path(HOME, "corpora", "stopwords")
words.mkdir(parents=True)
(words / "english").write_text(
    "a an and are at for in is it of on or the their to what when with".replace(" ", "\n")
)


class WithMem0:
    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    async def fill(self, user: str, texts: list[str]) -> None:
        for text in texts:
            self.memory.add(text, user_id=user, infer=False)

    async def search(self, user: str, turn: str, messages: list[dict[str, str]]) -> Any:  # noqa: ARG002
        return self.memory.search(messages[-1]["content"], filters={"user_id": user}, top_k=10)

    async def learn(self, user: str, turn: str, messages: list[dict[str, str]]) -> None:  # noqa: ARG002  it counts no turns
        await asyncio.to_thread(self.memory.add, messages[-2:], user_id=user)

    async def settle(self) -> None:
        """Nothing goes on after `add`."""

    async def texts(self, user: str) -> list[str]:
        found = self.memory.get_all(filters={"user_id": user}, top_k=10_000)["results"]
        return [each["memory"] for each in found]


@asynccontextmanager
async def opened(given: dict[str, Any]) -> AsyncIterator[WithMem0]:
    import nltk
    from mem0 import Memory

    nltk.download = lambda *_, **__: True
    endpoint = {"api_key": "key", "openai_base_url": given["base_url"]}
    dimensions, url = given["dimensions"], given["redis_url"]
    redis = {"collection_name": "mem0", "embedding_model_dims": dimensions, "redis_url": url}
    embedder = {"model": "text-embedding-3-small", "embedding_dims": dimensions, **endpoint}
    yield WithMem0(
        Memory.from_config(
            {
                "vector_store": {"provider": "redis", "config": redis},
                "llm": {"provider": "openai", "config": {"model": "gpt-4o-mini", **endpoint}},
                "embedder": {"provider": "openai", "config": embedder},
                "history_db_path": f"{HOME}/history.db",
            }
        )
    )


play(opened)
