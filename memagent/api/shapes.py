"""The JSON of answers and requests, as OpenAPI shows it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from memagent.memory import MAX_KEY_CHARS

MAX_VALUE_CHARS = 1_000_000
"""Far above any `charLimit`: what is larger is no memory, and is not looked at."""


class Fault(BaseModel):
    code: str = Field(examples=["no_such_memory"])
    message: str = Field(examples=["there is no memory under `diet`"])
    retryable: bool = False


class FaultView(BaseModel):
    """What every fault looks like, whatever its status."""

    error: Fault


FAULTS: dict[int | str, dict[str, Any]] = {
    "default": {
        "model": FaultView,
        "description": "A fault: the code is for programs, the message for people",
    }
}


class EvidenceView(BaseModel):
    conversation_id: str = ""
    message_id: str = ""
    quote: str = ""


class MemoryView(BaseModel):
    """One memory, with how long it has not been used and the words it came from."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "key": "diet",
                    "value": "Ada eats no meat.",
                    "tokens": 6,
                    "source": "agent",
                    "protected": False,
                    "trusted": True,
                    "created_at": "2026-03-02T09:00:00+00:00",
                    "updated_at": "2026-03-02T09:00:00+00:00",
                    "last_matched_at": None,
                    "unused_days": 0,
                    "dormant": False,
                    "searched": True,
                    "tags": [],
                    "evidence": {
                        "conversation_id": "c1",
                        "message_id": "m1",
                        "quote": "I stopped eating meat",
                    },
                }
            ]
        }
    )

    key: str
    value: str
    tokens: int
    source: str
    protected: bool
    trusted: bool
    created_at: datetime
    updated_at: datetime
    last_matched_at: datetime | None
    unused_days: int
    dormant: bool
    searched: bool
    tags: list[str]
    evidence: EvidenceView


class Listing(BaseModel):
    memories: list[MemoryView]
    tokens: int = Field(description="All values together.")
    token_limit: int | None = Field(description="`memory.tokenLimit`; null is without limit.")


class MemoryWrite(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"value": "Ada eats no meat."}]}
    )

    value: Annotated[str, Field(max_length=MAX_VALUE_CHARS)]
    tags: list[Annotated[str, Field(max_length=256)]] = Field(
        default_factory=list,
        max_length=32,
        description="Visible only when this word, or #channel, is in sight.",
    )
    create_only: bool = Field(default=False, description="Refuse when the key is taken.")
    rename_from: str | None = Field(
        default=None, max_length=MAX_KEY_CHARS, description="Move the memory of this key here."
    )


class ChangeView(BaseModel):
    """One line of the history; `undoes` is the id of the change it takes back."""

    id: str
    at: datetime
    op: str = Field(examples=["set"])
    key: str
    before: str | None
    after: str | None
    source: str
    evidence: EvidenceView
    undoes: str | None


class ImportView(BaseModel):
    taken: list[str]
    known: list[str] = Field(description="Keys whose words were remembered already.")
    refused: list[dict[str, str]]
    dry_run: bool
    format: str = Field(examples=["memagent"])


class Preferences(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"memories": False}]})

    memories: bool = Field(description="LibreChat's `personalization.memories`.")
