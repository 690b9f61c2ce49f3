"""zod 3.25 in small: what a schema makes of a value, with the issues, their order and their words exactly as zod has them.

A schema reads a value and gives back what zod would: a clean value, a *dirty* one (read to the end, but with issues), or
`INVALID` (aborted: what is around it is aborted too, and no rule on it runs). A value is dirty when reading it added
issues; nothing else marks it (spec/librechat.md §2.3).

Values are what `memagent.config.document.plain` gives; `UNDEFINED` is a key that is not there.
"""

from __future__ import annotations

from memagent.config.zod.composites import HEADERS, TEXTS, Both, List, Object, Record, Strict, Tagged, Union
from memagent.config.zod.leaves import (
    ABSENT,
    ANYTHING,
    FLAG,
    NULL,
    NUMBER,
    TEXT,
    Anything,
    Choice,
    Literal,
    Number,
    Schema,
    Text,
)
from memagent.config.zod.reading import (
    INVALID,
    SPACES,
    UNDEFINED,
    Crash,
    Issue,
    Path,
    Problem,
    Run,
    length,
    property_names,
    type_name,
)
from memagent.config.zod.wrappers import (
    OFF,
    ON,
    Default,
    Lazy,
    Needed,
    Nullable,
    Piped,
    Refined,
    Transformed,
    rule,
)

__all__ = [
    "ABSENT",
    "ANYTHING",
    "FLAG",
    "HEADERS",
    "INVALID",
    "NULL",
    "NUMBER",
    "OFF",
    "ON",
    "SPACES",
    "TEXT",
    "TEXTS",
    "UNDEFINED",
    "Anything",
    "Both",
    "Choice",
    "Crash",
    "Default",
    "Issue",
    "Lazy",
    "List",
    "Literal",
    "Needed",
    "Nullable",
    "Number",
    "Object",
    "Path",
    "Piped",
    "Problem",
    "Record",
    "Refined",
    "Run",
    "Schema",
    "Strict",
    "Tagged",
    "Text",
    "Transformed",
    "Union",
    "length",
    "property_names",
    "rule",
    "type_name",
]
