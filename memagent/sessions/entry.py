"""What the sessions store knows of one session: the row of `sessions.json`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Row(BaseModel):
    # Rows of newer versions pass through: a field we do not know is kept.
    model_config = ConfigDict(frozen=True, extra="allow", alias_generator=to_camel, populate_by_name=True)


class Counters(Row):
    """Tokens of one kind each; `input` excludes what was read from a cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


OVERRIDES = (
    "thinking_level",
    "verbose_level",
    "reasoning_level",
    "speech",
    "model_override",
    "provider_override",
    "auth_override",
    "label",
)
"""What a reset by hand carries over and a daily or idle one does not (O18)."""


NEVER = datetime.min.replace(tzinfo=UTC)
"""The time of a row that has none: kept by age, first to go under a cap (O88)."""


class SessionEntry(Row):
    """One session's row (O33). Times are aware.

    `updated_at` moves with every write, `last_interaction_at` only with what the user does (O21), `last_access_at` with
    every read or write of the conversation. `input_tokens` and `output_tokens` are the last run's, `cache_read` and
    `cache_write` the last call's, `total_tokens` the context's size (O38, O39), `totals` the session's sums (O40).
    """

    session_id: str
    updated_at: AwareDatetime = NEVER
    session_file: str | None = None
    session_started_at: AwareDatetime | None = None
    last_interaction_at: AwareDatetime | None = None
    last_access_at: AwareDatetime | None = None
    parent_session_id: str | None = None
    forked_from: str | None = None
    """The session of the chat whose thread this is; it lives on (O23)."""
    pinned: bool = False

    chat_type: str = ""
    channel: str = ""
    display_name: str = ""
    origin: dict[str, Any] = Field(default_factory=dict)
    last_channel: str = ""
    last_to: str = ""
    last_account_id: str = ""
    last_thread_id: str = ""

    thinking_level: str | None = None
    verbose_level: str | None = None
    reasoning_level: str | None = None
    speech: str | None = None
    model_override: str | None = None
    provider_override: str | None = None
    auth_override: str | None = None
    label: str | None = None

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    total_tokens: int | None = None
    total_tokens_fresh: bool = False
    context_tokens: int | None = None
    estimated_cost_usd: float | None = None
    totals: Counters = Field(default_factory=Counters)

    compaction_count: int = 0
    memory_flush_at: AwareDatetime | None = None
    memory_flush_compaction_count: int | None = None
    memory_flush_entry_id: str | None = None

    @property
    def accessed_at(self) -> datetime:
        return self.last_access_at or self.updated_at


def successor(old: SessionEntry | None, *, session_id: str, now: datetime, carry: bool) -> SessionEntry:
    """The row of the session that follows `old` under the same key (O19): counters, cache fields and flush marks empty.

    Where the chat is (channel, names, pin) stays. `carry` takes the user's own settings along (O18).
    """
    places = ("chat_type", "channel", "display_name", "origin", "last_channel", "last_to", "last_account_id")
    kept = (*places, "last_thread_id", "pinned", *(OVERRIDES if carry else ()))
    return SessionEntry(
        session_id=session_id,
        session_file=f"{session_id}.jsonl",
        updated_at=now,
        session_started_at=now,
        last_access_at=now,
        last_interaction_at=old.last_interaction_at if old else None,
        parent_session_id=old.session_id if old else None,
        **({name: getattr(old, name) for name in kept} if old else {}),
    )
