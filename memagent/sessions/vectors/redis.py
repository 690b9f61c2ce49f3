"""Passages in Redis, through RedisVL on the query engine: one hash per row, one flat cosine index per embedder.

Everything of one owner shares a hash tag. Owners and paths are hashed wherever they become part of a key or of a query,
so no name can reach another owner's rows.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from redis.commands.search import reducers
from redis.commands.search.aggregation import AggregateRequest
from redis.exceptions import WatchError
from redisvl.exceptions import RedisSearchError
from redisvl.index import AsyncSearchIndex
from redisvl.query import CountQuery, FilterQuery, VectorQuery
from redisvl.query.filter import Tag

from memagent.sessions.vectors import Frequencies, Generation, Kind, Passage
from memagent.store.connection import connect
from memagent.store.faults import redis_errors
from memagent.store.keys import check_prefix

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from redis.asyncio import Redis
    from redisvl.query.filter import FilterExpression

    from memagent.llm import Vector

DOING = "searching or writing passages"
"""What an error says was being done."""
SCHEMA = 1
"""Part of every index and row name: another layout lives beside this one and is built anew."""
MAX_ROWS = 1_000_000
"""What the engine returns at most for one query."""
WRITE_ROWS = 500
"""Rows per round trip where no single step is promised."""
SEPARATOR = "|"
"""Between the terms of a row; no term holds it."""


class RedisVectors:
    """A `VectorStore` in Redis. Open it with `open`; `prefix` keeps several installations in one database apart."""

    def __init__(self, client: Redis, *, prefix: str = "ma") -> None:
        self._client = client
        self._prefix = prefix
        self._indexes: dict[str, AsyncSearchIndex] = {}

    @classmethod
    def open(cls, url: str, *, prefix: str = "ma") -> RedisVectors:
        """Connect at the first call, not here. Raises `BadRequest` for a URL or a prefix that cannot be."""
        return cls(connect(url), prefix=check_prefix(prefix))

    async def close(self) -> None:
        await self._client.aclose()

    # -- generations ---------------------------------------------------------------------------------------------------

    async def live(self, owner: str, kind: Kind) -> Generation | None:
        with redis_errors(DOING):
            text = await self._client.hget(self._register(owner), f"live:{kind}")
        return Generation.from_json(text) if text else None

    async def begin(self, generation: Generation) -> None:
        with redis_errors(DOING):
            await _ensure(self._index(generation))
            await self._client.sadd(
                f"{self._prefix}:passages:spaces", json.dumps([generation.embedder, generation.dimensions])
            )
            await self._client.hset(
                self._register(generation.owner), f"made:{generation.id}", generation.to_json()
            )

    async def make_live(self, generation: Generation) -> bool:
        register, field = self._register(generation.owner), f"live:{generation.kind}"
        with redis_errors(DOING):
            async with self._client.pipeline(transaction=True) as pipe:
                while True:
                    await pipe.watch(register)
                    text = await pipe.hget(register, field)
                    if text and Generation.from_json(text).serial >= generation.serial:
                        return False
                    pipe.multi()  # type: ignore[no-untyped-call]  # redis-py leaves it bare
                    pipe.hset(register, field, generation.to_json())
                    try:
                        await pipe.execute()
                    except WatchError:
                        continue
                    return True

    async def sweep(self, owner: str, kind: Kind) -> int:
        with redis_errors(DOING):
            fields = await self._client.hgetall(self._register(owner))
        made = [
            Generation.from_json(text) for name, text in fields.items() if _text(name).startswith("made:")
        ]
        live = await self.live(owner, kind)
        if live is None:
            return 0
        kept = {live.id, *(each.id for each in made if each.kind == kind and each.serial > live.serial)}
        others = (
            (Tag("owner") == _hashed(owner))
            & (Tag("kind") == str(kind))
            & (Tag("generation") != sorted(kept))
        )
        removed = await self._remove(others)
        gone = [f"made:{each.id}" for each in made if each.kind == kind and each.id not in kept]
        if gone:
            with redis_errors(DOING):
                await self._client.hdel(self._register(owner), *gone)
        return removed

    async def erase(self, owner: str) -> int:
        removed = await self._remove(Tag("owner") == _hashed(owner))
        with redis_errors(DOING):
            await self._client.delete(self._register(owner))
        return removed

    async def _remove(self, where: FilterExpression) -> int:
        """Remove rows of every embedder, those of a generation that nobody remembers too."""
        removed = 0
        with redis_errors(DOING):
            for space in await self._client.smembers(f"{self._prefix}:passages:spaces"):
                index = self._space(*json.loads(space))
                query = _whole(FilterQuery(where, return_fields=["row"], num_results=WRITE_ROWS))
                while found := await index.query(query):
                    removed += await self._client.unlink(*(row["id"] for row in found))
        return removed

    # -- writing -------------------------------------------------------------------------------------------------------

    async def replace(self, generation: Generation, path: str, passages: Sequence[Passage]) -> None:
        rows = {self._key(generation, passage.id): _fields(generation, passage) for passage in passages}
        with redis_errors(DOING):
            before = await self._keys(generation, path=path)
            async with self._client.pipeline(transaction=True) as pipe:
                if before:
                    pipe.unlink(*before)
                for key, fields in rows.items():
                    pipe.hset(key, mapping=fields)
                await pipe.execute()

    async def add(self, generation: Generation, passages: Sequence[Passage]) -> None:
        with redis_errors(DOING):
            for start in range(0, len(passages), WRITE_ROWS):
                async with self._client.pipeline(transaction=True) as pipe:
                    for passage in passages[start : start + WRITE_ROWS]:
                        pipe.hset(self._key(generation, passage.id), mapping=_fields(generation, passage))
                    await pipe.execute()

    # -- reading -------------------------------------------------------------------------------------------------------

    async def versions(self, generation: Generation) -> Mapping[str, frozenset[str]]:
        with redis_errors(DOING):
            keys = await self._keys(generation)
        found: dict[str, set[str]] = {}
        for path, version in await self._read(keys, "path", "version"):
            if path is not None:
                found.setdefault(_text(path), set()).add(_text(version))
        return {path: frozenset(versions) for path, versions in found.items()}

    async def vectors(self, generation: Generation, digests: Collection[str]) -> Mapping[str, Vector]:
        wanted = sorted(digests)
        found: dict[str, Vector] = {}
        for start in range(0, len(wanted) if generation.dimensions else 0, WRITE_ROWS):
            where = _within(generation) & (Tag("digest") == wanted[start : start + WRITE_ROWS])
            with redis_errors(DOING):
                keys = await self._found(generation, where, MAX_ROWS)
            rows = await self._read(keys, "digest", "vector")
            found |= {_text(digest): _vector(vector) for digest, vector in rows if digest and vector}
        return found

    async def nearest(
        self, generation: Generation, vector: Vector, limit: int
    ) -> Sequence[tuple[str, float]]:
        if not generation.dimensions or limit < 1:
            return ()
        query = VectorQuery(
            vector=np.asarray(vector, np.float32).tobytes(),
            vector_field_name="vector",
            return_fields=["row"],
            filter_expression=_within(generation),
            num_results=limit,
        )
        with redis_errors(DOING):
            answers = await self._index(generation).query(_whole(query))
        return [(row["row"], 1.0 - float(row["vector_distance"])) for row in answers]

    async def frequencies(self, generation: Generation, terms: Sequence[str]) -> Frequencies:
        index, within = self._index(generation), _within(generation)
        total = AggregateRequest(str(within)).group_by([], reducers.sum("@length").alias("terms")).dialect(2)
        asked = [within, *(within & (Tag("terms") == term) for term in terms)]
        queries = [_whole(CountQuery(where)) for where in asked]
        with redis_errors(DOING):
            rows, *counts = cast("list[int]", await index.batch_query(queries, batch_size=64))
            answer = await index.aggregate(total)
        words = int(float(_text(answer.rows[0][1]))) if answer.rows else 0
        return Frequencies(rows, words, dict(zip(terms, counts, strict=True)))

    async def containing(
        self, generation: Generation, terms: Sequence[str], limit: int
    ) -> Mapping[str, tuple[str, ...]]:
        if not terms or limit < 1:
            return {}
        where = _within(generation) & (Tag("terms") == list(terms))
        query = _whole(FilterQuery(where, return_fields=["row", "terms"], num_results=limit))
        # Asked by hand: thousands of rows, each made into a document and decoded, would cost a turn its budget.
        with redis_errors(DOING):
            answer = await self._client.execute_command(  # type: ignore[no-untyped-call]  # redis-py leaves it bare
                "FT.SEARCH", self._index(generation).name, *query.get_args()
            )
        rows = [dict(zip(fields[::2], fields[1::2], strict=True)) for fields in answer[2::2] if fields]
        return {_text(row[b"row"]): _words(row.get(b"terms")) for row in rows if b"row" in row}

    async def rows(self, generation: Generation, path: str) -> Sequence[Passage]:
        with redis_errors(DOING):
            keys = await self._keys(generation, path=path)
        passages = [_passage(fields) for fields in await self._read(keys, *_TEXT_FIELDS)]
        return sorted(passages, key=lambda passage: (passage.first, passage.piece, passage.last))

    async def fetch(self, generation: Generation, ids: Sequence[str]) -> Mapping[str, Passage]:
        keys = [self._key(generation, row) for row in ids]
        found = await self._read(keys, *_TEXT_FIELDS, "vector")
        return {
            row: _passage(fields) for row, fields in zip(ids, found, strict=True) if fields[0] is not None
        }

    async def _read(self, keys: Sequence[str], *fields: str) -> list[list[bytes | None]]:
        with redis_errors(DOING):
            async with self._client.pipeline(transaction=False) as pipe:
                for key in keys:
                    pipe.hmget(key, list(fields))
                return cast("list[list[bytes | None]]", await pipe.execute())

    # -- names ---------------------------------------------------------------------------------------------------------

    async def _keys(
        self, generation: Generation, *, path: str | None = None, limit: int = MAX_ROWS
    ) -> list[str]:
        where = _within(generation)
        return await self._found(
            generation, where if path is None else where & (Tag("place") == _hashed(path)), limit
        )

    async def _found(self, generation: Generation, where: FilterExpression, limit: int) -> list[str]:
        query = _whole(FilterQuery(where, return_fields=["row"], num_results=limit))
        answers = await self._index(generation).query(query)
        return [self._key(generation, row["row"]) for row in answers]

    def _register(self, owner: str) -> str:
        return f"{self._prefix}:passages:{{{_hashed(owner)}}}"

    def _key(self, generation: Generation, row: str) -> str:
        family = self._family(generation.embedder, generation.dimensions)
        return f"{family}:{{{_hashed(generation.owner)}}}:{generation.id}:{row}"

    def _family(self, embedder: str, dimensions: int) -> str:
        """What rows that share an index begin with: vectors of different embedders are never compared."""
        return f"{self._prefix}:p{SCHEMA}:{_hashed(json.dumps([embedder, dimensions]))[:16]}"

    def _index(self, generation: Generation) -> AsyncSearchIndex:
        return self._space(generation.embedder, generation.dimensions)

    def _space(self, embedder: str, dimensions: int) -> AsyncSearchIndex:
        name = self._family(embedder, dimensions)
        if name not in self._indexes:
            schema = {"index": {"name": name, "prefix": f"{name}:"}, "fields": _schema(dimensions)}
            self._indexes[name] = AsyncSearchIndex.from_dict(schema, redis_client=self._client)
        return self._indexes[name]


async def _ensure(index: AsyncSearchIndex) -> None:
    try:
        await index.create()
    except RedisSearchError:
        # Two processes that begin at once both see none; the slower one finds it made.
        if not await index.exists():
            raise


_TEXT_FIELDS = ("path", "first", "last", "piece", "text", "digest", "terms", "version", "label", "at")


def _schema(dimensions: int) -> list[dict[str, Any]]:
    tags = ("owner", "kind", "generation", "place", "digest", "terms")
    fields: list[dict[str, Any]] = [
        {"name": name, "type": "tag", "attrs": {"case_sensitive": True, "separator": SEPARATOR}}
        for name in tags
    ]
    fields.append({"name": "length", "type": "numeric", "attrs": {"sortable": True}})
    if dimensions:
        attrs = {"algorithm": "flat", "dims": dimensions, "distance_metric": "cosine", "datatype": "float32"}
        fields.append({"name": "vector", "type": "vector", "attrs": attrs})
    return fields


def _whole(query: Any) -> Any:
    """Let a query run to its end: past its own time limit the engine hands back a part as if it were all.

    The client's timeout still ends it, loudly.
    """
    query.timeout(0)
    return query


def _within(generation: Generation) -> FilterExpression:
    """Stands in every query, before any ranking (O85)."""
    return (Tag("owner") == _hashed(generation.owner)) & (Tag("generation") == generation.id)


def _fields(generation: Generation, passage: Passage) -> dict[Any, Any]:
    fields: dict[Any, Any] = {
        "owner": _hashed(generation.owner),
        "kind": str(generation.kind),
        "generation": generation.id,
        "place": _hashed(passage.path),
        "row": passage.id,
        "path": _bytes(passage.path),
        "first": passage.first,
        "last": passage.last,
        "piece": passage.piece,
        "text": _bytes(passage.text),
        "digest": passage.digest,
        "terms": _bytes(SEPARATOR.join(passage.terms)),
        "length": len(passage.terms),
        "version": passage.version,
        "label": _bytes(passage.label),
        "at": passage.at.isoformat() if passage.at else "",
    }
    if passage.vector is not None:
        fields["vector"] = np.asarray(passage.vector, np.float32).tobytes()
    return fields


def _passage(fields: Sequence[bytes | None]) -> Passage:
    path, first, last, piece, text, digest, terms, version, label, at = (
        _text(field) for field in fields[:10]
    )
    vector = fields[10] if len(fields) > len(_TEXT_FIELDS) else None
    return Passage(
        path=path,
        first=int(first),
        last=int(last),
        piece=int(piece),
        text=text,
        digest=digest,
        terms=_words(terms),
        version=version,
        label=label,
        at=datetime.fromisoformat(at) if at else None,
        vector=_vector(vector) if vector else None,
    )


def _words(joined: bytes | str | None) -> tuple[str, ...]:
    text = _text(joined)
    return tuple(text.split(SEPARATOR)) if text else ()


def _vector(data: bytes) -> Vector:
    return np.frombuffer(data, np.float32)


def _hashed(name: str) -> str:
    return hashlib.sha256(_bytes(name)).hexdigest()[:32]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes | str | None) -> str:
    return data.decode("utf-8", "surrogatepass") if isinstance(data, bytes) else data or ""
