"""The pure rules of decay, and the rehearsal."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memagent.decay import Fate, Lane, forgetting_order, is_dormant, simulate, used_set
from memagent.memory import Memory

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def memory(key: str, **more: object) -> Memory:
    return replace(Memory(key=key, value=key, tokens=1, created_at=NOW, updated_at=NOW), **more)


def days(lane: Lane) -> dict[str, int]:
    return {key: counter.unused_days for key, counter in lane.counters.items()}


def test_the_worked_example_of_mochi() -> None:
    lane = Lane()
    lane.save("mochi", 1)
    lane.search(1, ())
    for day in range(2, 8):
        lane.search(day, ())
    assert (days(lane), is_dormant(6)) == ({"mochi": 6}, False)
    lane.search(15, ())
    assert (days(lane), is_dormant(7)) == ({"mochi": 7}, True)
    lane.search(16, ("mochi",))
    lane.search(16, ())
    assert days(lane) == {"mochi": 0}
    lane.search(14, ())
    assert days(lane) == {"mochi": 0}
    lane.search(17, ())
    assert days(lane) == {"mochi": 1}


@pytest.mark.parametrize(
    ("scores", "floor", "expected"),
    [
        ([(0.81, "a"), (0.77, "b"), (0.52, "c"), (0.79, "d"), (0.60, "e")], 0.5, ["a", "d", "b"]),
        ([(0.5, "a"), (0.4999, "b")], 0.5, ["a"]),
        ([(0.1, "a")], 0.5, []),
        ([(0.9, "b"), (0.9, "a")], 0.5, ["a", "b"]),
        ([], 0.0, []),
    ],
)
def test_the_used_set_is_the_best_three_that_pass_the_floor(
    scores: list[tuple[float, str]], floor: float, expected: list[str]
) -> None:
    assert used_set(scores, floor=floor) == expected


def test_who_is_forgotten_first() -> None:
    early, late = NOW - timedelta(days=200), NOW - timedelta(days=100)
    memories = [
        memory("active", unused_days=6),
        memory("protected", dormant=True, protected=True),
        memory("matched late", dormant=True, last_matched_at=late),
        memory("matched early", dormant=True, last_matched_at=early),
        memory("never b", dormant=True),
        memory("never a", dormant=True),
        memory("never and older", dormant=True, created_at=early),
    ]
    order = [found.key for found in forgetting_order(memories)]
    assert order == ["never and older", "never a", "never b", "matched early", "matched late"]


def test_a_rehearsal_tells_what_goes_dormant_and_when() -> None:
    memories = [memory("new"), memory("old", unused_days=5), memory("gone", unused_days=9, dormant=True)]
    memories.append(memory("not searched", searched=False))
    told = simulate(memories, days=7, now=NOW)
    assert [(event.day, event.key, event.fate) for event in told] == [
        (2, "old", Fate.DORMANT),
        (7, "new", Fate.DORMANT),
    ]
    assert told[1].why == "7 counted days without a match"
    assert simulate(memories, days=1, now=NOW) == ()
    assert simulate([], days=100, now=NOW) == ()


def test_a_rehearsal_tells_who_would_make_room_and_why() -> None:
    memories = [
        memory("never", unused_days=6),
        memory("matched", unused_days=6, last_matched_at=NOW - timedelta(days=30)),
        memory("protected", unused_days=6, protected=True),
    ]
    told = simulate(memories, days=2, now=NOW, entries=3, saves_per_day=2)
    fates = [(event.day, event.key, event.fate) for event in told if event.fate is not Fate.DORMANT]
    assert fates == [
        (1, "never", Fate.FORGOTTEN),
        (1, "matched", Fate.FORGOTTEN),
        (2, "(new 3)", Fate.REFUSED),
        (2, "(new 4)", Fate.REFUSED),
    ]
    why = {event.key: event.why for event in told if event.fate is not Fate.DORMANT}
    assert why["never"] == "the list is full (3 of 3), it is dormant, and it never matched"
    assert why["matched"].endswith("its last match, on 2026-01-30, is the oldest")
    assert why["(new 3)"] == "the list is full (3 of 3), and what is left is active or protected"


def test_a_rehearsal_changes_nothing_and_without_a_limit_forgets_nobody() -> None:
    memories = [memory(f"m{i}", unused_days=8, dormant=True) for i in range(5)]
    before = list(memories)
    assert simulate(memories, days=3, now=NOW, entries=None, saves_per_day=10) == ()
    assert memories == before


def test_a_list_over_its_limit_is_rehearsed_down_to_it() -> None:
    memories = [memory(f"m{i}", unused_days=8, dormant=True) for i in range(5)]
    told = simulate(memories, days=1, now=NOW, entries=3, saves_per_day=1)
    assert [event.key for event in told] == ["m0", "m1", "m2"]
