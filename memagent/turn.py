"""One turn of a chat as a backend hands it over: decoding, and what recall and the agent ask of it.

The accepted shape is OpenAI's chat messages plus who and which message: `schemas/turn.schema.json`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memagent.errors import BadRequest
from memagent.memory import Message, Scope, ScopeKind, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_MESSAGES = 10_000
"""More than any chat holds; the window needs the last few."""
MAX_ID_CHARS = 256
MIN_QUERY_CHARS = 3
"""Shorter messages say nothing that could match, so they neither search nor age (T28)."""
MAX_QUERY_CHARS = 1_000
"""The stretch of the newest message that is searched with (spec/seeds.md §2.1)."""

LONE_SURROGATE = re.compile("[\ud800-\udfff]")

Id = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS)]


@dataclass(frozen=True, slots=True)
class Turn:
    """A chat up to and including its newest user message, `message_id`.

    `agent_id` is the partition of an agent whose memory is its own (spec/librechat.md §4.2), `shared` the shared scopes
    in reach, `channel` where it is said (T20). `user_fields` are LibreChat's user fields for header placeholders and
    `user_key` the user's own API key, for an endpoint at `user_base_url` if that is theirs too; none of it is ever stored.
    """

    user: str
    message_id: str
    messages: tuple[Message, ...]
    conversation_id: str = ""
    agent_id: str = ""
    shared: tuple[str, ...] = ()
    channel: str = ""
    user_fields: Mapping[str, str | bool | None] = field(default_factory=dict, repr=False)
    user_key: str | None = field(default=None, repr=False)
    user_base_url: str | None = None

    @property
    def own(self) -> Scope:
        """Where what this turn teaches is kept."""
        return Scope(ScopeKind.USER, self.user, self.agent_id)

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Everything this turn may recall from: the user's own, their global ones, the shared ones."""
        return (
            self.own,
            Scope(ScopeKind.GLOBAL, self.user),
            *(Scope(ScopeKind.SHARED, name) for name in self.shared),
        )

    @property
    def query(self) -> str:
        """The newest user message as text to search with; empty when there is nothing to search for (T28)."""
        for message in reversed(self.messages):
            if message.role == "user":
                text = text_of(message.content).strip()
                return text[:MAX_QUERY_CHARS] if len(text) >= MIN_QUERY_CHARS else ""
        return ""


def text_of(content: str | tuple[Mapping[str, Any], ...] | None) -> str:
    """The text of a message's content; parts that are not text have none."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(str(part.get("text") or "") for part in content if part.get("type") == "text")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class FunctionInput(_Strict):
    """The function that a tool call names."""

    name: str = Field(description="The tool's name.", examples=["search"])
    arguments: str = Field("", description="Its arguments, as the JSON text that the model wrote.")


class ToolCallInput(_Strict):
    """One call of a tool by the assistant."""

    id: str = Field("", description="What the tool's answer names as `tool_call_id`.", examples=["call_1"])
    type: Literal["function"] = Field("function", description="OpenAI's only kind.")
    function: FunctionInput


class MessageInput(BaseModel):
    """One chat message as OpenAI writes it; other fields are passed over."""

    # Backends pass messages on with fields of their own (refusal, annotations, audio); those are not ours to refuse.
    model_config = ConfigDict(extra="ignore", strict=True)

    role: Literal["user", "assistant", "system", "developer", "tool"] = Field(
        description="Who speaks. What a tool says is never taken for the user's word."
    )
    content: str | list[dict[str, Any]] | None = Field(
        None, description="Text, or OpenAI's content parts, of which the text is read.", examples=["Hello!"]
    )
    id: str | None = Field(None, description="The backend's id of the message, for the evidence of a memory.")
    name: str | None = Field(None, description="Who of several speakers says it.")
    tool_calls: list[ToolCallInput] | None = Field(None, description="Tools that the assistant calls.")
    tool_call_id: str | None = Field(None, description="The call that a message of a tool answers.")


class TurnInput(_Strict):
    """A chat up to and including its newest user message, and who says it."""

    user: Id = Field(description="Whose memory: the backend's id of the user.", examples=["64f1c0de"])
    message_id: Id = Field(
        description="The newest user message. A turn with the same id is learned from once.", examples=["m1"]
    )
    conversation_id: Annotated[str, Field(max_length=MAX_ID_CHARS)] = Field(
        "", description="The conversation it stands in, for receipts and evidence."
    )
    messages: Annotated[list[MessageInput], Field(min_length=1, max_length=MAX_MESSAGES)] = Field(
        description="The chat, oldest first.",
        examples=[[{"role": "user", "content": "Please remember that my cat is called Mochi."}]],
    )
    agent_id: Annotated[str, Field(max_length=MAX_ID_CHARS)] = Field(
        "", description="The agent whose memories of this user are kept apart; empty for the shared pool."
    )
    shared: list[Id] = Field(
        default_factory=list,
        max_length=16,
        description="Shared scopes (a team's, a server's) that this chat may recall from.",
        examples=[["team-blue"]],
    )
    channel: Annotated[str, Field(max_length=MAX_ID_CHARS)] = Field(
        "",
        description="Where it is said; memories tagged with a `#channel` age there only.",
        examples=["#general"],
    )
    user_fields: dict[str, str | bool | None] = Field(
        default_factory=dict,
        description="LibreChat's user fields for header placeholders. Never stored.",
        examples=[{"name": "Ada", "email": "ada@example.org"}],
    )
    user_key: str | None = Field(
        None, description="The user's own API key, for an endpoint with `user_provided`. Never stored."
    )
    user_base_url: str | None = Field(
        None, description="The user's own address, for an endpoint with `user_provided`. Never stored."
    )

    def turn(self) -> Turn:
        return Turn(
            user=self.user,
            message_id=self.message_id,
            conversation_id=self.conversation_id,
            messages=tuple(_message(message) for message in self.messages),
            agent_id=self.agent_id,
            shared=tuple(self.shared),
            channel=self.channel,
            user_fields=self.user_fields,
            user_key=self.user_key,
            user_base_url=self.user_base_url,
        )


def _message(given: MessageInput) -> Message:
    content = tuple(given.content) if isinstance(given.content, list) else given.content
    calls = tuple(
        ToolCall(call.id, call.function.name, call.function.arguments) for call in given.tool_calls or ()
    )
    return Message(
        "system" if given.role == "developer" else given.role,
        content,
        id=given.id,
        name=given.name,
        tool_calls=calls,
        tool_call_id=given.tool_call_id,
    )


def parse_turn(data: bytes | str | Mapping[str, Any]) -> Turn:
    """Decode the JSON of a turn; raises `BadRequest` that names every fault by its path and never repeats a text.

    A lone surrogate, which JavaScript's JSON lets through, becomes U+FFFD: the rest of the turn is worth keeping.
    """
    try:
        given = TurnInput.model_validate(_decoded(data) if isinstance(data, bytes | str) else data)
    except ValidationError as error:
        raise BadRequest(f"the turn cannot be read: {faults(error)}") from None
    return given.turn()


def _decoded(data: bytes | str) -> Any:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        place = (
            f"line {error.lineno} column {error.colno}"
            if isinstance(error, json.JSONDecodeError)
            else "UTF-8"
        )
        raise BadRequest(f"the turn is not JSON: look at {place}") from None
    return well_formed(value) if LONE_SURROGATE.search(json.dumps(value, ensure_ascii=False)) else value


def well_formed(value: Any) -> Any:
    match value:
        case str():
            return LONE_SURROGATE.sub("\ufffd", value)
        case list():
            return [well_formed(item) for item in value]
        case dict():
            return {well_formed(key): well_formed(item) for key, item in value.items()}
    return value


def faults(error: ValidationError) -> str:
    """What pydantic found, as `path: fault`, without the values it found it in."""
    seen = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [
        f"{'.'.join(str(part) for part in each['loc']) or 'the body'}: {each['msg']}" for each in seen[:10]
    ]
    if len(seen) > len(lines):
        lines.append(f"and {len(seen) - len(lines)} more")
    return "; ".join(lines)


def turn_schema() -> dict[str, Any]:
    """The JSON Schema of a turn, as a new dictionary."""
    schema = TurnInput.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One turn of a chat",
        "description": schema.pop("description"),
        "examples": [EXAMPLE],
        **{name: value for name, value in schema.items() if name != "title"},
    }


EXAMPLE: Mapping[str, Any] = {
    "user": "64f1c0de",
    "conversation_id": "c1",
    "message_id": "m3",
    "messages": [
        {"role": "user", "content": "What do cats eat?"},
        {"role": "assistant", "content": "Mostly meat."},
        {"role": "user", "content": "Good. Mine is called Mochi, please remember that.", "id": "m3"},
    ],
    "user_fields": {"name": "Ada", "email": "ada@example.org"},
}
"""A turn that teaches something."""
