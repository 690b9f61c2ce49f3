"""The loop of one extraction: ask, run the tools, and give a refusal back to the model, bounded.

A failed call is never "nothing to remember": the first one raises, a later one is kept beside what was gathered.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from memagent.agent.tools import RETRYABLE, ToolOutcome, ToolStatus
from memagent.errors import ModelFault
from memagent.llm import Usage
from memagent.memory import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.agent.ledger import Ledger
    from memagent.agent.prompt import Prompt
    from memagent.llm import ChatModel, ModelReply
    from memagent.memory import ToolCall
    from memagent.store import Edit


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """The most one extraction may do. `calls` counts calls of the model: one, and two more after refusals."""

    calls: int = 3
    tool_calls: int = 50
    """More facts than any five messages hold; a model that makes more is looping inside its answer."""


class Stopped(StrEnum):
    """Why an extraction ended."""

    DONE = "done"
    """Tools ran, and nothing is left to be said to the model."""
    NOTHING = "nothing"
    """The model found nothing to do."""
    EMPTY_REPLY = "empty_reply"
    """The model neither called a tool nor said a word, which is also how it ends its turn when in doubt."""
    CUT_OFF = "cut_off"
    """The answer ended at the model's output limit before any tool was called."""
    FILTERED = "filtered"
    """The provider withheld the answer."""
    REPEATING = "repeating"
    """The model only repeated calls that it had made before."""
    LIMIT = "limit"
    """The last call allowed was refused too."""
    FAILED = "failed"
    """A call after the first one failed; what was gathered before it stands."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call of the model; `model` as the provider names it."""

    model: str
    finish_reason: str
    tool_calls: int
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Extraction:
    """What came of it. `fault` is set exactly when `stopped` is `FAILED`."""

    edits: tuple[Edit, ...]
    calls: tuple[CallRecord, ...]
    tool_outcomes: tuple[ToolOutcome, ...]
    stopped: Stopped
    fault: ModelFault | None = None

    @property
    def usage(self) -> Usage:
        """The sum of all calls; the cost is None as soon as one price is unknown."""
        prices = [call.usage.cost_usd for call in self.calls]
        known = [price for price in prices if price is not None]
        return Usage(
            input_tokens=sum(call.usage.input_tokens for call in self.calls),
            output_tokens=sum(call.usage.output_tokens for call in self.calls),
            cache_read_tokens=sum(call.usage.cache_read_tokens for call in self.calls),
            cache_write_tokens=sum(call.usage.cache_write_tokens for call in self.calls),
            cost_usd=sum(known) if len(known) == len(prices) else None,
        )


async def extract(
    model: ChatModel, prompt: Prompt, ledger: Ledger, *, limits: LoopLimits = LoopLimits()
) -> Extraction:
    """Ask `model` what to remember and plan it in `ledger`: one call when nothing is refused.

    Raises `ModelFault` when the first call fails; never anything else for whatever a model may answer.
    """
    messages = list(prompt.messages)
    calls: list[CallRecord] = []
    outcomes: list[ToolOutcome] = []

    def ended(stopped: Stopped, fault: ModelFault | None = None) -> Extraction:
        return Extraction(ledger.edits, tuple(calls), tuple(outcomes), stopped, fault)

    while True:
        try:
            reply = await model.complete(messages, tools=ledger.tools)
        except ModelFault as fault:
            if not calls:
                raise
            return ended(Stopped.FAILED, fault)
        asked = _with_ids(reply.tool_calls, len(outcomes))
        calls.append(CallRecord(reply.model, reply.finish_reason, len(asked), reply.usage))
        if not asked:
            return ended(Stopped.DONE if outcomes else _silence(reply))
        answers = _run(asked, ledger, room=limits.tool_calls - len(outcomes))
        outcomes += answers
        if all(answer.status is ToolStatus.REPEATED for answer in answers) and len(calls) > 1:
            return ended(Stopped.REPEATING)
        if not any(answer.status in RETRYABLE for answer in answers):
            return ended(Stopped.DONE)
        if len(calls) >= limits.calls:
            return ended(Stopped.LIMIT)
        messages.append(Message("assistant", reply.text or None, tool_calls=asked))
        messages += [Message("tool", answer.text, tool_call_id=answer.call_id) for answer in answers]


def _run(asked: Sequence[ToolCall], ledger: Ledger, *, room: int) -> list[ToolOutcome]:
    """Run calls in order, so that parallel ones cannot pass a limit together; those beyond `room` are not run."""
    ran = [ledger.run(call) for call in asked[: max(room, 0)]]
    text = "Too many calls in one turn. This one was not run."
    beyond = asked[max(room, 0) :]
    return ran + [ToolOutcome(call.id, call.name, "", ToolStatus.TOO_MANY, text) for call in beyond]


def _with_ids(calls: Sequence[ToolCall], made: int) -> tuple[ToolCall, ...]:
    """Give a call without an id of its own one, for its answer must name it."""
    seen: set[str] = set()
    named: list[ToolCall] = []
    for number, call in enumerate(calls, made + 1):
        unique = call if call.id and call.id not in seen else replace(call, id=f"call_{number}")
        seen.add(unique.id)
        named.append(unique)
    return tuple(named)


def _silence(reply: ModelReply) -> Stopped:
    if reply.finish_reason == "length":
        return Stopped.CUT_OFF
    if reply.finish_reason == "content_filter":
        return Stopped.FILTERED
    return Stopped.NOTHING if reply.text.strip() else Stopped.EMPTY_REPLY
