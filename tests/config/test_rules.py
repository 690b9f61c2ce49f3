"""The rule table, the explanations and the generated pages agree with each other and with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memagent.config.rules import REDIRECTS, RULES, find, pages

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "memagent"


def test_codes_in_the_code_are_the_codes_in_the_table() -> None:
    sources = [path.read_text() for path in PACKAGE.rglob("*.py") if path.name != "rules.py"]
    emitted = {code for source in sources for code in re.findall(r'"(MEM\d{3})"', source)}
    assert emitted == set(RULES)


def test_names_and_codes_are_unique_and_names_are_kebab() -> None:
    names = [rule.name for rule in RULES.values()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)
    assert list(RULES) == sorted(RULES)


@pytest.mark.parametrize("code", RULES)
def test_every_rule_is_explained(code: str) -> None:
    assert len(RULES[code].explanation) > 40
    assert RULES[code].summary[0].islower() or RULES[code].summary[0] == "`"


def test_no_explanation_is_orphaned() -> None:
    texts = [path.read_text() for path in (PACKAGE / "config" / "explanations").glob("*.md")]
    assert {code for text in texts for code in re.findall(r"^## (\S+)$", text, re.MULTILINE)} == set(RULES)


def test_a_rule_is_found_by_code_in_any_case_and_by_name() -> None:
    assert find("mem101") is find("MEM101") is find("unknown-key") is RULES["MEM101"]
    assert find("no-such-rule") is None


def test_no_redirect_shadows_a_living_rule() -> None:
    names = {rule.name for rule in RULES.values()}
    assert not (set(REDIRECTS) & (set(RULES) | names))
    assert set(REDIRECTS.values()) <= set(RULES)


def test_the_rule_pages_are_generated_from_the_table() -> None:
    assert (ROOT / "docs" / "rules.md").read_text() == pages(), "run `make generate`"
