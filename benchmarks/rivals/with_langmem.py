"""The conversation through LangMem: search the store before the answer, its store manager after it, in LangGraph's Redis store."""

import asyncio
import json
import os
import sys
import time

given = json.loads(sys.argv[1])
os.environ |= {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": given["base_url"], "LANGSMITH_TRACING": "false"}

from langchain_openai import ChatOpenAI, OpenAIEmbeddings  # noqa: E402  it reads the environment when it is imported
from langgraph.store.redis.aio import AsyncRedisStore  # noqa: E402
from langmem import create_memory_store_manager  # noqa: E402

NAMESPACE = ("memories", "user")


async def main() -> None:
    embedder = OpenAIEmbeddings(
        model="text-embedding-3-small", dimensions=given["dimensions"], check_embedding_ctx_length=False
    )
    index = {"dims": given["dimensions"], "embed": embedder, "fields": ["content"]}
    async with AsyncRedisStore.from_conn_string(given["redis_url"], index=index) as store:
        await store.setup()
        for number, text in enumerate(given["held"]):
            await store.aput(
                NAMESPACE, f"held{number}", {"kind": "Memory", "content": {"content": text}, "text": text}
            )
        manager = create_memory_store_manager(
            ChatOpenAI(model="gpt-4o-mini"), namespace=NAMESPACE, store=store, query_limit=10
        )
        took = []
        for turn in given["turns"]:
            started = time.perf_counter()
            await store.asearch(NAMESPACE, query=turn["messages"][-1]["content"], limit=10)
            await manager.ainvoke({"messages": turn["messages"]})
            took.append((time.perf_counter() - started) * 1000)
        kept = await store.asearch(NAMESPACE, limit=10_000)
        print(json.dumps({"took_ms": took, "kept": len(kept) - len(given["held"])}))


asyncio.run(main())
