"""The JSON Schema: current, valid, and no stricter than the check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from memagent.config.check import check
from memagent.config.document import Mapping, parse, plain
from memagent.config.findings import Level
from memagent.config.json_schema import json_schema, json_schemas, memory_schema
from memagent.config.librechat.verdict import verdict
from memagent.report.machine import dump

ROOT = Path(__file__).parent.parent.parent
CASES = sorted((ROOT / "tests" / "cases").glob("*valid/*.yaml"))


@pytest.mark.parametrize("name", json_schemas())
def test_the_committed_schemas_are_the_generated_ones(name: str) -> None:
    committed = (ROOT / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8")
    assert committed == dump(json_schemas()[name]), "run `make generate`"


@pytest.mark.parametrize("name", json_schemas())
def test_the_schemas_are_schemas(name: str) -> None:
    Draft202012Validator.check_schema(json_schemas()[name])


JUDGED = sorted((ROOT / "tests" / "cases").glob("verdict/*.yaml"))
SAID = frozenset(
    {"invalid_type", "invalid_enum_value", "invalid_literal", "unrecognized_keys", "too_small", "too_big"}
)
"""Issues that a schema sees; the others may be rules that JSON Schema cannot say."""


@pytest.mark.parametrize("case", JUDGED, ids=lambda case: case.stem)
def test_librechats_schema_agrees_with_the_verdict(case: Path) -> None:
    document = parse(case.read_bytes(), case.name)
    if not isinstance(document.root, Mapping) or "!!binary" in document.text:
        return  # no JSON, or a text that LibreChat reads once more
    judged = verdict(document, {})
    valid = Draft202012Validator(json_schema(strict=False)).is_valid(plain(document.root))
    if judged.ok:
        assert valid
    elif any(issue.code in SAID and "received nan" not in issue.message for issue in judged.issues):
        assert not valid


def test_every_memory_key_and_every_section_is_explained() -> None:
    def unexplained(schema: dict[str, Any]) -> list[str]:
        fields = [schema, *schema.get("anyOf", [])]
        return [
            name
            for part in fields
            for name, field in part.get("properties", {}).items()
            if not {"title", "description"} <= field.keys()
        ]

    whole, memory = json_schema(), memory_schema()
    assert unexplained(whole) == []
    assert unexplained(memory) == []
    assert unexplained(memory["properties"]["agent"]) == []
    assert memory["properties"]["maxInputTokens"]["default"] == 12_000


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("{}", True),
        ("{disabled: true, agent: {id: a}}", True),
        ("{agent: {provider: a, model: b, model_parameters: {t: 1}}}", True),
        ("{agent: {provider: a}}", False),
        ("{validkeys: []}", False),
        ("{maxInputTokens: 0}", False),
        ("{maxInputTokens: 1.5}", False),
        ("[]", False),
    ],
)
def test_the_memory_schema_judges_the_block_alone(text: str, fits: bool) -> None:
    document = parse(text.encode(), "f.yaml")
    assert document.root is not None
    assert Draft202012Validator(memory_schema()).is_valid(plain(document.root)) is fits


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
