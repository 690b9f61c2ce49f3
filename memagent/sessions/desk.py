"""Sessions as an operator sees them: finished JSON values of what is in a folder of sessions."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memagent.errors import NoSuchSession
from memagent.sessions.archive import archives, transcript_of
from memagent.sessions.cleanup import Cleanup
from memagent.sessions.context import context
from memagent.sessions.keys import fold, kind_of, lock_name
from memagent.sessions.locks import FileLocks
from memagent.sessions.message_json import to_json
from memagent.sessions.registry import FileRegistry
from memagent.sessions.service import Sessions
from memagent.sessions.transcript import SESSION_INFO, Transcript, file_in
from memagent.turn import text_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from memagent.sessions.cleanup import CleanupSettings, Victim
    from memagent.sessions.context import Item
    from memagent.sessions.entry import SessionEntry
    from memagent.sessions.transcript import Record


MIN_ID_CHARS = 8
"""As much of a session's id as `list` shows, and as names it."""


def utc_now() -> datetime:
    return datetime.now(UTC)


async def listed(folder: Path) -> list[dict[str, Any]]:
    """Every session's row with its key, the latest used first."""
    rows = await _registry(folder).load()
    by_use = sorted(rows.items(), key=lambda row: (row[1].accessed_at, row[0]), reverse=True)
    return [
        {"key": key, "kind": str(kind_of(key)), **entry.model_dump(mode="json", by_alias=True)}
        for key, entry in by_use
    ]


def archived(folder: Path) -> list[dict[str, Any]]:
    """Every archived transcript, the oldest first."""
    return [
        {
            "sessionId": each.session_id,
            "reason": str(each.reason),
            "at": each.at.isoformat(),
            "file": each.path.name,
            "bytes": each.path.stat().st_size,
        }
        for each in archives(folder)
    ]


async def shown(folder: Path, session: str) -> dict[str, Any]:
    """A session by its key or id, what was said in it included; raises `NoSuchSession`."""
    key, entry, path = await _found(folder, session)
    record = await asyncio.to_thread(Transcript(path).read)
    held = context(record)
    header = record.header
    return {
        "key": key,
        "sessionId": header.session_id if header else session,
        "file": path.name,
        "parentSession": header.parent if header else None,
        "startedAt": header.at.isoformat() if header else None,
        "lastAccessAt": entry.accessed_at.isoformat() if entry else None,
        "model": held.model or (entry.model_override if entry else None),
        "contextTokens": entry.total_tokens if entry else None,
        "totals": entry.totals.model_dump(by_alias=True) if entry else _ended(record),
        "summary": held.summary,
        "skipped": list(record.skipped),
        "messages": [*_summary(held.summary, header.at if header else None), *map(_said, held.items)],
    }


async def transcript(folder: Path, session: str) -> bytes:
    """A session's transcript, byte for byte; raises `NoSuchSession`."""
    _, _, path = await _found(folder, session)
    return await asyncio.to_thread(path.read_bytes)


async def reset(folder: Path, key: str, *, sessions: Sessions | None = None) -> dict[str, Any]:
    """Begin the key's session anew; without `sessions` nothing is learned from the old one before."""
    received = await (sessions or Sessions(folder, clock=utc_now)).reset(key)
    return {"key": fold(key), "sessionId": received.session_id}


async def pinned(folder: Path, key: str, *, on: bool) -> dict[str, Any]:
    """Pin the key's session, or let it go; raises `NoSuchSession`."""
    registry = _registry(folder)
    async with FileLocks(folder / ".locks").hold(lock_name(key)):
        if await registry.get(key) is None:
            raise _missing(folder, key)
        await registry.patch(key, lambda entry: entry.model_copy(update={"pinned": on}) if entry else None)
    return {"key": fold(key), "pinned": on}


async def cleaned(
    folder: Path, settings: CleanupSettings, *, active: Collection[str] = (), apply: bool = False
) -> dict[str, Any]:
    """The plan of a cleanup, and, with `apply`, what came of it."""
    cleanup = Cleanup(
        folder,
        registry=_registry(folder),
        clock=utc_now,
        settings=settings,
        active=[fold(key) for key in active],
    )
    plan = await cleanup.plan()
    done = await cleanup.run(plan) if apply else None
    return {
        "applied": apply,
        "victims": [_victim(each) for each in plan.victims],
        "warnings": list(plan.warnings),
        "done": len(done.done) if done else 0,
        "spared": len(done.spared) if done else 0,
    }


def _registry(folder: Path) -> FileRegistry:
    return FileRegistry(folder, clock=utc_now)


async def _found(folder: Path, session: str) -> tuple[str | None, SessionEntry | None, Path]:
    rows = await _registry(folder).load()
    for key, entry in rows.items():
        by_id = entry.session_id.startswith(session) and len(session) >= MIN_ID_CHARS
        if by_id or session == entry.session_id or fold(session) == key:
            return key, entry, file_in(folder, entry.session_id, stored=entry.session_file)
    try:
        return None, None, await asyncio.to_thread(transcript_of, folder, session)
    except NoSuchSession:
        raise _missing(folder, session) from None


def _missing(folder: Path, session: str) -> NoSuchSession:
    return NoSuchSession(
        f"no session {session!r} in {folder}; `memagent sessions list` shows those there are"
    )


def _ended(record: Record) -> dict[str, Any] | None:
    """The totals with which an archived session was closed."""
    last = record.entries[-1] if record.entries else None
    return last.data.get("totals") if last is not None and last.type == SESSION_INFO else None


def _summary(summary: str | None, at: datetime | None) -> list[dict[str, Any]]:
    if summary is None:
        return []
    return [{"role": "summary", "at": at.isoformat() if at else "", "text": summary, "toolCalls": []}]


def _said(item: Item) -> dict[str, Any]:
    value = to_json(item.message)
    return {
        "role": item.message.role,
        "at": item.entry.at.isoformat(),
        "text": text_of(item.message.content),
        "toolCalls": value.get("toolCalls", []),
    }


def _victim(victim: Victim) -> dict[str, Any]:
    return {
        "why": str(victim.why),
        "key": victim.key,
        "sessionId": victim.session_id,
        "files": [path.name for path in victim.files],
        "bytes": victim.size_bytes,
        "accessedAt": victim.accessed_at.isoformat() if victim.accessed_at else None,
        "erased": victim.erased,
    }
