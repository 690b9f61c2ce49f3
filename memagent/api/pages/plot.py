"""The size of a session's context over time, as the geometry of a small plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.sessions.course import Call

WIDTH, HEIGHT = 640, 160
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 12, 8
GRID = 4
MIN_CALLS = 2
"""One call is a number, not a course."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One call: where its dot is, and what it says."""

    x: float
    y: float
    call: Call


@dataclass(frozen=True, slots=True)
class Line:
    y: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Plot:
    marks: tuple[Mark, ...]
    lines: tuple[Line, ...]
    cuts: tuple[float, ...]
    """Where a compaction began a new transcript."""
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    floor: int = HEIGHT - BOTTOM

    @property
    def path(self) -> str:
        return " ".join(f"{'L' if n else 'M'}{mark.x:g} {mark.y:g}" for n, mark in enumerate(self.marks))

    @property
    def area(self) -> str:
        first, last = self.marks[0], self.marks[-1]
        return f"{self.path} L{last.x:g} {self.floor} L{first.x:g} {self.floor} Z"


def plot(calls: Sequence[Call]) -> Plot | None:
    """Calls from left to right, evenly: chats pause for hours, and the course is what counts. None for too few."""
    if len(calls) < MIN_CALLS:
        return None
    top = _ceiling(max(call.tokens for call in calls))
    step = (WIDTH - LEFT - RIGHT) / (len(calls) - 1)
    height = HEIGHT - TOP - BOTTOM

    def y(tokens: int) -> float:
        return round(TOP + height * (1 - tokens / top), 1)

    marks = tuple(Mark(round(LEFT + n * step, 1), y(call.tokens), call) for n, call in enumerate(calls))
    cuts = tuple(
        round((marks[n - 1].x + marks[n].x) / 2, 1)
        for n in range(1, len(calls))
        if calls[n].session_id != calls[n - 1].session_id
    )
    return Plot(marks, tuple(Line(y(top * n // GRID), top * n // GRID) for n in range(GRID + 1)), cuts)


def _ceiling(tokens: int) -> int:
    """The next round number: 1, 2, 4 or 8 times a power of ten."""
    power = int(10 ** max(len(str(max(tokens, 1))) - 1, 1))
    return next(factor * power for factor in (1, 2, 4, 8, 10) if factor * power >= tokens)
