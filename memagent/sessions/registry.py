"""The sessions store: which session each key has now. A file `sessions.json`, or a hash in Redis.

Keys are lower case; where a file holds variants of one key, the row that was updated last is the one (O05).
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ValidationError

from memagent.errors import Conflict
from memagent.sessions import jsonl
from memagent.sessions.entry import SessionEntry
from memagent.sessions.keys import agent_id, fold
from memagent.sessions.locks import FileLocks, finished
from memagent.store.faults import redis_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from pathlib import Path

    from redis.asyncio import Redis

    Change = Callable[[SessionEntry | None], SessionEntry | None]
    Rows = dict[str, dict[str, Any]]

log = logging.getLogger(__name__)

ROTATE_AT_BYTES = 10 * 1024 * 1024
KEPT_BACKUPS = 3
MAX_ATTEMPTS = 100
"""Of one patch against others of the same key; each failed one means that another succeeded."""


class SessionRegistry(Protocol):
    """Rows by key."""

    async def load(self) -> Mapping[str, SessionEntry]:
        """All rows that can be read."""
        ...

    async def get(self, key: str) -> SessionEntry | None: ...

    async def patch(self, key: str, change: Change) -> SessionEntry | None:
        """Put what `change` makes of the current row in its place, or remove it for None; no other write is lost.

        `change` may be called more than once. A row that stays equal is not written (O34).
        """
        ...


class FileRegistry:
    """`sessions.json` in `folder`: replaced whole, under a lock across processes, after reading it anew (O34).

    A file that cannot be read counts as empty, and is set aside before the next write takes its place (O35). Above 10 MB
    a write keeps the old file as a backup first; three are kept (O91).
    """

    def __init__(self, folder: Path, *, clock: Callable[[], datetime], sync: bool = True) -> None:
        self.path = folder / "sessions.json"
        self._clock = clock
        self._sync = sync
        self._locks = FileLocks(folder / ".locks")

    async def load(self) -> Mapping[str, SessionEntry]:
        rows, _ = await asyncio.to_thread(self._read)
        entries = {key: _entry(row) for key, row in rows.items()}
        return {key: entry for key, entry in entries.items() if entry is not None}

    async def get(self, key: str) -> SessionEntry | None:
        return (await self.load()).get(fold(key))

    async def patch(self, key: str, change: Change) -> SessionEntry | None:
        async with self._locks.hold("sessions"):
            return await finished(self._patch, fold(key), change)

    def _patch(self, key: str, change: Change) -> SessionEntry | None:
        rows, healthy = self._read()
        old = _entry(rows[key]) if key in rows else None
        healthy = healthy and (old is not None or key not in rows)
        new = change(old)
        if new is None:
            rows.pop(key, None)
        elif new != old:
            rows[key] = _row(new)
        content = json.dumps(rows, ensure_ascii=False, indent=1, sort_keys=True).encode(
            "utf-8", "backslashreplace"
        )
        before = self._bytes()
        if content == before or (not rows and not before):
            return new
        if not healthy:
            self._set_aside()
        elif len(before) > ROTATE_AT_BYTES:
            self._back_up(before)
        jsonl.replace(self.path, content, sync=self._sync)
        return new

    def _read(self) -> tuple[Rows, bool]:
        """The rows under folded keys, and whether the file is one of ours (a missing one is)."""
        content = self._bytes()
        try:
            found = json.loads(content) if content else {}
        except ValueError:
            found = None
        if not isinstance(found, dict):
            return {}, False
        rows: Rows = {}
        for key, row in found.items():
            if isinstance(row, dict):
                folded = fold(key)
                rows[folded] = max(rows.get(folded, row), row, key=_updated)
        return rows, all(isinstance(row, dict) for row in found.values())

    def _bytes(self) -> bytes:
        with jsonl.faults("read", self.path):
            return self.path.read_bytes() if self.path.exists() else b""

    def _set_aside(self) -> None:
        aside = self.path.with_name(f"{self.path.name}.broken-{self._clock():%Y%m%dT%H%M%S%f}")
        with jsonl.faults("set aside", self.path):
            self.path.rename(aside)
        log.warning("sessions_store_set_aside file=%s", aside.name)

    def _back_up(self, content: bytes) -> None:
        backup = self.path.with_name(f"{self.path.name}.bak-{self._clock():%Y%m%dT%H%M%S%f}")
        jsonl.replace(backup, content, sync=self._sync)
        for old in sorted(self.path.parent.glob(f"{self.path.name}.bak-*"))[:-KEPT_BACKUPS]:
            old.unlink(missing_ok=True)


# Compare and set: the row as it was read, or none, gives way to the new one.
SWAP = """
local now = redis.call('HGET', KEYS[1], ARGV[1])
if (now or '') ~= ARGV[2] then return 0 end
if ARGV[3] == '' then redis.call('HDEL', KEYS[1], ARGV[1]) else redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) end
return 1
"""


class RedisRegistry:
    """The rows of one agent in the Redis hash `<prefix>:sessions:{<agent>}`; a patch that lost a race is made again."""

    def __init__(self, client: Redis, *, agent: str, prefix: str = "ma") -> None:
        self._client = client
        self._key = f"{prefix}:sessions:{{{agent_id(agent)}}}"

    async def load(self) -> Mapping[str, SessionEntry]:
        with redis_errors("reading sessions"):
            found = await self._client.hgetall(self._key)
        entries = {_text(key): _entry(_decoded(_text(value))) for key, value in found.items()}
        return {key: entry for key, entry in entries.items() if entry is not None}

    async def get(self, key: str) -> SessionEntry | None:
        with redis_errors("reading a session"):
            found = await self._client.hget(self._key, fold(key))
        return _entry(_decoded(_text(found))) if found else None

    async def patch(self, key: str, change: Change) -> SessionEntry | None:
        for _ in range(MAX_ATTEMPTS):
            with redis_errors("reading a session"):
                before = _text(await self._client.hget(self._key, fold(key)) or "")
            old = _entry(_decoded(before)) if before else None
            new = change(old)
            if new == old:
                return new
            after = json.dumps(_row(new)) if new else ""
            with redis_errors("writing a session"):
                if await self._client.eval(SWAP, 1, self._key, fold(key), before, after):
                    return new
        raise Conflict(f"the session {key!r} is changed from everywhere at once; try again")


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _decoded(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _entry(row: dict[str, Any]) -> SessionEntry | None:
    try:
        return SessionEntry.model_validate(row)
    except ValidationError:
        return None


def _row(entry: SessionEntry) -> dict[str, Any]:
    return entry.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _updated(row: dict[str, Any]) -> str:
    return str(row.get("updatedAt", ""))
