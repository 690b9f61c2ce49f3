"""What LibreChat's routes take and answer, for OpenAPI."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from memagent.memory import MAX_KEY_CHARS


class Entry(BaseModel):
    id: str = Field(alias="_id", examples=["69a555907c0f4b2d9e61a3f8"])
    userId: str  # noqa: N815  LibreChat's names
    key: str = Field(examples=["diet"])
    value: str = Field(examples=["Ada eats no meat."])
    tokenCount: int  # noqa: N815
    updated_at: str = Field(examples=["2026-03-02T09:00:00.000Z"])
    agentId: str | None = None  # noqa: N815


class Entries(BaseModel):
    memories: list[Entry]
    totalTokens: int = Field(description="Of the shared pool.")  # noqa: N815
    tokenLimit: int | None  # noqa: N815
    charLimit: int  # noqa: N815
    usagePercentage: int | None  # noqa: N815


class Created(BaseModel):
    created: bool
    memory: Entry


class Updated(BaseModel):
    updated: bool
    memory: Entry


class Deleted(BaseModel):
    deleted: bool


class Switches(BaseModel):
    memories: bool


class PreferencesUpdated(BaseModel):
    updated: bool
    preferences: Switches


class Refusal(BaseModel):
    """`error` says what is wrong, `message` that a permission is missing."""

    error: str | None = None
    message: str | None = None


REFUSALS: dict[int | str, dict[str, Any]] = {
    "default": {"model": Refusal, "description": "A refusal or a fault, in LibreChat's words"}
}


KEY = {"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS, "pattern": "^[a-z_]+$"}
VALUE = {"type": "string", "pattern": "\\S"}
AGENT = {"type": "string", "description": "The agent whose partition is meant."}
SWITCH = {"type": "boolean"}


def takes(*optional: str, **fields: dict[str, Any]) -> dict[str, Any]:
    """The body of a request: its fields, all required but the optional ones. They are checked by hand, in LibreChat's order."""
    required = [name for name in fields if name not in optional]
    schema = {"type": "object", "properties": fields, "required": required}
    return {"requestBody": {"content": {"application/json": {"schema": schema}}, "required": True}}
