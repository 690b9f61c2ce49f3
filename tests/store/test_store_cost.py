"""What a turn costs does not grow with what is remembered: commands, written bytes, transferred bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memagent.memory import Scope, ScopeKind
from memagent.store import Limits, SetMemory
from tests.store.desk import EMBEDDER, Desk, at, direction, keys, opened, used

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redis.asyncio import Redis

    from memagent.store.embedded import EmbeddedRedis

MANY = 10_000


@pytest.fixture
async def lone(own_redis: EmbeddedRedis) -> AsyncIterator[Desk]:
    async with opened(own_redis.url, "ma") as store:
        yield Desk(store)


async def remember(desk: Desk, count: int) -> None:
    """One memory at axis 1, all others at axis 2, none at 15."""
    for start in range(0, count, 1000):
        edits = [
            SetMemory(f"m{i}", f"value {i}", 1, vector=direction(2 if i else 1), embedder=EMBEDDER)
            for i in range(start, min(start + 1000, count))
        ]
        await desk.store.apply(desk.scope, edits, limits=Limits(entries=None), now=at(0))


async def calls(client: Redis) -> dict[str, int]:
    stats = await client.info("commandstats")
    return {
        name: row["calls"]
        for name, row in stats.items()
        if name not in {"cmdstat_info", "cmdstat_config|resetstat"}
    }


async def turn(desk: Desk, day: int, about: int) -> tuple[dict[str, int], int, int]:
    """Commands, bytes written to the AOF, and bytes sent back by one recall."""
    client = desk.store.client
    size = (await client.info("persistence"))["aof_current_size"]
    await client.config_resetstat()
    await desk.chat(day, about=about)
    counted = await calls(client)
    sent = (await client.info("stats"))["total_net_output_bytes"]
    written = (await client.info("persistence"))["aof_current_size"] - size
    return counted, written, sent


async def test_a_turn_costs_the_same_with_ten_and_with_ten_thousand_memories(lone: Desk) -> None:
    few = Desk(lone.store, Scope(ScopeKind.USER, "user-with-a-few"))
    many = Desk(lone.store, Scope(ScopeKind.USER, "user-with-many"))
    await remember(few, 60)
    await remember(many, MANY)
    for desk in (few, many):
        await desk.chat(1)
        await desk.chat(1)
    for day, about in ((1, 15), (1, 1), (1, 1), (2, 15)):
        few_calls, few_written, few_sent = await turn(few, day, about)
        many_calls, many_written, many_sent = await turn(many, day, about)
        assert few_calls == many_calls
        assert abs(few_written - many_written) < 200, "names differ in length, nothing else"
        assert abs(few_sent - many_sent) < 2_000


async def test_a_new_day_writes_one_date_whatever_has_to_age(lone: Desk) -> None:
    await remember(lone, 300)
    await lone.unmatched(1)
    counted, _, _ = await turn(lone, 2, 15)
    writes = {
        name: count
        for name, count in counted.items()
        if name in {"cmdstat_hset", "cmdstat_lpush", "cmdstat_zadd"}
    }
    assert writes == {"cmdstat_hset": 1, "cmdstat_lpush": 1}  # the date, and the mark of the prefix
    assert await lone.unused("m7") == 2


async def test_a_turn_that_changes_nothing_writes_nothing_and_sends_no_prefix(lone: Desk) -> None:
    await remember(lone, 100)
    await lone.chat(1)
    await lone.chat(1)
    counted, written, sent = await turn(lone, 1, 15)
    assert written == 0
    assert "cmdstat_zadd" not in counted
    assert sent < 6_000, "ten hits, not a hundred memories"
    assert len(keys(await lone.chat(1))) == 100


async def test_a_match_is_one_entry_and_never_indexes_the_memory_again(lone: Desk) -> None:
    await remember(lone, 100)
    await lone.chat(1)
    counted, _, _ = await turn(lone, 1, 1)
    assert "cmdstat_hset" not in counted
    assert counted["cmdstat_zadd"] == 2 * len(used(await lone.chat(1, about=1)))


async def test_t27_one_recall_of_several_scopes_is_one_round_trip(lone: Desk, team: Scope) -> None:
    """The embedding is the caller's: one vector, one argument of one call."""
    await lone.save("cat")
    await lone.save("shared", scope=team)
    await lone.chat(1)
    client = lone.store.client
    await client.config_resetstat()
    await lone.chat(1, scopes=(lone.scope, team))
    counted = await calls(client)
    assert counted["cmdstat_evalsha"] == 1
    assert counted["cmdstat_FT.SEARCH"] == 2
    assert not {"cmdstat_eval", "cmdstat_script|load", "cmdstat_multi"} & set(counted)


async def test_a_users_recall_does_not_grow_with_other_users(lone: Desk) -> None:
    await remember(lone, 20)
    await lone.chat(1)
    await lone.chat(1)
    alone = await turn(lone, 1, 15)
    await remember(Desk(lone.store, Scope(ScopeKind.USER, "somebody else")), 2000)
    together = await turn(lone, 1, 15)
    assert together[0] == alone[0]
    assert abs(together[2] - alone[2]) < 500, "figures of the server's own account differ in length"


async def test_half_precision_vectors_stand_once_in_a_memory(lone: Desk) -> None:
    await lone.save("cat", axis=1)
    row = await lone.store.client.hgetall("ma:m:{u:alice}u::cat")
    vectors = {name: value for name, value in row.items() if name.startswith(b"v_")}
    assert [len(value) for value in vectors.values()] == [2 * 16]
