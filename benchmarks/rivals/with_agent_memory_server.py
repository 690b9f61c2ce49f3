"""The conversation through Redis' agent-memory-server: search before the answer, working memory after it, by its own client.

Its API server runs beside this process with asyncio tasks, as its README starts it for one machine. What a session says is
learned after a pause, 30 s by default and here the shortest it takes, 1 s; its answer comes before that. So a turn is timed until
what was said stands in the search index, and that pause is taken off.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contender import OURS, Learned, play

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent_memory_client import MemoryAPIClient
    from redis.asyncio import Redis

PAUSE_S = 1
TAIL_S = 0.15
"""Topics and entities of what was learned come after it can be found; a chat's next turn is later than that."""
PATIENCE_S = 20
START_S = 60


class WithAgentMemoryServer:
    def __init__(self, client: MemoryAPIClient, redis: Redis, given: dict[str, Any]) -> None:
        self.client, self.redis, self.given = client, redis, given
        self.filling = AsyncExitStack()
        self.filler: MemoryAPIClient | None = None

    async def count(self, user: str) -> int:
        """How many of a user's memories its index holds."""
        return int((await self._index(user, "LIMIT", 0, 0))[0])

    async def _index(self, user: str, *rest: str | int) -> list[Any]:
        """What the index says of a user; straight from Redis, so that asking costs its server nothing."""
        asked = ("FT.SEARCH", "memory_records", f"@user_id:{{{user}}}", *rest)
        try:
            return list(await self.redis.execute_command(*asked, "PARAMS", 2, "note", OURS, "DIALECT", 2))
        except Exception as error:
            if "no such index" in str(error).lower():  # it is made with the first memory
                return [0]
            raise

    async def found(self, user: str, number: int, patience_s: float) -> bool:
        """Whether the index comes to hold that many within the time."""
        deadline = time.perf_counter() + patience_s
        while await self.count(user) < number:
            if time.perf_counter() > deadline:
                return False
            await asyncio.sleep(0.002)
        return True

    async def fill(self, user: str, texts: list[str]) -> None:
        from agent_memory_client.models import ClientMemoryRecord

        if self.filler is None:
            self.filler = await self.filling.enter_async_context(
                client_of(self.given, ENABLE_TOPIC_EXTRACTION="false", ENABLE_NER="false")
            )
        wanted = await self.count(user) + len(texts)
        held = [
            ClientMemoryRecord(text=text, user_id=user, memory_type="semantic", discrete_memory_extracted="t")
            for text in texts
        ]
        await self.filler.create_long_term_memory(held, deduplicate=False)
        if not await self.found(user, wanted, PATIENCE_S):
            raise RuntimeError(f"it stored {await self.count(user)} of {wanted} memories to begin with")

    async def search(self, user: str, turn: str, messages: list[dict[str, str]]) -> Any:  # noqa: ARG002
        return await self.client.search_long_term_memory(
            messages[-1]["content"], user_id={"eq": user}, limit=10
        )

    async def learn(self, user: str, turn: str, messages: list[dict[str, str]]) -> Learned:
        from agent_memory_client.models import MemoryMessage, WorkingMemory

        before = await self.count(user)
        said = [MemoryMessage(role=each["role"], content=each["content"]) for each in messages]
        started = time.perf_counter()
        await self.client.put_working_memory(
            turn, WorkingMemory(session_id=turn, user_id=user, messages=said)
        )
        answered = (time.perf_counter() - started) * 1000
        await asyncio.sleep(PAUSE_S)
        kept = await self.found(user, before + 1, PATIENCE_S)
        return Learned(answered, PAUSE_S * 1000, not kept)

    async def settle(self) -> None:
        await self.filling.aclose()
        await asyncio.sleep(TAIL_S)

    async def texts(self, user: str) -> list[str]:
        """From the index: pages of its own listing have no order, so that some memories come twice and others never."""
        found = await self._index(user, "RETURN", 1, "text", "LIMIT", 0, 10_000)
        return [fields[1].decode() for fields in found[2::2]]


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@asynccontextmanager
async def client_of(given: dict[str, Any], **settings: str) -> AsyncIterator[MemoryAPIClient]:
    """A client of an API server of its own on loopback, ready to answer."""
    from agent_memory_client import MemoryAPIClient, MemoryClientConfig

    port = free_port()
    environ = {
        **os.environ,
        "REDIS_URL": given["redis_url"],
        "OPENAI_API_KEY": "key",
        "OPENAI_API_BASE": given["base_url"],
        "OPENAI_BASE_URL": given["base_url"],
        "GENERATION_MODEL": "gpt-4o-mini",
        "FAST_MODEL": "gpt-4o-mini",
        "SLOW_MODEL": "gpt-4o-mini",
        # By this name it takes the number of dimensions from the settings; it does not ask the endpoint for a number.
        "EMBEDDING_MODEL": "openai/text-embedding-3-small",
        "REDISVL_VECTOR_DIMENSIONS": str(given["dimensions"]),
        "DISABLE_AUTH": "true",
        # Both would be downloads; litellm's wheel holds a copy of each.
        "LITELLM_LOCAL_MODEL_COST_MAP": "true",
        "TIKTOKEN_CACHE_DIR": str(tokenizers()),
        "EXTRACTION_DEBOUNCE_SECONDS": str(PAUSE_S),
        # The invented sentences are much alike to a hashed embedder: merging them is not what is measured.
        "DEDUPLICATION_DISTANCE_THRESHOLD": "0.02",
        "LOG_LEVEL": "WARNING",
        **settings,
    }
    command = (str(Path(sys.executable).with_name("agent-memory")), "api", "--task-backend=asyncio")
    with tempfile.NamedTemporaryFile(prefix="bench-agent-memory-server-") as log:
        process = await asyncio.create_subprocess_exec(
            *command, "--host", "127.0.0.1", "--port", str(port), env=environ, stdout=log, stderr=log
        )
        try:
            await ready(process, port)
            async with MemoryAPIClient(MemoryClientConfig(base_url=f"http://127.0.0.1:{port}")) as client:
                yield client
        except Exception as error:
            raise RuntimeError(f"{error}; its server said at last: {last_words(log.name)}") from error
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
                await process.wait()


async def ready(process: asyncio.subprocess.Process, port: int) -> None:
    """Return when the server answers; raises `RuntimeError` when it stopped, `TimeoutError` when it takes too long."""
    async with asyncio.timeout(START_S):
        while not await answers(port):
            if process.returncode is not None:
                raise RuntimeError("it does not start")
            await asyncio.sleep(0.1)


def tokenizers() -> Path:
    package = find_spec("litellm")
    return Path(package.origin).parent / "litellm_core_utils" / "tokenizers" if package else Path()


def last_words(log: str) -> str:
    """The last line of a log that names an error, or else the last."""
    lines = [line.strip() for line in Path(log).read_text(errors="replace").splitlines() if line.strip()]
    return ([line for line in lines if "Error" in line] or lines or ["nothing"])[-1]


async def answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


@asynccontextmanager
async def opened(given: dict[str, Any]) -> AsyncIterator[WithAgentMemoryServer]:
    from redis.asyncio import Redis

    redis = Redis.from_url(given["redis_url"], protocol=2)
    async with client_of(given) as client, redis:
        yield WithAgentMemoryServer(client, redis, given)


play(opened)
