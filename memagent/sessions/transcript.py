"""Transcripts: what was said in one session, a JSON line each, appended only.

The first line is the header; every entry names its parent, so the lines are a tree whose leaf is the line appended last.
An entry's id is the byte it starts at, in hexadecimal: unique in its file without reading it. Blocking; whoever appends
holds the session's lock.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memagent.errors import BadRequest
from memagent.sessions import jsonl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

VERSION = 3
TAIL_BYTES = 64 * 1024
"""How much of the end is read to find the leaf; longer last lines are found by doubling it."""
SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")

MESSAGE = "message"
COMPACTION = "compaction"
BRANCH_SUMMARY = "branch_summary"
CUSTOM = "custom"
"""State of an extension: kept, never shown to a model."""
CUSTOM_MESSAGE = "custom_message"
"""An extension's text, shown as the user's."""
THINKING_LEVEL = "thinking_level_change"
MODEL = "model_change"
LABEL = "label"
SESSION_INFO = "session_info"
TYPES = frozenset(
    (MESSAGE, COMPACTION, BRANCH_SUMMARY, CUSTOM, CUSTOM_MESSAGE, THINKING_LEVEL, MODEL, LABEL, SESSION_INFO)
)


@dataclass(frozen=True, slots=True)
class Header:
    """The first line (O25). `parent` is the session this one goes on from."""

    session_id: str
    at: datetime
    cwd: str = ""
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to be appended: a type of `TYPES` and its fields."""

    type: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line after the header."""

    id: str
    parent_id: str | None
    at: datetime
    type: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Record:
    """A transcript as read: no header when the file is missing or its first line is none. `skipped` are line numbers."""

    header: Header | None
    entries: tuple[Entry, ...] = ()
    skipped: tuple[int, ...] = ()

    @property
    def leaf(self) -> str | None:
        return self.entries[-1].id if self.entries else None


class Transcript:
    """The file of one session. With `sync`, what was appended is on the disk when the call returns."""

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        self.path = path
        self._sync = sync

    def create(self, header: Header, drafts: Sequence[Draft] = ()) -> None:
        """Write the file whole, in one step: it is never there without its header."""
        content = jsonl.encode(_header_json(header)) + jsonl.NEWLINE
        parent = None
        for draft in drafts:
            value = _entry_json(_checked(draft), id_=_id(len(content)), parent_id=parent, at=header.at)
            content += jsonl.encode(value) + jsonl.NEWLINE
            parent = value["id"]
        jsonl.replace(self.path, content, sync=self._sync)

    def ready(self, header: Header) -> Path | None:
        """Make the file ready to be appended to.

        A missing one is made. One without a readable header is moved aside, never overwritten (O28): its new place is
        returned.
        """
        with jsonl.faults("read", self.path):
            first = _first_line(self.path)
        aside = None
        if first is not None and _header(first) is None:
            aside = self.path.with_name(f"{self.path.name}.broken.{stamp(header.at)}")
            with jsonl.faults("move aside", self.path):
                self.path.rename(aside)
            first = None
        if first is None:
            self.create(header)
        return aside

    def append(
        self, drafts: Sequence[Draft], *, at: datetime, parent_id: str | None = None, key: str | None = None
    ) -> tuple[Entry, ...]:
        """Append entries in one write, below the leaf or, to branch off, below `parent_id` (O25).

        With `key`, an append that was made before under the same key adds nothing (O32).
        """
        if key is not None and any(entry.data.get("idempotencyKey") == key for entry in self.read().entries):
            return ()
        with jsonl.faults("read", self.path):
            parent = parent_id or self._leaf()
            offset = jsonl.end_of(self.path)
        entries, values = [], []
        for draft in drafts:
            data = dict(draft.data) if key is None else {**draft.data, "idempotencyKey": key}
            value = _entry_json(_checked(Draft(draft.type, data)), id_=_id(offset), parent_id=parent, at=at)
            entries.append(Entry(value["id"], parent, at, draft.type, data))
            values.append(value)
            offset += len(jsonl.encode(value)) + 1
            parent = value["id"]
        jsonl.append(self.path, values, sync=self._sync)
        return tuple(entries)

    def read(self) -> Record:
        """Everything that can be read; nothing is ever rewritten for what cannot (V27)."""
        header: Header | None = None
        entries: list[Entry] = []
        skipped: list[int] = []
        for line in jsonl.lines(self.path):
            if header is None:
                header = _header(line.value) if line.number == 1 else None
                if header is None:
                    return Record(None, skipped=(1,))
            elif (entry := _entry(line.value)) is not None:
                entries.append(entry)
            else:
                skipped.append(line.number)
        return Record(header, tuple(entries), tuple(skipped))

    def _leaf(self) -> str | None:
        size = self.path.stat().st_size
        wanted = TAIL_BYTES
        with self.path.open("rb") as file:
            while True:
                start = max(size - wanted, 0)
                file.seek(start)
                found = file.read().split(jsonl.NEWLINE)[0 if start == 0 else 1 :]
                for raw in reversed(found):
                    entry = _entry(jsonl.decode(raw))
                    if entry is not None:
                        return entry.id
                if start == 0:
                    return None
                wanted *= 2


def stamp(at: datetime) -> str:
    """A time as it stands in the names of archives: no character that a file system minds."""
    return f"{at:%Y-%m-%dT%H-%M-%S-%f}"


def checked_id(session_id: str) -> str:
    """The id, if it can be a file's name; raises `BadRequest` otherwise (O31)."""
    if not SESSION_ID.fullmatch(session_id):
        raise BadRequest("a session id consists of letters, digits, `-` and `_`, up to 128 of them")
    return session_id


def file_in(folder: Path, session_id: str, *, stored: str | None = None, topic: str | None = None) -> Path:
    """The transcript's path.

    A stored one counts only when it is a `.jsonl` inside `folder`, also after following links; otherwise the derived name
    does (O31).
    """
    name = checked_id(session_id) + (f"-topic-{checked_id(topic)}" if topic else "")
    derived = folder / f"{name}.jsonl"
    if stored:
        candidate = folder / stored
        if candidate.suffix == ".jsonl" and candidate.resolve().is_relative_to(folder.resolve()):
            return candidate
    return derived


def _id(offset: int) -> str:
    return f"{offset:08x}"


def _checked(draft: Draft) -> Draft:
    if draft.type not in TYPES:
        raise BadRequest(
            f"unknown type of transcript entry {draft.type!r}; known are {', '.join(sorted(TYPES))}"
        )
    return draft


def _first_line(path: Path) -> Mapping[str, Any] | None:
    """The first line's object, an empty one when it is none; None when there is no file."""
    try:
        with path.open("rb") as file:
            return jsonl.decode(file.readline()) or {}
    except FileNotFoundError:
        return None


def _header_json(header: Header) -> dict[str, Any]:
    value = {
        "type": "session",
        "version": VERSION,
        "id": header.session_id,
        "timestamp": header.at.isoformat(),
    }
    if header.cwd:
        value["cwd"] = header.cwd
    if header.parent:
        value["parentSession"] = header.parent
    return value


def _header(value: Mapping[str, Any] | None) -> Header | None:
    if value is None or value.get("type") != "session" or not isinstance(value.get("id"), str):
        return None
    at = _time(value.get("timestamp"))
    parent = value.get("parentSession")
    return (
        Header(value["id"], at, str(value.get("cwd") or ""), str(parent) if parent else None) if at else None
    )


def _entry_json(draft: Draft, *, id_: str, parent_id: str | None, at: datetime) -> dict[str, Any]:
    own = {"type": draft.type, "id": id_, "parentId": parent_id, "timestamp": at.isoformat()}
    return {**own, **draft.data, **own}


def _entry(value: Mapping[str, Any] | None) -> Entry | None:
    if value is None or not isinstance(value.get("id"), str) or not isinstance(value.get("type"), str):
        return None
    at, parent = _time(value.get("timestamp")), value.get("parentId")
    if at is None or value["type"] == "session":
        return None
    data = {name: each for name, each in value.items() if name not in ("type", "id", "parentId", "timestamp")}
    return Entry(value["id"], parent if isinstance(parent, str) else None, at, value["type"], data)


def _time(value: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return at if at is not None and at.tzinfo is not None else None
