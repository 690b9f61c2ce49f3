"""Memories as their user sees them: what is known, how it stands, and where it came from."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from memagent.memory import Source
from memagent.service import hands

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from memagent.memory import Evidence, Memory
    from memagent.service.ports import Ports


class State(StrEnum):
    ACTIVE = "active"
    DORMANT = "dormant"
    REVIEW = "review"


@dataclass(frozen=True, slots=True)
class Card:
    """One memory. `days_left` are days of chats until it goes dormant; None where nothing ages."""

    anchor: str
    key: str
    value: str
    tokens: int
    state: State
    protected: bool
    searched: bool
    unused_days: int
    days_left: int | None
    source: Source
    evidence: Evidence
    tags: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    last_matched_at: datetime | None

    @property
    def is_long(self) -> bool:
        return len(self.value) > LONG_CHARS


LONG_CHARS = 600
"""More of a value is folded away."""


@dataclass(frozen=True, slots=True)
class Bar:
    """How much of a limit is in use; `most` None is without limit."""

    used: int
    most: int | None

    @property
    def percent(self) -> float:
        return min(100.0, round(100 * self.used / self.most, 1)) if self.most else 0.0

    @property
    def is_nearly_full(self) -> bool:
        return self.percent >= NEARLY_FULL


NEARLY_FULL = 85.0


@dataclass(frozen=True, slots=True)
class Usage:
    tokens: Bar
    memories: Bar


def cards(memories: Iterable[Memory], *, dormant_after: int | None) -> tuple[Card, ...]:
    return tuple(_card(memory, dormant_after) for memory in memories)


def usage(memories: Sequence[Memory], ports: Ports, *, most: int | None) -> Usage:
    limit = ports.settings.memory.token_limit or None
    return Usage(Bar(sum(memory.tokens for memory in memories), limit), Bar(len(memories), most))


def found(memories: Sequence[Memory], words: str) -> tuple[Memory, ...]:
    """Those that hold every word, in any case and with or without accents, in key, text or tags."""
    wanted = plain(words).split()
    return tuple(
        memory
        for memory in memories
        if all(word in plain(f"{memory.key} {memory.value} {' '.join(memory.tags)}") for word in wanted)
    )


def plain(text: str) -> str:
    """Text for looking: letters without case and accents. `đ` counts as `d`, which no accent is taken from."""
    parted = unicodedata.normalize("NFKD", text.casefold().replace("đ", "d"))
    return "".join(char for char in parted if not unicodedata.combining(char))


def _card(memory: Memory, dormant_after: int | None) -> Card:
    state = State.DORMANT if memory.dormant else State.ACTIVE
    if not memory.trusted:
        state = State.REVIEW
    ages = dormant_after is not None and state is State.ACTIVE and memory.searched
    return Card(
        anchor=f"m-{memory.id}",
        key=memory.key,
        value=memory.value,
        tokens=memory.tokens,
        state=state,
        protected=memory.protected,
        searched=memory.searched,
        unused_days=memory.unused_days,
        days_left=(dormant_after or 0) - memory.unused_days if ages else None,
        source=memory.source,
        evidence=memory.evidence,
        tags=memory.tags,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        last_matched_at=memory.last_matched_at,
    )


def dormant_after(ports: Ports) -> int | None:
    """Days until dormant; None where nothing ages: decay off, or no embedder to search with."""
    return hands.dormant_after(ports) if ports.embedder is not None else None
