"""The search index: its definition, its queries, and making it without ever touching an existing one.

Each embedder has an index of its own over the same memories, with its own vector field. A new embedder's index is built beside
the old one while that one serves; what the index does not hold yet is noticed per search, and nothing ages meanwhile.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from memagent.errors import IndexDrift
from memagent.store import Unsearched
from memagent.store.connection import cluster_of
from memagent.store.faults import redis_errors
from memagent.store.keys import embedder_tag, memory_prefix, scope_and_key, scope_id, vector_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redis.asyncio import Redis

    from memagent.memory import Scope
    from memagent.store.shards import Shards

GENERATION = 1
"""Counts up when the definition changes: the new index is then built beside the old one."""

SEPARATOR = "\x1f"
"""Between terms; no term holds it."""

LANES = "LANES"
"""Stands for the lane numbers, which only the script knows."""

TERMS = "TERMS"
"""Stands for the words of a message: all else of a query stays from turn to turn."""

MAX_QUERY_TERMS = 64
"""A message has more words than it has meaning; the first ones decide."""


@dataclass(frozen=True, slots=True)
class Index:
    """The index of one embedder under one key prefix."""

    prefix: str
    embedder: str
    dimensions: int
    tag: str = ""
    """Set where the index is one shard's: it makes the name that shard's too (store/shards.py)."""

    @property
    def name(self) -> str:
        name = f"{self.prefix}:index:{GENERATION}:{embedder_tag(self.embedder)}"
        return f"{name}:{{{self.tag}}}" if self.tag else name

    def definition(self) -> dict[str, Any]:
        """Return RedisVL's schema: only what a filter or a search reads is indexed."""
        tag = {"type": "tag", "attrs": {"case_sensitive": True, "separator": SEPARATOR}}
        vector = {
            "algorithm": "flat",
            "datatype": "float16",
            "distance_metric": "cosine",
            "dims": self.dimensions,
        }
        return {
            "index": {"name": self.name, "prefix": memory_prefix(self.prefix), "storage_type": "hash"},
            "fields": [
                {"name": "scope", **tag},
                {"name": "lane", **tag},
                {"name": "emb", **tag},
                {"name": "terms", **tag},
                {"name": vector_field(self.embedder), "type": "vector", "attrs": vector},
            ],
        }

    def nearest(self, scope: str, count: int, *, sharing: bool = False) -> str:
        """Query text for the `count` nearest visible memories of a scope, or of those that hold one of `TERMS`."""
        from redisvl.query import VectorQuery  # noqa: PLC0415  RedisVL takes most of a second to load

        query = VectorQuery(
            vector=b"",
            vector_field_name=vector_field(self.embedder),
            filter_expression=self._filter(scope, sharing=sharing),
            num_results=count,
            return_score=False,
        )
        return str(query.query_string()).replace("AS vector_distance", "AS distance")

    def all_of(self, scope: str) -> str:
        """Query text that counts the visible memories of a scope."""
        return str(self._filter(scope, sharing=False))

    def unsearched(self, scope: str | None, limit: int) -> list[Any]:
        """Command for memories of one scope, or of all, that have no vector of this embedder."""
        from redisvl.query.filter import Tag  # noqa: PLC0415  see nearest

        missing = Tag("emb") != embedder_tag(self.embedder)
        query = str(missing if scope is None else (Tag("scope") == scope) & missing)
        wanted = ["NOCONTENT", "LIMIT", 0, limit, "TIMEOUT", 0, "DIALECT", 2]
        return ["FT.SEARCH", self.name, query, *wanted]

    @staticmethod
    def _filter(scope: str, *, sharing: bool) -> Any:
        from redisvl.query.filter import Tag  # noqa: PLC0415  see nearest

        found = (Tag("scope") == scope) & (Tag("lane") == LANES)
        return found & (Tag("terms") == TERMS) if sharing else found


def with_terms(query: str, terms: Sequence[str]) -> str:
    """A query text of memories that hold one of these."""
    return query.replace(f"@terms:{{{TERMS}}}", f"@terms:{{{'|'.join(map(_escaped, terms))}}}")


@lru_cache(maxsize=16_384)
def _escaped(term: str) -> str:
    from redisvl.query.filter import Tag  # noqa: PLC0415  see Index.nearest

    escaped = str(Tag("terms") == term).removeprefix("@terms:{").removesuffix("}")
    return re.sub("[_`]", r"\\\g<0>", escaped)  # a term of one of these alone would be a syntax error


def query_terms(terms: Sequence[str]) -> list[str]:
    """Terms that a filter can hold: whole characters, nothing blank, each once, the first `MAX_QUERY_TERMS`."""
    return list(dict.fromkeys(filter(None, map(stored_term, terms))))[:MAX_QUERY_TERMS]


def stored_term(term: str) -> str:
    """A term without what would break it in two or could not be encoded."""
    return re.sub(r"[\x00-\x20\x7f\ud800-\udfff]", "", term)


async def ensure(client: Redis, index: Index, *, missed: bool = False) -> None:
    """Make the index if it is not there, and check it if it is; never overwrites.

    `missed` says that some server was seen without it, whatever this one says.
    Raises `EngineMissing` without the query engine and `IndexDrift` when an index of this name is defined otherwise.
    """
    from redisvl.index import AsyncSearchIndex  # noqa: PLC0415  see Index.nearest
    from redisvl.schema import IndexSchema  # noqa: PLC0415

    with redis_errors(f"making the search index `{index.name}`"):
        wanted = AsyncSearchIndex(IndexSchema.from_dict(index.definition()), redis_client=client)
        if missed or not await wanted.exists():
            try:
                await wanted.create(overwrite=False)
            except Exception as error:
                if "already exists" not in _chain(error):  # another process was faster
                    raise
    with redis_errors(f"reading the search index `{index.name}`"):
        existing = await AsyncSearchIndex.from_existing(index.name, redis_client=client)
        differences = _differences(wanted.schema.to_dict(), existing.schema.to_dict())
    if differences:
        raise IndexDrift(
            f"the search index `{index.name}` is defined otherwise than this version of memagent needs: "
            f"{'; '.join(differences)}. The memories themselves are safe: drop the index with "
            f"`FT.DROPINDEX {index.name}` (without DD) and start again; it is made anew from them"
        )


async def prepare(client: Redis, index: Index) -> Shards | None:
    """Make sure of the index, on one server or on every shard of a cluster; raises what `ensure` does."""
    cluster = cluster_of(client)
    if cluster is None:
        await ensure(client, index)
        return None
    from memagent.store.shards import Shards  # noqa: PLC0415  most installations have none

    return await Shards.open(cluster, index)


async def until_built(client: Redis, index: Index) -> None:
    """Wait until the engine has read every memory into a new index; before that it knows only some of them."""
    while True:
        with redis_errors(f"reading the search index `{index.name}`"):
            answer = await client.execute_command("FT.INFO", index.name)  # type: ignore[no-untyped-call]
        row = dict(zip(answer[::2], answer[1::2], strict=False))
        if int(float(row.get(b"indexing", 0))) == 0:
            return
        await asyncio.sleep(BUILD_POLL_S)


async def unsearched_in(
    where: Sequence[tuple[Redis, Index]], client: Redis, scope: Scope | None, *, limit: int
) -> tuple[Unsearched, ...]:
    """Memories of one scope, or of all, without a vector, from each of these indexes when it is built.

    What an index holds is read with `client`: not every query engine reads documents on a cluster.
    """
    found: list[Unsearched] = []
    for server, index in where:
        await until_built(server, index)
        command = index.unsearched(None if scope is None else scope_id(scope), limit - len(found))
        with redis_errors("looking for memories without a vector"):
            names: list[bytes] = (await server.execute_command(*command))[1:]  # type: ignore[no-untyped-call]
            async with client.pipeline(transaction=False) as pipeline:
                for name in names:
                    pipeline.hget(name.decode(), "value")
                values = await pipeline.execute()
        for name, value in zip(names, values, strict=True):
            if value is not None:
                found.append(Unsearched(*scope_and_key(index.prefix, name.decode()), value.decode()))
        if len(found) >= limit:
            break
    return tuple(found)


BUILD_POLL_S = 0.05


def _chain(error: BaseException | None) -> str:
    text = ""
    while error is not None:
        text += str(error)
        error = error.__cause__
    return text


def _differences(wanted: dict[str, Any], existing: dict[str, Any]) -> list[str]:
    found = []
    if wanted["index"]["prefix"] != existing["index"]["prefix"]:
        found.append(f"prefix `{existing['index']['prefix']}` instead of `{wanted['index']['prefix']}`")
    have = {field["name"]: field for field in existing["fields"]}
    for field in wanted["fields"]:
        here = have.pop(field["name"], None)
        if here is None:
            found.append(f"field `{field['name']}` is missing")
        elif here["type"] != field["type"]:
            found.append(f"field `{field['name']}` is a {here['type']} instead of a {field['type']}")
        else:
            found += [
                f"field `{field['name']}` has {name} {here['attrs'][name]!r} instead of {value!r}"
                for name, value in field["attrs"].items()
                if name in _COMPARED and _plain(here["attrs"].get(name)) != _plain(value)
            ]
    return found + [f"field `{name}` is not ours" for name in have]


_COMPARED = ("dims", "algorithm", "datatype", "distance_metric", "case_sensitive", "separator")


def _plain(value: Any) -> Any:
    value = getattr(value, "value", value)
    return value.lower() if isinstance(value, str) else value
