"""What the extraction agent gets to read of a chat: the last messages as one text within a budget of real tokens.

Pure: messages in, text out, and the messages given stay as they are. Rules: spec/librechat.md §4.3, design §6.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memagent.tokens import well_formed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from memagent.memory import Message, ToolCall
    from memagent.tokens import CountTokens

DEFAULT_MESSAGES = 5
DEFAULT_INPUT_TOKENS = 12_000

HEADING = "# Current Chat:\n\n"
NOTICE = "[Earlier parts of this chat are left out.]\n"
CUT = "…"
"""Stands before a text that lost its beginning, so that what remains of a line never reads as a line of its own."""

LABELS = {"user": "Human", "assistant": "AI", "system": "System", "developer": "System", "tool": "Tool"}

_PART_NAMES = {
    "image_url": "[image]",
    "image": "[image]",
    "input_image": "[image]",
    "audio": "[audio]",
    "input_audio": "[audio]",
    "video": "[video]",
    "video_url": "[video]",
    "file": "[file]",
    "input_file": "[file]",
    "document": "[file]",
}
_TEXT_PARTS = frozenset({"text", "input_text", "output_text", "refusal"})
_SILENT_PARTS = frozenset(
    {"reasoning", "thinking", "redacted_thinking", "reasoning_content", "think", "tool_call", "tool_use"}
)
"""Thoughts and calls: the calls are told apart from the text, the thoughts are nobody's statement."""
_IMAGE_PARTS = frozenset({"image_url"})

_BREAK = r"(?:^|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])"
_IMPOSTOR = re.compile(
    rf"({_BREAK})(?=[^\S\r\n]*(?:(?:Human|AI|Assistant|User|System|Tool)[^\S\r\n]*:|\#+[^\S\r\n]*(?:Current Chat|Memory Status|Existing memory)))",
    re.IGNORECASE,
)


def newest(messages: Sequence[Message], size: int) -> tuple[Message, ...]:
    """Return the last `size` messages, opened on a user turn (B08).

    A shorter history comes back whole; a tail without any user turn comes back as it is; a size below 1 is an empty
    window. It always ends at the newest message.
    """
    if len(messages) <= size:
        return tuple(messages)
    tail = tuple(messages[-size:]) if size > 0 else ()
    opening = next((index for index, message in enumerate(tail) if message.role == "user"), 0)
    return tail[opening:]


def without_images(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Remove the image parts; one text part that is left alone becomes plain text."""
    return tuple(_without_images(message) for message in messages)


def _without_images(message: Message) -> Message:
    if message.content is None or isinstance(message.content, str):
        return message
    kept = tuple(part for part in message.content if part.get("type") not in _IMAGE_PARTS)
    if len(kept) == 1 and kept[0].get("type") == "text":
        return replace(message, content=str(kept[0].get("text") or ""))
    return message if len(kept) == len(message.content) else replace(message, content=kept)


def text_of_parts(content: str | tuple[Mapping[str, Any], ...] | None) -> str:
    """Flatten a message's content: text as it is, anything else as the name of its kind."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(_part(part) for part in content)


def _part(part: Mapping[str, Any]) -> str:
    kind = str(part.get("type") or "text")
    if kind in _TEXT_PARTS:
        text = part.get("text", part.get("refusal"))
        # LibreChat writes some texts as {"value": "..."}.
        return str((text.get("value") if isinstance(text, dict) else text) or "")
    if kind in _SILENT_PARTS:
        return ""
    return _PART_NAMES.get(kind, f"[{kind}]")


def chat_text(messages: Sequence[Message]) -> str:
    """Write the messages as lines `Human: …`, `AI: …`, `System: …`, `Tool: …`; a name stands before the text it said.

    A line inside a message that would read as the beginning of another message, or as a heading of ours, is set back
    behind `> `: nobody speaks in somebody else's name.
    """
    return "\n".join(_line(message) for message in messages)


def _line(message: Message) -> str:
    label = LABELS.get(message.role) or re.sub(r"\W+", " ", message.role).strip() or "Message"
    name = f"{' '.join(message.name.split())}, " if message.name else ""
    text = _IMPOSTOR.sub(r"\1> ", well_formed(f"{name}{text_of_parts(message.content)}"))
    calls = _calls(message.tool_calls) if message.tool_calls else ""
    return f"{label}: {text}{calls}"


def _calls(calls: Sequence[ToolCall]) -> str:
    rows = [
        {"name": call.name, "args": _arguments(call.arguments), "id": call.id, "type": "tool_call"}
        for call in calls
    ]
    return well_formed(json.dumps(rows, ensure_ascii=False, separators=(",", ":")))


def _arguments(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def clip(text: str, *, max_tokens: int, count: CountTokens) -> str:
    """`text` under the heading, within `max_tokens` as `count` counts them.

    What does not fit is cut from the start; then heading and notice stay, the newest text stays, and the budget is used
    up to what one more character would cost. A budget too small for heading and notice goes to the newest text alone.
    """
    whole = HEADING + text
    if _surely_fits(whole, max_tokens) or count(whole) <= max_tokens:
        return whole
    head = HEADING + NOTICE + CUT
    if count(head) >= max_tokens:
        head = ""
    start = _first_fitting(text, lambda tail: count(head + tail) <= max_tokens)
    return head + text[start:]


def _surely_fits(text: str, max_tokens: int) -> bool:
    # A token is at least one byte, a character at most four.
    return 4 * len(text) <= max_tokens


def _first_fitting(text: str, fits: Callable[[str], bool]) -> int:
    """Where the longest fitting tail of `text` starts, given that the whole does not fit.

    The counts halve from step to step, so all of them together cost about as much as two of the whole text.
    """
    bad, good = 0, len(text)
    while good - bad > 1:
        middle = (good + bad) // 2
        if fits(text[middle:]):
            good = middle
        else:
            bad = middle
    return good


def input_text(messages: Sequence[Message], *, max_tokens: int, count: CountTokens) -> str:
    """Return the one text that stands for a window of messages, images removed, within `max_tokens`."""
    return clip(chat_text(without_images(messages)), max_tokens=max_tokens, count=count)
