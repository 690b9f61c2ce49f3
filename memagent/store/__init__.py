"""Port to the store: what recall, the agent's edits and the user's hands see of it.

`Scope` is the first argument of every call and has no default. Every write is one atomic step that checks limits, evicts
where allowed, writes, logs history and counts exactly once per message. An outage raises `StoreUnavailable`; only
"not found" is None or empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from memagent.memory import Evidence, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from memagent.llm import Vector
    from memagent.memory import Memory, Scope


# -- writing -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetMemory:
    """Put `value` under `key`, whole or not at all. `terms` are its folded words for lexical recall.

    `vector` and `embedder` go together; both empty means "not searched" until the background re-embed.
    """

    key: str
    value: str
    tokens: int
    source: Source = Source.AGENT
    evidence: Evidence = field(default_factory=Evidence)
    vector: Vector | None = None
    embedder: str = ""
    terms: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Keywords and `#channels` that limit where the memory is seen (T20). Empty keeps the tags that stand."""
    trusted: bool = True
    """False keeps it out of recall until its user accepts it, and forgets nothing else for it."""
    create_only: bool = False
    """Refuse with `exists` when the key is taken (LibreChat's POST)."""
    rename_from: str | None = None
    """Move the memory of this key here in the same step (LibreChat's PATCH with a new key), keeping its age.

    The same key says that the memory must be there already.
    """


@dataclass(frozen=True, slots=True)
class DeleteMemory:
    """Delete one memory. By hand (`USER`, without a message id) it is honoured even while the user is opted out."""

    key: str
    source: Source = Source.AGENT
    evidence: Evidence = field(default_factory=Evidence)


Edit = SetMemory | DeleteMemory


@dataclass(frozen=True, slots=True)
class Limits:
    """What one scope may hold. None means without limit.

    `tokens` is the most of all values together (landing exactly on it is allowed), `entries` the most memories.
    `forget` allows a full list to make room by forgetting a dormant memory (T30 to T43); it is false while decay is off
    and for a write that no successful search stands behind (T38, T39).
    """

    tokens: int | None = None
    entries: int | None = 100
    forget: bool = False
    dormant_after_days: int = 7
    partitions: int = 1_000
    """The most scopes of one user, each with a list of its own."""


class EditStatus(StrEnum):
    SET = "set"
    REFRESHED = "refreshed"
    """The same words again, under this key or another: dates move, nothing is added."""
    DELETED = "deleted"
    MISSING = "missing"
    """A delete, or a rename, of a key that is not there."""
    REFUSED = "refused"


class Refusal(StrEnum):
    ALREADY_EXCEEDED = "already_exceeded"
    """The total is at or over the token limit before this value."""
    WOULD_EXCEED = "would_exceed"
    LIST_FULL = "list_full"
    TOO_MANY_PARTITIONS = "too_many_partitions"
    EXISTS = "exists"
    USER_SAID_OTHERWISE = "user_said_otherwise"
    """What only the assistant said does not overwrite what the user said."""


@dataclass(frozen=True, slots=True)
class EditOutcome:
    """What became of one edit; `key` is where the words are now, `tokens` the scope's total after it."""

    key: str
    status: EditStatus
    refusal: Refusal | None = None
    before: str | None = None
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Totals:
    tokens: int
    entries: int


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of one atomic apply.

    `duplicate` means this message id was applied before: nothing was done, the outcomes are the earlier ones.
    `opted_out` means the user's consent was gone by the time of writing: nothing was done, there are no outcomes.
    """

    outcomes: tuple[EditOutcome, ...]
    forgotten: tuple[Memory, ...]
    totals: Totals
    duplicate: bool = False
    opted_out: bool = False
    """The owner switched memory off meanwhile: nothing was written (checked in the same script)."""


# -- reading -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """One search of one turn.

    Without an `embedder` there is no search, every memory counts as active and nothing ages (T45). With an embedder but
    no `vector` this turn's search did not happen (it failed, or the message was too short): the prefix stays as it
    stands, nothing ages, nothing comes back (T09, T28, V08). `terms` are the folded words of the message. `commit` false
    computes the same answer and changes no counter (explaining, simulating). `decay` false: all active, counters frozen
    (T44, T46). `context_terms` and `channel` decide which tagged memories are visible (T20); the former are all words in
    sight, and are asked for only where a tag has to be looked for among them. `candidates` are compared per scope, the
    best `hits` of them come back. `weights` override how a score is made (`store/lua/score.lua`).
    """

    now: datetime
    vector: Vector | None = None
    embedder: str = ""
    terms: tuple[str, ...] = ()
    floor: float = 0.5
    used: int = 3
    candidates: int = 50
    hits: int = 10
    decay: bool = True
    dormant_after_days: int = 7
    commit: bool = True
    context_terms: Callable[[], tuple[str, ...]] = tuple
    channel: str = ""
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """One candidate: `score` in 0..1 against the floor, and the parts it is made of (`vector`, `lexical`)."""

    scope: Scope
    memory: Memory
    score: float
    parts: Mapping[str, float]
    used: bool
    reason: str
    """Why it counted or did not: `used`, `below_floor`, `beyond_used_set`."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """What one search found, as it stood before its own counting (T25).

    `active` in stable order (oldest creation first, then key) is the prefix; `hits` are the best candidates, best first;
    `searched` says that the search succeeded and counted; `etag` changes exactly when the prefix does. Counters of
    `active` memories (`unused_days`, `last_matched_at`) may be as old as the etag; `list` has them exact. `opted_out` means
    that the user's consent is gone: everything else is empty.
    """

    active: tuple[Memory, ...]
    hits: tuple[Hit, ...]
    searched: bool
    etag: str
    total_tokens: int = 0
    opted_out: bool = False
    """The owner of the first scope switched memory off: nothing was read, nothing counted (checked in the same script)."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How things stand when learning from a message begins.

    `receipt` is the message's if it was seen before, `switch` the asked preference of its user, `memories` are all of each
    scope, newest update first. Their counters may be as old as the scope's last change; `list` has them exact.
    """

    receipt: Mapping[str, Any] | None
    switch: bool | None
    memories: tuple[tuple[Memory, ...], ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of one message: its receipt as it was handed in, and what came of its edits, if any were applied."""

    receipt: Mapping[str, Any]
    applied: Applied | None


@dataclass(frozen=True, slots=True)
class Change:
    """One line of a scope's history. `before` and `after` are values; `undoes` is the id of the change it takes back."""

    id: str
    at: datetime
    op: str
    """`set`, `delete`, `forget`, `undo`, `import`."""
    key: str
    before: str | None
    after: str | None
    source: Source
    evidence: Evidence = field(default_factory=Evidence)
    undoes: str | None = None


@dataclass(frozen=True, slots=True)
class Unsearched:
    """A memory that has no vector of the asked embedder yet."""

    scope: Scope
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Health:
    """One thing looked at on the server: `verdict` is `ok`, `warning` or `failed`, `advice` what to do about it."""

    name: str
    verdict: str
    found: str
    advice: str = ""


CONSENT = "memories"
"""The preference that switches memory off for one user: LibreChat's name (`personalization.memories`)."""


class Store(Protocol):
    """Memories of scopes, their history, receipts and preferences."""

    async def recall(self, scopes: Sequence[Scope], query: RecallQuery) -> Recalled:
        """Search the scopes, count the day, reset the used set: one round trip, on a cluster three."""
        ...

    async def standing(self, scopes: Sequence[Scope], message_id: str, *, switch: str) -> Standing:
        """How things stand before learning from a message in the first of `scopes`: one round trip."""
        ...

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
        """Apply all edits in order in one atomic step; exactly once per `message_id`, storing `receipt` with it."""
        ...

    async def undo(
        self,
        scope: Scope,
        change_id: str | None = None,
        *,
        limits: Limits,
        now: datetime,
        source: Source = Source.USER,
    ) -> Change:
        """Take back one change, itself a change; undoing an undo redoes it.

        Without an id it is the newest change that is neither an undo nor taken back already. A restored value has no vector
        until the background re-embed. Raises `NotFound`, `Conflict` when the memory changed since, `LimitExceeded` when it
        no longer fits, `PersonalizationOff`.
        """
        ...

    async def list(self, scope: Scope, *, dormant_after_days: int | None = 7) -> tuple[Memory, ...]:
        """All memories of the scope, newest update first. `dormant_after_days` None is decay switched off."""
        ...

    async def get(self, scope: Scope, key: str, *, dormant_after_days: int | None = 7) -> Memory | None: ...

    async def totals(self, scope: Scope) -> Totals: ...

    async def scopes(self, user: str) -> tuple[Scope, ...]:
        """All scopes of this user that anything was kept in and that were not erased since, in one order."""
        ...

    async def history(self, scope: Scope, *, key: str | None = None, limit: int = 50) -> tuple[Change, ...]:
        """Changes, newest first."""
        ...

    async def receipt(self, scope: Scope, message_id: str) -> Kept | None: ...

    async def save_receipt(self, scope: Scope, message_id: str, receipt: Mapping[str, Any]) -> None: ...

    async def preference(self, user: str, name: str) -> bool | None: ...

    async def set_preference(self, user: str, name: str, value: bool) -> None: ...  # noqa: FBT001

    async def erase_preferences(self, user: str) -> int:
        """Erase all switches of a user; how many there were."""
        ...

    async def keys_of(self, user: str) -> int:
        """How many keys the user has in all. Walks the key space: for the report of an erasure, never on the way of a turn."""
        ...

    async def unsearched(
        self, scope: Scope | None, embedder: str, *, limit: int = 100
    ) -> tuple[Unsearched, ...]:
        """Memories of one scope, or of all, without a vector of this embedder, for the background re-embed (T48).

        Waits while a new index is still being built, so that an empty answer means that there are none.
        """
        ...

    async def attach_vector(
        self, memory: Unsearched, *, vector: Vector, embedder: str, terms: Sequence[str], now: datetime
    ) -> bool:
        """Make a memory searchable, keeping its unused days; False when its words changed meanwhile (T49)."""
        ...

    async def erase(self, scope: Scope, *, closed: Sequence[str] = ()) -> Mapping[str, int]:
        """Erase everything of the scope; counts per kind of thing. The user's preferences stay: they are a wish.

        `closed` are message ids of turns under way: in the same step they count as applied, so none of them writes any more.
        """
        ...

    async def health(self, *, now: datetime) -> tuple[Health, ...]:
        """Whether the server is fit to keep memories; a server that does not answer is a failed probe, never a raise."""
        ...

    async def close(self) -> None: ...
