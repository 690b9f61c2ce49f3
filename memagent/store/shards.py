"""The search index on a cluster, and searches that go to the shard of a user.

There are two kinds of query engine. One without a coordinator knows its own shard only and takes an index's name for a key: every
shard has an index of its own then, under a name whose tag is in one of its slots. All memories of a user are in one shard, so
one shard's answer is the whole one. One with a coordinator (Redis 8) has one index over all shards, and whichever node is asked
asks all of them.

An index that is missing is made where it is missed: on a shard that is new, or on one that gave away the slot of its index's name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from redis import exceptions

from memagent.errors import EngineMissing
from memagent.store.faults import NO_ENGINE, NO_INDEX, redis_errors
from memagent.store.index import ensure
from memagent.store.trips import INDEX, VECTOR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from redis.asyncio import Redis

    from memagent.store.cluster import Cluster
    from memagent.store.index import Index

ATTEMPTS = 3
"""Of a search whose shard turns out to be another, or to have no index yet."""


class Shards:
    """The index of one embedder on every shard; `open` makes sure of it."""

    def __init__(self, cluster: Cluster, index: Index, *, coordinated: bool) -> None:
        self._cluster = cluster
        self._index = index
        self._coordinated = coordinated

    @classmethod
    async def open(cls, cluster: Cluster, index: Index, *, coordinated: bool | None = None) -> Shards:
        """Raises `StoreUnavailable`, `EngineMissing` or `IndexDrift`. `coordinated` None asks the server."""
        if coordinated is None:
            coordinated = await _coordinated(cluster)
        shards = cls(cluster, index, coordinated=coordinated)
        await shards.parts()
        return shards

    async def parts(self) -> list[tuple[Redis, Index]]:
        """Each index, made if it was missing, with a server to ask it: one per shard, or one over all."""
        with redis_errors("looking for the shards"):
            primaries = await self._cluster.primaries()
            asked = primaries[:1] if self._coordinated else primaries
            found = [(client, self.index_at(client)) for client in asked]
        for client, index in found:
            await ensure(client, index)
        return found

    async def search(self, key: str, commands: Mapping[str, Sequence[Any]], vector: bytes) -> dict[str, Any]:
        """The answers to commands about memories in the slot of `key`, in one trip."""
        for left in reversed(range(ATTEMPTS)):
            with redis_errors("recalling"):
                client, tag = await self._cluster.tagged_holder(key)
                index = self._index if self._coordinated else replace(self._index, tag=tag)
                said = {INDEX: index.name, VECTOR: vector}
                try:
                    async with client.pipeline(transaction=False) as pipeline:
                        for command in commands.values():
                            pipeline.execute_command(*(said.get(part, part) for part in command))
                        return dict(zip(commands, await pipeline.execute(), strict=True))
                except exceptions.MovedError as error:
                    if not left:
                        raise exceptions.ClusterError("the shard keeps changing") from error
                    await self._cluster.exists(index.name)  # which makes the client look for itself
                except exceptions.ConnectionError:
                    if not left:
                        raise
                    await self._cluster.exists(key)  # likewise: another may lead there by now
                except exceptions.ResponseError as error:
                    if not left or not any(sign in str(error) for sign in NO_INDEX):
                        raise
                    await ensure(client, index, missed=True)
        raise AssertionError("the last attempt answers or raises")

    def index_at(self, client: Redis) -> Index:
        """The index that a primary answers from."""
        return self._index if self._coordinated else replace(self._index, tag=self._cluster.tag_at(client))


async def _coordinated(cluster: Cluster) -> bool:
    """Whether the query engine looks beyond its own shard: then the name of an index is no key."""
    with redis_errors("looking at the query engine"):
        asked: Any = (await cluster.primaries())[0].execute_command("COMMAND INFO", "FT.SEARCH")  # type: ignore[no-untyped-call]
        (found,) = await asked
    if not found:
        raise EngineMissing(f"looking at the query engine: {NO_ENGINE}")
    return int(found[3]) == 0
