"""The week ahead: which memories would go dormant on which day of chats, as columns of dots."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from memagent.decay import Fate, simulate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, datetime

    from memagent.decay import Forecast
    from memagent.memory import Memory

DAYS = 7
COLUMN = 40
DOT = 10
HEIGHT = 96
MAX_DOTS = 6
"""More than that on one day are a number."""


@dataclass(frozen=True, slots=True)
class Dot:
    y: int
    key: str


@dataclass(frozen=True, slots=True)
class Day:
    """One column; `more` is how many keys have no dot."""

    number: int
    date: date
    x: int
    keys: tuple[str, ...]
    dots: tuple[Dot, ...]

    @property
    def more(self) -> int:
        return len(self.keys) - len(self.dots)


@dataclass(frozen=True, slots=True)
class Week:
    """`WIDTH` by `HEIGHT`; the floor that the dots stand on is at `floor`."""

    days: tuple[Day, ...]
    width: int = COLUMN * DAYS
    height: int = HEIGHT
    floor: int = HEIGHT - 22

    @property
    def falling(self) -> tuple[Day, ...]:
        return tuple(day for day in self.days if day.keys)


def week(memories: Sequence[Memory], *, now: datetime, dormant_after_days: int) -> Week:
    """Seven days on which somebody chats and nothing matches. What waits for review does not age, so it is left out."""
    found = simulate(
        [memory for memory in memories if memory.trusted],
        days=DAYS,
        now=now,
        dormant_after_days=dormant_after_days,
        entries=None,
    )
    return Week(tuple(_day(number, now.date(), _keys(found, number)) for number in range(1, DAYS + 1)))


def _keys(found: Sequence[Forecast], number: int) -> tuple[str, ...]:
    return tuple(each.key for each in found if each.day == number and each.fate is Fate.DORMANT)


def _day(number: int, today: date, keys: tuple[str, ...]) -> Day:
    room = MAX_DOTS if len(keys) <= MAX_DOTS else MAX_DOTS - 1
    floor = HEIGHT - 22
    dots = tuple(Dot(floor - 7 - place * (DOT + 2), key) for place, key in enumerate(keys[:room]))
    return Day(number, today + timedelta(days=number), COLUMN * number - COLUMN // 2, keys, dots)
