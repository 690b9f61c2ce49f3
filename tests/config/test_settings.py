"""The strict loader: from a file to settings, or to every fault at its place (spec/librechat.md §1, design §6)."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from memagent.config.agents import Agents, AgentSpec, load_agents
from memagent.config.document import parse
from memagent.config.settings import AgentOff, MemoryOff, Settings, load_settings
from memagent.errors import ConfigUnusable

if TYPE_CHECKING:
    from memagent.config.findings import Finding

AGENTS = Agents({"memory-agent-001": AgentSpec("openAI", "gpt-4o", id="memory-agent-001")}, "agents.yaml")


def load(text: str, **given: Any) -> Settings:
    return load_settings(f"version: 1.3.17\n{textwrap.dedent(text)}".encode(), file="librechat.yaml", **given)


def faults(text: str, **given: Any) -> tuple[Finding, ...]:
    with pytest.raises(ConfigUnusable) as refused:
        load(text, **given)
    assert refused.value.findings
    return refused.value.findings


def places(text: str, **given: Any) -> list[tuple[str, int]]:
    return [
        (finding.code, finding.span.start.line if finding.span else 0) for finding in faults(text, **given)
    ]


PAGE = """
    memory:
      disabled: false
      validKeys:
        - 'user_preferences'
        - 'conversation_context'
        - 'learned_facts'
        - 'personal_information'
      tokenLimit: 3000
      charLimit: 2000
      maxInputTokens: 12000
      personalize: true
      messageWindowSize: 8
      agent:
        provider: 'openAI'
        model: 'gpt-4'
        instructions: |
          Store memory using only the specified validKeys.
        model_parameters:
          temperature: 0.2
          max_tokens: 2000
          top_p: 0.8
          frequency_penalty: 0.1
    """


def test_the_configuration_pages_example_is_read_whole() -> None:
    memory = load(PAGE).memory

    assert memory.valid_keys == (
        "user_preferences",
        "conversation_context",
        "learned_facts",
        "personal_information",
    )
    assert (memory.token_limit, memory.char_limit, memory.max_input_tokens) == (3000, 2000, 12000)
    assert (memory.personalize, memory.message_window_size, memory.disabled) == (True, 8, False)
    assert memory.agent == AgentSpec(
        "openAI",
        "gpt-4",
        "Store memory using only the specified validKeys.\n",
        {"temperature": 0.2, "max_tokens": 2000, "top_p": 0.8, "frequency_penalty": 0.1},
    )
    assert memory.enabled
    assert memory.agent_usable


def test_b03_b10_what_is_left_out_takes_its_default() -> None:
    memory = load("memory: {agent: {provider: openAI, model: gpt-4o, enabled: true}}").memory

    assert (memory.char_limit, memory.max_input_tokens, memory.message_window_size) == (10_000, 12_000, 5)
    assert (memory.token_limit, memory.valid_keys, memory.personalize) == (None, (), True)
    assert memory.agent == AgentSpec("openAI", "gpt-4o")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("cache: true", MemoryOff.NO_BLOCK),
        ("memory: {disabled: true}", MemoryOff.DISABLED),
        ("memory: {disabled: true, personalize: false}", MemoryOff.DISABLED),
        ("memory: {personalize: false}", MemoryOff.NOT_PERSONALIZED),
    ],
)
def test_b01_b09_memory_that_is_off_says_why(text: str, reason: MemoryOff) -> None:
    memory = load(text).memory

    assert memory.off is reason
    assert not memory.enabled
    assert not memory.agent_usable
    assert memory.disabled or not memory.personalize


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        ("", AgentOff.NO_AGENT),
        ("agent: {provider: openAI, model: m, enabled: false}", AgentOff.DISABLED),
        ("agent: {id: memory-agent-001, enabled: true}", AgentOff.NO_AGENTS_FILE),
    ],
)
def test_an_agent_that_does_not_run_says_why_and_leaves_memory_on(agent: str, reason: AgentOff) -> None:
    memory = load(f"memory:\n  charLimit: 9\n  {agent}\n").memory

    assert memory.agent_off is reason
    assert memory.enabled
    assert not memory.agent_usable


def test_an_agent_without_enabled_runs_and_is_warned_about() -> None:
    settings = load("memory: {agent: {provider: openAI, model: m}}")

    assert settings.memory.agent_usable
    assert "MEM305" in {finding.code for finding in settings.warnings}


def test_a_saved_agent_is_taken_from_the_agents_file() -> None:
    memory = load("memory: {agent: {id: memory-agent-001, enabled: true}}", agents=AGENTS).memory

    assert memory.agent == AGENTS.specs["memory-agent-001"]
    assert memory.agent_usable


def test_an_id_that_no_saved_agent_has_is_faulted_where_it_stands() -> None:
    (fault,) = faults("memory:\n  agent:\n    enabled: true\n    id: memory-agent-01\n", agents=AGENTS)

    assert (fault.code, fault.file, fault.path) == ("MEM317", "librechat.yaml", ("memory", "agent", "id"))
    assert fault.span is not None
    assert (fault.span.start.line, fault.span.start.column) == (5, 9)
    assert "`memory-agent-001`" in fault.helps[0]
    (other,) = faults("memory: {agent: {id: zzz, enabled: true}}", agents=AGENTS)
    assert other.helps == ("the agents in agents.yaml are: `memory-agent-001`",)


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("memory:\n  tokenlimit: 5\n", "MEM101", 3),
        ("memory:\n  agent:\n    provider: openAI\n", "MEM301", 3),
        ("memory:\n  agent: {id: a, provider: b, model: c}\n", "MEM302", 3),
        ("memory:\n  validKeys: []\n", "MEM306", 3),
        ("memory:\n  charLimit: 0\n", "MEM311", 3),
        ("memory:\n  messageWindowSize: 1.5\n", "MEM311", 3),
        ("memory:\n  charLimit: '5'\n", "MEM201", 3),
        ("memory:\n  maxInputTokens: 0\n", "MEM202", 3),
        ("memory:\n  agent: {provider: openai, model: m}\n", "MEM304", 3),
        (
            "endpoints:\n  custom:\n    - {name: A, apikey: k, baseURL: https://a.example, models: {default: [m]}}\n",
            "MEM101",
            4,
        ),
        ("memory: {disabled: true\n", "MEM001", 0),
    ],
)
def test_a_fault_in_our_parts_stops_the_run_at_its_place(text: str, code: str, line: int) -> None:
    found = places(text)

    assert code in [each for each, _ in found]
    assert not line or (code, line) in found


def test_every_fault_is_told_at_once_and_the_message_names_the_first() -> None:
    with pytest.raises(
        ConfigUnusable, match=r"^librechat\.yaml:3:\d+: MEM\d{3}: .*, and \d+ more; `memagent validate"
    ) as refused:
        load("memory:\n  charlimit: 5\n  tokenLimit: x\n  agent: {provider: a}\n")

    assert len(refused.value.findings) >= 3


@pytest.mark.parametrize(
    "text", ["interface: {nonsense: 1}", "nonsense: 1", "registration: 5", "mcpServers: {a: {type: stdio}}"]
)
def test_faults_elsewhere_do_not_stop_a_run(text: str) -> None:
    settings = load(f"memory: {{charLimit: 5}}\n{text}\n")

    assert settings.memory.char_limit == 5
    assert settings.warnings


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"memory: [", b"- a\n", b"just words", b"\tmemory: 1"])
def test_a_file_that_is_no_configuration_stops_the_run(data: bytes) -> None:
    with pytest.raises(ConfigUnusable) as refused:
        load_settings(data, file="x.yaml")

    assert refused.value.findings
    assert str(refused.value).startswith("x.yaml")


ENDPOINTS = """
    endpoints:
      all:
        headers: {X-All: 'yes'}
      openAI:
        headers: {X-Own: a}
      custom:
        - name: 'Custom Memory Endpoint'
          apiKey: '${KEY}'
          baseURL: 'https://api.gateway.ai/v1'
          headers:
            x-gateway-api-key: '${GATEWAY_API_KEY}'
            X-User-Identifier: '{{LIBRECHAT_USER_EMAIL}}'
          models:
            default:
              - 'gpt-4o-mini'
              - {name: 'gpt-4o', description: 'big'}
            fetch: true
          addParams: {top_k: 3, deep: {a: [1]}}
          dropParams: ['stop']
          directEndpoint: true
          provider: anthropic
          customParams: {defaultParamsEndpoint: custom}
    """


def test_custom_endpoints_are_read_with_their_placeholders_as_written() -> None:
    settings = load(ENDPOINTS)
    (found,) = settings.endpoints

    assert (found.name, found.api_key, found.base_url) == (
        "Custom Memory Endpoint",
        "${KEY}",
        "https://api.gateway.ai/v1",
    )
    assert dict(found.headers)["X-User-Identifier"] == "{{LIBRECHAT_USER_EMAIL}}"
    assert (found.models, found.fetch_models) == (("gpt-4o-mini", "gpt-4o"), True)
    assert (found.add_params, found.drop_params) == ({"top_k": 3, "deep": {"a": [1]}}, ("stop",))
    assert (found.direct_endpoint, found.provider) == (True, "anthropic")
    assert found.custom_params == {"defaultParamsEndpoint": "custom"}
    assert settings.all_headers == {"X-All": "yes"}
    assert settings.built_in_headers == {"openAI": {"X-Own": "a"}}


def test_scalars_mean_what_librechat_takes_them_for() -> None:
    memory = load("memory: {tokenLimit: 2e3, charLimit: 0x10, messageWindowSize: 017}").memory

    assert (memory.token_limit, memory.char_limit, memory.message_window_size) == (2000, 16, 17)


def test_a_document_can_be_read_before() -> None:
    document = parse(b"version: 1.3.17\nmemory: {charLimit: 7}\n", "given.yaml")

    assert load_settings(document).file == "given.yaml"
    assert load_settings(document).memory.char_limit == 7


def test_anchors_and_merge_keys_are_followed() -> None:
    memory = load("x: &limits {charLimit: 5}\nmemory:\n  <<: *limits\n  messageWindowSize: 2\n").memory

    assert (memory.char_limit, memory.message_window_size) == (5, 2)


def test_no_fault_shows_a_secret() -> None:
    found = faults(
        "endpoints:\n  custom:\n    - {name: A, apiKey: [sk-verysecretvalue], baseURL: https://a.example, models: {default: [m]}}\n"
    )

    assert "verysecret" not in str(found)


AGENTS_FILE = b"""
memory-agent-001:
  provider: anthropic
  model: claude-sonnet-4-5
  instructions: Remember little.
  model_parameters: {thinking: {type: enabled}}
  memory_scope: agent
plain:
  provider: openAI
  model: gpt-4o
"""


def test_saved_agents_are_read_from_their_file() -> None:
    agents = load_agents(AGENTS_FILE, file="agents.yaml")

    assert agents.specs["memory-agent-001"] == AgentSpec(
        "anthropic",
        "claude-sonnet-4-5",
        "Remember little.",
        {"thinking": {"type": "enabled"}},
        "memory-agent-001",
        "agent",
    )
    assert agents.specs["plain"] == AgentSpec("openAI", "gpt-4o", id="plain")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a: {provider: p}", [("MEM103", ("a", "model"))]),
        ("a: {provider: '', model: m}", [("MEM103", ("a", "provider"))]),
        ("a: {provider: 1, model: m}", [("MEM201", ("a", "provider"))]),
        ("a: {provider: p, model: m, model_parameters: 1}", [("MEM201", ("a", "model_parameters"))]),
        ("a: {provider: p, model: m, instruction: x}", [("MEM101", ("a", "instruction"))]),
        ("a: {provider: p, model: m, memory_scope: team}", [("MEM204", ("a", "memory_scope"))]),
        ("a: p", [("MEM201", ("a",))]),
        ("- a", [("MEM201", ())]),
        (
            "a: {x: 1}\nb: 2",
            [
                ("MEM103", ("a", "model")),
                ("MEM103", ("a", "provider")),
                ("MEM101", ("a", "x")),
                ("MEM201", ("b",)),
            ],
        ),
        ("a: [", [("MEM001", ())]),
    ],
)
def test_every_fault_of_an_agents_file_is_told_at_its_place(
    text: str, found: list[tuple[str, tuple[str, ...]]]
) -> None:
    with pytest.raises(ConfigUnusable, match=r"^agents\.yaml:\d+:\d+: MEM") as refused:
        load_agents(text.encode(), file="agents.yaml")

    assert sorted((each.code, each.path) for each in refused.value.findings) == sorted(found)
    assert all(each.span is not None for each in refused.value.findings)
