"""The examples are what their README says, and do what it promises."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from memagent.config.check import check
from memagent.config.document import parse
from memagent.config.settings import load_settings
from memagent.turn import parse_turn, turn_schema

EXAMPLES = Path(__file__).parent.parent / "examples"
README = (EXAMPLES / "README.md").read_text(encoding="utf-8")


def test_the_readme_names_every_example() -> None:
    files = [
        path.relative_to(EXAMPLES) for path in EXAMPLES.rglob("*") if path.suffix in {".py", ".yaml", ".json"}
    ]
    unnamed = [str(file) for file in files if f"`{file}`" not in README and f"`{file.parent}/`" not in README]
    assert unnamed == []


def test_every_file_that_the_readme_names_is_there() -> None:
    named = re.findall(r"`((?:\w+/)?\w+\.(?:py|yaml|json))`", README) + re.findall(
        r"examples/([\w/]+\.\w+)", README
    )
    assert len(named) > 10
    assert [name for name in named if not (EXAMPLES / name).exists()] == []


def test_the_good_file_runs_and_the_one_with_mistakes_shows_the_usual_ones() -> None:
    assert load_settings((EXAMPLES / "librechat.yaml").read_bytes()).memory.agent_usable
    found = check(parse((EXAMPLES / "mistakes.yaml").read_bytes(), "mistakes.yaml"))
    codes = ["MEM209", "MEM101", "MEM201", "MEM307", "MEM101", "MEM311", "MEM305", "MEM304"]
    assert [finding.code for finding in sorted(found, key=lambda each: each.sort_key())] == codes


@pytest.mark.parametrize("reader", ["schema", "turn"])
def test_the_turn_is_one(reader: str) -> None:
    text = (EXAMPLES / "turn.json").read_text(encoding="utf-8")
    if reader == "schema":
        assert Draft202012Validator(turn_schema()).is_valid(json.loads(text))
    else:
        assert parse_turn(text).query.startswith("Good. Mine is called Mochi")
