"""A client of all nodes of a Redis Cluster. Loads redis: import it where there is a client already."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ClusterDownError, NoScriptError
from redis.exceptions import ConnectionError as NoConnection

from memagent.store.connection import MAX_CONNECTIONS, connect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redis.asyncio import Redis

    from memagent.store.connection import ClusterAddress

RETRIES = 3
"""Of a call, each after looking anew which node has what: enough for a failover that was asked for, and soon over when there
is no primary."""

MAX_TAG = 1_000_000
"""A node with a single one of all slots has a tag far below."""


class Cluster(RedisCluster):
    """redis-py's client, which finds the node of a key and follows it, with a bound on calls at once.

    Beside it stand plain clients of single nodes (`holder`, `primaries`), for what a key does not lead to. They follow
    nothing: a node that has lost a slot says so.
    """

    def __init__(self, address: ClusterAddress, *, timeout_s: float, connect_timeout_s: float) -> None:
        options: dict[str, Any] = dict(parse_url(address.node(*address.hosts[0])))
        if options.pop("connection_class", None) is SSLConnection:
            options["ssl"] = True
        super().__init__(
            startup_nodes=[ClusterNode(host, port) for host, port in address.hosts[1:]],
            max_connections=2 * MAX_CONNECTIONS,  # redis-py refuses where it should wait: see execute_command
            socket_timeout=timeout_s,
            socket_connect_timeout=connect_timeout_s,
            retry=Retry(NoBackoff(), RETRIES),
            require_full_coverage=False,  # the users of other shards go on
            reinitialize_steps=0,  # it would close connections that others are waiting on
            protocol=2,
            **options,
        )
        self.address = address
        self._limits = {"timeout_s": timeout_s, "connect_timeout_s": connect_timeout_s}
        self._calls = asyncio.Semaphore(MAX_CONNECTIONS)
        self._plain: dict[str, Redis] = {}
        self._tags: dict[Redis, str] = {}

    async def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        async with asyncio.timeout(self._limits["timeout_s"]):
            await self._calls.acquire()
        try:
            return await super().execute_command(*args, **kwargs)
        except AttributeError as error:
            # When a node fails redis-py closes the connections that nobody uses, and one may be taken meanwhile.
            raise NoConnection("a connection was closed under way") from error
        finally:
            self._calls.release()

    def register_script(self, script: Any) -> Any:
        """A script that a node without it gets with the call, and no other node has to be there for."""
        return _Script(super().register_script(script), self)

    async def holder(self, key: str) -> Redis:
        """The primary that has `key`, as far as is known."""
        await self.initialize()
        return self._with(key)

    async def primaries(self) -> list[Redis]:
        """All primaries as they are now."""
        await self.initialize()
        await self.nodes_manager.initialize()
        nodes = self.get_primaries()
        names = {node.name for node in nodes}
        for name in [name for name in self._plain if name not in names]:
            gone = self._plain.pop(name)
            self._tags.pop(gone, None)
            await gone.aclose()
        return [self._of(node) for node in sorted(nodes, key=lambda node: node.name)]

    async def tagged_holder(self, key: str) -> tuple[Redis, str]:
        """The primary that has `key`, and a hash tag of a slot of the same: the first number that is one."""
        client = await self.holder(key)
        if not self._is_at(self._tags.get(client, ""), client):
            # A client that was led elsewhere knows of single slots only; the first number is to be everybody's.
            await self.nodes_manager.initialize()
            client = await self.holder(key)
        return client, self.tag_at(client)

    def tag_at(self, client: Redis) -> str:
        """That tag of a primary, as far as is known."""
        tag = self._tags.get(client, "")
        if not self._is_at(tag, client):
            tag = next((str(number) for number in range(MAX_TAG) if self._is_at(str(number), client)), "")
            if not tag:
                raise ClusterDownError("a node without a slot")
            self._tags[client] = tag
        return tag

    def _is_at(self, tag: str, client: Redis) -> bool:
        return bool(tag) and self._with(f"{{{tag}}}") is client

    def through(self) -> str:
        """URL of this cluster, by a node that answered."""
        node = self.get_default_node()
        return self.address.through(node.host, int(node.port))

    async def hang_up(self) -> None:
        """Close the plain clients. redis-py closes its own part now and then to begin anew, so this stands apart."""
        while self._plain:
            await self._plain.popitem()[1].aclose()

    def _with(self, key: str) -> Redis:
        node = self.get_node_from_key(key)
        if node is None:
            raise ClusterDownError("a slot without a primary")
        return self._of(node)

    def _of(self, node: ClusterNode) -> Redis:
        if node.name not in self._plain:
            self._plain[node.name] = connect(self.address.node(node.host, int(node.port)), **self._limits)
        return self._plain[node.name]


class _Script:
    """Runs by its digest; where that is not known, the text goes along, and nowhere else."""

    def __init__(self, script: Any, cluster: Cluster) -> None:
        self._script = script
        self._cluster = cluster

    async def __call__(self, keys: Sequence[Any] = (), args: Sequence[Any] = (), client: Any = None) -> Any:
        if client is not None:
            return await self._script(keys=keys, args=args, client=client)
        try:
            return await self._cluster.evalsha(self._script.sha, len(keys), *keys, *args)
        except NoScriptError:
            return await self._cluster.eval(self._script.script, len(keys), *keys, *args)
