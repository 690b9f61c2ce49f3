"""The course of a session: what each call of a model was shown, through its compactions."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memagent.errors import NoSuchSession
from memagent.sessions.archive import transcript_of
from memagent.sessions.transcript import COMPACTION, MESSAGE, Transcript
from memagent.sessions.usage import context_size, read_usage

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from memagent.sessions.transcript import Record

MAX_SESSIONS = 50
"""Of a chat that was compacted more often, the latest."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the tokens it was shown and those it answered with."""

    at: datetime
    tokens: int
    output: int
    session_id: str

    def to_json(self) -> dict[str, Any]:
        return {
            "at": self.at.isoformat(),
            "tokens": self.tokens,
            "output": self.output,
            "sessionId": self.session_id,
        }


async def course(folder: Path, session_id: str) -> tuple[Call, ...]:
    """The calls of a session and of those it goes on from by compaction, oldest first; calls without numbers are left out."""
    return await asyncio.to_thread(_course, folder, session_id)


def _course(folder: Path, session_id: str) -> tuple[Call, ...]:
    calls: list[Call] = []
    here: str | None = session_id
    for _ in range(MAX_SESSIONS):
        if here is None:
            break
        try:
            record = Transcript(transcript_of(folder, here)).read()
        except NoSuchSession:
            break
        calls = [*_calls(record, here), *calls]
        compacted = bool(record.entries) and record.entries[0].type == COMPACTION
        here = record.header.parent if record.header and compacted else None
    return tuple(calls)


def _calls(record: Record, session_id: str) -> list[Call]:
    found = []
    for entry in record.entries:
        usage = read_usage(entry.data.get("usage")) if entry.type == MESSAGE else None
        if usage is not None and (tokens := context_size(usage)):
            found.append(Call(entry.at, tokens, usage.output_tokens, session_id))
    return found
