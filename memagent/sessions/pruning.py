"""Making old tool results small for one request: in memory only, the transcript keeps them (O87). Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from memagent.turn import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from memagent.memory import Message

CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class PruningSettings:
    """Shares are of the model's window. While a provider's cache lives, a changed request would cost more than it saves."""

    cache_ttl: timedelta = timedelta(minutes=5)
    trim_from_share: float = 0.30
    trim_over_chars: int = 4_000
    head_chars: int = 1_500
    tail_chars: int = 1_500
    clear_from_share: float = 0.50
    clear_from_chars: int = 50_000
    placeholder: str = "[old tool result left out]"
    kept_assistant_turns: int = 3


def prune(
    messages: Sequence[Message],
    *,
    window: int,
    now: datetime,
    last_call: datetime | None,
    settings: PruningSettings | None = None,
) -> tuple[Message, ...]:
    """`messages` with old tool results trimmed, or, in a fuller window, replaced by a placeholder.

    `last_call` is when the model was last asked (None: never, so nothing is cached). What stands before the first user
    message, in the last assistant turns, and everything that is no tool result stays as it is.
    """
    rule = settings or PruningSettings()
    if last_call is not None and now - last_call < rule.cache_ttl:
        return tuple(messages)
    found = list(messages)
    room = window * CHARS_PER_TOKEN
    old = _old_results(found, rule)
    if _chars(found) < rule.trim_from_share * room:
        return tuple(found)
    for at in old:
        text = text_of(found[at].content)
        if len(text) > rule.trim_over_chars:
            left = len(text) - rule.head_chars - rule.tail_chars
            trimmed = f"{text[: rule.head_chars]}\n[{left} characters left out]\n{text[-rule.tail_chars :]}"
            found[at] = replace(found[at], content=trimmed)
    prunable = sum(len(text_of(found[at].content)) for at in old)
    for at in old if prunable >= rule.clear_from_chars else ():
        if _chars(found) < rule.clear_from_share * room:
            break
        found[at] = replace(found[at], content=rule.placeholder)
    return tuple(found)


def _old_results(messages: Sequence[Message], rule: PruningSettings) -> list[int]:
    first = next((at for at, message in enumerate(messages) if message.role == "user"), len(messages))
    answers = [at for at, message in enumerate(messages) if message.role == "assistant"]
    if len(answers) <= rule.kept_assistant_turns:
        return []
    end = answers[-rule.kept_assistant_turns] if rule.kept_assistant_turns else len(messages)
    return [
        at
        for at in range(first, end)
        # Pictures and files are not text: trimming would lose them whole.
        if messages[at].role == "tool" and isinstance(messages[at].content, str)
    ]


def _chars(messages: Sequence[Message]) -> int:
    return sum(
        len(text_of(message.content)) + sum(len(call.arguments) for call in message.tool_calls)
        for message in messages
    )
