"""Summarising the part of a conversation that compaction takes out: prompts, fallbacks, the finished text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from memagent.errors import ContextTooLong, ModelFault, ModelReplyInvalid
from memagent.memory import Message
from memagent.sessions.context import defused
from memagent.turn import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jinja2 import Environment

    from memagent.llm import ChatModel, Usage
    from memagent.sessions.compaction import Plan
    from memagent.sessions.context import Item

MAX_SUMMARY_CHARS = 16_000
"""A summary larger than this is no summary; it also bounds what a looping model may cost every later turn."""
MAX_FAILURES = 8
MAX_FAILURE_CHARS = 240
OVERSIZED_SHARE = 0.5
"""A message over half the window cannot be summarised together with anything else (O54)."""
NOTHING_SAID = "Nothing was said yet; only notes of the system and of tools were left out."
UNSUMMARISED = (
    "The earlier conversation was too large to be summarised: {count} message(s) are left out here. "
    "They stand word for word in the transcript of the session before this one."
)
PREFIX_HEADING = "## The turn in progress"

_OVERFLOW = re.compile(
    r"context[ _-]?(?:length|window)|maximum context|too many (?:input )?tokens|prompt is too long|input is too long"
    r"|exceeds? the (?:model|token|max)|token limit",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Summary:
    """`omitted` messages were too large to be read by the summariser; `calls` is what it cost."""

    text: str
    omitted: int = 0
    calls: tuple[Usage, ...] = field(default_factory=tuple)


def is_overflow(fault: Exception) -> bool:
    """Whether a model refused because its window is too small for what it was sent."""
    return isinstance(fault, ContextTooLong) or (
        # Some endpoints say it in words only.
        isinstance(fault, ModelFault) and bool(_OVERFLOW.search(str(fault)))
    )


class Summariser:
    """Summaries by a chat model; `weigh` estimates a message's tokens."""

    def __init__(self, model: ChatModel, *, weigh: Callable[[Message], int]) -> None:
        self._model = model
        self._weigh = weigh

    async def summarise(self, plan: Plan, *, window: int, instructions: str = "") -> Summary:
        """The text that stands for `plan.summarised`, brought up to date from the summary before it (O50).

        Too large for the model, it is tried again without messages over half the window, and at last a plain notice stands
        in its place (O54). Any other fault of the model is raised (O52), an empty answer as `ModelReplyInvalid`.
        """
        if not plan.has_conversation:
            return Summary(plan.previous or NOTHING_SAID)
        omitted: frozenset[int] = frozenset()
        large = frozenset(
            id(item) for item in plan.summarised if self._weigh(item.message) > window * OVERSIZED_SHARE
        )
        for left_out in (omitted, large) if large else (omitted,):
            try:
                return await self._written(plan, left_out, instructions)
            except ModelFault as fault:
                if not is_overflow(fault):
                    raise
        notice = UNSUMMARISED.format(count=len(plan.summarised))
        return Summary(_joined(plan.previous or "", notice), omitted=len(plan.summarised))

    async def _written(self, plan: Plan, left_out: frozenset[int], instructions: str) -> Summary:
        calls: list[Usage] = []
        texts = [plan.previous or ""] if not plan.history else []
        if plan.history:
            texts.append(
                await self._ask(
                    plan.history, left_out, calls, previous=plan.previous, instructions=instructions
                )
            )
        if plan.prefix:
            text = await self._ask(plan.prefix, left_out, calls, part="prefix", instructions=instructions)
            texts.append(f"{PREFIX_HEADING}\n{text}")
        texts.append(failures(plan.summarised))
        return Summary(_capped(_joined(*texts)), omitted=len(left_out), calls=tuple(calls))

    async def _ask(
        self,
        items: Sequence[Item],
        left_out: frozenset[int],
        calls: list[Usage],
        *,
        instructions: str,
        previous: str | None = None,
        part: str = "history",
    ) -> str:
        values: dict[str, Any] = {
            "part": part,
            "previous": previous,
            "instructions": instructions,
            "omitted": sum(id(item) in left_out for item in items),
            "lines": readable(items, left_out),
        }
        system, asked = (
            _templates().get_template(f"summary_{each}.jinja").render(values) for each in ("system", "user")
        )
        reply = await self._model.complete(
            (Message("system", system.strip()), Message("user", asked.strip()))
        )
        calls.append(reply.usage)
        if not reply.text.strip():
            raise ModelReplyInvalid("the summary came back empty")
        return reply.text.strip()


def readable(items: Sequence[Item], left_out: frozenset[int] = frozenset()) -> list[str]:
    """A conversation as text for a summariser: only what was said, called and answered (O55).

    A result goes with its call: where the call is left out, it is too.
    """
    found: list[str] = []
    dropped: set[str] = set()
    for item in items:
        message = item.message
        if id(item) in left_out:
            dropped |= {call.id for call in message.tool_calls}
            found.append(f"[{message.role}, too large, left out]")
            continue
        if message.role == "tool" and message.tool_call_id in dropped:
            continue
        text = text_of(message.content)
        if message.content and not isinstance(message.content, str):
            kinds = [str(part.get("type")) for part in message.content if part.get("type") != "text"]
            text = " ".join([text, *(f"[{kind}]" for kind in kinds)]).strip()
        calls = "".join(f"\n[calls {call.name} {call.arguments}]" for call in message.tool_calls)
        found.append(f"[{message.role}] {text}{calls}")
    return found


def failures(items: Sequence[Item]) -> str:
    """The tools' failures, word for word and bounded: what was tried and did not work must not be tried again (O56)."""
    failed = [
        item.message for item in items if item.message.role == "tool" and item.entry.data.get("isError")
    ]
    if not failed:
        return ""
    lines = []
    for message in failed[-MAX_FAILURES:]:
        text = " ".join(text_of(message.content).split())
        lines.append(
            f"- {message.name or 'tool'}: {text[:MAX_FAILURE_CHARS]}{'…' * (len(text) > MAX_FAILURE_CHARS)}"
        )
    return "\n".join(("## Tool failures", *lines))


def _joined(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)


def _capped(text: str) -> str:
    if len(text) <= MAX_SUMMARY_CHARS:
        return text
    note = "\n\n[The summary is cut here; all of it was said in the session before this one.]"
    return text[: MAX_SUMMARY_CHARS - len(note)] + note


@cache
def _templates() -> Environment:
    import jinja2  # noqa: PLC0415  loads with the first summary

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("memagent.sessions"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701  prompts are text, and `defused` keeps data inside its tags
    )
    environment.filters["defused"] = lambda text, name: defused(name, text)
    return environment
