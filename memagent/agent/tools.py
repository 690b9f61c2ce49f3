"""The two tools of the extraction agent: what the model is offered, and its calls as calls with a meaning.

What a call may do is decided in `agent.ledger`; here it is only offered and read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any

from memagent.llm import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

    from memagent.memory import ToolCall
    from memagent.store import Edit

SET_MEMORY = "set_memory"
DELETE_MEMORY = "delete_memory"


class ToolStatus(StrEnum):
    """What became of one tool call. Those of `RETRYABLE` go back to the model, which may do better."""

    SET = "set"
    REFRESHED = "refreshed"
    """The same words are remembered already, under this key or another."""
    DELETED = "deleted"
    MISSING = "missing"
    """A delete of a key that is not there."""
    REPEATED = "repeated"
    """The very call was made before in this turn."""
    KEY_TOO_LONG = "key_too_long"
    KEY_UNUSABLE = "key_unusable"
    """Nothing is left of the key once it is normalised, or it is the reserved word `nothing`."""
    INVALID_KEY = "invalid_key"
    VALUE_TOO_LONG = "value_too_long"
    VALUE_EMPTY = "value_empty"
    ALREADY_EXCEEDED = "already_exceeded"
    WOULD_EXCEED = "would_exceed"
    BAD_ARGUMENTS = "bad_arguments"
    UNKNOWN_TOOL = "unknown_tool"
    TOO_MANY = "too_many"
    """One call more than a turn may make; not run."""


RETRYABLE = frozenset(
    {
        ToolStatus.KEY_TOO_LONG,
        ToolStatus.KEY_UNUSABLE,
        ToolStatus.INVALID_KEY,
        ToolStatus.VALUE_TOO_LONG,
        ToolStatus.VALUE_EMPTY,
        ToolStatus.ALREADY_EXCEEDED,
        ToolStatus.WOULD_EXCEED,
        ToolStatus.BAD_ARGUMENTS,
        ToolStatus.UNKNOWN_TOOL,
    }
)


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """One tool call and its end.

    `text` is what the model is told, `artifact` LibreChat's memory artifact for its SSE stream (spec/librechat.md §4.6).
    `edits` is what the store has to do. `key` is where the words belong, after normalising.
    """

    call_id: str
    tool: str
    key: str
    status: ToolStatus
    text: str = field(repr=False)
    artifact: Mapping[str, Any] | None = field(default=None, repr=False)
    edits: tuple[Edit, ...] = field(default=(), repr=False)


def specs(valid_keys: Sequence[str] = ()) -> tuple[ToolSpec, ...]:
    """Describe both tools; the keys that are allowed are told in words, so that a wrong one is refused and explained."""
    keys = f" Must be one of: {', '.join(valid_keys)}." if valid_keys else ""
    key = {"type": "string", "description": f"The key that this fact is kept under.{keys}"}
    value = {
        "type": "string",
        "description": "The fact as one full sentence that can be understood without this chat.",
    }
    return (
        ToolSpec(
            SET_MEMORY,
            "Keep one fact about the user under a key. What the key held before is replaced.",
            _parameters(key=key, value=value),
        ),
        ToolSpec(
            DELETE_MEMORY,
            "Forget the fact under one key. To change a fact, use set_memory with the same key instead.",
            _parameters(key={**key, "description": f"The key of the fact to forget.{keys}"}),
        ),
    )


def _parameters(**properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@cache
def _checks() -> Mapping[str, Validator]:
    """The tools' own schemas as validators; a property too many is no reason to refuse a fact."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415  only who has a call to check needs it

    return {
        spec.name: Draft202012Validator({**spec.parameters, "additionalProperties": True}) for spec in specs()
    }


def arguments(call: ToolCall) -> Mapping[str, str] | ToolOutcome:
    """Read a call's arguments; an outcome that tells the model what is wrong when they cannot be used."""
    check = _checks().get(call.name)
    if check is None:
        text = f'There is no tool "{call.name[:100]}". The tools are: {SET_MEMORY}, {DELETE_MEMORY}.'
        return ToolOutcome(call.id, call.name[:100], "", ToolStatus.UNKNOWN_TOOL, text)
    try:
        given = json.loads(call.arguments)
    except (ValueError, RecursionError):
        text = f"The arguments of {call.name} are not JSON. Call it again."
        return ToolOutcome(call.id, call.name, "", ToolStatus.BAD_ARGUMENTS, text)
    wanted = check.schema["properties"]
    if not isinstance(given, dict) or not all(isinstance(given.get(name), str) for name in wanted):
        # Only a call that is wrong pays for the schema, which says what is wrong with it.
        faults = "; ".join(_fault(error) for error in check.iter_errors(given))
        text = f"{call.name} cannot be called like this: {faults}. Call it again."
        return ToolOutcome(call.id, call.name, "", ToolStatus.BAD_ARGUMENTS, text)
    return {name: given[name] for name in wanted}


def _fault(error: ValidationError) -> str:
    """One fault in words, without the value it was found in."""
    place = error.json_path.removeprefix("$").removeprefix(".") or "the arguments"
    if error.validator == "required":
        return str(error.message)
    return f"{place} must be of type {error.validator_value}"
