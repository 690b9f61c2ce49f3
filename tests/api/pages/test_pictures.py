"""The week ahead and the course of a session, as numbers that are drawn."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memagent.api.pages.cards import Bar, found, plain
from memagent.api.pages.plot import plot
from memagent.api.pages.week import DAYS, MAX_DOTS, week
from memagent.memory import Memory
from memagent.sessions.course import Call

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def memory(key: str, unused_days: int = 0, **rest: bool) -> Memory:
    return Memory(key, "text", 1, NOW, NOW, unused_days=unused_days, **rest)


def test_each_memory_falls_on_the_day_it_would_go_dormant() -> None:
    found_ = week([memory("a", 6), memory("b", 0), memory("c", 4)], now=NOW, dormant_after_days=7)
    assert {key: day.number for day in found_.days for key in day.keys} == {"a": 1, "b": 7, "c": 3}
    assert [day.date for day in found_.days] == [NOW.date() + timedelta(days=n) for n in range(1, 8)]


def test_what_does_not_age_falls_on_no_day() -> None:
    still = [memory("waits", 6, trusted=False), memory("hidden", 6, searched=False), memory("far", 0)]
    assert week(still, now=NOW, dormant_after_days=8).falling == ()
    assert week([memory("sleeps", 9, dormant=True)], now=NOW, dormant_after_days=7).falling == ()


@given(st.integers(0, 30))
@settings(max_examples=31)
def test_a_day_never_has_more_dots_than_there_is_room_for(count: int) -> None:
    drawn = week([memory(f"k{n}", 6) for n in range(count)], now=NOW, dormant_after_days=7)
    first = drawn.days[0]
    assert len(first.keys) == count
    assert len(first.dots) + first.more == count
    assert len(first.dots) <= MAX_DOTS
    assert all(5 <= dot.y < drawn.floor for dot in first.dots)
    assert all(0 < day.x < drawn.width for day in drawn.days)
    assert len(drawn.days) == DAYS


def call(tokens: int, session: str = "s") -> Call:
    return Call(NOW, tokens, 1, session)


@given(st.lists(st.integers(1, 10**7), min_size=2, max_size=60))
@settings(max_examples=60)
def test_every_call_stands_inside_the_plot_and_higher_is_more(tokens: list[int]) -> None:
    drawn = plot([call(each) for each in tokens])
    assert drawn is not None
    assert all(drawn.left <= mark.x <= drawn.width and 0 <= mark.y <= drawn.floor for mark in drawn.marks)
    ordered = sorted(drawn.marks, key=lambda mark: mark.call.tokens)
    assert all(low.y >= high.y for low, high in itertools.pairwise(ordered))
    assert drawn.lines[-1].tokens >= max(tokens)


@pytest.mark.parametrize("calls", [[], [call(5)]])
def test_too_few_calls_are_no_course(calls: list[Call]) -> None:
    assert plot(calls) is None


def test_a_compaction_is_marked_between_its_two_calls() -> None:
    drawn = plot([call(10, "a"), call(20, "a"), call(5, "b")])
    assert drawn is not None
    assert [drawn.marks[1].x < cut < drawn.marks[2].x for cut in drawn.cuts] == [True]


@pytest.mark.parametrize(
    ("used", "most", "percent", "nearly"),
    [
        (0, 100, 0.0, False),
        (84, 100, 84.0, False),
        (85, 100, 85.0, True),
        (150, 100, 100.0, True),
        (7, None, 0.0, False),
    ],
)
def test_a_bar_is_never_longer_than_its_track(
    used: int, most: int | None, percent: float, *, nearly: bool
) -> None:
    bar = Bar(used, most)
    assert (bar.percent, bar.is_nearly_full) == (percent, nearly)


@given(st.text(max_size=40))
@settings(max_examples=60)
def test_a_memory_is_found_by_its_own_words(text: str) -> None:
    held = Memory("k", text, 1, NOW, NOW)
    assert found([held], text) == (held,)
    assert found([held], plain(text).upper()) in {(held,), ()}
    assert found([held], "") == (held,)


def test_words_are_found_in_any_order_in_key_text_and_tags() -> None:
    held = Memory("home", "Sống ở Đà Nẵng", 1, NOW, NOW, tags=("family",))
    assert found([held], "nang HOME fam") == (held,)
    assert found([held], "nang work") == ()
