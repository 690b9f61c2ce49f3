"""Chat messages as JSON, and back to an equal value (L52). What is not known is refused, never guessed at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memagent.errors import BadRequest
from memagent.memory import Message, ToolCall

TYPES = {"system": "SYSTEM", "user": "USER", "assistant": "AI", "tool": "TOOL_RESULT"}
ROLES = {kind: role for role, kind in TYPES.items()}
CUSTOM = "CUSTOM"
"""Any other role, which then stands in `role`."""
PARTS = frozenset(
    {"text", "refusal"}
    | {"image", "image_url", "input_image"}
    | {"audio", "audio_url", "input_audio"}
    | {"video", "video_url", "input_video"}
    | {"file", "file_url", "input_file", "pdf", "document"}
)
"""Kinds of content parts: text, image, audio, video, PDF, as the providers spell them."""
FIELDS = frozenset({"type", "role", "content", "id", "name", "toolCalls", "toolCallId"})


def to_json(message: Message) -> dict[str, Any]:
    """The JSON of a message; empty fields are left out. Raises `BadRequest` for a content part of an unknown kind."""
    found: dict[str, Any] = {"type": TYPES.get(message.role, CUSTOM)}
    if found["type"] == CUSTOM:
        found["role"] = message.role
    if message.content is not None:
        text = isinstance(message.content, str)
        found["content"] = message.content if text else [_part(part) for part in message.content]
    if message.id is not None:
        found["id"] = message.id
    if message.name is not None:
        found["name"] = message.name
    if message.tool_calls:
        found["toolCalls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        found["toolCallId"] = message.tool_call_id
    return found


def from_json(value: object) -> Message:
    """The message of `to_json`'s JSON; raises `BadRequest` for anything that `to_json` would not write."""
    if not isinstance(value, dict):
        raise BadRequest(f"a stored message is an object, found {type(value).__name__}")
    kind = value.get("type")
    role = value.get("role") if kind == CUSTOM else ROLES.get(str(kind))
    if not isinstance(role, str):
        raise BadRequest(f"unknown message type {kind!r}; known are {', '.join((*ROLES, CUSTOM))}")
    if unknown := set(value) - FIELDS:
        raise BadRequest(f"unknown fields of a stored message: {', '.join(sorted(unknown))}")
    try:
        return Message(
            role=role,
            content=_content(value.get("content")),
            id=value.get("id"),
            name=value.get("name"),
            tool_calls=tuple(ToolCall(**call) for call in value.get("toolCalls", ())),
            tool_call_id=value.get("toolCallId"),
        )
    except TypeError as error:
        raise BadRequest("a stored tool call needs exactly `id`, `name` and `arguments`") from error


def _content(value: object) -> str | tuple[Mapping[str, Any], ...] | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        return tuple(_part(part) for part in value)
    raise BadRequest(f"the content of a stored message is text or a list, found {type(value).__name__}")


def _part(part: object) -> dict[str, Any]:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping) or kind not in PARTS:
        raise BadRequest(f"unknown kind of content part {kind!r}; known are {', '.join(sorted(PARTS))}")
    return dict(part)
