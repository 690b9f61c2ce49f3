"""Every language says everything, and each visitor is spoken to in theirs."""

from __future__ import annotations

import re
import string
from datetime import UTC, date, datetime
from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memagent.api.pages.changes import kind
from memagent.api.pages.language import LANGUAGES, language, spoken
from memagent.api.pages.routes import TOASTS
from memagent.config.findings import LibreChat
from memagent.config.librechat.verdict import Outcome
from memagent.memory import Evidence, Source
from memagent.service import erasure
from memagent.sessions.archive import Reason
from memagent.store import Change
from tests.api.pages.conftest import visitor

if TYPE_CHECKING:
    from collections.abc import Callable

ENGLISH = language("en")
TEMPLATES = resources.files("memagent.api.pages").joinpath("templates")
SAID = re.compile(r"say(?:\.count|\.has)?\(([^)]*)\)")
LITERAL = re.compile(r"""["']([a-z_]+\.[A-Za-z_]+)["'](?!\s*~)""")
GROUP = re.compile(r"""["']([a-z_]+\.)["']\s*~""")


def names_in(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def forms(value: Any) -> list[str]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [value]


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_text_is_missing_in_any_language(code: str) -> None:
    assert set(language(code).catalogue) == set(ENGLISH.catalogue)


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_translation_has_the_same_shape_and_the_same_gaps(code: str) -> None:
    for key, english in ENGLISH.catalogue.items():
        here = language(code).catalogue[key]
        assert type(here) is type(english), key
        assert all(forms(here)), key
        if isinstance(english, list):
            assert len(here) == len(english), key
        elif isinstance(english, dict):
            assert "other" in here, key
            assert set(here) <= {"one", "other"}, key
            assert names_in(here["other"]) == names_in(english["other"]), key
        else:
            assert names_in(here) == names_in(english), key


@pytest.mark.parametrize("code", [code for code in LANGUAGES if code != "en"])
def test_a_translation_is_one(code: str) -> None:
    same = {
        key
        for key, text in ENGLISH.catalogue.items()
        if isinstance(text, str)
        and len(text.split()) > 2
        and key != "date.long"
        and language(code).catalogue[key] == text
    }
    assert not same


def test_every_text_of_a_template_stands_in_the_catalogue_and_the_other_way_round() -> None:
    used: set[str] = set()
    groups: set[str] = set()
    for template in TEMPLATES.iterdir():
        text = template.read_text(encoding="utf-8")
        groups |= set(GROUP.findall(text))
        for arguments in SAID.findall(text):
            used |= set(LITERAL.findall(arguments))
    assert used - set(ENGLISH.catalogue) == set()
    known = {"language.name", "number.thousands", "date.long", "date.months", "date.weekdays"}
    unused = {
        key for key in ENGLISH.catalogue if key not in used | known and not key.startswith(tuple(groups))
    }
    assert unused == set()


def test_whatever_the_code_names_has_words() -> None:
    wanted = {f"source.{source}" for source in Source}
    wanted |= {f"toast.{done}" for done in TOASTS}
    wanted |= {f"ended.{reason}" for reason in Reason}
    wanted |= {f"consequence.{what}" for what in LibreChat}
    wanted |= {f"outcome.{outcome}" for outcome in Outcome.__args__}
    rest = (*erasure.REMAINS, erasure.SWITCHES, erasure.CLOSED_MARKS)
    wanted |= {f"remains.{each.what}" for each in rest}
    wanted |= {f"role.{role}" for role in ("user", "assistant", "tool", "system", "summary")}
    assert wanted <= set(ENGLISH.catalogue)


def test_every_kind_of_change_has_words() -> None:
    at = datetime(2026, 3, 2, tzinfo=UTC)

    def change(op: str, before: str | None, after: str | None, undoes: str | None = None) -> Change:
        return Change("1", at, op, "k", before, after, Source.USER, Evidence(), undoes)

    found = {
        kind(change("set", None, "a")): "added",
        kind(change("set", "a", "b")): "changed",
        kind(change("set", "a", "a")): "accepted",
        kind(change("delete", "a", None)): "deleted",
        kind(change("forget", "a", None)): "forgotten",
        kind(change("undo", None, "a", "0")): "undone",
    }
    assert all(name == expected for name, expected in found.items())
    assert {f"change.{name}" for name in found} <= set(ENGLISH.catalogue)


@pytest.mark.parametrize(
    ("accepted", "code"),
    [
        ("", "en"),
        ("fr-FR,fr;q=0.9", "en"),
        ("vi", "vi"),
        ("id-ID,id;q=0.9,en;q=0.8", "id"),
        ("en;q=0.2, DE-at;q=0.7", "de"),
        ("de;q=0, vi;q=0.1", "vi"),
        ("de;q=none,vi", "vi"),
        ("*", "en"),
    ],
)
def test_the_browsers_wish_decides(accepted: str, code: str) -> None:
    assert spoken(accepted=accepted).code == code


def test_a_wish_of_the_user_goes_before_the_browsers() -> None:
    assert spoken("id", accepted="de").code == "id"
    assert spoken("xx", "vi", accepted="de").code == "vi"
    assert spoken(None, None, accepted="de").code == "de"


@given(st.text(max_size=200), st.text(max_size=20))
@settings(max_examples=50)
def test_no_header_is_too_strange(accepted: str, wish: str) -> None:
    assert spoken(wish, accepted=accepted).code in LANGUAGES


@pytest.mark.parametrize(
    ("code", "day", "number"),
    [
        ("en", "2 March 2026", "1,234,567"),
        ("de", "2. März 2026", "1.234.567"),
        ("vi", "2 tháng 3, 2026", "1.234.567"),
        ("id", "2 Maret 2026", "1.234.567"),
    ],
)
def test_dates_and_numbers_are_written_as_the_language_does(code: str, day: str, number: str) -> None:
    assert language(code).day(date(2026, 3, 2)) == day
    assert language(code).number(1_234_567) == number


def test_one_is_not_many_where_the_language_tells_them_apart() -> None:
    assert language("de").count("card.tokens", 1) == "ein Token"
    assert language("de").count("card.tokens", 2) == "2 Token"
    assert language("en").count("search.found", 0) == "0 memories found."
    assert language("vi").count("card.tokens", 1) == "1 token"


async def test_a_chosen_language_is_kept(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        client = await visitor(service, "ada", **{"Accept-Language": "de"})
        assert 'lang="de"' in (await client.get("/")).text
        chosen = await client.get("/?lang=vi")
        assert "Những điều được ghi nhớ về bạn" in chosen.text
        assert chosen.headers["content-language"] == "vi"
        assert '<html lang="vi">' in (await client.get("/history")).text
        assert '<html lang="vi">' in (await client.get("/?lang=xx")).text
