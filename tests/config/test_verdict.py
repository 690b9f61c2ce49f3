"""LibreChat's verdict: recorded answers of its own schema, the way to it, and what depends on the environment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memagent.config.document import parse
from memagent.config.librechat.verdict import Verdict, verdict

CASES = sorted((Path(__file__).parent.parent / "cases" / "verdict").glob("*.yaml"))


def judge(text: str, **environ: str) -> Verdict:
    return verdict(parse(text.encode("utf-8"), "f.yaml"), environ)


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_the_verdict_is_librechats_own(file: Path) -> None:
    recorded = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
    judged = verdict(parse(file.read_bytes(), file.name), {})
    assert judged.outcome == recorded["outcome"]
    assert judged.ok is (judged.outcome == "starts")
    if judged.outcome != "crashes" or recorded["issues"]:
        issues = [[list(issue.path), issue.code, issue.message] for issue in judged.issues]
        assert issues == recorded["issues"]


def test_every_outcome_is_among_the_cases() -> None:
    outcomes = {json.loads(file.with_suffix(".json").read_text())["outcome"] for file in CASES}
    assert outcomes == {"starts", "defaults", "exits", "crashes"}


SERVER = 'version: "1"\nmcpServers: {a: {type: sse, url: "%s"}}\n'


@pytest.mark.parametrize(
    ("url", "outcome"),
    [
        ("${URL}", "starts"),
        ("${UNSET}", "crashes"),
        ("${EMPTY}", "crashes"),
        ("  ${URL}\\n", "starts"),
        ("${URL}${URL}", "crashes"),
        ("http://${HOST}/sse", "starts"),
        ("http://${UNSET}/sse", "starts"),
        ("${JWT_SECRET}", "crashes"),
        ("${WS}", "exits"),
    ],
)
def test_a_url_is_judged_with_its_variables_replaced(url: str, outcome: str) -> None:
    environ = {
        "URL": "https://a.example/sse",
        "HOST": "b.example",
        "WS": "ws://a",
        "EMPTY": "",
        "JWT_SECRET": "https://s",
    }
    assert judge(SERVER % url, **environ).outcome == outcome


def test_a_file_that_cannot_be_read_falls_back_to_the_defaults_and_says_why() -> None:
    judged = judge("a: 1\na: 2\n")
    assert (judged.ok, judged.outcome, judged.issues) == (False, "defaults", ())
    assert "duplicate key" in judged.reason


def test_bytes_that_are_no_utf8_are_read_all_the_same() -> None:
    assert verdict(parse(b'version: "1"\nfileStrategy: \xff\n', "f"), {}).issues[0].path == ("fileStrategy",)
    assert verdict(parse(b'version: "\xff"\n', "f"), {}).ok
    assert verdict(parse('version: "1"\n'.encode("utf-16"), "f"), {}).outcome == "defaults"


def test_a_union_keeps_what_each_option_said() -> None:
    (issue,) = judge('version: "1"\nmemory: {agent: {provider: a}}\n').issues
    assert (issue.path, issue.code) == (("memory", "agent"), "invalid_union")
    assert [[inner.path for inner in option] for option in issue.options] == [
        [("memory", "agent", "id")],
        [("memory", "agent", "model")],
    ]


def test_broken_parameters_name_the_endpoint_and_the_field() -> None:
    judged = judge(
        'version: "1"\nendpoints: {custom: [{name: a}, {name: b, customParams: {paramDefinitions: [{key: x}]}}]}\n'
    )
    assert judged.outcome == "crashes"
    assert [issue.path for issue in judged.issues] == [
        ("endpoints", "custom", 1, "customParams", "paramDefinitions", 0, "key")
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["memory", "agent", "endpoints", "custom", "name", "models", "mcpServers", "url", "type", "a"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(VALUES)
def test_whatever_the_file_says_there_is_a_verdict(value: object) -> None:
    judged = judge(json.dumps(value))
    assert judged.ok is (judged.outcome == "starts")
    assert judged.ok is False or judged.issues == ()


@given(st.binary(max_size=40))
def test_whatever_the_bytes_are_there_is_a_verdict(data: bytes) -> None:
    assert verdict(parse(data, "f"), {}).outcome in ("starts", "defaults", "exits", "crashes")


def test_judging_imports_no_schema_library_and_no_yaml_library() -> None:
    program = (
        "import sys\n"
        "from memagent.config.document import parse\n"
        "from memagent.config.librechat.verdict import verdict\n"
        "verdict(parse(b'version: \"1\"\\ncloudfront: {domain: \"https://a.example\"}\\n', 'f'), {})\n"
        "print([name for name in ('pydantic', 'jsonschema', 'ruamel', 'yaml', 'ada_url') if name in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
