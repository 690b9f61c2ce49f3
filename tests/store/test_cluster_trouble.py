"""What goes wrong on a cluster: failovers, shards without their index, slots that move, nodes that are away."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from redis.asyncio.cluster import RedisCluster

from memagent.errors import StoreUnavailable
from memagent.memory import Scope, ScopeKind
from memagent.store.connection import at as holder_of
from tests.store.desk import Desk, direction, found_again, near, used

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from benchmarks.local_cluster import LocalCluster, Node
    from memagent.store import Recalled
    from memagent.store.redis import RedisStore

pytestmark = [
    pytest.mark.xdist_group("cluster"),
    # redis-py leaves connections to a node that died to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ALICE = Scope(ScopeKind.USER, "alice")
SLOT = "{u:alice}"


@pytest.fixture
def store(sharded: RedisStore) -> RedisStore:
    return sharded


async def insisted(desk: Desk, number: int) -> int:
    """Hand one message over until it is taken, as a worker does; how often that was refused."""
    refused = 0
    while True:
        try:
            await desk.save(
                f"m{number}", value=f"words {number}", vector=near(0.9, 1), message_id=f"m{number}"
            )
        except StoreUnavailable:
            refused += 1
            await asyncio.sleep(0.05)
        else:
            return refused


async def sooner_or_later(ask: Callable[[], Awaitable[Any]]) -> Any:
    """An answer, once the nodes agree on who leads: until then a call may be refused."""
    for _ in range(200):
        with suppress(StoreUnavailable):
            return await ask()
        await asyncio.sleep(0.05)
    return await ask()


async def kept_once(desk: Desk, turns: int) -> None:
    """Every acknowledged message was applied once, and the index of whoever leads now finds it."""

    async def asked() -> Recalled:
        return await desk.chat(0, vector=direction(0), used=turns, hits=turns, candidates=turns)

    assert await sooner_or_later(desk.keys) == {f"m{number}" for number in range(turns)}
    changes = await sooner_or_later(lambda: desk.store.history(ALICE, limit=1_000))
    assert len(changes) == turns
    found = await sooner_or_later(asked)
    assert (found.searched, len(used(found))) == (True, turns)


async def test_a_failover_that_is_asked_for_loses_nothing_and_refuses_nothing(
    store: RedisStore, cluster: LocalCluster
) -> None:
    desk = Desk(store)
    saved = [await insisted(desk, number) for number in range(10)]

    async def go_on() -> list[int]:
        return [await insisted(desk, number) for number in range(10, 40)]

    going = asyncio.create_task(go_on())
    old, new = await cluster.hand_over(SLOT)
    assert saved + await going == [0] * 40
    assert await cluster.holder(SLOT) is new is not old
    await kept_once(desk, 40)


async def test_after_a_primary_was_killed_its_replica_has_what_reached_it_and_writes_go_on(
    store: RedisStore, cluster: LocalCluster
) -> None:
    """Replication is asynchronous: what is certain to survive is what `WAIT` saw on the replica."""
    desk = Desk(store)
    for number in range(10):
        await insisted(desk, number)
    server = await holder_of(store.client, SLOT)
    async with server.pipeline(transaction=False) as pipeline:
        pipeline.set(f"probe{SLOT}", 1)
        pipeline.wait(1, 5_000)
        assert (await pipeline.execute())[1] == 1
    async with cluster.without(SLOT):
        with pytest.raises(StoreUnavailable):
            await desk.chat(0)
        assert await insisted(desk, 10) > 0
        for number in range(11, 15):
            await insisted(desk, number)
        await kept_once(desk, 15)
    await kept_once(desk, 15)


async def test_users_of_other_shards_notice_nothing_of_a_failover(
    store: RedisStore, cluster: LocalCluster
) -> None:
    desk, others = Desk(store), [Desk(store, Scope(ScopeKind.USER, f"user{number}")) for number in range(12)]
    lost = await cluster.holder(SLOT)
    away = [each for each in others if await cluster.holder(f"{{u:{each.scope.owner}}}") is not lost]
    for each in (desk, *away):
        await each.save("tea", vector=near(0.9, 1))
    async with cluster.without(SLOT):
        for each in away:
            assert used(await each.chat(1, vector=direction(0))) == ["tea"]


async def test_a_connection_that_the_client_closed_under_way_is_an_outage_and_no_bug(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def closed(*_: Any, **__: Any) -> None:
        raise AttributeError("'NoneType' object has no attribute 'writelines'")

    monkeypatch.setattr(RedisCluster, "execute_command", closed)
    with pytest.raises(StoreUnavailable):
        await store.list(ALICE)


async def index_of(store: RedisStore, key: str) -> tuple[Any, str]:
    """The server of a key, and the name of its index there."""
    server = await holder_of(store.client, key)
    names = await server.execute_command("FT._LIST")
    (name,) = (name.decode() for name in names if name.decode().startswith(f"{store.prefix}:"))
    return server, name


async def test_a_shard_without_its_index_makes_it_and_answers(store: RedisStore) -> None:
    desk = Desk(store)
    await desk.save("tea", vector=near(0.9, 1))
    server, name = await index_of(store, SLOT)
    await server.execute_command("FT.DROPINDEX", name)
    assert used(await found_again(desk)) == ["tea"]


async def test_when_the_slot_of_an_indexs_name_moves_its_shard_gets_another(
    store: RedisStore, cluster: LocalCluster
) -> None:
    desk = Desk(store)
    await desk.save("tea", vector=near(0.9, 1))
    _, name = await index_of(store, SLOT)
    tag = name[name.index("{") :]
    elsewhere = await another(cluster)
    old = await cluster.move(tag, elsewhere)
    try:
        assert used(await found_again(desk)) == ["tea"]
    finally:
        await cluster.move(tag, old)


async def test_a_user_who_moves_to_another_shard_is_found_there(
    store: RedisStore, cluster: LocalCluster
) -> None:
    desk = Desk(store)
    await desk.save("tea", vector=near(0.9, 1), terms=("tea",))
    await desk.chat(1, vector=direction(0))
    old = await cluster.holder(SLOT)
    elsewhere = await another(cluster)
    await cluster.move(SLOT, elsewhere)
    try:
        found = await desk.chat(2, vector=direction(0), terms=("tea",))
        assert (used(found), found.searched) == (["tea"], True)
        assert (await store.get(ALICE, "tea")) is not None
    finally:
        await cluster.move(SLOT, old)


async def another(cluster: LocalCluster) -> Node:
    """A primary of another shard than Alice's."""
    hers = await cluster.holder(SLOT)
    for number in count():
        other = await cluster.holder(f"{{{number}}}")
        if other is not hers:
            return other
    raise AssertionError
