"""Fixtures of the whole suite: no network but loopback."""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from benchmarks.local_cluster import LocalCluster
    from memagent.store.redis import RedisStore

LOOPBACK = ("127.", "::1", "localhost")


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not str(address[0]).startswith(LOOPBACK):
            raise OSError(f"the network is off in tests: {address[0]}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One embedded Redis for all workers of this run."""
    from memagent.store.embedded import EmbeddedRedis

    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    server = asyncio.run(EmbeddedRedis.open(shared / "redis"))
    yield server.url
    asyncio.run(server.close())


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three shards, each with a replica. Tests that use it belong to the group of one worker, so that it is started once."""
    from benchmarks.local_cluster import LocalCluster

    started = asyncio.run(LocalCluster(tmp_path_factory.mktemp("cluster")).start())
    yield started
    started.stop()


EMBEDDER = "test-embedder"
DIMENSIONS = 16


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisStore]:
    """A store with a key prefix and an index of its own, gone afterwards."""
    from memagent.store.redis import RedisStore

    prefix = f"t-{uuid.uuid4().hex[:12]}"
    opened = await RedisStore.open(redis_url, prefix=prefix, embedder_id=EMBEDDER, dimensions=DIMENSIONS)
    yield opened
    client = opened.client
    for name in await client.execute_command("FT._LIST"):
        if name.decode().startswith(f"{prefix}:"):
            await client.execute_command("FT.DROPINDEX", name)
    async for key in client.scan_iter(match=f"{prefix}:*", count=1000):
        await client.unlink(key)
    await opened.close()
