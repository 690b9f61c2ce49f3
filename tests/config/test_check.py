"""The check: each fault once, at the smallest stretch that shows it, with what LibreChat does about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memagent.config import accounts
from memagent.config.check import check
from memagent.config.check.provider import BUILT_IN, NEED_ENDPOINT
from memagent.config.document import parse
from memagent.config.endpoints import KNOWN_CUSTOM, find_provider
from memagent.config.findings import Level, LibreChat
from memagent.config.librechat.verdict import verdict
from memagent.config.repair import repaired
from memagent.config.secrecy import masked
from memagent.config.settings import CustomEndpoint
from memagent.errors import ModelRefused
from memagent.report.text import full

if TYPE_CHECKING:
    from memagent.config.findings import Finding

HARBOUR = """\
endpoints:
  custom:
    - name: Harbour
      apiKey: "${HARBOUR_KEY}"
      baseURL: https://models.example.org/v1
      models: {default: [sail-1, sail-2]}
"""


def found(text: str, **options: Any) -> list[Finding]:
    if "version" not in text:
        text = 'version: "1.3.17"\n' + text
    return list(check(parse(text.encode(), "f.yaml"), **options))


def codes(text: str, **options: Any) -> list[str]:
    return [finding.code for finding in found(text, **options)]


def agent(fields: str, more: str = "") -> str:
    return f"memory: {{agent: {{enabled: true, {fields}}}}}\n{more}"


def test_all_faults_come_in_one_run_in_the_order_of_the_file() -> None:
    text = "memory:\n  tokenLimit: -1\n  charLimit: 0\n  validKeys: [a, a]\n  agent: {provider: openAI}\n  nonsense: 1\n"
    assert codes(text) == ["MEM311", "MEM311", "MEM307", "MEM301", "MEM101"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", []), ("1000", []), ("1000.0", []), ("1e3", ["MEM401"]),
        ("0", ["MEM311"]), ("-1", ["MEM311"]), ("1.5", ["MEM311"]), (".inf", ["MEM311"]), ("-.inf", ["MEM311"]),
        (".nan", ["MEM201"]), ('"3"', ["MEM201"]), ("1_000", ["MEM201"]), ("~", ["MEM105"]), ("[1]", ["MEM201"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["tokenLimit", "charLimit", "messageWindowSize"])
def test_a_limit_is_a_whole_number_above_zero(name: str, value: str, expected: list[str]) -> None:
    assert codes(f"memory: {{{name}: {value}}}") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("100", []),
        ("0", ["MEM202"]),
        ("-3", ["MEM202"]),
        ("1.5", ["MEM201"]),
        ("-1.5", ["MEM201"]),
        (".inf", ["MEM201"]),
    ],
)
def test_the_input_budget_is_checked_by_librechat_itself(value: str, expected: list[str]) -> None:
    reported = found(f"memory: {{maxInputTokens: {value}}}")
    assert [finding.code for finding in reported] == expected
    assert all(finding.librechat is LibreChat.REJECTS for finding in reported)


@pytest.mark.parametrize(
    ("provider", "is_known"),
    [
        ("Harbour", True), ("harbour", False), ("Harbour ", False),
        ("openAI", True), ("openai", False), ("OpenAI", False), ("azureOpenAI", True), ("azureopenai", False),
        ("anthropic", True), ("Anthropic", True), ("GOOGLE", True), ("Bedrock", True), ("vertexai", True),
        ("xai", False), ("openrouter", False), ("mistral", False),
    ],
)  # fmt: skip
def test_a_provider_is_found_as_librechat_finds_it(provider: str, is_known: bool) -> None:
    reported = codes(agent(f'provider: "{provider}", model: sail-1', HARBOUR))
    assert ("MEM304" not in reported) is is_known


@pytest.mark.parametrize(
    ("name", "provider", "is_known"),
    [
        ("Ollama", "ollama", True), ("Ollama", "Ollama", False), ("ollama", "ollama", True), ("OLLAMA", "OLLAMA", False),
        ("openrouter", "OpenRouter", True), ("OpenRouter", "openrouter", True), ("OpenAI", "OpenAI", True), ("OpenAI", "openai", False),
    ],
)  # fmt: skip
def test_names_with_rules_of_their_own(name: str, provider: str, is_known: bool) -> None:
    reported = codes(agent(f"provider: {provider}, model: sail-1", HARBOUR.replace("Harbour", name)))
    assert ("MEM304" not in reported) is is_known


NAMES = st.sampled_from(["Harbour", "harbour", "ollama", "Ollama", "OLLAMA", "openAI", "openai", "OpenAI", "xai", "XAI", "Xai",
                         "openrouter", "OpenRouter", "Anthropic", "azureopenai", "vertexAI", "Vertexai", "BEDROCK"])  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(NAMES, st.lists(NAMES, max_size=3, unique=True))
def test_the_check_and_a_run_agree_about_every_provider(provider: str, names: list[str]) -> None:
    reserved = {"openAI", "azureOpenAI", "google", "anthropic", "bedrock"}
    names = [name for name in names if name not in reserved]
    entries = "".join(
        f"    - {{name: {name}, apiKey: a, baseURL: b, models: {{fetch: true, default: [m]}}}}\n"
        for name in names
    )
    text = agent(f"provider: {provider}, model: m", f"endpoints:\n  custom:\n{entries}" if names else "")
    try:
        find_provider(provider, [CustomEndpoint(name) for name in names])
    except ModelRefused:
        assert "MEM304" in codes(text)
    else:
        assert "MEM304" not in codes(text)


def test_built_in_providers_are_named_in_one_order_everywhere() -> None:
    assert BUILT_IN == accounts.BUILT_IN
    assert set(NEED_ENDPOINT) == KNOWN_CUSTOM


def test_a_near_provider_is_named() -> None:
    (finding,) = found(agent("provider: harbour, model: sail-1", HARBOUR))
    assert finding.helps == ("a custom endpoint with a similar name exists: `Harbour`",)
    assert [label.text for label in finding.labels] == ["this endpoint"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("id: a", []), ("provider: openAI, model: b", []),
        ("id: a, provider: openAI, model: b", ["MEM302"]), ("id: a, model: b", ["MEM302"]),
        ("id: a, model_parameters: {}", ["MEM314"]), ("id: a, instructions: x", ["MEM314"]),
        ("provider: openAI", ["MEM301"]), ("model: b", ["MEM301"]), ("instructions: x", ["MEM301"]),
        ('id: ""', ["MEM301"]), ('provider: "", model: ""', ["MEM301"]), ('provider: openAI, model: ""', ["MEM301"]),
        ("id: 5", ["MEM201"]), ("provider: openAI, model: 5", ["MEM201"]), ("provider: openAI, model: b, model_parameters: [1]", ["MEM201"]),
        ("provider: openAI, model: b, model_parameters: {x: [1]}", ["MEM201"]),
    ],
)  # fmt: skip
def test_an_agent_has_exactly_one_complete_form(fields: str, expected: list[str]) -> None:
    assert codes(agent(fields)) == expected


@pytest.mark.parametrize(
    "text", ["memory: {agent: }", "memory: {agent: [a]}", "memory: {agent: a}", "memory: []", "memory:"]
)
def test_a_block_of_the_wrong_kind_is_one_finding(text: str) -> None:
    assert len(found(text)) == 1


def test_an_agent_that_librechat_will_not_run_is_a_warning() -> None:
    (finding,) = found("memory: {agent: {provider: openAI, model: b}}")
    assert (finding.code, finding.level, finding.librechat) == ("MEM305", Level.WARNING, LibreChat.IGNORES)
    assert codes("memory: {agent: {enabled: false, provider: openAI, model: b}}") == []
    assert codes("memory: {disabled: true, agent: {provider: openAI, model: b}}") == []


@pytest.mark.parametrize(
    ("chars", "tokens", "expected"),
    [(800, 100, []), (801, 100, ["MEM309"]), (4096, 512, []), (4097, 4096, ["MEM309"]), (10000, 10000, [])],
)
def test_one_memory_must_fit_into_all(chars: int, tokens: int, expected: list[str]) -> None:
    assert codes(f"memory: {{charLimit: {chars}, tokenLimit: {tokens}}}") == expected


@pytest.mark.parametrize(
    ("window", "budget", "expected"), [(10, 80, []), (11, 80, ["MEM303"]), (5, 12000, [])]
)
def test_the_window_must_fit_into_the_budget(window: int, budget: int, expected: list[str]) -> None:
    assert codes(f"memory: {{messageWindowSize: {window}, maxInputTokens: {budget}}}") == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [("messageWindowSize: 1500", []), ("messageWindowSize: 1501", ["MEM303"]), ("maxInputTokens: 40", []), ("maxInputTokens: 39", ["MEM303"])],
)  # fmt: skip
def test_a_default_counts_where_the_other_is_given(fields: str, expected: list[str]) -> None:
    assert codes(f"memory: {{{fields}}}") == expected


def test_a_listed_model_is_asked_for_only_where_nothing_is_fetched() -> None:
    text = agent("provider: Harbour, model: sail-9", HARBOUR)
    assert codes(text) == ["MEM313"]
    assert codes(text.replace("models: {", "models: {fetch: true, ")) == []
    assert codes(text.replace("sail-9", "sail-2")) == []


def test_an_unknown_key_is_an_error_where_memagent_is_strict_and_a_warning_elsewhere() -> None:
    levels = {
        f.path[0]: (f.level, f.librechat)
        for f in found("memory: {colour: 1}\ninterface: {colour: 1}\ncolour: 1\n")
    }
    assert levels == {
        "memory": (Level.ERROR, LibreChat.IGNORES),
        "interface": (Level.WARNING, LibreChat.IGNORES),
        "colour": (Level.ERROR, LibreChat.REJECTS),
    }


@pytest.mark.parametrize(
    ("text", "home"),
    [
        ("memory: {instructions: x}", "`memory.agent`"),
        ("memory: {agent: {id: a, validKeys: [b]}}", "`memory`"),
        ("stt: {}", "`speech`"),
        ("customWelcome: hi", "`interface`"),
        ("socialLogins: []", "`registration`"),
    ],
)
def test_a_key_in_the_wrong_place_is_told_its_place(text: str, home: str) -> None:
    finding = next(finding for finding in found(text) if finding.code == "MEM104")
    assert f"belongs under {home}" in finding.helps[0]


def test_variables_are_judged_only_in_a_known_environment() -> None:
    assert codes(HARBOUR) == []
    assert codes(HARBOUR, check_env=True) == ["MEM403"]
    assert codes(HARBOUR, environ={"HARBOUR_KEY": "x"}, check_env=True) == []


def test_a_url_of_an_unset_variable_is_one_finding() -> None:
    text = 'mcpServers: {a: {type: sse, url: "${A}/sse"}}'
    assert codes(text) == ["MEM211"]
    assert codes(text, environ={}) == ["MEM211"]
    assert codes(text, environ={"A": "https://a.example.org"}) == []


def test_merged_keys_are_reported_once() -> None:
    text = (
        HARBOUR.replace("- name", "- &base\n      colour: red\n      name")
        + "    - <<: *base\n      name: Second\n"
    )
    assert codes(text) == ["MEM101"]


def test_the_contents_of_a_misspelt_block_are_checked_as_well() -> None:
    reported = found("memory: {agnet: {provder: openAI, model: b}}")
    assert [(finding.code, finding.path) for finding in reported] == [
        ("MEM101", ("memory", "agnet")),
        ("MEM101", ("memory", "agnet", "provder")),
    ]


CASES = [path.read_bytes() for path in sorted((Path(__file__).parent.parent / "cases").glob("*valid/*.yaml"))]
SCRAPS = st.sampled_from(
    [b"", b"\x00", b"\xff", b"\t", b"~", b": ", b"- ", b"\n", b'"', b"'", b"*a", b"&a ", b"<<: *a", b"[", b"}", b"yes", b"!x", b"${A}${B}", "\u2028".encode()]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(CASES),
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 20), SCRAPS), min_size=1, max_size=4),
)
def test_no_damage_to_a_file_makes_it_fall_over_and_repairs_never_make_it_worse(
    data: bytes, damages: list[tuple[int, int, bytes]]
) -> None:
    for at, length, scrap in damages:
        data = data[:at] + scrap + data[at + length :]
    document = parse(data, "f.yaml")
    before = verdict(document, {})
    findings = check(document, before)
    assert len(masked(document)) == len(document.text)
    assert full(findings, sources={"f.yaml": masked(document)}, files=1, color=False)
    text, made = repaired(document.text, findings)
    mended = parse(text.encode(), "f.yaml")
    assert made == 0 or mended.root is not None
    assert made == 0 or verdict(mended, {}).ok or not before.ok


KEYS = st.sampled_from(
    ["memory", "endpoints", "custom", "agent", "enabled", "provider", "model", "validKeys", "tokenLimit", "models", "default",
     "headers", "apiKey", "mcpServers", "url", "version", "interface", "modelSpecs", "list", "preset", "x", "instructions"]
)  # fmt: skip
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.floats(allow_nan=False),
    st.sampled_from(["${A}", "{{LIBRECHAT_USER_X}}", "openAI", "yes", "${A}${B}", "https://x", "", "日本"]),
)  # fmt: skip
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(KEYS, TREES, max_size=5))
def test_any_document_is_judged_without_falling_over_and_never_milder_than_librechat(
    tree: dict[str, Any],
) -> None:
    document = parse(json.dumps(tree, ensure_ascii=False, indent=1).encode(), "f.yaml")
    judged = verdict(document, {})
    findings = check(document, judged)
    rejected = [finding for finding in findings if finding.librechat is LibreChat.REJECTS]
    assert bool(rejected) is (not judged.ok)
    assert all(finding.level is Level.ERROR for finding in rejected)
    for finding in findings:
        assert finding.span is not None
        assert 0 <= finding.span.start.offset <= finding.span.end.offset <= len(document.text)
    assert len({(f.code, f.span, f.message) for f in findings}) == len(findings)
