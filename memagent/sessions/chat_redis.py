"""Chat windows and their histories in Redis: one hash tag per memory, a lock with an end, writes fenced by it."""

from __future__ import annotations

import json
import secrets
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from memagent.errors import BadRequest, Conflict, StoreFault
from memagent.sessions.chat_stores import ChatMemoryStore, entry_from_json, entry_to_json, storage_id
from memagent.sessions.jsonl import encode
from memagent.sessions.locks import IdLocks
from memagent.sessions.message_json import from_json, to_json
from memagent.store.faults import redis_errors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Hashable, Sequence

    from redis.asyncio import Redis

    from memagent.memory import Message
    from memagent.sessions.chat_stores import HistoryEntry

LOCK_S = 30.0
"""A holder that died frees the id after this long; a window is read and written within milliseconds."""
LOCK_POLL_S = 0.005

# A holder whose lock ran out must not write over the one who came after it.
WRITE = """
local owner = redis.call('GET', KEYS[2])
if ARGV[1] ~= '' and owner ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2]) end
return 1
"""


class RedisChatMemoryStore(ChatMemoryStore):
    """Windows shared by every process that uses the same Redis and `prefix`.

    Keys are `<prefix>:chat:{<id>}:` and `w` for the window, `h` for the history, `l` for the lock. Raises
    `StoreUnavailable` when Redis cannot be reached, `StoreFault` for any other refusal or a damaged window.
    """

    def __init__(self, client: Redis, *, prefix: str = "ma", lock_s: float = LOCK_S) -> None:
        self._client = client
        self._prefix = prefix
        self._lock_s = lock_s
        self._here = IdLocks()
        self._tokens: dict[str, str] = {}

    async def get_messages(self, memory_id: Hashable) -> tuple[Message, ...]:
        with redis_errors("reading a chat"):
            found = await self._client.get(self._key(memory_id, "w"))
        try:
            return tuple(from_json(value) for value in json.loads(found)) if found else ()
        except (ValueError, TypeError, BadRequest) as error:
            raise StoreFault(f"the window of {memory_id!r} in Redis cannot be read; clear it") from error

    async def update_messages(self, memory_id: Hashable, messages: Sequence[Message]) -> None:
        await self._write(
            memory_id, b"[" + b",".join(encode(to_json(message)) for message in messages) + b"]"
        )

    async def delete_messages(self, memory_id: Hashable) -> None:
        await self._write(memory_id, b"")

    @asynccontextmanager
    async def lock(self, memory_id: Hashable) -> AsyncIterator[None]:
        key = self._key(memory_id, "l")
        async with self._here.hold(key):
            lock = self._client.lock(key, timeout=self._lock_s, sleep=LOCK_POLL_S, thread_local=False)
            token = secrets.token_hex(16)
            with redis_errors("locking a chat"):
                await lock.acquire(token=token)
            self._tokens[key] = token
            try:
                yield
            finally:
                del self._tokens[key]
                await _released(lock)

    async def append_history(self, memory_id: Hashable, entry: HistoryEntry) -> None:
        with redis_errors("keeping a chat's history"):
            await self._client.rpush(self._key(memory_id, "h"), encode(entry_to_json(entry)))

    async def history(self, memory_id: Hashable) -> tuple[HistoryEntry, ...]:
        with redis_errors("reading a chat's history"):
            found = await self._client.lrange(self._key(memory_id, "h"), 0, -1)
        return tuple(entry_from_json(json.loads(value)) for value in found)

    async def erase_history(self, memory_id: Hashable) -> None:
        with redis_errors("erasing a chat's history"):
            await self._client.delete(self._key(memory_id, "h"))

    async def _write(self, memory_id: Hashable, content: bytes) -> None:
        window, lock = self._key(memory_id, "w"), self._key(memory_id, "l")
        with redis_errors("writing a chat"):
            done = await self._client.eval(WRITE, 2, window, lock, self._tokens.get(lock, ""), content)
        if not done:
            raise Conflict(
                f"the lock of {memory_id!r} ran out after {self._lock_s:g} s; nothing was written: try again"
            )

    def _key(self, memory_id: Hashable, part: str) -> str:
        tag = quote(storage_id(memory_id), safe="", errors="surrogatepass")
        return f"{self._prefix}:chat:{{{tag}}}:{part}"


async def _released(lock: Any) -> None:
    from redis.exceptions import LockNotOwnedError  # noqa: PLC0415  redis loads with its first use

    with redis_errors("unlocking a chat"), suppress(LockNotOwnedError):  # it ran out; writes were fenced
        await lock.release()
