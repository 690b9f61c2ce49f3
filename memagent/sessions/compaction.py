"""Compaction: when a conversation is due, where it is cut, and what becomes of the parts. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from memagent.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memagent.memory import Message
    from memagent.sessions.context import Context, Item

FALLBACK_WINDOW_TOKENS = 200_000
"""Of a model whose window nobody knows."""
CONVERSATION_ROLES = ("user", "assistant", "tool")


class Trigger(StrEnum):
    THRESHOLD = "threshold"
    OVERFLOW = "overflow"
    MANUAL = "manual"


class Status(StrEnum):
    COMPACTED = "compacted"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """`ratio` of the model's window is the threshold; with `reserve_tokens` the smaller one of both wins.

    `enabled` off stops the threshold only: overflow recovery and `/compact` still work (O42). Fewer than `min_messages`
    since the last compaction are left alone. `keep_recent_tokens` is the tail kept word for word, at most a quarter of the
    threshold. `window_tokens` overrides what is known of the model. `flush_gap_tokens` before the threshold memory is
    saved; `flush_at_bytes` is a transcript's size that saves it too (O60).
    """

    enabled: bool = True
    ratio: float = 0.80
    min_messages: int = 10
    reserve_tokens: int | None = None
    keep_recent_tokens: int = 20_000
    window_tokens: int | None = None
    flush_gap_tokens: int = 4_000
    flush_at_bytes: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.ratio <= 1:
            raise BadRequest(f"the compaction ratio is over 0 and at most 1, found {self.ratio}")
        if self.min_messages < 0 or self.keep_recent_tokens < 0 or (self.reserve_tokens or 0) < 0:
            raise BadRequest("min_messages, keep_recent_tokens and reserve_tokens are not negative")

    def threshold(self, window: int) -> float:
        """The most tokens that are left alone. A reserve as large as the window does not count (O45)."""
        by_ratio = round(self.ratio * window, 3)
        reserve = self.reserve_tokens
        return by_ratio if reserve is None or reserve >= window else min(by_ratio, window - reserve)

    def due(self, *, tokens: int, window: int) -> bool:
        """Strictly over the threshold (V30)."""
        return self.enabled and tokens > self.threshold(window)

    def flush_due(self, *, tokens: int | None, window: int, file_bytes: int = 0) -> bool:
        """From `flush_gap_tokens` before the threshold on; never for an unknown size (O60)."""
        if self.flush_at_bytes is not None and file_bytes >= self.flush_at_bytes:
            return True
        at = self.threshold(window) - self.flush_gap_tokens
        return bool(tokens) and at > 0 and (tokens or 0) >= at

    def keep(self, window: int) -> int:
        return min(self.keep_recent_tokens, int(self.threshold(window) / 4))


@dataclass(frozen=True, slots=True)
class Compaction:
    """What became of a compaction: sizes in tokens, and for `skipped` and `failed` the reason."""

    status: Status
    before: int
    after: int
    reason: str = ""
    session_id: str = ""
    parent_session_id: str | None = None
    summary: str = ""

    @property
    def notice(self) -> str:
        """One line for the user (O57)."""
        if self.status is Status.COMPACTED:
            return f"Compacted: about {self.before} tokens became about {self.after}."
        done = "skipped" if self.status is Status.SKIPPED else "failed"
        return f"Compaction {done}: {self.reason}. The conversation is unchanged, about {self.before} tokens."


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts of a conversation.

    `history` and `prefix`, the beginning of an unfinished turn, are summarised, each on its own; `kept` goes on word for
    word.
    """

    previous: str | None
    history: tuple[Item, ...]
    prefix: tuple[Item, ...]
    kept: tuple[Item, ...]

    @property
    def summarised(self) -> tuple[Item, ...]:
        return (*self.history, *self.prefix)

    @property
    def has_conversation(self) -> bool:
        return any(item.message.role in ("user", "assistant") for item in self.summarised)


def counted(context: Context) -> int:
    """Messages said since the last compaction: the user's, the assistant's and the tools'.

    The tail that the last compaction kept does not count again, so that two compactions never follow at once.
    """
    return sum(item.message.role in CONVERSATION_ROLES for item in context.items if not item.is_copy)


def plan(context: Context, *, keep_tokens: int, weigh: Callable[[Message], int]) -> Plan | None:
    """Divide the conversation; None when nothing lies before the cut (O51)."""
    items = context.items
    start = cut([item.message for item in items], keep_tokens=keep_tokens, weigh=weigh)
    if start == 0:
        return None
    turn = start
    if start < len(items) and items[start].message.role != "user":
        turn = next((n for n in range(start - 1, -1, -1) if items[n].message.role == "user"), start)
    return Plan(context.summary, items[:turn], items[turn:start], items[start:])


def cut(messages: Sequence[Message], *, keep_tokens: int, weigh: Callable[[Message], int]) -> int:
    """Where the kept tail begins: the first place from which on it is within `keep_tokens`, or the last place possible.

    A place is possible before any message but a tool's, and never between a call and one of its results (O47, V33).
    Where everything fits, or no place is possible, it is 0.
    """
    possible = _possible(messages)
    weight, wanted = 0, 0
    for at in range(len(messages) - 1, -1, -1):
        weight += weigh(messages[at])
        if weight > keep_tokens:
            wanted = at + 1
            break
    if wanted == 0 or not possible:
        return 0
    return next((at for at in possible if at >= wanted), possible[-1])


def _possible(messages: Sequence[Message]) -> list[int]:
    made: dict[str, int] = {}
    torn: set[int] = set()
    for at, message in enumerate(messages):
        made |= {call.id: at for call in message.tool_calls}
        if message.role == "tool":
            torn |= set(range(made.pop(message.tool_call_id or "", at - 1) + 1, at + 1))
    return [at for at in range(1, len(messages)) if at not in torn]
