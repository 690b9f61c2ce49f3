"""The doctor: live probes of everything a turn stands on, each with a verdict and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from time import perf_counter
from typing import TYPE_CHECKING, Any

from memagent.config.endpoints import find_provider, header_templates, redacted
from memagent.errors import MemagentError
from memagent.llm import ToolSpec
from memagent.memory import Message
from memagent.service.observe import off, target_of
from memagent.turn import Turn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from memagent.service.passages import Passages
    from memagent.service.ports import Ports

PROBE = ToolSpec(
    "ping",
    "Call this tool once.",
    {
        "type": "object",
        "properties": {"word": {"type": "string"}},
        "required": ["word"],
        "additionalProperties": False,
    },
)


class Verdict(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Probe:
    """One thing looked at. `advice` says what to do about a verdict other than ok; no secret is in it."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


async def examine(ports: Ports) -> AsyncIterator[Probe]:
    """Probe store, embedder, turns and notes where they are kept, and model, in that order, each on its own: one that fails does not hide the next."""
    for probe in await ports.store.health(now=ports.clock()):
        yield Probe(probe.name, Verdict(probe.verdict), probe.found, probe.advice)
    yield await embedder_probe(ports)
    if ports.passages is not None:
        yield await _passages(ports.passages)
    yield await _model(ports)


async def embedder_probe(ports: Ports) -> Probe:
    if ports.embedder is None:
        found = "none: every memory stays active, and nothing is recalled by meaning"
        return Probe(
            "embedder", Verdict.WARNING, found, "set MEMAGENT_EMBEDDER=local, or to an embedding model"
        )
    started = perf_counter()
    try:
        vector = await ports.embedder.query("How is the weather today?")
    except MemagentError as fault:
        return Probe(
            "embedder", Verdict.FAILED, str(fault), "memories are kept without a vector until it answers"
        )
    spent = (perf_counter() - started) * 1000
    size = len(vector)
    if size != ports.embedder.dimensions:
        found = (
            f"{ports.embedder.id} answers with {size} dimensions, the index has {ports.embedder.dimensions}"
        )
        return Probe("embedder", Verdict.FAILED, found, f"set MEMAGENT_EMBEDDER_DIMENSIONS={size}")
    found = f"{ports.embedder.id}, {size} dimensions, floor {ports.embedder.floor:.2f}, {spent:.0f} ms"
    return Probe("embedder", Verdict.OK, found)


async def _passages(passages: Passages) -> Probe:
    try:
        found = await passages.look()
    except MemagentError as fault:
        advice = "turns wait to be learned from until it answers; see MEMAGENT_VECTORS and MEMAGENT_NOTES_DIR"
        return Probe("passages", Verdict.FAILED, str(fault), advice)
    return Probe("passages", Verdict.OK, found)


async def _model(ports: Ports) -> Probe:
    memory = ports.settings.memory
    why = off(ports)
    if why is not None or memory.agent is None:
        return Probe("model", Verdict.SKIPPED, f"not asked: {why[1] if why else 'no agent'}")
    visitor = Turn("doctor", "doctor", (), user_fields={"email": "doctor@example.org", "name": "Doctor"})
    started = perf_counter()
    try:
        target = target_of(ports, visitor, memory.agent)
        reply = await ports.models(target).complete(
            [Message("user", "Call the tool `ping` with the word pong.")], tools=[PROBE]
        )
    except MemagentError as fault:
        return Probe(
            "model", Verdict.FAILED, f"[{fault.code}] {fault}", "nothing can be learned until it answers"
        )
    provider = find_provider(memory.agent.provider, ports.settings.endpoints)
    shown = redacted(target, header_templates(ports.settings, provider))
    headers = ", ".join(f"{name}: {value}" for name, value in shown["headers"].items())
    spent = (perf_counter() - started) * 1000
    where = f"{shown['model']} at {shown['base_url'] or 'its own address'}, {spent:.0f} ms"
    found = f"{where}; headers {headers}" if headers else where
    if not reply.tool_calls:
        return Probe(
            "model",
            Verdict.WARNING,
            f"{found}; answered without calling the tool",
            "use a model that calls tools",
        )
    return Probe("model", Verdict.OK, f"{found}; called the tool")
