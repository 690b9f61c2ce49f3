"""The stretch of a file that a finding is about, drawn with line numbers and carets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memagent.report.cells import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memagent.config.findings import Label, Span

MAX_CELLS = 100
"""A longer line (a data URI, a minified list) is clipped around what it is shown for."""

MAX_CHARS = 2_000
"""What is looked at of a line; no terminal shows more, and a data URI can have a million."""

LEAD_CELLS = 24
"""How much of a clipped line stays in front of the span."""

MAX_MARK_CELLS = 60
"""Carets past this add nothing."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Carets under one line: `start` and `end` are 0-based code points in it."""

    line: int
    start: int
    end: int
    sign: str
    text: str = ""


def draw(
    lines: Sequence[str], span: Span, *, labels: Sequence[Label] = (), paint: Callable[[str, str], str]
) -> tuple[int, list[str]]:
    """The width of the line numbers, and the frame's rows from the bar above to the bar below.

    `paint(style, text)` colours; it gets the styles `gutter`, `primary` and `secondary`. One line of context stands on
    either side, none when labels show other places.
    """
    marks = [_mark(lines, span, "^", ""), *(_mark(lines, label.span, "-", label.text) for label in labels)]
    shown = sorted({mark.line for mark in marks}) if labels else _with_context(lines, marks[0].line)
    gutter = len(str(shown[-1]))
    bar = paint("gutter", " " * gutter + " |")
    rows = [bar]
    previous = shown[0]
    for number in shown:
        if number > previous + 1:
            rows.append(paint("gutter", "…"))
        previous = number
        here = sorted((mark for mark in marks if mark.line == number), key=lambda mark: mark.start)
        rows += _line_rows(lines[number - 1], number, here, gutter=gutter, paint=paint)
    return gutter, [*rows, bar]


def _with_context(lines: Sequence[str], number: int) -> list[int]:
    shown = [number]
    if number > 1 and lines[number - 2].strip():
        shown.insert(0, number - 1)
    if number < len(lines) and lines[number].strip():
        shown.append(number + 1)
    return shown


def _mark(lines: Sequence[str], span: Span, sign: str, text: str) -> Mark:
    """A span over several lines is shown by its first line."""
    number = min(max(span.start.line, 1), len(lines))
    length = len(lines[number - 1])
    start = min(span.start.column - 1, length)
    end = span.end.column - 1 if span.end.line == span.start.line else len(lines[number - 1].rstrip())
    return Mark(number, start, max(min(end, length), start), sign, text)


def _line_rows(
    line: str, number: int, marks: Sequence[Mark], *, gutter: int, paint: Callable[[str, str], str]
) -> list[str]:
    line, marks, is_cut = _near(line, marks)
    placed = layout(line)
    first, last = _clip(placed, marks)
    text = "".join(shown for shown, _ in placed[first:last]).rstrip()
    text = ("…" if first else "") + text + ("…" if last < len(placed) or is_cut else "")
    rows = [(paint("gutter", f"{number:>{gutter}} |") + (f" {text}" if text else ""))]
    for mark in marks:
        offset = (1 if first else 0) + _cells(placed[first : max(mark.start, first)])
        length = min(max(_cells(placed[mark.start : min(mark.end, last)]), 1), MAX_MARK_CELLS)
        style = "primary" if mark.sign == "^" else "secondary"
        pointer = mark.sign * length + (f" {mark.text}" if mark.text else "")
        rows.append(paint("gutter", " " * gutter + " |") + " " + " " * offset + paint(style, pointer))
    return rows


def _near(line: str, marks: Sequence[Mark]) -> tuple[str, Sequence[Mark], bool]:
    """The part of a very long line that can be shown at all, its marks moved along, and whether there is more behind."""
    if len(line) <= MAX_CHARS:
        return line, marks, False
    start = max(0, (marks[0].start if marks else 0) - MAX_CHARS // 4)
    moved = [replace(mark, start=max(mark.start - start, 0), end=max(mark.end - start, 0)) for mark in marks]
    return line[start : start + MAX_CHARS], moved, start + MAX_CHARS < len(line)


def _clip(placed: Sequence[tuple[str, int]], marks: Sequence[Mark]) -> tuple[int, int]:
    """Which code points of a line to show: all that fit, else a window that opens shortly before the first mark."""
    if _cells(placed) <= MAX_CELLS:
        return 0, len(placed)
    first = 0
    if marks and _cells(placed[: marks[0].end]) > MAX_CELLS - 1:
        first = marks[0].start
        lead = 0
        while first > 0 and lead + placed[first - 1][1] <= LEAD_CELLS:
            first -= 1
            lead += placed[first][1]
    last, taken = first, 0
    while last < len(placed) and taken + placed[last][1] <= MAX_CELLS - 2:
        taken += placed[last][1]
        last += 1
    return first, last


def _cells(placed: Sequence[tuple[str, int]]) -> int:
    return sum(cells for _, cells in placed)
