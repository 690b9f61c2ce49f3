"""Settings: what `memory` and `endpoints` of a checked librechat.yaml mean, as frozen values.

The check is the validator's own (`config.check`): a file that `memagent validate` faults in these parts does not run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from memagent.config.agents import agent_spec, summary, unknown_agent
from memagent.config.azure import read_deployments
from memagent.config.check import check
from memagent.config.document import Document, parse, plain
from memagent.config.findings import Level
from memagent.errors import ConfigUnusable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memagent.config.agents import Agents, AgentSpec
    from memagent.config.azure import AzureDeployment
    from memagent.config.findings import Finding

RETIRED_KEY = "MEM402"
DEFAULT_CHAR_LIMIT = 10_000
DEFAULT_MAX_INPUT_TOKENS = 12_000
DEFAULT_MESSAGE_WINDOW_SIZE = 5


class MemoryOff(StrEnum):
    """Why nobody has memory; the value goes into receipts."""

    NO_BLOCK = "no_memory_block"
    DISABLED = "disabled"
    NOT_PERSONALIZED = "not_personalized"


class AgentOff(StrEnum):
    """Why nothing is learned although memory is on; the value goes into receipts."""

    NO_AGENT = "no_agent"
    DISABLED = "agent_disabled"
    NO_AGENTS_FILE = "no_agents_file"


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """The `memory` block. `valid_keys` empty allows any key, `token_limit` None has no end."""

    disabled: bool = False
    valid_keys: tuple[str, ...] = ()
    token_limit: int | None = None
    char_limit: int = DEFAULT_CHAR_LIMIT
    max_input_tokens: int = DEFAULT_MAX_INPUT_TOKENS
    personalize: bool = True
    message_window_size: int = DEFAULT_MESSAGE_WINDOW_SIZE
    agent: AgentSpec | None = None
    off: MemoryOff | None = None
    agent_off: AgentOff | None = AgentOff.NO_AGENT

    @property
    def enabled(self) -> bool:
        """Memory is on: stored by hand, recalled and shown."""
        return self.off is None

    @property
    def agent_usable(self) -> bool:
        """The agent learns from turns. An agent without `enabled` does, as the configuration page says."""
        return self.off is None and self.agent_off is None and self.agent is not None


@dataclass(frozen=True, slots=True)
class CustomEndpoint:
    """One entry of `endpoints.custom`, placeholders unresolved. `custom_params` are kept as they are written."""

    name: str
    api_key: str = field(default="", repr=False)
    base_url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    models: tuple[str, ...] = ()
    fetch_models: bool = False
    provider: str | None = None
    add_params: Mapping[str, Any] = field(default_factory=dict)
    drop_params: tuple[str, ...] = ()
    direct_endpoint: bool = False
    custom_params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def provider_name(self) -> str:
        """What `memory.agent.provider` must say: the name, or `ollama` for every casing of it (spec/librechat.md §3.1)."""
        return "ollama" if self.name.lower() == "ollama" else self.name


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run needs of librechat.yaml; `warnings` are the findings that did not stop it."""

    memory: MemorySettings
    endpoints: tuple[CustomEndpoint, ...] = ()
    all_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    built_in_headers: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    azure: tuple[AzureDeployment, ...] = ()
    side_prompts: tuple[str, ...] = ()
    """What LibreChat is told to ask for titles and summaries with: no user's words."""
    file: str = ""
    warnings: tuple[Finding, ...] = ()


def load_settings(
    source: Document | bytes, *, file: str = "librechat.yaml", agents: Agents | None = None
) -> Settings:
    """The settings of a file; raises `ConfigUnusable` with everything that is wrong in the parts that a run needs.

    `agents` are the saved agents that `memory.agent.id` may name; without them such an agent is on record and not usable.
    """
    document = source if isinstance(source, Document) else parse(source, file)
    findings = check(document)
    missing = unknown_agent(document, agents)
    faults = [finding for finding in findings if stops_a_run(finding)] + ([missing] if missing else [])
    if faults:
        faults.sort(key=lambda finding: finding.sort_key())
        raise ConfigUnusable(
            f"{summary(faults)}; `memagent validate {document.file}` shows everything", faults
        )
    root = _mapping(plain(document.root) if document.root else None)
    endpoints = _mapping(root.get("endpoints"))
    return Settings(
        memory=_memory(root, agents),
        endpoints=tuple(_custom(_mapping(entry)) for entry in endpoints.get("custom") or ()),
        all_headers=_texts(_mapping(endpoints.get("all")).get("headers")),
        built_in_headers={
            name: headers
            for name, block in endpoints.items()
            if name not in {"all", "custom"} and (headers := _texts(_mapping(block).get("headers")))
        },
        azure=read_deployments(endpoints.get("azureOpenAI")),
        side_prompts=_side_prompts(root, endpoints),
        file=document.file,
        warnings=tuple(findings),
    )


def stops_a_run(finding: Finding) -> bool:
    """Whether memagent cannot run on a file with this finding: the file is unreadable, or a part it needs is wrong.

    A retired key is an error to whoever keeps the file, and says nothing that a run could get wrong.
    """
    path = finding.path
    concerns_us = (
        path == ()
        or path[0] == "memory"
        or path == ("endpoints",)
        or path[:2] in {("endpoints", "custom"), ("endpoints", "all")}
    )
    return finding.level is Level.ERROR and concerns_us and finding.code != RETIRED_KEY


def _memory(root: Mapping[str, Any], agents: Agents | None) -> MemorySettings:
    if "memory" not in root:
        return MemorySettings(disabled=True, off=MemoryOff.NO_BLOCK)
    block = _mapping(root["memory"])
    disabled, personalize = block.get("disabled", False) is True, block.get("personalize", True) is True
    agent, agent_off = _agent(_mapping(block.get("agent")), agents)
    limit = block.get("tokenLimit")
    return MemorySettings(
        disabled=disabled,
        valid_keys=tuple(block.get("validKeys") or ()),
        token_limit=None if limit is None else int(limit),
        char_limit=int(block.get("charLimit", DEFAULT_CHAR_LIMIT)),
        max_input_tokens=int(block.get("maxInputTokens", DEFAULT_MAX_INPUT_TOKENS)),
        personalize=personalize,
        message_window_size=int(block.get("messageWindowSize", DEFAULT_MESSAGE_WINDOW_SIZE)),
        agent=agent,
        off=MemoryOff.DISABLED if disabled else None if personalize else MemoryOff.NOT_PERSONALIZED,
        agent_off=agent_off,
    )


def _agent(block: Mapping[str, Any], agents: Agents | None) -> tuple[AgentSpec | None, AgentOff | None]:
    if not block:
        return None, AgentOff.NO_AGENT
    off = AgentOff.DISABLED if block.get("enabled") is False else None
    name = block.get("id")
    if not name:
        return agent_spec(block), off
    if agents is None:
        return None, off or AgentOff.NO_AGENTS_FILE
    return agents.specs[name], off


def _side_prompts(root: Mapping[str, Any], endpoints: Mapping[str, Any]) -> tuple[str, ...]:
    blocks = [_mapping(block) for block in (*endpoints.values(), *(endpoints.get("custom") or ()))]
    summaries = _mapping(root.get("summarization"))
    found = [
        *(block.get("titlePrompt") for block in blocks),
        summaries.get("prompt"),
        summaries.get("updatePrompt"),
    ]
    return tuple(dict.fromkeys(prompt for prompt in found if isinstance(prompt, str) and prompt.strip()))


def _custom(entry: Mapping[str, Any]) -> CustomEndpoint:
    models = _mapping(entry.get("models"))
    return CustomEndpoint(
        name=entry.get("name", ""),
        api_key=entry.get("apiKey", ""),
        base_url=entry.get("baseURL", ""),
        headers=_texts(entry.get("headers")),
        models=tuple(
            model if isinstance(model, str) else model["name"] for model in models.get("default", ())
        ),
        fetch_models=models.get("fetch") is True,
        provider=entry.get("provider"),
        add_params=_mapping(entry.get("addParams")),
        drop_params=tuple(entry.get("dropParams", ())),
        direct_endpoint=entry.get("directEndpoint") is True,
        custom_params=_mapping(entry.get("customParams")),
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> dict[str, str]:
    return {name: text for name, text in _mapping(value).items() if isinstance(text, str)}
