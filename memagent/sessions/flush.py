"""Saving what matters before a path that loses context: when, and what the memory agent is handed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memagent.sessions.reset import zone

if TYPE_CHECKING:
    from datetime import datetime

    from memagent.memory import Message
    from memagent.sessions.context import Context
    from memagent.sessions.entry import SessionEntry
    from memagent.sessions.registry import SessionRegistry

log = logging.getLogger(__name__)

FLUSH_TIMEOUT_S = 60.0
"""A reply waits for the flush at most this long."""


@dataclass(frozen=True, slots=True)
class FlushRequest:
    """What to save: the messages that no flush has seen yet.

    `entry_id` is the entry of the last of them: session and entry together name a flush. `reason` is `threshold`, `overflow`, `manual`, `reset`, `daily` or `idle`. `note` is the memory file of the user's
    date, to be appended to only; the base memory files are read-only meanwhile (O63).
    """

    key: str
    session_id: str
    entry_id: str
    reason: str
    messages: tuple[Message, ...]
    note: str


Flush = Callable[[FlushRequest], Awaitable[None]]


def note_name(now: datetime, zone_name: str) -> str:
    """The dated memory file of the user's day, not of UTC's (O63)."""
    return f"memory/{now.astimezone(zone(zone_name)):%Y-%m-%d}.md"


def flushed_this_cycle(entry: SessionEntry) -> bool:
    """Whether the threshold flush ran since the last compaction (O61)."""
    return entry.memory_flush_compaction_count == entry.compaction_count


def unflushed(entry: SessionEntry, context: Context) -> tuple[Message, ...]:
    """What was said since the last flush; the tail of a compaction was flushed before it."""
    fresh = tuple(item for item in context.items if not item.is_copy)
    ids = [item.entry.id for item in fresh]
    start = ids.index(entry.memory_flush_entry_id) + 1 if entry.memory_flush_entry_id in ids else 0
    return tuple(item.message for item in fresh[start:])


class Flusher:
    """Hands conversations to `flush` and keeps the marks of it in the store's rows. Without one, nothing is done."""

    def __init__(
        self, flush: Flush | None, *, registry: SessionRegistry, clock: Callable[[], datetime], zone_name: str
    ) -> None:
        self._flush = flush
        self._registry = registry
        self._clock = clock
        self._zone_name = zone_name

    async def run(self, key: str, entry: SessionEntry, context: Context, reason: str) -> SessionEntry:
        """Save what no flush has seen, and mark it; the row as it is then.

        A failing flush is logged, leaves no mark and blocks nothing (O64).
        """
        messages = unflushed(entry, context)
        if self._flush is None or not messages:
            return entry
        now = self._clock()
        newest = context.items[-1].entry.id
        request = FlushRequest(
            key, entry.session_id, newest, reason, messages, note_name(now, self._zone_name)
        )
        if not await _done(self._flush, request):
            return entry
        marks = {
            "memory_flush_at": now,
            "memory_flush_compaction_count": entry.compaction_count,
            "memory_flush_entry_id": newest,
        }

        def mark(row: SessionEntry | None) -> SessionEntry | None:
            same = row is not None and row.session_id == entry.session_id
            return row.model_copy(update=marks) if row is not None and same else row

        await self._registry.patch(key, mark)
        return entry.model_copy(update=marks)


async def _done(flush: Flush, request: FlushRequest) -> bool:
    try:
        async with asyncio.timeout(FLUSH_TIMEOUT_S):
            await flush(request)
    except Exception as error:  # noqa: BLE001  whatever the agent behind it raises, the conversation goes on
        log.warning(
            "memory_flush_failed session=%s reason=%s fault=%s",
            request.session_id,
            request.reason,
            type(error).__name__,
        )
        return False
    return True
