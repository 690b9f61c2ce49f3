"""Archived transcripts: the files of sessions that ended, kept beside the living ones and never appended to again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from memagent.errors import NoSuchSession
from memagent.sessions import jsonl
from memagent.sessions.transcript import SESSION_ID, stamp

if TYPE_CHECKING:
    from pathlib import Path

READ_ONLY = 0o400

_NAME = re.compile(
    r"(?P<stem>.+)\.jsonl\.(?P<reason>reset|compacted|deleted|broken)\.(?P<at>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{6})"
)


class Reason(StrEnum):
    RESET = "reset"
    COMPACTED = "compacted"
    DELETED = "deleted"
    """Cleaned up."""
    BROKEN = "broken"
    """Moved aside, its header could not be read."""


@dataclass(frozen=True, slots=True)
class Archive:
    path: Path
    session_id: str
    reason: Reason
    at: datetime


def put_away(path: Path, reason: Reason, at: datetime) -> Path:
    """Rename a transcript into the archive, read-only (O20, O58)."""
    target = path.with_name(f"{path.name}.{reason}.{stamp(at.astimezone(UTC))}")
    with jsonl.faults("archive", path):
        path.rename(target)
        target.chmod(READ_ONLY)
        jsonl.sync_folder(path.parent)
    return target


def archives(folder: Path) -> list[Archive]:
    """All archives of the folder, oldest first."""
    if not folder.is_dir():
        return []
    found = (_archive(path) for path in folder.iterdir())
    return sorted((each for each in found if each is not None), key=lambda each: (each.at, each.path.name))


def transcript_of(folder: Path, session_id: str) -> Path:
    """Where the session's transcript is, living or archived (O58); raises `NoSuchSession`."""
    if SESSION_ID.fullmatch(session_id):
        living = living_files(folder, session_id)
        kept = [each.path for each in archives(folder) if each.session_id == session_id]
        if found := [*living, *reversed(kept)]:
            return found[0]
    raise NoSuchSession(f"no session {session_id!r} in {folder}")


def living_files(folder: Path, session_id: str) -> list[Path]:
    """The session's files that are not archived: its own, or that of its topic."""
    return sorted(path for path in folder.glob(f"{session_id}*.jsonl") if session_of(path.stem) == session_id)


def session_of(stem: str) -> str:
    """The session's id in a transcript's name, without a topic (O31)."""
    return stem.partition("-topic-")[0]


def _archive(path: Path) -> Archive | None:
    found = _NAME.fullmatch(path.name)
    if found is None:
        return None
    at = datetime.strptime(found["at"], "%Y-%m-%dT%H-%M-%S-%f").replace(tzinfo=UTC)
    return Archive(path, session_of(found["stem"]), Reason(found["reason"]), at)
