"""Erasure: everything that is kept of one user goes, and a report says what went and what remains where."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from memagent.memory import Scope, ScopeKind
from memagent.sessions import owners

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from memagent.service.ports import Ports

    Eraser = Callable[[str], Awaitable[Mapping[str, int]]]
    """Erases what another part keeps of a user, and counts it by kind."""


@dataclass(frozen=True, slots=True)
class Remains:
    """One thing that is still somewhere, and what ends it."""

    what: str
    where: str
    until: str


@dataclass(frozen=True, slots=True)
class Erasure:
    """What was erased, counted by kind, and what remains. It holds no memory and no key."""

    user: str
    erased: Mapping[str, int]
    remains: tuple[Remains, ...]
    keys_left: int
    """Keys of this user that Redis still has: switches, and marks that keep turns under way from writing."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


async def erase_user(
    ports: Ports,
    user: str,
    *,
    closed: Mapping[Scope, Sequence[str]] | None = None,
    preferences: bool = False,
    also: Sequence[Eraser] = (),
) -> Erasure:
    """Erase the user's own pool, every partition of an agent and the global memories: vectors, history and receipts too.

    The user's own sessions go as well.

    `also` go first, so that nothing of theirs writes afterwards. `closed` are message ids of turns under way, by scope:
    they write nothing any more. `preferences` erases the user's own switches as well, which switches memory on again for
    somebody who had switched it off. Running it again is harmless: it finds less. Raises `StoreFault`.
    """
    erased: Counter[str] = Counter({"memories": 0, "vectors": 0, "changes": 0, "receipts": 0})
    for eraser in also:
        erased.update(await eraser(user))
    closed = closed or {}
    own = (Scope(ScopeKind.USER, user), Scope(ScopeKind.GLOBAL, user))
    for scope in sorted({*await ports.store.scopes(user), *own, *closed}):
        erased.update(await ports.store.erase(scope, closed=closed.get(scope, ())))
    if preferences:
        erased["preferences"] = await ports.store.erase_preferences(user)
    if sessions := await asyncio.to_thread(owners.erase, ports.options.data_dir, user):
        erased["sessions"] = sessions
    kept = (() if preferences else (SWITCHES,)) + ((CLOSED_MARKS,) if closed else ())
    return Erasure(user, dict(erased), (*kept, *REMAINS), await ports.store.keys_of(user))


SWITCHES = Remains("the user's own switches (memory on or off)", "Redis", "somebody sets them anew")

CLOSED_MARKS = Remains(
    "ids of messages that were being learned from, so that they write nothing any more",
    "Redis",
    "an hour from now",
)

REMAINS = (
    Remains(
        "what was erased, as it was written",
        "Redis' append-only file and its replicas' files",
        "the next rewrite (`BGREWRITEAOF` makes one now)",
    ),
    Remains(
        "what was erased, as it was then",
        "snapshots and backups of Redis",
        "the next snapshot, and your own rule for backups",
    ),
    Remains(
        "memories of shared scopes that came from this user's words",
        "Redis",
        "they are deleted there: they belong to everybody who shares them",
    ),
    Remains(
        "transcripts and memory files of sessions that an agent shares, if sessions are used",
        "the data folder",
        "`memagent sessions` or you delete them: a session belongs to an agent, not to a user's id",
    ),
    Remains(
        "what a flush of a session wrote to the day's note, if notes are kept",
        "MEMAGENT_NOTES_DIR",
        "you delete it there: a note belongs to everybody who reads the folder",
    ),
    Remains(
        "what was erased, where it was read a moment ago",
        "the memory of processes that run",
        "they stop, or what others say takes its place",
    ),
    Remains("ids of turns, no text", "logs", "your own rule for logs deletes them"),
)
