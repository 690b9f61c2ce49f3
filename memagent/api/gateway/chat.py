"""One request for a completion: reading it, putting memories into it, and the turn it stands for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memagent.errors import BadRequest
from memagent.turn import Turn, parse_turn, well_formed

MAX_MESSAGES = 1_000
"""What a turn keeps of a chat: far more than any window."""

ROLES = frozenset({"user", "assistant", "system", "developer", "tool"})
LEADING = frozenset({"system", "developer"})


@dataclass(frozen=True, slots=True)
class Chat:
    """A body as it came, and read. Whatever is odd about it is for the endpoint to say."""

    raw: bytes
    body: Mapping[str, Any]

    @property
    def messages(self) -> list[Any]:
        given = self.body.get("messages")
        return given if isinstance(given, list) else []

    @property
    def newest(self) -> int:
        """Where the newest message of the user stands; -1 without one."""
        said = (at for at, each in enumerate(self.messages) if _role(each) == "user")
        return max(said, default=-1)

    @property
    def streams(self) -> bool:
        return self.body.get("stream") is True

    def tools(self) -> list[Mapping[str, Any]]:
        """The functions that are offered."""
        offered = self.body.get("tools")
        entries = offered if isinstance(offered, list) else []
        functions = [each.get("function") for each in entries if isinstance(each, dict)]
        return [each for each in functions if isinstance(each, dict)]

    def with_memories(self, prefix: str, tail: str) -> bytes:
        """The body with `prefix` in front of the system message and `tail` in front of the newest message's own text.

        The tail is no message of its own: many models take a system message at the very beginning only, and user and
        assistant strictly in turn. Everything else stays as it is; without memories the very same bytes do.
        """
        if not prefix and not tail:
            return self.raw
        messages = list(self.messages)
        if tail and self.newest >= 0:
            messages[self.newest] = _preceded(messages[self.newest], tail)
        if prefix and messages and _role(messages[0]) in LEADING:
            messages[0] = _preceded(messages[0], prefix)
        elif prefix:
            messages.insert(0, {"role": "system", "content": prefix})
        # In ASCII, so that half a surrogate pair, which JavaScript lets through, stays the escape it was.
        return json.dumps({**self.body, "messages": messages}).encode()


def read(raw: bytes) -> Chat:
    """Raises `BadRequest` for what is no JSON object."""
    try:
        body = json.loads(raw, parse_constant=_no_number)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise BadRequest("the body is not a JSON object: send OpenAI's chat completions request")
    return Chat(raw, body)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def turn_of(
    chat: Chat,
    *,
    user: str,
    message_id: str,
    conversation_id: str,
    user_fields: Mapping[str, str] | None = None,
) -> Turn:
    """The chat up to its newest user message; every further call in a loop of tools is the same turn.

    Pictures and files stay out of it: they are large, and nothing is learned from them. Raises `BadRequest` for ids that
    are too long.
    """
    said = [_plain(each) for each in chat.messages[: chat.newest + 1] if _role(each) in ROLES]
    said[-1]["id"] = message_id
    given = {
        "user": user,
        "message_id": message_id,
        "conversation_id": conversation_id,
        "messages": said[-MAX_MESSAGES:],
        "user_fields": dict(user_fields or {}),
    }
    return parse_turn(well_formed(given))


def _role(message: Any) -> str:
    role = message.get("role") if isinstance(message, dict) else None
    return role if isinstance(role, str) else ""


def _preceded(message: dict[str, Any], text: str) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [{"type": "text", "text": f"{text}\n\n"}, *content]}
    return {**message, "content": f"{text}\n\n{content}" if isinstance(content, str) and content else text}


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as a turn takes it, whatever else a client wrote into it."""
    content = message.get("content")
    if isinstance(content, list):
        content = [_part(each) for each in content if isinstance(each, dict)]
    plain = {"role": message["role"], "content": content if isinstance(content, str | list) else None}
    calls = message.get("tool_calls")
    functions = (
        [each.get("function") for each in calls if isinstance(each, dict)] if isinstance(calls, list) else []
    )
    plain["tool_calls"] = [
        {"function": {"name": str(each.get("name")), "arguments": str(each.get("arguments") or "")}}
        for each in functions
        if isinstance(each, dict)
    ]
    return {
        **plain,
        **{name: message[name] for name in ("name", "tool_call_id") if isinstance(message.get(name), str)},
    }


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(part.get("type") or "")
    return {"type": "text", "text": str(part.get("text") or "")} if kind == "text" else {"type": kind}
