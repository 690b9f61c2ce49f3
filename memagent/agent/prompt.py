"""The one request of a turn to the extraction agent: instructions, limits, what is remembered, and the end of the chat."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from memagent.agent.context import keyed_listing, render, stripped
from memagent.agent.ledger import plain_number
from memagent.memory import Message
from memagent.window import DEFAULT_INPUT_TOKENS, DEFAULT_MESSAGES, input_text, newest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memagent.agent.ledger import Rules
    from memagent.memory import Memory
    from memagent.tokens import CountTokens


@dataclass(frozen=True, slots=True)
class Prompt:
    """`messages` go to the model; `window` is the part of the chat they were made of, for its witnesses."""

    messages: tuple[Message, ...]
    window: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of a chat is read: `messageWindowSize` and `maxInputTokens`."""

    messages: int = DEFAULT_MESSAGES
    tokens: int = DEFAULT_INPUT_TOKENS


def build(
    messages: Sequence[Message],
    memories: Sequence[Memory],
    *,
    rules: Rules,
    budget: Budget,
    count: CountTokens,
    instructions: str | None = None,
    injected: Mapping[str, str] | None = None,
    system_role: bool = True,
) -> Prompt:
    """Make the request for a chat and the memories of its scope.

    `instructions`, variables resolved, replace ours together with the lines about keys and limits. `injected` is what
    memagent put into the chat itself (`context.injected_words`). Without `system_role` everything is one user message
    (`ModelTarget.merge_system_into_user`, spec/librechat.md §4.5).
    """
    window = read_window(messages, budget.messages, injected or {})
    chat = input_text(window, max_tokens=budget.tokens, count=count)
    system = f"{instructions or default_instructions(rules)}\n\n{status(memories, rules)}"
    if system_role:
        return Prompt((Message("system", system), Message("user", chat)), window)
    return Prompt((Message("user", f"{system}\n\n{chat}"),), window)


def read_window(messages: Sequence[Message], size: int, injected: Mapping[str, str]) -> tuple[Message, ...]:
    """Return the newest messages without memagent's own words.

    More than `size` are looked at, because a message of nothing but such words takes no place; not all, because a
    chat may be long.
    """
    if size < 1:
        return ()
    reach = messages[-(4 * size + 16) :]
    last = islice(stripped(reversed(reach), injected), size + 1)
    return newest(tuple(last)[::-1], size)


@lru_cache(maxsize=16)
def default_instructions(rules: Rules) -> str:
    """Render our own instructions with the allowed keys and the limits."""
    return render(
        "instructions",
        valid_keys=[" ".join(key.split()) for key in rules.valid_keys],
        token_limit=plain_number(rules.token_limit),
        char_limit=plain_number(rules.char_limit),
    )


def status(memories: Sequence[Memory], rules: Rules) -> str:
    """Render usage, limit and what is left (never negative) where a limit is set, then every memory with its key.

    What is not trusted takes its room and is not shown: the words of a tool must not come back as the user's.
    """
    used = sum(memory.tokens for memory in memories)
    limit = rules.token_limit
    return render(
        "status",
        used=used,
        token_limit=plain_number(limit),
        remaining=plain_number(max((limit or 0) - used, 0)),
        memories=keyed_listing(memory for memory in memories if memory.trusted),
    )
