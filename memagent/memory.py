"""The values memagent is about: scopes, memories, edits, changes. Frozen, and free of any clock, store or model."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


class ScopeKind(StrEnum):
    USER = "user"
    """A user's own memories: age on the days their owner takes part (T17)."""
    GLOBAL = "global"
    """A user's memories for every agent: never forgotten (T33)."""
    SHARED = "shared"
    """A team's, a server's or an agent's memories: age on the days somebody chats there (T16)."""


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """Whose memories: the unit of isolation, of limits and of the decay clock, and the shard key of a cluster.

    `owner` is the user's id, or the name of the team, server or agent that shares. `agent` is LibreChat's partition of a
    user's memories by agent (spec/librechat.md §4.2); empty is the shared pool.
    """

    kind: ScopeKind
    owner: str
    agent: str = ""

    def __post_init__(self) -> None:
        if not self.owner:
            raise ValueError("a scope needs an owner")


class Source(StrEnum):
    """Who a memory's words come from; decides protection, trust and who may overwrite whom."""

    USER = "user"
    """Written or edited by the user by hand: protected from forgetting (T33)."""
    AGENT = "agent"
    """Extracted from what the user said."""
    ASSISTANT = "assistant"
    """Only the assistant said it: never overwrites what the user said."""
    TOOL = "tool"
    """From tool output or quoted text: untrusted until the user accepts it."""
    IMPORT = "import"
    """Brought in from elsewhere: not protected (T34)."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a memory's words came from; `quote` is bounded to `MAX_QUOTE_CHARS`."""

    conversation_id: str = ""
    message_id: str = ""
    quote: str = ""


MAX_QUOTE_CHARS = 280
"""About what a reader takes in at a glance; keeps evidence from becoming a second transcript."""

MAX_KEY_CHARS = 1_000
"""LibreChat's limit (spec/librechat.md §4.6)."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One remembered fact under its key.

    `tokens` counts the value in o200k. `unused_days` are counted days without a match (T02); `dormant` is `unused_days`
    at or over the threshold (T21) and always false while decay is off. `searched` is false while the memory has no vector
    of the current embedder: it neither ages nor comes back (T48). `trusted` is false until the user accepts what a tool
    or a quotation brought in: it is seen in no prompt, and does not age. `id` is 24 hex digits that stay through a rename.
    """

    key: str
    value: str
    tokens: int
    created_at: datetime
    updated_at: datetime
    source: Source = Source.AGENT
    protected: bool = False
    trusted: bool = True
    unused_days: int = 0
    dormant: bool = False
    searched: bool = True
    last_matched_at: datetime | None = None
    evidence: Evidence = field(default_factory=Evidence)
    tags: tuple[str, ...] = ()
    id: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's call of one tool; `arguments` is the JSON text as the model wrote it, unchecked."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message. `content` is text, a list of OpenAI content parts, or nothing; `id` is the backend's, if it has one."""

    role: str
    content: str | tuple[Mapping[str, Any], ...] | None = None
    id: str | None = None
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
