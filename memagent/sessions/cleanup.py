"""Cleaning up: which sessions nobody has opened for long, what lies around unnamed, and letting both go.

Planning changes nothing and says everything; carrying out looks at each victim again under its lock. Nothing is erased
at once: transcripts go to the archive first, and archives stay as long as they are set to.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from memagent.sessions import jsonl
from memagent.sessions.archive import Archive, Reason, archives, put_away, session_of
from memagent.sessions.entry import NEVER
from memagent.sessions.keys import KeyKind, kind_of, lock_name
from memagent.sessions.locks import FileLocks, finished
from memagent.sessions.transcript import file_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from memagent.sessions.entry import SessionEntry
    from memagent.sessions.registry import SessionRegistry

ORPHAN_GRACE = timedelta(days=1)
"""A transcript may be younger than the row that will name it."""
BUDGET_SHARE = 0.8
"""Once over the disk budget, go down to this share of it, so that the next message does not start over (O91)."""


class Why(StrEnum):
    UNUSED = "unused"
    """Not accessed for longer than the limit."""
    OVER_CAP = "over_cap"
    """More sessions than the cap; the one updated longest ago goes first."""
    ORPHAN = "orphan"
    """A transcript that no row names (O93)."""
    LEFTOVER = "leftover"
    """A half-written file of a process that died; what it was to become was never acknowledged."""
    ARCHIVE = "archive"
    """An archive past its time."""
    BUDGET = "budget"
    """The folder is larger than its budget."""


@dataclass(frozen=True, slots=True)
class CleanupSettings:
    """How long things stay.

    `keep_deleted` and `keep_ended` hold for archives of sessions that were cleaned up, and of those that were reset or
    compacted; None is for ever, so that they can be looked at. `protect_shared` spares groups and threads (O92).
    """

    unused_for: timedelta = timedelta(days=30)
    cap: int | None = 500
    keep_deleted: timedelta | None = timedelta(days=30)
    keep_ended: timedelta | None = None
    budget_bytes: int | None = None
    protect_shared: bool = True


@dataclass(frozen=True, slots=True)
class Victim:
    """One thing that goes. `key` is empty for a file that no row names; `accessed_at` is its row's or file's time."""

    why: Why
    session_id: str
    key: str = ""
    files: tuple[Path, ...] = ()
    size_bytes: int = 0
    accessed_at: datetime | None = None

    @property
    def erased(self) -> bool:
        """Whether the file is erased; everything else is archived."""
        return self.why in (Why.ARCHIVE, Why.LEFTOVER) or (self.why is Why.BUDGET and not self.key)


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    victims: tuple[Victim, ...]
    warnings: tuple[str, ...] = ()
    """Active or pinned sessions that would go if they were not (O90)."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    done: tuple[Victim, ...] = ()
    spared: tuple[Victim, ...] = ()
    """Used again since the plan was made, or in use at this moment."""


@dataclass(slots=True)
class _Draft:
    victims: list[Victim] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def keys(self) -> set[str]:
        return {victim.key for victim in self.victims if victim.key}

    @property
    def files(self) -> set[Path]:
        return {path for victim in self.victims for path in victim.files}


class Cleanup:
    """Cleans `folder` and the rows of `registry`. `active` are keys in use; they never go, nor do pinned ones."""

    def __init__(
        self,
        folder: Path,
        *,
        registry: SessionRegistry,
        clock: Callable[[], datetime],
        settings: CleanupSettings | None = None,
        active: Collection[str] = (),
    ) -> None:
        self._folder = folder
        self._registry = registry
        self._clock = clock
        self._settings = settings or CleanupSettings()
        self._active = frozenset(active)
        self._locks = FileLocks(folder / ".locks")

    async def plan(self) -> CleanupPlan:
        """What would go, in the order it would; changes nothing."""
        rows = await self._registry.load()
        return await asyncio.to_thread(self._plan, rows)

    async def run(self, plan: CleanupPlan) -> Cleaned:
        """Let the victims go that still are victims."""
        done: list[Victim] = []
        spared: list[Victim] = []
        for victim in plan.victims:
            (done if await self._let_go(victim) else spared).append(victim)
        return Cleaned(tuple(done), tuple(spared))

    # -- planning ------------------------------------------------------------------------------------------------------

    def _plan(self, rows: Mapping[str, SessionEntry]) -> CleanupPlan:
        draft = _Draft()
        self._unused(rows, draft)
        self._over_cap(rows, draft)
        ended = archives(self._folder)
        draft.victims += [_of_file(Why.ORPHAN, path) for path in self._orphans(rows)]
        draft.victims += [
            _of_file(Why.LEFTOVER, path) for path in sorted(self._folder.glob(".*.tmp")) if self._old(path)
        ]
        draft.victims += [_of_file(Why.ARCHIVE, each.path) for each in ended if self._past(each)]
        self._over_budget(rows, ended, draft)
        return CleanupPlan(tuple(draft.victims), tuple(draft.warnings))

    def _unused(self, rows: Mapping[str, SessionEntry], draft: _Draft) -> None:
        limit = self._clock() - self._settings.unused_for
        for key, entry in sorted(rows.items(), key=lambda row: (row[1].accessed_at, row[0])):
            if NEVER < entry.accessed_at < limit:
                self._take(Why.UNUSED, key, entry, draft)

    def _over_cap(self, rows: Mapping[str, SessionEntry], draft: _Draft) -> None:
        if self._settings.cap is None:
            return
        over = len(rows) - len(draft.keys) - self._settings.cap
        for key, entry in sorted(rows.items(), key=lambda row: (row[1].updated_at, row[0])):
            if over <= 0:
                return
            if key not in draft.keys and self._take(Why.OVER_CAP, key, entry, draft):
                over -= 1

    def _take(self, why: Why, key: str, entry: SessionEntry, draft: _Draft) -> bool:
        protected = self._protection(key, entry)
        if protected:
            draft.warnings.append(f"{key} would go ({why}), but it is {protected}")
            return False
        draft.victims.append(self._victim(why, key, entry))
        return True

    def _protection(self, key: str, entry: SessionEntry) -> str:
        if key in self._active or not self._locks.free(lock_name(key)):
            return "in use"
        if entry.pinned:
            return "pinned"
        shared = kind_of(key) is not KeyKind.DIRECT or entry.chat_type in (KeyKind.GROUP, KeyKind.THREAD)
        return "shared by a group or a thread" if self._settings.protect_shared and shared else ""

    def _victim(self, why: Why, key: str, entry: SessionEntry) -> Victim:
        path = file_in(self._folder, entry.session_id, stored=entry.session_file)
        files = (path,) if path.exists() else ()
        return Victim(why, entry.session_id, key, files, sum(map(_size, files)), entry.accessed_at)

    def _orphans(self, rows: Mapping[str, SessionEntry]) -> Iterator[Path]:
        named = {file_in(self._folder, row.session_id, stored=row.session_file) for row in rows.values()}
        # The predecessor of a session, when a crash cut the rotation off: opening the key archives it as what it is.
        before = {row.parent_session_id for row in rows.values()}
        for path in sorted(self._folder.glob("*.jsonl")):
            if path not in named and session_of(path.stem) not in before and self._old(path):
                yield path

    def _old(self, path: Path) -> bool:
        return path.stat().st_mtime < (self._clock() - ORPHAN_GRACE).timestamp()

    def _past(self, archive: Archive) -> bool:
        deleted = archive.reason is Reason.DELETED
        keep = self._settings.keep_deleted if deleted else self._settings.keep_ended
        return keep is not None and archive.at < self._clock() - keep

    def _over_budget(self, rows: Mapping[str, SessionEntry], ended: Sequence[Archive], draft: _Draft) -> None:
        """Archives and unnamed transcripts first, oldest file first, then the sessions updated longest ago (O91)."""
        budget = self._settings.budget_bytes
        gone = {path for victim in draft.victims if victim.erased for path in victim.files}
        used = sum(_size(path) for path in self._folder.glob("*") if path.is_file() and path not in gone)
        if budget is None or used <= budget:
            return
        target = budget * BUDGET_SHARE
        loose = [*(each.path for each in ended), *self._orphans(rows)]
        for path in sorted(set(loose) - draft.files, key=lambda path: (path.stat().st_mtime, path.name)):
            if used <= target:
                return
            draft.victims.append(_of_file(Why.BUDGET, path))
            used -= _size(path)
        for key, entry in sorted(rows.items(), key=lambda row: (row[1].updated_at, row[0])):
            if used <= target:
                return
            if key not in draft.keys and self._take(Why.BUDGET, key, entry, draft):
                used -= draft.victims[-1].size_bytes

    # -- carrying out --------------------------------------------------------------------------------------------------

    async def _let_go(self, victim: Victim) -> bool:
        if not victim.key:
            return await finished(self._file_gone, victim)
        async with AsyncExitStack() as stack:
            if not self._locks.free(lock_name(victim.key)):
                return False
            await stack.enter_async_context(self._locks.hold(lock_name(victim.key)))
            rows = await self._registry.load()
            entry = rows.get(victim.key)
            unchanged = entry is not None and entry.session_id == victim.session_id and not entry.pinned
            if entry is None or not unchanged or entry.accessed_at != victim.accessed_at:
                return False
            shared = any(row.session_id == entry.session_id for key, row in rows.items() if key != victim.key)
            await self._registry.patch(victim.key, lambda _: None)
            if not shared:  # two keys of one session: the file stays with the one that stays
                for path in victim.files:
                    await finished(put_away, path, Reason.DELETED, self._clock())
            return True

    def _file_gone(self, victim: Victim) -> bool:
        for path in victim.files:
            if not path.exists():
                return False
            if victim.erased:
                with jsonl.faults("delete", path):
                    path.unlink()
            else:
                put_away(path, Reason.DELETED, self._clock())
        return True


def _of_file(why: Why, path: Path) -> Victim:
    changed = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
    return Victim(why, session_of(path.name.partition(".jsonl")[0]), "", (path,), _size(path), changed)


def _size(path: Path) -> int:
    return path.stat().st_size
