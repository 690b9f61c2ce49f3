"""The session a key has now, and the step to the next one: new transcript, new row, old transcript archived.

The steps are ordered so that a crash between any two loses no line: a new file nobody names is an orphan, an old file
whose successor stands in the store is archived when the key is opened next.
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING

from memagent.sessions.archive import Reason, living_files, put_away
from memagent.sessions.context import context
from memagent.sessions.entry import SessionEntry, successor
from memagent.sessions.keys import fold, parent_of
from memagent.sessions.locks import finished
from memagent.sessions.transcript import (
    COMPACTION,
    MODEL,
    SESSION_ID,
    SESSION_INFO,
    THINKING_LEVEL,
    Draft,
    Header,
    Transcript,
    file_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime
    from pathlib import Path
    from typing import Any

    from memagent.sessions.context import Context, Item
    from memagent.sessions.registry import SessionRegistry
    from memagent.sessions.transcript import Entry, Record

log = logging.getLogger(__name__)

MAX_FORK_TOKENS = 100_000
"""A thread does not start with more than this of its parent (O23)."""

_TOPIC = re.compile(r":topic:([^:]+)$")


class SessionFiles:
    """The transcripts of `folder` and the rows of `registry`. Whoever calls holds the key's lock."""

    def __init__(
        self,
        folder: Path,
        *,
        registry: SessionRegistry,
        clock: Callable[[], datetime],
        new_id: Callable[[], str],
        sync: bool = True,
    ) -> None:
        self.folder = folder
        self.registry = registry
        self.clock = clock
        self._new_id = new_id
        self._sync = sync

    def transcript(self, entry: SessionEntry) -> Transcript:
        return Transcript(file_in(self.folder, entry.session_id, stored=entry.session_file), sync=self._sync)

    async def read(self, entry: SessionEntry) -> Record:
        return await asyncio.to_thread(self.transcript(entry).read)

    async def append(
        self, entry: SessionEntry, drafts: Sequence[Draft], *, key: str | None = None
    ) -> tuple[Entry, ...]:
        """Append to the session's transcript; one that cannot be appended to is moved aside first (O28)."""
        now = self.clock()

        def write() -> tuple[Entry, ...]:
            transcript = self.transcript(entry)
            aside = transcript.ready(Header(entry.session_id, now, parent=entry.parent_session_id))
            if aside is not None:
                log.warning("transcript_moved_aside session=%s file=%s", entry.session_id, aside.name)
            return transcript.append(drafts, at=now, key=key)

        return await finished(write)

    async def open(self, key: str) -> tuple[SessionEntry, bool]:
        """The key's session, made when there is none, and whether it was made. Finishes a rotation that a crash cut off."""
        entry = await self.registry.get(key)
        if entry is None:
            return await self._first(key), True
        if entry.parent_session_id:
            for path in await asyncio.to_thread(living_files, self.folder, entry.parent_session_id):
                began = (await self.read(entry)).entries[:1]
                compacted = bool(began) and began[0].type == COMPACTION
                reason = Reason.COMPACTED if compacted else Reason.RESET
                await finished(put_away, path, reason, self.clock())
        return entry, False

    async def rotate(
        self,
        key: str,
        old: SessionEntry,
        *,
        reason: Reason,
        carry: bool,
        drafts: Sequence[Draft] = (),
        update: Callable[[SessionEntry], SessionEntry] = lambda entry: entry,
    ) -> SessionEntry:
        """End `old` and begin its successor with `drafts`; `update` finishes the new row."""
        now = self.clock()
        entry = update(self._named(key, successor(old, session_id=self._new_id(), now=now, carry=carry)))
        header = Header(entry.session_id, now, parent=old.session_id)
        await finished(self.transcript(entry).create, header, drafts)
        await self.registry.patch(key, lambda _: entry)
        await finished(self._end, old, entry, reason, now)
        return entry

    def _end(self, old: SessionEntry, new: SessionEntry, reason: Reason, now: datetime) -> None:
        transcript = self.transcript(old)
        if not transcript.path.exists():
            return
        end = {
            "reason": str(reason),
            "next": new.session_id,
            "totals": old.totals.model_dump(by_alias=True),
            "estimatedCostUsd": old.estimated_cost_usd,
        }
        transcript.append([Draft(SESSION_INFO, end)], at=now)
        put_away(transcript.path, reason, now)

    async def _first(self, key: str) -> SessionEntry:
        now = self.clock()
        entry = self._named(key, successor(None, session_id=self._new_id(), now=now, carry=False))
        source, shown = await self._forked(key)
        if source is not None:
            entry = entry.model_copy(update={"forked_from": source.session_id})
        header = Header(entry.session_id, now, parent=source.session_id if source else None)
        drafts = (
            beginning(shown, shown.items, source.session_id, summary=shown.summary)
            if source and shown
            else ()
        )
        await finished(self.transcript(entry).create, header, drafts)
        # Another process may have been first: its session is the one.
        kept = await self.registry.patch(key, lambda there: there or entry)
        return kept or entry

    async def _forked(self, key: str) -> tuple[SessionEntry | None, Context | None]:
        parent = parent_of(key)
        source = await self.registry.get(parent) if parent else None
        if source is None or (source.total_tokens or 0) > MAX_FORK_TOKENS:
            return None, None
        return source, context(await self.read(source))

    def _named(self, key: str, entry: SessionEntry) -> SessionEntry:
        topic = _TOPIC.search(fold(key))
        if topic is None or not SESSION_ID.fullmatch(topic[1]):
            return entry
        return entry.model_copy(update={"session_file": f"{entry.session_id}-topic-{topic[1]}.jsonl"})


def beginning(
    shown: Context, items: Iterable[Item], session_id: str, *, summary: str | None = None, **marks: Any
) -> tuple[Draft, ...]:
    """A session's first entries: a summary, the state of `shown`, then `items` of the session `session_id`, word for word.

    What their calls reported is left behind: it is about another context (O44).
    """
    found = [] if summary is None else [Draft(COMPACTION, {"summary": summary, **marks})]
    if shown.model is not None:
        found.append(Draft(MODEL, {"model": shown.model}))
    if shown.thinking_level is not None:
        found.append(Draft(THINKING_LEVEL, {"thinkingLevel": shown.thinking_level}))
    for item in items:
        data = {name: value for name, value in item.entry.data.items() if name != "usage"}
        origin = item.entry.data.get("copiedFrom") or {"session": session_id, "id": item.entry.id}
        found.append(Draft(item.entry.type, {**data, "copiedFrom": origin}))
    return tuple(found)
