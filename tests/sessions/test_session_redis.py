"""Chats and session rows in Redis: L33 to L39, L52, V58 and O33 to O36 on a real server."""

from __future__ import annotations

import asyncio
import threading
import uuid
from typing import TYPE_CHECKING

import pytest

from memagent.errors import Conflict, StoreFault, StoreUnavailable
from memagent.sessions.chat_memory import MessageWindowChatMemory
from memagent.sessions.chat_redis import RedisChatMemoryStore
from memagent.sessions.entry import SessionEntry
from memagent.sessions.registry import RedisRegistry
from memagent.store.connection import connect
from tests.sessions.chat_cases import ai, call, result, system, user
from tests.sessions.session_cases import KEY, START, Clock, desk, texts, turn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from redis.asyncio import Redis


@pytest.fixture
def prefix() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture
async def client(redis_url: str, prefix: str) -> AsyncIterator[Redis]:
    opened = connect(redis_url)
    yield opened
    async for key in opened.scan_iter(match=f"{prefix}:*", count=1_000):
        await opened.unlink(key)
    await opened.aclose()


@pytest.fixture
def chats(client: Redis, prefix: str) -> RedisChatMemoryStore:
    return RedisChatMemoryStore(client, prefix=prefix)


async def test_l37_a_window_in_redis_is_read_as_it_was_written(
    chats: RedisChatMemoryStore, client: Redis, prefix: str
) -> None:
    assert await chats.get_messages("id") == ()
    assert not await client.keys(f"{prefix}:*")
    window = (system("S"), user("xin chào \ud800"), call("1"), result("1"), ai("größer"))
    await chats.update_messages("id", window)
    assert await chats.get_messages("id") == window
    await chats.delete_messages("id")
    await chats.delete_messages("id")
    assert await chats.get_messages("id") == ()


async def test_ids_that_only_look_alike_are_kept_apart_in_redis(chats: RedisChatMemoryStore) -> None:
    ids = [1, "1", True, 1.0, "a}b", "a%7Db", "{a}", "ada", "Ada", "", " ", "ä:l", "\ud800"]
    for at, each in enumerate(ids):
        await chats.update_messages(each, [user(str(at))])
    assert [(await chats.get_messages(each))[0].content for each in ids] == [
        str(at) for at in range(len(ids))
    ]


async def test_l34_the_history_in_redis_holds_what_left_the_window(chats: RedisChatMemoryStore) -> None:
    memory = MessageWindowChatMemory(max_messages=2, id="id", store=chats)
    await memory.add(user("a"), ai("b"), user("c"))
    await memory.clear()
    assert await memory.messages() == ()
    assert await memory.history() == (user("a"), ai("b"), user("c"))
    await memory.erase()
    assert await memory.history() == ()


def test_v58_ten_threads_add_to_one_memory_in_redis_and_none_is_lost(redis_url: str, prefix: str) -> None:
    async def add(thread: int) -> None:
        client = connect(redis_url)
        memory = MessageWindowChatMemory(
            max_messages=5_000, id="one", store=RedisChatMemoryStore(client, prefix=prefix)
        )
        for at in range(10):
            await memory.add(user(f"{thread}.{at}"))
        await client.aclose()

    threads = [threading.Thread(target=lambda n=n: asyncio.run(add(n))) for n in range(10)]  # type: ignore[misc]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def read() -> tuple[int, int]:
        client = connect(redis_url)
        memory = MessageWindowChatMemory(
            max_messages=5_000, id="one", store=RedisChatMemoryStore(client, prefix=prefix)
        )
        found = {message.content for message in await memory.messages()}, await memory.history()
        async for key in client.scan_iter(match=f"{prefix}:*"):
            await client.unlink(key)
        await client.aclose()
        return len(found[0]), len(found[1])

    assert asyncio.run(read()) == (100, 100)


async def test_l39_many_tasks_on_one_memory_in_redis_lose_and_mix_nothing(
    chats: RedisChatMemoryStore,
) -> None:
    memory = MessageWindowChatMemory(max_messages=1_000, id=7, store=chats)
    await asyncio.gather(*(memory.add(call(str(n)), result(str(n))) for n in range(20)))
    window = await memory.messages()
    assert all(window[at].tool_calls[0].id == window[at + 1].tool_call_id for at in range(0, 40, 2))


async def test_l39_who_lost_the_lock_cannot_write_over_who_has_it_now(client: Redis, prefix: str) -> None:
    slow, quick = RedisChatMemoryStore(client, prefix=prefix), RedisChatMemoryStore(client, prefix=prefix)
    async with slow.lock("id"):
        await client.delete(slow._key("id", "l"))  # as if its time had run out
        async with quick.lock("id"):
            await quick.update_messages("id", [user("quick")])
            with pytest.raises(Conflict, match="ran out"):
                await slow.update_messages("id", [user("slow")])
    assert await quick.get_messages("id") == (user("quick"),)
    await slow.update_messages("id", [user("later")])
    assert await quick.get_messages("id") == (user("later"),)


async def test_a_damaged_window_in_redis_is_not_taken_for_empty(
    chats: RedisChatMemoryStore, client: Redis
) -> None:
    for damage in (b"{", b"7", b'[{"type":"ALIEN"}]'):
        await client.set(chats._key("id", "w"), damage)
        with pytest.raises(StoreFault, match="'id'"):
            await chats.get_messages("id")


async def test_a_redis_that_is_away_is_an_outage_of_the_store(prefix: str) -> None:
    away = connect("redis://127.0.0.1:1/0")
    memory = MessageWindowChatMemory(max_messages=2, store=RedisChatMemoryStore(away, prefix=prefix))
    with pytest.raises(StoreUnavailable):
        await memory.add(user("a"))
    with pytest.raises(StoreUnavailable):
        await memory.messages()
    with pytest.raises(StoreUnavailable):
        await RedisRegistry(away, agent="main", prefix=prefix).load()
    await away.aclose()


# -- session rows ------------------------------------------------------------------------------------------------------


async def test_o34_concurrent_patches_in_redis_all_survive(client: Redis, prefix: str) -> None:
    rows = RedisRegistry(client, agent="main", prefix=prefix)
    await rows.patch("Shared", lambda _: SessionEntry(session_id="s", updated_at=START))

    def one_more(row: SessionEntry | None) -> SessionEntry | None:
        return row.model_copy(update={"compaction_count": row.compaction_count + 1}) if row else None

    await asyncio.gather(*(rows.patch("shared", one_more) for _ in range(20)))
    found = await rows.get("SHARED")
    assert found is not None
    assert found.compaction_count == 20
    assert await rows.load() == {"shared": found}
    assert await rows.patch("shared", lambda _: None) is None
    assert await rows.load() == {}


async def test_agents_rows_in_redis_are_apart(client: Redis, prefix: str) -> None:
    ours, theirs = (RedisRegistry(client, agent=each, prefix=prefix) for each in ("ops", "main"))
    await ours.patch("k", lambda _: SessionEntry(session_id="s", updated_at=START))
    assert await theirs.load() == {}
    assert await RedisRegistry(client, agent=" OPS ", prefix=prefix).load() == await ours.load()


async def test_o35_a_row_in_redis_that_cannot_be_read_hides_no_other(client: Redis, prefix: str) -> None:
    rows = RedisRegistry(client, agent="main", prefix=prefix)
    await rows.patch("good", lambda _: SessionEntry(session_id="s", updated_at=START))
    await client.hset(rows._key, "bad", b"{")
    assert list(await rows.load()) == ["good"]
    assert await rows.get("bad") is None
    await rows.patch("bad", lambda _: SessionEntry(session_id="t", updated_at=START))
    assert sorted(await rows.load()) == ["bad", "good"]


async def test_o36_sessions_whose_rows_are_in_redis_survive_a_restart(
    client: Redis, prefix: str, tmp_path: Path
) -> None:
    before = desk(tmp_path, registry=RedisRegistry(client, agent="main", prefix=prefix))
    first = await turn(before, "hello")
    await before.receive(KEY, "/new again")
    clock = Clock()
    after = desk(tmp_path, clock, registry=RedisRegistry(client, agent="main", prefix=prefix))
    assert await texts(after) == ["again"]
    row = await after.registry.get(KEY)
    assert row is not None
    assert row.parent_session_id == first
    assert not (tmp_path / "sessions.json").exists()
