"""Dates that a question names."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memagent.sessions.dates import NamedDate, named_dates

TODAY = date(2026, 3, 31)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What happened on 7 May 2023?", NamedDate(2023, 5, 7)),
        ("on May 7th, 2023", NamedDate(2023, 5, 7)),
        ("on the 7th of May", NamedDate(None, 5, 7)),
        ("in May", NamedDate(None, 5)),
        ("May 2023", NamedDate(2023, 5)),
        ("2023-05-07", NamedDate(2023, 5, 7)),
        ("07.05.2023", NamedDate(2023, 5, 7)),
        ("am 3. März 2024", NamedDate(2024, 3, 3)),
        ("im Dezember", NamedDate(None, 12)),
        ("pada 17 Agustus 2024", NamedDate(2024, 8, 17)),
        ("ngày 5 tháng 3 năm 2024", NamedDate(2024, 3, 5)),
        ("tháng 12", NamedDate(None, 12)),
        ("in 2022", NamedDate(2022)),
        ("yesterday", NamedDate(2026, 3, 30)),
        ("gestern", NamedDate(2026, 3, 30)),
        ("hôm qua", NamedDate(2026, 3, 30)),
        ("2024-02-29", NamedDate(2024, 2, 29)),
    ],
)
def test_a_named_date_is_read(text: str, expected: NamedDate) -> None:
    assert named_dates(text, today=TODAY) == (expected,)


@pytest.mark.parametrize(
    "text", ["may I march on?", "ngày mai tôi đi", "2024-02-30", "32.13.2024", "call 2023", "", "12345-01-01"]
)
def test_what_names_no_date_has_none(text: str) -> None:
    assert named_dates(text, today=TODAY) == ()


def test_last_week_is_monday_to_sunday() -> None:
    days = named_dates("letzte Woche", today=TODAY)

    assert [
        date(2026, 3, 23) in (date(named.year or 1, named.month or 1, named.day or 1) for named in days),
        len(days),
    ] == [True, 7]


def test_what_is_left_open_holds_for_all() -> None:
    assert NamedDate(None, 5).holds(date(1999, 5, 9))
    assert not NamedDate(None, 5).holds(date(1999, 6, 9))
    assert not NamedDate(2000, 5).holds(date(1999, 5, 9))


@given(st.text(max_size=60))
def test_no_text_breaks_the_reading(text: str) -> None:
    for named in named_dates(text + " 5 May 0000 99 June 12/12/9999", today=TODAY):
        named.holds(TODAY)
