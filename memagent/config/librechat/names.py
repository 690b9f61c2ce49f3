"""Names and shapes that several sections share."""

from __future__ import annotations

import re
from typing import Any, Final

from memagent.config.zod import (
    FLAG,
    HEADERS,
    NULL,
    NUMBER,
    SPACES,
    TEXT,
    UNDEFINED,
    Choice,
    Lazy,
    List,
    Literal,
    Needed,
    Number,
    Object,
    Record,
    Run,
    Schema,
    Text,
    Transformed,
    Union,
)

ENDPOINTS: Final = (
    "azureOpenAI", "openAI", "google", "anthropic", "assistants", "azureAssistants", "agents", "custom", "bedrock",
)  # fmt: skip
ENDPOINT_NAME: Final = Choice(*ENDPOINTS, native=True)
SLUG: Final = Text(pattern=r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\Z")


def _coerced(value: Any, _run: Run) -> Any:
    """A number written as a text, read as `parseFloat` reads it."""
    if not isinstance(value, str):
        return value
    match = re.match(
        r"[+-]?(?:Infinity|[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)",
        value.strip(SPACES),
    )
    return float(match[0]) if match else UNDEFINED if not value.strip(SPACES) else float("nan")


COERCED: Final = Transformed(Union(NUMBER, TEXT), _coerced)
"""A number, or a text that is taken for one whatever it says."""


def _json() -> Schema:
    return JSON_VALUE


def _document() -> Schema:
    return DOCUMENT


JSON_VALUE: Final = Union(TEXT, NUMBER, FLAG, NULL, List(Lazy(_json)), Record(Lazy(_json)))
"""Anything that JSON can say: no dates."""
DOCUMENT: Final = Union(NULL, FLAG, NUMBER, TEXT, List(Lazy(_document)), Record(Lazy(_document)))

MODELS: Final = Object(
    default=Needed(List(Union(TEXT, Object(name=Needed(TEXT), description=TEXT)), min=1)),
    fetch=FLAG,
    userIdQuery=FLAG,
)

TITLE_METHOD: Final = Union(Literal("completion"), Literal("functions"), Literal("structured"))
TITLE_TIMING: Final = Union(Literal("immediate"), Literal("final"))

BASE: Final[dict[str, Schema]] = {
    "streamRate": Number(min=0),
    "baseURL": TEXT,
    "headers": HEADERS,
    "titlePrompt": TEXT,
    "titleModel": TEXT,
    "titleConvo": FLAG,
    "titleMethod": TITLE_METHOD,
    "titleEndpoint": TEXT,
    "titlePromptTemplate": TEXT,
    "titleTiming": TITLE_TIMING,
    "activityLabel": FLAG,
    "activityModel": TEXT,
    "activityEndpoint": TEXT,
    "activityPrompt": TEXT,
    "activityMaxPerRun": Number(int=True, above=0),
    "activityCharLimit": Number(int=True, above=0),
    "activityPhaseLabel": FLAG,
    "activityPhaseModel": TEXT,
    "activityPhaseEndpoint": TEXT,
    "activityPhasePrompt": TEXT,
    "activityPhaseMaxPerRun": Number(int=True, above=0),
    "reasoningLabel": FLAG,
    "reasoningLabelModel": TEXT,
    "reasoningLabelEndpoint": TEXT,
    "reasoningLabelPrompt": TEXT,
    "reasoningLabelMinChars": Number(int=True, above=0),
    "reasoningLabelUpdateChars": Number(int=True, above=0),
    "reasoningLabelUpdateIntervalMs": Number(int=True, min=0),
    "reasoningLabelMaxPerRun": Number(int=True, above=0),
    "maxToolResultChars": Number(above=0),
}
"""What every endpoint may have."""
