"""The conversation through memagent: context before the answer, observe after it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import memagent
from memagent.memory import Message
from memagent.turn import Turn

CONFIG = """
version: '1.3.17'
endpoints:
  custom:
    - {name: Scripted, apiKey: key, baseURL: 'BASEURL', models: {default: [gpt-4o-mini], fetch: false}}
memory:
  disabled: false
  agent: {enabled: true, provider: Scripted, model: gpt-4o-mini}
"""


async def main() -> None:
    given = json.loads(sys.argv[1])
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
    os.environ |= {"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": given["base_url"]}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(CONFIG.replace("BASEURL", given["base_url"]))
        file.flush()
        async with memagent.open(Path(file.name), environ=environ, warm=True) as memory:
            for number, text in enumerate(given["held"]):
                await memory.put("user", f"held_{number}", text)
            took = []
            for number, each in enumerate(given["turns"]):
                messages = tuple(Message(message["role"], message["content"]) for message in each["messages"])
                started = time.perf_counter()
                turn = Turn("user", f"m{number}", messages, conversation_id="c")
                found = await memory.context(turn)
                await memory.observe(turn, recalled=found.note)
                took.append((time.perf_counter() - started) * 1000)
            kept = await memory.list("user")
    print(json.dumps({"took_ms": took, "kept": len(kept) - len(given["held"])}))


asyncio.run(main())
