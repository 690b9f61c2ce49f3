"""The conversation through LangMem, in LangGraph's Redis store: its search before the answer, the store manager after it."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from contender import play

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from langgraph.store.redis.aio import AsyncRedisStore


class WithLangMem:
    def __init__(self, store: AsyncRedisStore, manager: Any) -> None:
        self.store, self.manager = store, manager

    async def fill(self, user: str, texts: list[str]) -> None:
        from langgraph.store.base import PutOp

        await self.store.abatch(
            [
                PutOp(("memories", user), f"held{n}", {"kind": "Memory", "content": {"content": text}})
                for n, text in enumerate(texts)
            ]
        )

    async def search(self, user: str, turn: str, messages: list[dict[str, str]]) -> Any:  # noqa: ARG002
        return await self.store.asearch(("memories", user), query=messages[-1]["content"], limit=10)

    async def learn(self, user: str, turn: str, messages: list[dict[str, str]]) -> None:  # noqa: ARG002  it counts no turns
        await self.manager.ainvoke(
            {"messages": messages}, config={"configurable": {"langgraph_user_id": user}}
        )

    async def settle(self) -> None:
        """Nothing goes on after `ainvoke`."""

    async def texts(self, user: str) -> list[str]:
        found = await self.store.asearch(("memories", user), limit=10_000)
        return [each.value["content"]["content"] for each in found]


@asynccontextmanager
async def opened(given: dict[str, Any]) -> AsyncIterator[WithLangMem]:
    os.environ |= {
        "OPENAI_API_KEY": "key",
        "OPENAI_BASE_URL": given["base_url"],
        "LANGSMITH_TRACING": "false",
    }
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings
    from langgraph.store.redis.aio import AsyncRedisStore
    from langmem import create_memory_store_manager

    embedder = OpenAIEmbeddings(
        model="text-embedding-3-small", dimensions=given["dimensions"], check_embedding_ctx_length=False
    )
    index = {"dims": given["dimensions"], "embed": embedder, "fields": ["content"]}
    async with AsyncRedisStore.from_conn_string(given["redis_url"], index=index) as store:
        await store.setup()
        manager = create_memory_store_manager(
            ChatOpenAI(model="gpt-4o-mini"),
            namespace=("memories", "{langgraph_user_id}"),
            store=store,
            query_limit=10,
        )
        yield WithLangMem(store, manager)


play(opened)
