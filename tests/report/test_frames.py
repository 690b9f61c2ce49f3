"""A frame shows the line as the file has it, with carets under the span in the cells of a terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memagent.config.findings import Label, Position, Span
from memagent.report.cells import HIDDEN, layout, printable, width
from memagent.report.frame import MAX_CELLS, draw


def span(line: int, start: int, end: int, *, last_line: int | None = None) -> Span:
    return Span(Position(line, start, 0), Position(last_line or line, end, 0))


def frame(text: str, where: Span, *labels: Label) -> list[str]:
    return draw(text.split("\n"), where, labels=labels, paint=lambda _, shown: shown)[1]


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("abc", 3),
        ("\tx", 5),
        ("ab\tx", 5),
        ("日本", 4),
        ("e\u0301", 1),
        ("👍", 2),
        ("👍🏽", 2),
        ("👩\u200d💻", 2),
        ("❤\ufe0f", 2),
        ("ก็", 1),
        ("…" + HIDDEN * 5, 1),
        ("\x1b[31m", 5),
        ("\uff46\uff55", 4),
    ],
)
def test_width_is_counted_in_terminal_cells(text: str, cells: int) -> None:
    assert width(text) == cells


@pytest.mark.parametrize("char", ["\x1b", "\x07", "\u202e", "\u2066", "\x85", "\u2028"])
def test_characters_that_command_a_terminal_are_never_printed(char: str) -> None:
    assert char not in "".join(shown for shown, _ in layout(f"a{char}b"))
    assert char not in printable(f"a{char}b")


def test_a_span_is_underlined_between_its_neighbours() -> None:
    assert frame("memory:\n  validkeys: [a]\n  tokenLimit: 1", span(2, 3, 12)) == [
        "  |",
        "1 | memory:",
        "2 |   validkeys: [a]",
        "  |   ^^^^^^^^^",
        "3 |   tokenLimit: 1",
        "  |",
    ]


def test_labels_show_other_places_and_an_ellipsis_what_lies_between() -> None:
    rows = frame("a: 1\nb: 2\nc: 3\na: 4", span(4, 1, 2), Label(span(1, 1, 2), "first set here"))
    assert rows == ["  |", "1 | a: 1", "  | - first set here", "…", "4 | a: 4", "  | ^", "  |"]


def test_carets_stand_under_wide_characters() -> None:
    rows = frame("名前: 値", span(1, 5, 6))
    assert rows[1:3] == ["1 | 名前: 値", "  |       ^^"]


def test_a_tab_moves_the_carets_with_the_text() -> None:
    rows = frame("a:\tbad", span(1, 4, 7))
    assert rows[1:3] == ["1 | a:  bad", "  |     ^^^"]


def test_a_span_of_several_lines_is_shown_by_its_first() -> None:
    rows = frame("key: |\n  one\n  two", span(1, 6, 6, last_line=3))
    assert rows[1:3] == ["1 | key: |", "  |      ^"]


def test_a_span_behind_the_end_of_a_line_gets_one_caret() -> None:
    assert frame("key:", span(1, 5, 5))[2] == "  |     ^"
    assert frame("", span(1, 1, 1))[1:3] == ["1 |", "  | ^"]


def test_a_long_line_is_clipped_around_the_span() -> None:
    rows = frame("x" * 3000 + "BAD" + "y" * 3000, span(1, 3001, 3004))
    shown = rows[1].removeprefix("1 | ")
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert width(shown) <= MAX_CELLS
    assert rows[2].index("^") == rows[1].index("BAD")


def test_line_numbers_of_different_lengths_stand_in_one_column() -> None:
    rows = frame("\n".join(f"k{n}: v" for n in range(1, 12)), span(9, 1, 3))
    assert rows[1:5] == [" 8 | k8: v", " 9 | k9: v", "   | ^^", "10 | k10: v"]


@settings(max_examples=60)
@given(
    st.lists(st.text(st.characters(blacklist_characters="\r\n"), max_size=200), min_size=1, max_size=5),
    st.integers(1, 9),
    st.integers(1, 250),
    st.integers(0, 250),
)
def test_any_line_with_any_span_can_be_drawn(lines: list[str], line: int, start: int, length: int) -> None:
    _, rows = draw(lines, span(line, start, start + length), paint=lambda _, shown: shown)
    assert sum("^" in re.sub(r"^ *\d+ \|.*", "", row) for row in rows) == 1
    assert all(width(row) <= MAX_CELLS + 10 for row in rows)
    assert all("\n" not in row and "\x1b" not in row for row in rows)
