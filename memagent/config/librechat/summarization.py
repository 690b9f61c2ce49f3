"""The `summarization` block."""

from __future__ import annotations

from typing import Final

from memagent.config.zod import (
    FLAG,
    NULL,
    NUMBER,
    TEXT,
    Literal,
    Needed,
    Number,
    Object,
    Record,
    Tagged,
    Union,
)

SUMMARIZATION: Final = Object(
    enabled=FLAG,
    provider=TEXT,
    model=TEXT,
    parameters=Record(Union(TEXT, NUMBER, FLAG, NULL)),
    trigger=Tagged(
        "type",
        {
            "token_ratio": Object(
                type=Needed(Literal("token_ratio")),
                value=Needed(Number(finite=True, min=0, max=1)),
            ),
            "remaining_tokens": Object(
                type=Needed(Literal("remaining_tokens")),
                value=Needed(Number(finite=True, int=True, above=0)),
            ),
            "messages_to_refine": Object(
                type=Needed(Literal("messages_to_refine")),
                value=Needed(Number(finite=True, int=True, above=0)),
            ),
        },
    ),
    prompt=TEXT,
    updatePrompt=TEXT,
    reserveRatio=Number(min=0, max=1),
    maxSummaryTokens=Number(above=0),
    contextPruning=Object(
        enabled=FLAG,
        keepLastAssistants=Number(min=0, max=10),
        softTrimRatio=Number(min=0, max=1),
        hardClearRatio=Number(min=0, max=1),
        minPrunableToolChars=Number(min=0),
    ),
    retainRecent=Object(
        turns=Number(min=0, max=20),
        tokens=Number(above=0),
    ),
)
