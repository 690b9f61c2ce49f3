"""Connections to Redis: bounded in number, in time, and in how often a call is tried. One server, or a cluster of several."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, cast

from memagent.errors import BadRequest
from memagent.store.faults import redis_errors

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from memagent.store.cluster import Cluster

TIMEOUT_S = 5.0
"""For one call: longer than any of ours takes on a healthy server, shorter than a person waits."""

CONNECT_TIMEOUT_S = 2.0

MAX_CONNECTIONS = 64
"""Per process and server; more calls than this at once wait their turn."""

UNREADABLE = "the Redis URL cannot be read: it looks like redis://host:6379/0, redis+cluster://host:6379,… or unix:///path"


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """`redis+cluster://user:password@host:port,host:port?options`, with `rediss` for TLS. Any node will do."""

    scheme: str
    credentials: str
    hosts: tuple[tuple[str, int], ...]
    options: str = ""

    @classmethod
    def of(cls, url: str) -> Self:
        """Read it; a plain URL of one node is the address of its cluster too. Raises `BadRequest`."""
        found = re.fullmatch(r"(rediss?)(?:\+cluster)?://(?:(.*)@)?([^/?@]+)(?:/\d*)?(\?.*)?", url)
        if found is None:
            raise BadRequest(
                "a Redis Cluster is reached over the network: give redis+cluster://host:port of one node or several"
            )
        scheme, credentials, names, options = found.groups("")
        hosts = (re.fullmatch(r"(\[[^\]]+\]|[^:\[\]]+)(?::(\d+))?", name) for name in names.split(","))
        named = tuple((host[1].strip("[]"), int(host[2] or "6379")) for host in hosts if host)
        if len(named) != names.count(",") + 1:
            raise BadRequest(UNREADABLE)
        return cls(scheme, f"{credentials}@" if credentials else "", named, options)

    def node(self, host: str, port: int) -> str:
        """Plain URL of one node."""
        return f"{self.scheme}://{self.credentials}{_host(host)}:{port}/0{self.options}"

    def through(self, host: str, port: int) -> str:
        """URL of the cluster with one node to enter by."""
        return f"{self.scheme}+cluster://{self.credentials}{_host(host)}:{port}/0{self.options}"


def is_cluster(url: str) -> bool:
    """Whether a URL says that a cluster is there."""
    return url.startswith(("redis+cluster://", "rediss+cluster://"))


def connect(url: str, *, timeout_s: float = TIMEOUT_S, connect_timeout_s: float = CONNECT_TIMEOUT_S) -> Redis:
    """Return a client with a bounded pool, a timeout on every call, and one retry: every write of ours may be repeated.

    It is for one server, and for `redis+cluster://` a `Cluster` of all its nodes.

    Only a connection that broke is tried again. A call that ran out of time had all of it: another try would double the bound.
    """
    from redis.asyncio import BlockingConnectionPool, Redis  # noqa: PLC0415  commands without a store never load it
    from redis.asyncio.retry import Retry  # noqa: PLC0415
    from redis.backoff import NoBackoff  # noqa: PLC0415
    from redis.exceptions import ConnectionError as Broken  # noqa: PLC0415

    with redis_errors("reading the Redis URL"):
        try:
            if is_cluster(url):
                from memagent.store.cluster import Cluster  # noqa: PLC0415  most installations have none

                # Used as the client of one server is, whose methods it has.
                return cast(
                    "Redis",
                    Cluster(ClusterAddress.of(url), timeout_s=timeout_s, connect_timeout_s=connect_timeout_s),
                )
            pool = BlockingConnectionPool.from_url(
                url,
                max_connections=MAX_CONNECTIONS,
                timeout=timeout_s,
                socket_timeout=timeout_s,
                socket_connect_timeout=connect_timeout_s,
                retry=Retry(NoBackoff(), 1, supported_errors=(Broken,)),
                protocol=2,
            )
        except ValueError as error:
            raise BadRequest(UNREADABLE) from error
    return Redis.from_pool(pool)


async def dial(
    url: str, *, timeout_s: float = TIMEOUT_S, connect_timeout_s: float = CONNECT_TIMEOUT_S
) -> Redis:
    """Connect now: to the server at `url`, or to the whole cluster that it is a node of.

    Raises `StoreUnavailable`, and `BadRequest` for a URL that cannot be.
    """
    limits = {"timeout_s": timeout_s, "connect_timeout_s": connect_timeout_s}
    client = connect(url, **limits)
    try:
        with redis_errors("connecting"):
            if is_cluster(url):
                return await client.initialize()
            if not await _in_cluster(client):
                return client
        await client.aclose()
        address = ClusterAddress.of(url)
        client = connect(address.through(*address.hosts[0]), **limits)
        with redis_errors("connecting"):
            return await client.initialize()
    except BaseException:
        await hang_up(client)
        raise


async def _in_cluster(client: Redis) -> bool:
    from redis.exceptions import NoPermissionError  # noqa: PLC0415  see connect

    try:
        found = await client.info("cluster")
    except NoPermissionError:  # nobody asked it to tell; if it is a cluster, its first refusal will
        await client.ping()
        return False
    return bool(found.get("cluster_enabled"))


def cluster_of(client: Redis) -> Cluster | None:
    """The client as that of a whole cluster, if it is one."""
    from memagent.store.cluster import Cluster  # noqa: PLC0415  see connect

    whole: object = client
    return whole if isinstance(whole, Cluster) else None


def address_of(client: Redis, url: str) -> str:
    """Where others find what was dialled at `url`: a cluster by a node that answered."""
    cluster = cluster_of(client)
    return cluster.through() if cluster else url


async def at(client: Redis, key: str) -> Redis:
    """A plain client of the server that has `key`: for what has to go to one server, on one connection or about itself."""
    cluster = cluster_of(client)
    return await cluster.holder(key) if cluster else client


async def hang_up(client: Redis) -> None:
    """Close a client and everything that it opened."""
    cluster = cluster_of(client)
    if cluster:
        await cluster.hang_up()
    await client.aclose()


def _host(name: str) -> str:
    return f"[{name}]" if ":" in name else name
