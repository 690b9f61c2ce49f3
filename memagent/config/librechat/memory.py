"""The `memory` block (spec/librechat.md §1.1)."""

from __future__ import annotations

from typing import Final

from memagent.config.zod import FLAG, NUMBER, ON, TEXT, TEXTS, Default, Needed, Number, Object, Record, Union

MEMORY: Final = Object(
    disabled=FLAG,
    validKeys=TEXTS,
    tokenLimit=NUMBER,
    charLimit=Default(NUMBER, 10000),
    maxInputTokens=Default(Number(int=True, above=0), 12000),
    personalize=ON,
    messageWindowSize=Default(NUMBER, 5),
    agent=Union(
        Object(
            enabled=FLAG,
            id=Needed(TEXT),
        ),
        Object(
            enabled=FLAG,
            provider=Needed(TEXT),
            model=Needed(TEXT),
            instructions=TEXT,
            model_parameters=Record(Union(TEXT, NUMBER, FLAG)),
        ),
    ),
)
