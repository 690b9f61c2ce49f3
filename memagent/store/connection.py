"""Connections to Redis: bounded in number, in time, and in how often a call is tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memagent.errors import BadRequest
from memagent.store.faults import redis_errors

if TYPE_CHECKING:
    from redis.asyncio import Redis

TIMEOUT_S = 5.0
"""For one call: longer than any of ours takes on a healthy server, shorter than a person waits."""

CONNECT_TIMEOUT_S = 2.0

MAX_CONNECTIONS = 64
"""Per process; more calls than this at once wait their turn."""


def connect(url: str, *, timeout_s: float = TIMEOUT_S, connect_timeout_s: float = CONNECT_TIMEOUT_S) -> Redis:
    """Return a client with a bounded pool, a timeout on every call, and one retry: every write of ours may be repeated.

    Only a connection that broke is tried again. A call that ran out of time had all of it: another try would double the bound.
    """
    from redis.asyncio import BlockingConnectionPool, Redis  # noqa: PLC0415  commands without a store never load it
    from redis.asyncio.retry import Retry  # noqa: PLC0415
    from redis.backoff import NoBackoff  # noqa: PLC0415
    from redis.exceptions import ConnectionError as Broken  # noqa: PLC0415

    with redis_errors("reading the Redis URL"):
        try:
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
            raise BadRequest(
                "the Redis URL cannot be read: it looks like redis://host:6379/0 or unix:///path"
            ) from error
    return Redis.from_pool(pool)
