"""The store on Redis: every call is one round trip, every write one script (`store/lua/`).

On a cluster a recall takes three trips (`store/trips.py`).
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from memagent.errors import BadRequest
from memagent.memory import Scope, ScopeKind, Source
from memagent.store import (
    CONSENT,
    Applied,
    Change,
    DeleteMemory,
    Kept,
    Recalled,
    Standing,
    Totals,
    Unsearched,
)
from memagent.store.connection import CONNECT_TIMEOUT_S, TIMEOUT_S, address_of, at, cluster_of, dial, hang_up
from memagent.store.contents import Contents
from memagent.store.faults import redis_errors
from memagent.store.health import examine
from memagent.store.index import Index, prepare, unsearched_in
from memagent.store.keys import (
    check_prefix,
    consent_key,
    embedder_tag,
    memory_key,
    partitions_key,
    plain,
    receipt_key,
    scope_from_id,
    script_keys,
    user_keys_pattern,
)
from memagent.store.prefixes import Prefixes
from memagent.store.rows import (
    applied_of,
    change_of,
    day_number,
    dumps,
    edit_rows,
    half_precision,
    hit_of,
    joined_terms,
    limits_row,
    memory_of,
    milliseconds,
    scope_row,
    totals_of,
    undone_of,
)
from memagent.store.scripts import PARTS, script
from memagent.store.search import recall_request
from memagent.store.trips import Trips

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from redis.asyncio import Redis

    from memagent.llm import Vector
    from memagent.memory import Memory
    from memagent.store import Edit, Health, Limits, RecallQuery
    from memagent.store.shards import Shards

RECEIPT_DAYS = 30

RETRY_WINDOW_S = 600
"""How long a write without a message id is remembered, so that repeating it after a lost answer writes once."""

CLOSED_FOR_S = 3_600
"""How long a turn that was under way at an erasure is kept from writing: longer than any call of a model takes."""

SCAN_BATCH = 1_000

HISTORY_CHANGES = 500
"""Per scope; the oldest lines go first."""


class RedisStore:
    """Memories in Redis with the query engine; `open` makes one, `close` frees it. Implements `store.Store`."""

    def __init__(
        self,
        client: Redis,
        *,
        prefix: str,
        index: Index | None,
        receipt_days: int = RECEIPT_DAYS,
        history_changes: int = HISTORY_CHANGES,
        nonce: Callable[[], str] = lambda: uuid4().hex,
        url: str = "",
        shards: Shards | None = None,
    ) -> None:
        self.client = client
        self.url = url
        self.prefix = check_prefix(prefix)
        self.index = index
        self._embedder = embedder_tag(index.embedder if index else "")
        self._receipt_ms = receipt_days * 86_400_000
        self._history_changes = history_changes
        self._nonce = nonce
        self._scripts = {name: client.register_script(script(name)) for name in PARTS}
        self._prefixes = Prefixes()
        self._contents = Contents()
        self._shards = shards
        trips = Trips(self._run, shards, prefix=prefix) if cluster_of(client) else None
        self._search = trips.recall if trips else partial(self._run, "recall", doing="recalling")
        self._look = trips.standing if trips else partial(self._run, "standing", doing="reading what stands")

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        prefix: str = "ma",
        embedder_id: str = "",
        dimensions: int = 0,
        receipt_days: int = RECEIPT_DAYS,
        history_changes: int = HISTORY_CHANGES,
        timeout_s: float = TIMEOUT_S,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> RedisStore:
        """Connect and make sure of the index of this embedder; without one, memory works without search (T45).

        Raises `StoreUnavailable`, `EngineMissing` or `IndexDrift`.
        """
        index = Index(check_prefix(prefix), embedder_id, dimensions) if embedder_id else None
        client = await dial(url, timeout_s=timeout_s, connect_timeout_s=connect_timeout_s)
        try:
            shards = await prepare(client, index) if index else None
        except BaseException:
            await hang_up(client)
            raise
        return cls(
            client,
            prefix=prefix,
            index=index,
            receipt_days=receipt_days,
            history_changes=history_changes,
            url=address_of(client, url),
            shards=shards,
        )

    async def close(self) -> None:
        await hang_up(self.client)

    # -- recall -------------------------------------------------------------------------------------------------------

    async def recall(self, scopes: Sequence[Scope], query: RecallQuery) -> Recalled:
        known = self._prefixes.get(scopes)
        request, vector = recall_request(self._index_of(query.embedder), scopes, query, known)
        answer = await self._search(scopes, request, vector)
        if answer.get("unsaid"):
            request["context"] = query.context_terms()
            answer = await self._search(scopes, request, vector)
        if answer.get("opted_out"):
            return Recalled((), (), searched=False, etag="", opted_out=True)
        days = query.dormant_after_days if query.decay and query.embedder else None
        view = {"embedder": self._embedder, "dormant_after_days": days}
        prefix = self._prefixes.merged(scopes, answer["scopes"], known, view, tagged="context" in request)
        placed = ((row["scope"] - 1, row) for row in answer["hits"])
        hits = tuple(
            hit_of(row, scopes[at], prefix.active(at, row["memory"]["key"]), view) for at, row in placed
        )
        return Recalled(
            prefix.merged, hits, bool(answer["searched"]), prefix.etag, total_tokens=int(answer["tokens"])
        )

    def _index_of(self, embedder: str) -> Index | None:
        if not embedder:
            return None
        if self.index is None or self.index.embedder != embedder:
            raise BadRequest(f"this store was not opened for the embedder `{embedder}`")
        return self.index

    # -- writing ------------------------------------------------------------------------------------------------------

    async def apply(
        self,
        scope: Scope,
        edits: Sequence[Edit],
        *,
        limits: Limits,
        now: datetime,
        message_id: str | None = None,
        receipt: Mapping[str, Any] | None = None,
    ) -> Applied:
        dimensions = {self.index.embedder: self.index.dimensions} if self.index else {}
        by_hand = message_id is None and all(
            isinstance(edit, DeleteMemory) and edit.source is Source.USER for edit in edits
        )
        request = {**self._write_request(scope, limits, now, message_id), "by_hand": by_hand}
        request["edits"], vectors = edit_rows(edits, dimensions, attempt=request["attempt"], now=now)
        blobs = vectors
        if receipt is not None and message_id is not None:
            blobs = [*vectors, dumps(receipt).encode()]
            request["receipt"] = len(blobs) + 1
        answer = await self._run("apply", [scope], request, blobs, doing="writing memories")
        return applied_of(answer, embedder=self._embedder, dormant_after_days=limits.dormant_after_days)

    async def undo(
        self,
        scope: Scope,
        change_id: str | None = None,
        *,
        limits: Limits,
        now: datetime,
        source: Source = Source.USER,
    ) -> Change:
        request = {**self._write_request(scope, limits, now, None), "source": source.value}
        if change_id is not None:
            request["change"] = change_id
        answer = await self._run("undo", [scope], request, doing="undoing a change")
        return undone_of(answer, change_id)

    def _write_request(
        self, scope: Scope, limits: Limits, now: datetime, message_id: str | None
    ) -> dict[str, Any]:
        attempt = self._nonce()
        return {
            **scope_row(scope),
            "limits": limits_row(limits),
            "now": milliseconds(now),
            "today": day_number(now),
            "consent": CONSENT,
            "keep": self._history_changes,
            "attempt": attempt,
            "once": f"-{attempt}" if message_id is None else f"={message_id}",
            "ttl": RETRY_WINDOW_S * 1000 if message_id is None else self._receipt_ms,
        }

    # -- reading ------------------------------------------------------------------------------------------------------

    async def standing(self, scopes: Sequence[Scope], message_id: str, *, switch: str) -> Standing:
        known = self._contents.known(scopes)
        marks = [content.mark if content else "" for content in known]
        rows = [scope_row(scope) | {"known": mark} for scope, mark in zip(scopes, marks, strict=True)]
        request = {"scopes": rows, "once": f"={plain(message_id, 'message id')}", "switch": switch}
        answer = await self._look(scopes, request)
        memories = (
            self._contents.read(*each, embedder=self._embedder)
            for each in zip(scopes, known, answer["scopes"], strict=True)
        )
        text, stands = answer.get("receipt"), answer.get("switch")
        return Standing(
            None if text is None else json.loads(text),
            None if stands is None else stands == "1",
            tuple(memories),
        )

    async def list(self, scope: Scope, *, dormant_after_days: int | None = 7) -> tuple[Memory, ...]:
        found, _ = await self._read(scope, None, dormant_after_days)
        return tuple(sorted(found, key=lambda memory: (-memory.updated_at.timestamp(), memory.key)))

    async def get(self, scope: Scope, key: str, *, dormant_after_days: int | None = 7) -> Memory | None:
        found, _ = await self._read(scope, [memory_key(key)], dormant_after_days)
        return found[0] if found else None

    async def totals(self, scope: Scope) -> Totals:
        return (await self._read(scope, [], None))[1]

    async def _read(
        self, scope: Scope, keys: Sequence[str] | None, dormant_after_days: int | None
    ) -> tuple[tuple[Memory, ...], Totals]:
        request = scope_row(scope) if keys is None else {**scope_row(scope), "keys": keys}
        answer = await self._run("read", [scope], request, doing="reading memories")
        days = dormant_after_days if self.index else None
        found = (
            memory_of(row, embedder=self._embedder, dormant_after_days=days) for row in answer["memories"]
        )
        return tuple(found), totals_of(answer["totals"])

    async def scopes(self, user: str) -> tuple[Scope, ...]:
        with redis_errors("reading a user's scopes"):
            names: Any = await self.client.smembers(partitions_key(self.prefix, Scope(ScopeKind.USER, user)))
        return tuple(sorted(scope_from_id(name.decode()) for name in names))

    async def history(self, scope: Scope, *, key: str | None = None, limit: int = 50) -> tuple[Change, ...]:
        last = -1 if key is not None else max(limit, 0) - 1
        if limit <= 0:
            return ()
        with redis_errors("reading the history"):
            lines = await self.client.lrange(script_keys(self.prefix, scope)[4], 0, last)
        rows = (json.loads(line) for line in lines)
        found = [row for row in rows if key is None or any(state["key"] == key for state in row["states"])]
        return tuple(change_of(row) for row in found[:limit])

    async def receipt(self, scope: Scope, message_id: str) -> Kept | None:
        name = receipt_key(self.prefix, scope, f"={message_id}")
        with redis_errors("reading a receipt"):
            text, applied = await self.client.hmget(name, ["receipt", "applied"])
        if text is None:
            return None
        if applied is None:
            return Kept(json.loads(text), None)
        came = applied_of(json.loads(applied), embedder=self._embedder, dormant_after_days=None)
        return Kept(json.loads(text), came)

    async def save_receipt(self, scope: Scope, message_id: str, receipt: Mapping[str, Any]) -> None:
        request = {
            **scope_row(scope),
            "once": f"={message_id}",
            "receipt": dumps(receipt),
            "ttl": self._receipt_ms,
        }
        await self._run("receipt", [scope], request, doing="saving a receipt")

    async def preference(self, user: str, name: str) -> bool | None:
        with redis_errors("reading a preference"):
            value = await self.client.hget(self._consent(user), name)
        return None if value is None else value == b"1"

    async def set_preference(self, user: str, name: str, value: bool) -> None:  # noqa: FBT001  the port's signature
        with redis_errors("saving a preference"):
            await self.client.hset(self._consent(user), name, "1" if value else "0")

    async def erase_preferences(self, user: str) -> int:
        with redis_errors("erasing preferences"):
            async with self.client.pipeline(transaction=True) as pipeline:
                pipeline.hlen(self._consent(user))
                pipeline.delete(self._consent(user))
                switches, _ = await pipeline.execute()
        return int(switches)

    async def keys_of(self, user: str) -> int:
        pattern = user_keys_pattern(self.prefix, user)
        with redis_errors("counting what is kept of a user"):
            holder = await at(self.client, self._consent(user))
            return sum([1 async for _ in holder.scan_iter(match=pattern, count=SCAN_BATCH)])

    # -- vectors, erasure ---------------------------------------------------------------------------------------------

    async def unsearched(
        self, scope: Scope | None, embedder: str, *, limit: int = 100
    ) -> tuple[Unsearched, ...]:
        index = self._index_of(embedder)
        if index is None or limit <= 0:
            return ()
        where = await self._shards.parts() if self._shards else [(self.client, index)]
        return await unsearched_in(where, self.client, scope, limit=limit)

    async def attach_vector(
        self, memory: Unsearched, *, vector: Vector, embedder: str, terms: Sequence[str], now: datetime
    ) -> bool:
        index = self._index_of(embedder)
        if index is None:
            raise BadRequest("a vector needs the id of its embedder")
        request = {
            **scope_row(memory.scope),
            "key": memory.key,
            "value": memory.value,
            "emb": embedder_tag(embedder),
            "terms": joined_terms(terms),
            "today": day_number(now),
        }
        blob = half_precision(vector, index.dimensions)
        return bool(await self._run("attach", [memory.scope], request, [blob], doing="attaching a vector"))

    async def erase(self, scope: Scope, *, closed: Sequence[str] = ()) -> Mapping[str, int]:
        self._prefixes.forget(scope)
        self._contents.forget(scope)
        request = {
            **scope_row(scope),
            "closed": [f"={message_id}" for message_id in closed],
            "ttl": CLOSED_FOR_S * 1000,
        }
        counts: dict[str, int] = await self._run("erase", [scope], request, doing="erasing")
        return counts

    async def health(self, *, now: datetime) -> tuple[Health, ...]:
        return await examine(self.client, self.index, self._shards, now=now)

    # -- the one door -------------------------------------------------------------------------------------------------

    def _consent(self, user: str) -> str:
        return consent_key(self.prefix, Scope(ScopeKind.USER, user))

    async def _run(
        self,
        name: str,
        scopes: Sequence[Scope],
        request: Mapping[str, Any],
        blobs: Sequence[bytes] = (),
        *,
        doing: str,
    ) -> Any:
        keys = [key for scope in scopes for key in script_keys(self.prefix, scope)]
        with redis_errors(doing):
            answer = await self._scripts[name](keys=keys, args=[dumps(request).encode(), *blobs])
        return json.loads(answer) if isinstance(answer, bytes) else answer
