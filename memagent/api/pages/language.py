"""The words of the pages in each language, and how a language writes dates and numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import date

LANGUAGES = ("en", "vi", "id", "de")
"""The first is spoken to whoever asks for none of them."""


@dataclass(frozen=True, slots=True)
class Language:
    """One catalogue: key to text, with `{names}` in it, or to its forms `one` and `other`, or to a list."""

    code: str
    catalogue: Mapping[str, Any]

    def __call__(self, key: str, **values: object) -> str:
        """The text of a key; raises `KeyError` for one that no catalogue has, which the tests rule out."""
        return str(self.catalogue[key]).format_map(values)

    def count(self, key: str, number: int, **values: object) -> str:
        """The text of a key for so many; languages without a plural have one form."""
        forms: Mapping[str, str] = self.catalogue[key]
        form = forms.get("one", forms["other"]) if number == 1 else forms["other"]
        return form.format_map({"n": self.number(number), **values})

    def has(self, key: str) -> bool:
        return key in self.catalogue

    def number(self, number: int) -> str:
        return f"{number:,}".replace(",", self("number.thousands"))

    def day(self, day: date) -> str:
        return self(
            "date.long", day=day.day, month=self.catalogue["date.months"][day.month - 1], year=day.year
        )

    def weekday(self, day: date) -> str:
        return str(self.catalogue["date.weekdays"][day.weekday()])


@lru_cache(maxsize=len(LANGUAGES))
def language(code: str) -> Language:
    """One of `LANGUAGES`."""
    text = (
        resources.files("memagent.api.pages").joinpath(f"catalogue/{code}.json").read_text(encoding="utf-8")
    )
    return Language(code, json.loads(text))


def spoken(*wishes: str | None, accepted: str = "") -> Language:
    """The first wish that is a language of ours, else the best of an `Accept-Language` header, else English."""
    for wish in (*wishes, *_by_weight(accepted)):
        code = (wish or "").strip().lower().partition("-")[0]
        if code in LANGUAGES:
            return language(code)
    return language(LANGUAGES[0])


def _by_weight(accepted: str) -> list[str]:
    weighed = []
    for part in accepted[:1_000].split(","):
        tag, _, weight = part.partition(";")
        try:
            weighed.append((float(weight.strip().removeprefix("q=") or 1), tag))
        except ValueError:
            continue
    return [tag for weight, tag in sorted(weighed, key=lambda each: -each[0]) if weight > 0]
