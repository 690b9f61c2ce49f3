"""What a request to the gateway is: a turn of the user's, or something that a program asks on the side.

Only a turn gets memories and is learned from; everything else goes on as it came. In this order:

- `unnamed`: no id of a message, or no message of a user. LibreChat leaves `{{LIBRECHAT_BODY_PARENTMESSAGEID}}` empty in
  the runs of its own memory agent, so these have no id either (spec/librechat.md §3.5).
- `memory`: the only tools on offer are `set_memory` and `delete_memory`, and the answer is not streamed. That is a memory
  agent, memagent's own or LibreChat's; a chat with LibreChat's inline memory tools streams.
- `aside`: the answer has to fit a schema of a title, or the last message is a prompt of LibreChat's for titles or
  summaries: its own, or a `titlePrompt` or `summarization` prompt of librechat.yaml.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from memagent.turn import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.api.gateway.chat import Chat


class Kind(StrEnum):
    TURN = "turn"
    UNNAMED = "unnamed"
    MEMORY = "memory"
    ASIDE = "aside"


MEMORY_TOOLS = frozenset({"set_memory", "delete_memory"})
TITLE_FIELDS = frozenset({"title", "language"})
OWN_PROMPTS = (
    ("Provide a concise, 5-word-or-less title",),
    ("Analyze this conversation and provide", "title in the detected language"),
    ("Hold on, before you continue I need you to write me a checkpoint",),
    ("Hold on again, update your checkpoint",),
)
"""How LibreChat's own prompts for titles and summaries begin, and what else is in them."""

_PLACEHOLDER = re.compile(r"\{\w+\}")


def kind_of(chat: Chat, *, message_id: str | None, side_prompts: Sequence[str] = ()) -> Kind:
    """`side_prompts` are those of librechat.yaml, with their placeholders."""
    if not message_id or chat.newest < 0:
        return Kind.UNNAMED
    offered = {str(tool.get("name")) for tool in chat.tools()}
    if offered and offered <= MEMORY_TOOLS and not chat.streams:
        return Kind.MEMORY
    if _wants_a_title(chat) or _is_prompt(_text(chat.messages[-1]), side_prompts):
        return Kind.ASIDE
    return Kind.TURN


def _wants_a_title(chat: Chat) -> bool:
    """Whether the only form of an answer is that of a title."""
    shape = chat.body.get("response_format")
    schema = shape.get("json_schema") if isinstance(shape, dict) else None
    asked = (
        [schema.get("schema")]
        if isinstance(schema, dict)
        else [tool.get("parameters") for tool in chat.tools()]
    )
    fields = asked[0].get("properties") if len(asked) == 1 and isinstance(asked[0], dict) else None
    return isinstance(fields, dict) and "title" in fields and set(fields) <= TITLE_FIELDS and not chat.streams


def _is_prompt(text: str, side_prompts: Sequence[str]) -> bool:
    configured = (tuple(piece.strip() for piece in _PLACEHOLDER.split(prompt)) for prompt in side_prompts)
    return any(
        text.startswith(pieces[0]) and all(piece in text for piece in pieces)
        for pieces in (*OWN_PROMPTS, *configured)
        if any(pieces)
    )


def _text(message: Any) -> str:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        content = tuple(part for part in content if isinstance(part, dict))
    return text_of(content).strip() if isinstance(content, str | tuple) else ""
