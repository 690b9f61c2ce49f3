"""Is this Redis fit to keep memories: engine, index, persistence, eviction, clock. Looks, and changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memagent.errors import MemagentError
from memagent.store import Health
from memagent.store.connection import cluster_of
from memagent.store.faults import redis_errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from redis.asyncio import Redis

    from memagent.store.cluster import Cluster
    from memagent.store.index import Index
    from memagent.store.shards import Shards

CLOCK_SLACK_S = 60
"""Two clocks this far apart may still call midnight the same minute."""


async def examine(
    client: Redis, index: Index | None, shards: Shards | None, *, now: datetime
) -> tuple[Health, ...]:
    """Probe a server, or every primary of a cluster."""
    cluster = cluster_of(client)
    return await (_cluster(cluster, shards, now=now) if cluster else _server(client, index, now=now))


async def _server(client: Redis, index: Index | None, *, now: datetime) -> tuple[Health, ...]:
    """Probe a server; one that does not answer is one failed probe, and the rest is left out."""
    try:
        with redis_errors("asking Redis how it is"):
            info: Mapping[str, Any] = await client.info()
            modules: Sequence[Any] = await client.execute_command("MODULE", "LIST")  # type: ignore[no-untyped-call]
            seconds = (await client.time())[0]
            indexed = await client.execute_command("FT.INFO", index.name) if index else None  # type: ignore[no-untyped-call]
    except MemagentError as fault:
        return (Health("redis", "failed", str(fault), "start it, or correct MEMAGENT_REDIS_URL"),)
    policy = str(info.get("maxmemory_policy"))
    drift = abs(now.timestamp() - seconds)
    return (
        Health("redis", "ok", f"Redis {info.get('redis_version')}, {info.get('used_memory_human')} in use"),
        Health("query engine", "ok", _engine(modules)),
        _index(index, indexed),
        _persistence(info),
        Health("eviction", "ok", policy)
        if policy == "noeviction"
        else Health(
            "eviction", "failed", policy, "memories would vanish: `CONFIG SET maxmemory-policy noeviction`"
        ),
        Health("clock", "ok", f"{drift:.0f} s apart")
        if drift <= CLOCK_SLACK_S
        else Health(
            "clock", "warning", f"{drift:.0f} s apart", "set both machines' clocks: days are counted in UTC"
        ),
    )


async def _cluster(cluster: Cluster, shards: Shards | None, *, now: datetime) -> tuple[Health, ...]:
    """For each thing the worst that was found of any primary, and how the shards stand together."""
    try:
        with redis_errors("asking the Redis cluster how it is"):
            primaries = await cluster.primaries()
            replicas = [(await client.info("replication"))["connected_slaves"] for client in primaries]
            found = [
                await _server(client, shards.index_at(client) if shards else None, now=now)
                for client in primaries
            ]
    except MemagentError as fault:
        return (Health("redis", "failed", str(fault), "start it, or correct MEMAGENT_REDIS_URL"),)
    alone = replicas.count(0)
    standing = f"{len(primaries)} shards, {sum(replicas)} replicas"
    together = (
        Health(
            "cluster",
            "warning",
            f"{standing}; {alone} shards have none",
            "give every shard a replica: without, a node that dies takes its users' memories along until it is back",
        )
        if alone
        else Health("cluster", "ok", standing)
    )
    by_name: dict[str, list[Health]] = {}
    for number, each in enumerate(found, start=1):
        for probe in each:
            by_name.setdefault(probe.name, []).append(replace(probe, found=f"shard {number}: {probe.found}"))
    return together, *map(_worst, by_name.values())


def _worst(probes: Sequence[Health]) -> Health:
    """One probe for those of all shards: the first of the worst verdict, and how many more there are of it."""
    worst = max((probe.verdict for probe in probes), key=VERDICTS.index)
    first, *rest = [probe for probe in probes if probe.verdict == worst]
    return replace(first, found=f"{first.found} ({len(rest)} more like it)") if rest else first


VERDICTS = ("ok", "warning", "failed")


def _engine(modules: Sequence[Any]) -> str:
    for row in map(_row, modules):
        if _text(row.get("name", "")) in {"search", "searchlight"}:
            version = int(row["ver"])
            return f"search {version // 10_000}.{version // 100 % 100}.{version % 100}"
    return "built in"


def _index(index: Index | None, info: Any) -> Health:
    if index is None or info is None:
        return Health("index", "warning", "none: nothing is searched", "set MEMAGENT_EMBEDDER")
    row = _row(info)
    found = f"{index.name}, {_text(row.get('num_docs', '?'))} memories, {index.dimensions} dimensions"
    if _text(row.get("indexing", "0")) == "1":
        return Health(
            "index", "warning", f"{found}, still being built", "recall finds more with every second"
        )
    return Health("index", "ok", found)


def _persistence(info: Mapping[str, Any]) -> Health:
    if not info.get("aof_enabled"):
        return Health(
            "persistence", "warning", "AOF is off", "a restart loses memories: `CONFIG SET appendonly yes`"
        )
    if info.get("aof_last_write_status") != "ok":
        return Health(
            "persistence",
            "failed",
            "the last write to the AOF failed",
            "free disk space, then look at Redis' log",
        )
    return Health("persistence", "ok", "AOF is on")


def _row(answer: Any) -> dict[str, Any]:
    """An answer of name-value pairs, flat or already a mapping, as redis-py gives either."""
    pairs = answer.items() if isinstance(answer, dict) else zip(answer[::2], answer[1::2], strict=False)
    return {_text(name): value for name, value in pairs}


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
