"""Memory agents: the one written in the file, and saved ones that the file names by id."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memagent.config.check.draft import Draft
from memagent.config.document import parse, plain
from memagent.config.findings import LibreChat
from memagent.config.nodes import Mapping as MappingNode
from memagent.config.nodes import Scalar
from memagent.config.spelling import meant
from memagent.errors import ConfigUnusable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memagent.config.check.draft import Path
    from memagent.config.document import Document
    from memagent.config.findings import Finding

AGENT_ID: Path = ("memory", "agent", "id")

MEMORY_SCOPES = ("user", "agent")
"""`agent` keeps an agent's memories of a user apart, `user` is the shared pool (spec/librechat.md §4.2)."""

_TEXTS = ("provider", "model", "instructions", "memory_scope")
_KEYS = (*_TEXTS, "model_parameters")


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """Who extracts: a provider as the file names it, one of its models, and how to ask it.

    Empty `instructions` stand for the built-in ones. `id` is empty for an agent written in place.
    """

    provider: str
    model: str
    instructions: str = ""
    model_parameters: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    memory_scope: str = "user"


@dataclass(frozen=True, slots=True)
class Agents:
    """The saved agents of one file, by id."""

    specs: Mapping[str, AgentSpec]
    file: str = ""


def agent_spec(block: Mapping[str, Any], *, name: str = "") -> AgentSpec:
    """An agent from a block that was checked."""
    return AgentSpec(
        provider=block["provider"],
        model=block["model"],
        instructions=block.get("instructions", ""),
        model_parameters=dict(block.get("model_parameters", {})),
        id=name,
        memory_scope=block.get("memory_scope", "user"),
    )


def load_agents(data: bytes, *, file: str) -> Agents:
    """Read a file of saved agents: id to provider, model, instructions, model_parameters, memory_scope.

    Raises `ConfigUnusable` with every fault at its place.
    """
    document = parse(data, file)
    draft = Draft(document)
    draft.findings.extend(document.findings)
    if document.root is not None:
        _check_file(draft)
    if document.root is None or draft.findings:
        faults = sorted(draft.findings, key=lambda finding: finding.sort_key())
        raise ConfigUnusable(summary(faults), faults)
    content: Any = plain(document.root)
    return Agents({name: agent_spec(block, name=name) for name, block in content.items()}, file)


def summary(faults: Sequence[Finding]) -> str:
    """The first fault with its place, and how many there are besides."""
    first = faults[0]
    place = f"{first.file}:{first.span.start.line}:{first.span.start.column}" if first.span else first.file
    more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
    return f"{place}: {first.code}: {first.message}{more}"


def unknown_agent(document: Document, agents: Agents | None) -> Finding | None:
    """The finding for a `memory.agent.id` that the agents file does not hold."""
    node = document.node_at(AGENT_ID)
    name = node.value if isinstance(node, Scalar) else None
    if agents is None or not isinstance(name, str) or not name or name in agents.specs:
        return None
    draft = Draft(document)
    near = meant(name, agents.specs)
    known = ", ".join(f"`{each}`" for each in sorted(agents.specs)) or "none"
    draft.add(
        "MEM317",
        AGENT_ID,
        f"no saved agent is called `{draft.quote(name)}`",
        span=draft.value_span(AGENT_ID),
        librechat=LibreChat.ACCEPTS,
        helps=(
            f"an agent with a similar name exists: `{near.name}`"
            if near
            else f"the agents in {agents.file} are: {known}",
        ),
        notes=(f"looked for in {agents.file}, which `MEMAGENT_AGENTS_FILE` names",),
    )
    return draft.findings[0]


def _check_file(draft: Draft) -> None:
    root = draft.document.root
    if not isinstance(root, MappingNode):
        _wrong_type(draft, (), "a mapping of ids to agents")
        return
    for name in root.entries:
        if draft.mapping((name,)) is None:
            _wrong_type(draft, (name,), "a mapping")
        else:
            _check_agent(draft, name)


def _check_agent(draft: Draft, name: str) -> None:
    entries = draft.mapping((name,))
    for key in entries.entries if entries else ():
        path: Path = (name, key)
        if key not in _KEYS:
            near = meant(key, _KEYS)
            draft.add(
                "MEM101",
                path,
                f"unknown key `{draft.quote(key)}` in the agent `{draft.quote(name)}`",
                span=draft.key_span(path),
                librechat=LibreChat.IGNORES,
                helps=(f"a key with a similar name exists: `{near.name}`",)
                if near
                else (f"known are {_listed(_KEYS)}",),
            )
        elif key in _TEXTS and draft.text(path) is None:
            _wrong_type(draft, path, "a text")
        elif key == "model_parameters" and draft.mapping(path) is None:
            _wrong_type(draft, path, "a mapping")
    for key in ("provider", "model"):
        if not draft.text((name, key)) and not draft.is_blamed((name, key)):
            draft.add(
                "MEM103",
                (name, key),
                f"the agent `{draft.quote(name)}` has no `{key}`",
                span=draft.key_span((name,)),
                librechat=LibreChat.REJECTS,
                helps=(f"add `{key}`",),
            )
    scope = draft.text((name, "memory_scope"))
    if scope is not None and scope not in MEMORY_SCOPES:
        draft.add(
            "MEM204",
            (name, "memory_scope"),
            f"expected one of {_listed(MEMORY_SCOPES)}, found {draft.found((name, 'memory_scope'))}",
            span=draft.value_span((name, "memory_scope")),
            librechat=LibreChat.REJECTS,
        )


def _wrong_type(draft: Draft, path: Path, expected: str) -> None:
    draft.add(
        "MEM201",
        path,
        f"expected {expected}, found {draft.found(path)}",
        span=draft.value_span(path),
        librechat=LibreChat.REJECTS,
    )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
