"""Fixtures of the store's tests."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from memagent.memory import Scope, ScopeKind
from memagent.store.connection import cluster_of
from memagent.store.embedded import EmbeddedRedis
from tests.store.desk import DIMENSIONS, EMBEDDER, Desk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from benchmarks.local_cluster import LocalCluster
    from memagent.store.redis import RedisStore


@pytest.fixture
def desk(store: RedisStore) -> Desk:
    return Desk(store)


@pytest.fixture
def team() -> Scope:
    return Scope(ScopeKind.SHARED, "team")


@pytest.fixture
async def own_redis(tmp_path: Path) -> AsyncIterator[EmbeddedRedis]:
    """A server of this test alone, to count on, to stop and to kill."""
    async with await EmbeddedRedis.open(tmp_path / "redis") as server:
        yield server


@pytest.fixture
async def sharded(cluster: LocalCluster) -> AsyncIterator[RedisStore]:
    """A store on the cluster with a key prefix of its own."""
    from memagent.store.redis import RedisStore

    opened = await RedisStore.open(
        cluster.url, prefix=f"t-{uuid.uuid4().hex[:12]}", embedder_id=EMBEDDER, dimensions=DIMENSIONS
    )
    yield opened
    for client in await cluster_of(opened.client).primaries():
        for name in await client.execute_command("FT._LIST"):
            if name.decode().startswith(f"{opened.prefix}:"):
                await client.execute_command("FT.DROPINDEX", name, "DD")
    await opened.close()
