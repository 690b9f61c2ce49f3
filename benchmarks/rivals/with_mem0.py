"""The conversation through mem0: search before the answer, `add` after it. Run by `benchmarks.beside` in mem0's own environment."""

import json
import os
import pathlib
import sys
import tempfile
import time

given = json.loads(sys.argv[1])
home = tempfile.mkdtemp(prefix="bench-mem0-")
os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": home, "OPENAI_API_KEY": "key", "NLTK_DATA": home}
# Its keyword search reads NLTK's stop words, which are a download; a few of them do here.
words = pathlib.Path(home, "corpora", "stopwords")
words.mkdir(parents=True)
(words / "english").write_text(
    "a\nan\nand\nare\nat\nfor\nin\nis\nit\nof\non\nor\nthe\ntheir\nto\nwhat\nwhen\nwith"
)

import nltk  # noqa: E402
from mem0 import Memory  # noqa: E402  it reads the environment when it is imported

nltk.download = lambda *_, **__: (
    True
)  # its store asks for it at every search; waiting for a network is not what is measured

endpoint = {"api_key": "key", "openai_base_url": given["base_url"]}
memory = Memory.from_config({
    "vector_store": {
        "provider": "redis",
        "config": {"collection_name": "mem0", "embedding_model_dims": given["dimensions"], "redis_url": given["redis_url"]},
    },
    "llm": {"provider": "openai", "config": {"model": "gpt-4o-mini", **endpoint}},
    "embedder": {"provider": "openai", "config": {"model": "text-embedding-3-small", "embedding_dims": given["dimensions"], **endpoint}},
    "history_db_path": f"{home}/history.db",
})  # fmt: skip
for text in given["held"]:
    memory.add(text, user_id="user", infer=False)
took = []
for turn in given["turns"]:
    started = time.perf_counter()
    memory.search(turn["messages"][-1]["content"], filters={"user_id": "user"}, limit=10)
    memory.add(turn["messages"][-2:], user_id="user")
    took.append((time.perf_counter() - started) * 1000)
kept = memory.get_all(filters={"user_id": "user"}, top_k=10_000)["results"]
print(json.dumps({"took_ms": took, "kept": len(kept) - len(given["held"])}))
