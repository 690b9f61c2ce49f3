"""Dates that a question names, in English, German, Indonesian and Vietnamese. Pure."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

from memagent.lexicon import fold

if TYPE_CHECKING:
    from collections.abc import Iterator

_MONTHS = (
    "january januar januari",
    "february februar februari",
    "march marz maret",
    "april",
    "may mai mei",
    "june juni",
    "july juli",
    "august agustus",
    "september",
    "october oktober",
    "november",
    "december dezember desember",
)
_SHORT = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBER_OF = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_NUMBER_OF |= {name: number for number, name in enumerate(_SHORT, 1)} | {
    "sept": 9,
    "okt": 10,
    "dez": 12,
    "des": 12,
    "agu": 8,
}
_NAME = "|".join(sorted(_NUMBER_OF, key=len, reverse=True))

_ISO = re.compile(r"\b(?P<year>\d{4})-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?\b")
_DOTTED = re.compile(r"\b(?P<day>\d{1,2})[./](?P<month>\d{1,2})[./](?P<year>\d{4})\b")
_DAY_FIRST = re.compile(
    rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?(?P<name>{_NAME})\b\.?,?(?:\s+(?P<year>\d{{4}}))?\b"
)
_MONTH_FIRST = re.compile(
    rf"\b(?P<name>{_NAME})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<year>\d{{4}}))?"
)
_MONTH_YEAR = re.compile(rf"\b(?P<name>{_NAME})\.?,?\s+(?P<year>\d{{4}})\b")
# Without a day or a year a month needs a word before it: `may` and `march` are verbs, `mai` is Vietnamese for tomorrow.
_MONTH = re.compile(
    rf"\b(?:in|im|since|seit|during|of|last|next|this|bulan|letzten?|diesen?)\s+(?P<name>{_NAME})\b"
)
_VIETNAMESE = re.compile(
    r"(?:\bngay\s+(?P<day>\d{1,2})\s+)?\b(?:thang|thg)\s+(?P<month>\d{1,2})(?:\s*,?\s*(?:nam\s+)?(?P<year>\d{4}))?\b"
)
_YEAR = re.compile(r"\b(?:in|im jahr|tahun|nam|year)\s+(?P<year>(?:19|20)\d{2})\b")
_PATTERNS = (_ISO, _DOTTED, _DAY_FIRST, _MONTH_FIRST, _MONTH_YEAR, _MONTH, _VIETNAMESE, _YEAR)

# As spelled: folded, Vietnamese `mai` (tomorrow) would be a month.
_DAYS_AGO = {
    "today": 0, "heute": 0, "hari ini": 0, "hôm nay": 0,
    "yesterday": 1, "gestern": 1, "kemarin": 1, "hôm qua": 1,
    "day before yesterday": 2, "vorgestern": 2, "hôm kia": 2,
}  # fmt: skip
_WEEKS_AGO = {"last week": 1, "letzte woche": 1, "minggu lalu": 1, "tuần trước": 1}


@dataclass(frozen=True, slots=True)
class NamedDate:
    """A day, a month or a year that was named. None is what was left open: `in May` is any May."""

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def holds(self, when: date) -> bool:
        return all(
            wanted is None or wanted == given
            for wanted, given in ((self.year, when.year), (self.month, when.month), (self.day, when.day))
        )


def named_dates(text: str, *, today: date) -> tuple[NamedDate, ...]:
    """Return the dates a text names, the most exact reading of each; `yesterday` is counted from `today`."""
    folded = " ".join(fold(word) for word in text.split())
    found: list[NamedDate] = []
    for pattern in _PATTERNS:
        read = (_named(match.groupdict()) for match in pattern.finditer(folded))
        found.extend(named for named in read if named is not None)
        folded = pattern.sub(" ", folded)
    return tuple(dict.fromkeys([*found, *_relative(text.casefold(), today)]))


def _named(parts: dict[str, str | None]) -> NamedDate | None:
    year = int(parts.get("year") or 0) or None
    name = parts.get("name")
    month = _NUMBER_OF[name] if name else int(parts.get("month") or 0) or None
    day = int(parts.get("day") or 0) or None
    if month and month > 12:  # noqa: PLR2004  months of a year
        return None
    if day and month and day > calendar.monthrange(year or 2024, month)[1]:
        return None
    return NamedDate(year, month, day)


def _relative(text: str, today: date) -> Iterator[NamedDate]:
    for phrase, days in _DAYS_AGO.items():
        if re.search(rf"\b{phrase}\b", text):
            yield _exactly(today - timedelta(days=days))
    for phrase, weeks in _WEEKS_AGO.items():
        if re.search(rf"\b{phrase}\b", text):
            monday = today - timedelta(days=today.weekday(), weeks=weeks)
            yield from (_exactly(monday + timedelta(days=day)) for day in range(7))


def _exactly(day: date) -> NamedDate:
    return NamedDate(day.year, day.month, day.day)
