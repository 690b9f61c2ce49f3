"""The JSON Schema: current, valid, and no stricter than the check."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from memagent.config.check import check
from memagent.config.document import parse, plain
from memagent.config.findings import Level
from memagent.config.json_schema import json_schema
from memagent.report.machine import dump

ROOT = Path(__file__).parent.parent.parent
CASES = sorted((ROOT / "tests" / "cases").glob("*valid/*.yaml"))


def test_the_committed_schema_is_the_generated_one() -> None:
    assert (ROOT / "schemas" / "librechat.schema.json").read_text() == dump(json_schema()), (
        "run `make generate`"
    )


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize(
    "text",
    [
        "memory: {validkeys: []}",
        "memory: {agent: {id: a, colour: 1}}",
        "endpoints: {custom: [{apikey: a}]}",
        "colour: 1",
        "memory:",
    ],
)
def test_editors_see_what_memagent_is_strict_about(text: str) -> None:
    document = parse(f'version: "1.3.17"\n{text}\n'.encode(), "f.yaml")
    assert document.root is not None
    assert not Draft202012Validator(json_schema()).is_valid(plain(document.root))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_what_the_check_lets_pass_the_schema_does_not_fault(case: Path) -> None:
    document = parse(case.read_bytes(), case.name)
    if any(finding.level is Level.ERROR for finding in check(document)) or document.root is None:
        return
    assert list(Draft202012Validator(json_schema()).iter_errors(plain(document.root))) == []
