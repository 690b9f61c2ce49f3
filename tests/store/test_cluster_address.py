"""Which Redis is meant: URLs of clusters, nodes that turn out to be in one, and what is said where it cannot be."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from benchmarks.local_cluster import LocalCluster, free_ports
from memagent.errors import BadRequest, StoreFault, StoreUnavailable
from memagent.memory import Scope, ScopeKind
from memagent.sessions.vectors.address import open_vectors
from memagent.store.connection import ClusterAddress, cluster_of, connect, dial, hang_up
from memagent.store.connection import at as holder_of
from memagent.store.embedded import find_binaries
from memagent.store.index import Index
from memagent.store.redis import RedisStore
from memagent.store.shards import Shards
from tests.store.desk import DIMENSIONS, EMBEDDER, Desk, at, direction, found_again, near, used

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("cluster")

TEAM = Scope(ScopeKind.SHARED, "team")


@pytest.mark.parametrize(
    ("url", "hosts", "node"),
    [
        ("redis+cluster://a", (("a", 6379),), "redis://b:7/0"),
        ("redis+cluster://a:1,b:2,c", (("a", 1), ("b", 2), ("c", 6379)), "redis://b:7/0"),
        ("redis://a:1/0", (("a", 1),), "redis://b:7/0"),
        (
            "rediss+cluster://me:s%40:x@a:1/?ssl_cert_reqs=none",
            (("a", 1),),
            "rediss://me:s%40:x@b:7/0?ssl_cert_reqs=none",
        ),
        ("redis+cluster://:p@ss@a:1,[::1]:2", (("a", 1), ("::1", 2)), "redis://:p@ss@b:7/0"),
    ],
)
def test_a_clusters_url_names_some_nodes_and_how_to_speak_to_all(
    url: str, hosts: tuple[tuple[str, int], ...], node: str
) -> None:
    address = ClusterAddress.of(url)
    assert address.hosts == hosts
    assert address.node("b", 7) == node
    assert ClusterAddress.of(address.through("::1", 7)).hosts == (("::1", 7),)


@pytest.mark.parametrize(
    "url", ["unix:///run/redis.sock", "redis+cluster://", "redis+cluster://a:b", "redis+cluster://a,,b"]
)
def test_what_is_no_address_of_a_cluster_is_refused(url: str) -> None:
    with pytest.raises(BadRequest):
        ClusterAddress.of(url)


async def test_a_plain_url_of_any_node_finds_the_whole_cluster(cluster: LocalCluster) -> None:
    for node in cluster.nodes:
        client = await dial(f"redis://127.0.0.1:{node.port}/0")
        found = cluster_of(client)
        assert found is not None
        assert len(await found.primaries()) == 3
        await hang_up(client)


async def test_one_node_that_answers_is_enough(cluster: LocalCluster) -> None:
    store = await RedisStore.open(f"redis+cluster://127.0.0.1:1,127.0.0.1:{cluster.nodes[1].port}")
    assert store.url.startswith("redis+cluster://127.0.0.1:")
    await store.close()


async def test_a_single_server_stays_one(redis_url: str) -> None:
    client = await dial(redis_url)
    assert cluster_of(client) is None
    await hang_up(client)


async def test_a_cluster_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable):
        await dial("redis+cluster://127.0.0.1:1", connect_timeout_s=0.5)


async def test_a_single_server_called_a_cluster_is_told_as_what_it_is(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    options = ("--port", str(port), "--save", "", "--dir", str(tmp_path), "--logfile", "redis.log")
    server = await asyncio.create_subprocess_exec(str(find_binaries().server), *options)
    try:
        while True:
            try:
                client = await dial(f"redis://127.0.0.1:{port}")
            except StoreUnavailable:
                await asyncio.sleep(0.02)
            else:
                break
        assert cluster_of(client) is None
        await hang_up(client)
        with pytest.raises(StoreFault, match="is no cluster"):
            await dial(f"redis+cluster://127.0.0.1:{port}")
    finally:
        server.kill()
        await server.wait()


async def test_a_node_that_is_asked_for_what_it_has_not_says_how_to_reach_the_whole(
    cluster: LocalCluster,
) -> None:
    client = connect(f"redis://127.0.0.1:{(await cluster.holder('{u:alice}')).port}")
    store = RedisStore(client, prefix="t-lost", index=None)

    async def ask_of_many() -> None:
        for number in range(20):
            await store.totals(Scope(ScopeKind.USER, f"user{number}"))

    with pytest.raises(StoreFault, match=r"redis\+cluster://"):
        await ask_of_many()
    await store.close()


def test_passages_on_a_cluster_are_refused_with_what_to_do() -> None:
    with pytest.raises(BadRequest, match="MEMAGENT_VECTORS"):
        open_vectors("redis+cluster://127.0.0.1:7000")


async def test_the_doctor_sees_every_shard(sharded: RedisStore, cluster: LocalCluster) -> None:
    await sharded.unsearched(None, EMBEDDER)  # which waits until every shard's index is built
    found = {probe.name: probe for probe in await sharded.health(now=at(0))}
    assert found["cluster"].verdict == "ok"
    assert found["cluster"].found == "3 shards, 3 replicas"
    assert found["index"].verdict == "ok"
    node = await cluster.holder("{0}")
    await node.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        found = {probe.name: probe for probe in await sharded.health(now=at(0))}
        assert found["eviction"].verdict == "failed"
        assert "shard" in found["eviction"].found
    finally:
        await node.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")


# -- an engine with a coordinator: one index for all shards, asked of any node ---------------------------------------------


@pytest.fixture
async def coordinated(tmp_path: Path) -> AsyncIterator[RedisStore]:
    """Our engine has no coordinator. On one shard that has every slot it does what one with it does on several."""
    one = LocalCluster(tmp_path, primaries=1, replicas=0)
    await one.start()
    client = await dial(one.url)
    cluster = cluster_of(client)
    assert cluster is not None
    index = Index("t", EMBEDDER, DIMENSIONS)
    shards = await Shards.open(cluster, index, coordinated=True)
    store = RedisStore(client, prefix="t", index=index, shards=shards)
    yield store
    await store.close()
    one.stop()


async def test_with_a_coordinator_there_is_one_index_and_it_is_made_again_where_it_is_missed(
    coordinated: RedisStore,
) -> None:
    desk = Desk(coordinated)
    await desk.save("mine", vector=near(0.7, 1), terms=("tea",))
    await desk.save("ours", vector=near(0.9, 1), scope=TEAM)
    await desk.save("bare", axis=None)
    scopes = (desk.scope, TEAM)
    found = await desk.chat(1, vector=direction(0), scopes=scopes, terms=("tea",))
    assert (used(found), found.searched) == (["ours", "mine"], True)
    assert [each.key for each in await coordinated.unsearched(None, EMBEDDER)] == ["bare"]
    server = await holder_of(coordinated.client, "t")
    names = await server.execute_command("FT._LIST")
    assert names == [coordinated.index.name.encode()]  # type: ignore[union-attr]
    await server.execute_command("FT.DROPINDEX", names[0])
    assert used(await found_again(desk, scopes=scopes)) == ["ours", "mine"]
