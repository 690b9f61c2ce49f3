"""Estimating what messages cost in tokens: what a token window and compaction measure with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from memagent.tokens import count_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from memagent.memory import Message
    from memagent.tokens import CountTokens

REQUEST_TOKENS = 3
"""What OpenAI's chat format adds once to a request: the primed answer."""
MESSAGE_TOKENS = 4
"""What it adds to a message: 1 for the role, 3 for the marks around it."""
PART_TOKENS = 1_200
"""An image, sound or file: providers differ from 85 up to some thousand; 4,800 characters at 4 a token (O43)."""


class TokenCountEstimator(Protocol):
    """Tokens of a text, of one message, of a request; the last may be more than the sum of its messages."""

    def count_text(self, text: str, /) -> int: ...

    def count_message(self, message: Message, /) -> int: ...

    def count_messages(self, messages: Iterable[Message], /) -> int: ...


class O200kEstimator:
    """OpenAI's o200k_base, offline; any other counter of texts serves as well."""

    def __init__(self, count: CountTokens = count_tokens) -> None:
        self._count = count

    def count_text(self, text: str, /) -> int:
        return self._count(text)

    def count_message(self, message: Message, /) -> int:
        content = message.content
        parts = () if content is None or isinstance(content, str) else content
        return (
            MESSAGE_TOKENS
            + (self._count(content) if isinstance(content, str) else 0)
            + sum(self._part(part) for part in parts)
            + sum(self._count(call.name) + self._count(call.arguments) for call in message.tool_calls)
        )

    def count_messages(self, messages: Iterable[Message], /) -> int:
        return REQUEST_TOKENS + sum(self.count_message(message) for message in messages)

    def _part(self, part: Mapping[str, Any]) -> int:
        text = part.get("text") if part.get("type") == "text" else part.get("refusal")
        return self._count(text) if isinstance(text, str) else PART_TOKENS
