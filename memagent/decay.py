"""Decay as pure rules: how days are counted, who is forgotten first, and what a quiet stretch would do (spec/seeds.md §2).

The store counts the same days with lists of dates, next to the data (`store/lua/lanes.lua`); this is what it is held to.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from memagent.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

DORMANT_AFTER_DAYS = 7
USED_SET = 3


@dataclass(frozen=True, slots=True)
class Counter:
    """Unused days of one memory; `stamp` is the last date that was counted, or must not be. Dates are day numbers."""

    unused_days: int
    stamp: int


@dataclass(slots=True)
class Lane:
    """Memories that are searched together, counted one by one: T01 to T15 as they are written.

    `counted` is the latest date that counted.
    """

    counters: dict[str, Counter] = field(default_factory=dict)
    counted: int = 0

    def save(self, key: str, day: int) -> None:
        """Start at zero; this day does not count, whether it was counted already or will be later (T01, T11)."""
        self._use(key, day)

    def search(self, day: int, used: Collection[str]) -> None:
        """Count a date once (T03), take what was used back to zero at once (T04), never count backwards (T15)."""
        if self.counters and day > self.counted:
            self.counted = day
            for key, counter in self.counters.items():
                if day > counter.stamp:
                    self.counters[key] = Counter(counter.unused_days + 1, day)
        for key in used:
            self._use(key, day)

    def _use(self, key: str, day: int) -> None:
        earlier = self.counters.get(key, Counter(0, 0))
        self.counters[key] = Counter(0, max(day, self.counted, earlier.stamp))


def is_dormant(unused_days: int, dormant_after_days: int = DORMANT_AFTER_DAYS) -> bool:
    """Whether a memory has left the desk for the drawer (T21)."""
    return unused_days >= dormant_after_days


def used_set(scores: Iterable[tuple[float, str]], *, floor: float, size: int = USED_SET) -> list[str]:
    """Keys of the best scores that pass the floor, best first (T05 to T07)."""
    ranked = sorted(scores, key=lambda scored: (-scored[0], scored[1]))
    return [key for score, key in ranked[:size] if score >= floor]


def forgetting_order(memories: Iterable[Memory]) -> list[Memory]:
    """Dormant, unprotected memories, the first to go first: never matched, then the oldest match (T32, T33, T37)."""

    def age(memory: Memory) -> tuple[bool, float, datetime, str]:
        matched = memory.last_matched_at
        return (matched is not None, matched.timestamp() if matched else 0.0, memory.created_at, memory.key)

    return sorted((memory for memory in memories if memory.dormant and not memory.protected), key=age)


class Fate(StrEnum):
    DORMANT = "dormant"
    FORGOTTEN = "forgotten"
    REFUSED = "refused"
    """A new memory that finds no room: nothing may be forgotten for it."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What would happen to one memory on which day of the rehearsal, counted from 1, and why, as a sentence."""

    day: int
    key: str
    fate: Fate
    why: str


def simulate(
    memories: Sequence[Memory],
    *,
    days: int,
    now: datetime,
    dormant_after_days: int = DORMANT_AFTER_DAYS,
    entries: int | None = 100,
    saves_per_day: int = 0,
) -> tuple[Forecast, ...]:
    """Rehearse `days` days of chats that match nothing, with `saves_per_day` new memories on each.

    Days without a chat change nothing and are left out. New memories are called `(new 1)`, `(new 2)` and so on; they are saved
    after the day's search, so they age from the next day on. `now` dates them.
    """
    kept = list(memories)
    forecasts: list[Forecast] = []
    saved = 0
    for day in range(1, days + 1):
        kept, dormant = _aged(kept, day, dormant_after_days)
        forecasts += dormant
        for _ in range(saves_per_day):
            saved += 1
            made_room, events = _make_room(kept, day, entries, f"(new {saved})")
            forecasts += events
            if made_room is not None:
                kept = [*made_room, _new(f"(new {saved})", now)]
    return tuple(forecasts)


def _aged(memories: Sequence[Memory], day: int, limit: int) -> tuple[list[Memory], list[Forecast]]:
    aged, events = [], []
    for memory in memories:
        unused = memory.unused_days + 1 if memory.searched else memory.unused_days
        later = replace(memory, unused_days=unused, dormant=is_dormant(unused, limit))
        if later.dormant and not memory.dormant:
            events.append(Forecast(day, memory.key, Fate.DORMANT, f"{unused} counted days without a match"))
        aged.append(later)
    return aged, events


def _make_room(
    memories: Sequence[Memory], day: int, entries: int | None, newcomer: str
) -> tuple[list[Memory] | None, list[Forecast]]:
    missing = 0 if entries is None else len(memories) + 1 - entries
    if missing <= 0:
        return list(memories), []
    order = forgetting_order(memories)
    if len(order) < missing:
        why = f"the list is full ({len(memories)} of {entries}), and what is left is active or protected"
        return None, [Forecast(day, newcomer, Fate.REFUSED, why)]
    victims = order[:missing]
    gone = {memory.key for memory in victims}
    events = [
        Forecast(day, memory.key, Fate.FORGOTTEN, _why_first(memory, len(memories), entries))
        for memory in victims
    ]
    return [memory for memory in memories if memory.key not in gone], events


def _why_first(memory: Memory, count: int, entries: int | None) -> str:
    matched = memory.last_matched_at
    history = (
        "it never matched" if matched is None else f"its last match, on {matched:%Y-%m-%d}, is the oldest"
    )
    return f"the list is full ({count} of {entries}), it is dormant, and {history}"


def _new(key: str, now: datetime) -> Memory:
    return Memory(key=key, value="", tokens=0, created_at=now, updated_at=now)
