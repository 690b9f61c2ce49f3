"""Parameters of custom endpoints: `customParams`, and what LibreChat checks of them once the schema is content.

The checks run on the file as it was written, and throw (spec/librechat.md §2.5).
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

from memagent.config.librechat.definitions import DEFINITIONS
from memagent.config.scalars import is_nan
from memagent.config.zod import (
    FLAG,
    NUMBER,
    SPACES,
    TEXT,
    TEXTS,
    Choice,
    Default,
    Issue,
    List,
    Needed,
    Number,
    Object,
    Record,
    Refined,
    Strict,
    Union,
    rule,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from memagent.config.librechat.definitions import Definition
    from memagent.config.zod import Path

PARAMETER: Final = Object(
    key=Needed(TEXT),
    description=TEXT,
    type=Choice("number", "boolean", "string", "enum", "array", native=True),
    default=Union(NUMBER, FLAG, TEXT, TEXTS),
    showLabel=FLAG,
    showDefault=FLAG,
    options=TEXTS,
    range=Refined(
        Object(
            min=Needed(NUMBER),
            max=Needed(NUMBER),
            step=NUMBER,
            positiveMin=NUMBER,
        ),
        rule(
            lambda span: span.get("positiveMin") is None or span["positiveMin"] <= span["max"],
            "range.positiveMin cannot exceed range.max",
            "positiveMin",
        ),
    ),
    enumMappings=Record(Union(NUMBER, FLAG, TEXT)),
    component=Choice(
        "input",
        "textarea",
        "slider",
        "checkbox",
        "switch",
        "dropdown",
        "combobox",
        "tags",
        native=True,
    ),
    optionType=Choice("conversation", "model", "custom", native=True),
    columnSpan=Number(int=True, min=0),
    columns=Number(int=True, min=1, max=4),
    label=TEXT,
    placeholder=TEXT,
    labelCode=FLAG,
    placeholderCode=FLAG,
    descriptionCode=FLAG,
    minText=NUMBER,
    maxText=NUMBER,
    minTags=Number(min=0),
    maxTags=Number(min=0),
    includeInput=FLAG,
    descriptionSide=Choice("top", "right", "bottom", "left"),
    searchPlaceholder=TEXT,
    selectPlaceholder=TEXT,
    searchPlaceholderCode=FLAG,
    selectPlaceholderCode=FLAG,
)

CUSTOM_PARAMS: Final = Strict(
    defaultParamsEndpoint=Default(TEXT, "custom"),
    reasoningFormat=Choice("disabled", "reasoning_effort", "reasoning_object", native=True),
    reasoningKey=Choice("reasoning", "reasoning_content", native=True),
    includeReasoningContent=FLAG,
    includeReasoningHistory=FLAG,
    paramDefinitions=List(PARAMETER),
)

CODE: Final = "custom_params"
"""The code of these issues; zod has none for them."""


def broken_parameters(endpoints: Any) -> Iterator[Issue]:
    """What LibreChat throws about, endpoint by endpoint; it stops at the first."""
    customs = endpoints.get("custom", ()) if isinstance(endpoints, dict) else ()
    for index, endpoint in enumerate(customs):
        params = _routed(endpoint)
        if params is None:
            continue
        at: Path = ("endpoints", "custom", index, "customParams")
        target = params.get("defaultParamsEndpoint", "custom")
        known = DEFINITIONS.get(target)
        if known is None:
            said = f"`{target}` is none of {', '.join(DEFINITIONS)}"
            yield Issue((*at, "defaultParamsEndpoint"), CODE, said)
            continue
        given = params.get("paramDefinitions", [])
        unknown = [n for n, definition in enumerate(given) if definition["key"] not in known]
        for n in unknown:
            said = f"`{given[n]['key']}` is no parameter of `{target}`"
            yield Issue((*at, "paramDefinitions", n, "key"), CODE, said)
        if unknown:
            continue
        for n, definition in enumerate(given):
            for field, said in _malformed({**known[definition["key"]], **definition}):
                yield Issue((*at, "paramDefinitions", n, field), CODE, said)


def _routed(endpoint: dict[str, Any]) -> dict[str, Any] | None:
    """The parameters of an endpoint; OpenRouter's own unless it says otherwise."""
    params: dict[str, Any] | None = endpoint.get("customParams")
    names = (endpoint.get("name"), endpoint.get("baseURL"))
    if not any(isinstance(name, str) and "openrouter" in name.lower() for name in names):
        return params
    params = params or {}
    if params.get("defaultParamsEndpoint", "custom") not in ("custom", "openrouter"):
        return params
    given = params.get("paramDefinitions", [])
    if not any(definition["key"] == "promptCache" for definition in given):
        given = [*given, {"key": "promptCache", "default": True}]
    return {**params, "defaultParamsEndpoint": "openrouter", "paramDefinitions": given}


def _malformed(definition: Definition) -> Iterable[tuple[str, str]]:
    """Field and message of each fault of one definition merged over the built-in one."""
    key, kind, component = definition["key"], definition["type"], definition["component"]
    options, span = definition.get("options"), definition.get("range")
    if (component == "tags") != (kind == "array"):
        yield "type", f"`{key}`: the component `tags` and the type `array` go together"
    if component == "tags":
        yield from _tags(definition)
    if component == "textarea" and kind == "number":
        yield "type", f"`{key}`: a textarea holds no number"
    if component in ("input", "textarea"):
        yield from _text_limits(definition)
    if component == "slider" and kind == "number" and span is None:
        yield "range", f"`{key}`: a slider of numbers needs a `range`"
    if component == "slider" and kind == "enum" and len(options or ()) < 2:  # noqa: PLR2004 - a choice
        yield "options", f"`{key}`: a slider of words needs at least two `options`"
    if component in ("checkbox", "switch") and len(options or ()) > 2:  # noqa: PLR2004 - on and off
        yield "options", f"`{key}`: a {component} has at most two `options`"
    if component in ("dropdown", "combobox") and len(options or ()) < 2:  # noqa: PLR2004 - a choice
        yield "options", f"`{key}`: a {component} needs at least two `options`"
    yield from _default(definition)
    if kind == "enum" and options is not None and definition.get("enumMappings") is not None:
        for option in options:
            if option not in definition["enumMappings"]:
                yield "enumMappings", f"`{key}`: the option `{option}` has no entry in `enumMappings`"


def _tags(definition: Definition) -> Iterable[tuple[str, str]]:
    key, default = definition["key"], definition.get("default")
    fewest, most = definition.get("minTags"), definition.get("maxTags")
    if not _is_truthy(default):
        return
    if not isinstance(default, list):
        yield "default", f"`{key}`: the default of tags is a list"
    size = len(default) if isinstance(default, list | str) else None
    if size is not None and most and size > most:
        yield "default", f"`{key}`: the default has more than {most} tags"
    if size is not None and fewest and size < fewest:
        yield "default", f"`{key}`: the default has fewer than {fewest} tags"


def _text_limits(definition: Definition) -> Iterable[tuple[str, str]]:
    key, shortest, longest = definition["key"], definition.get("minText"), definition.get("maxText")
    if shortest is not None and longest is not None and shortest > longest:
        yield "minText", f"`{key}`: `minText` is more than `maxText`"
    for field, limit in (("minText", shortest), ("maxText", longest)):
        if limit is not None and limit < 0:
            yield field, f"`{key}`: `{field}` is less than 0"


def _default(definition: Definition) -> Iterable[tuple[str, str]]:
    key, kind, options = definition["key"], definition["type"], definition.get("options")
    default = _filled(definition)
    if kind == "number" and default is not None and _is_no_number(default):
        yield "default", f"`{key}`: the default is no number"
    if kind == "boolean" and default is not None and not isinstance(default, bool):
        yield "default", f"`{key}`: the default is neither true nor false"
    if kind in ("string", "enum") and default is not None and not isinstance(default, str):
        yield "default", f"`{key}`: the default is no text"
    if kind == "enum" and options is not None and (not isinstance(default, str) or default not in options):
        yield "default", f"`{key}`: the default is none of the `options`"
    span = definition.get("range")
    if kind != "number" or span is None or type(default) not in (int, float):
        return
    if default < span["min"] or default > span["max"]:
        yield "default", f"`{key}`: the default is outside {span['min']} to {span['max']}"
    floor = span.get("positiveMin")
    if floor is not None and default != span["min"] and default < floor:
        yield "default", f"`{key}`: the default is between {span['min']} and {floor}"


def _filled(definition: Definition) -> Any:
    """The default that LibreChat ends up with where none is given, or an empty one."""
    default, component, kind = definition.get("default"), definition["component"], definition["type"]
    options, span = definition.get("options"), definition.get("range")
    if component == "tags":
        return default if _is_truthy(default) else []
    if component == "slider" and kind == "number" and default is None and span is not None:
        floor = max(span["min"], span.get("positiveMin", span["min"]))
        # Half goes up in JavaScript, to the even number in Python.
        return math.floor((floor + span["max"]) / 2 + 0.5)
    if component in ("checkbox", "switch") and kind == "boolean" and not _is_truthy(default):
        return False
    if component in ("dropdown", "combobox") and not _is_truthy(default) and options:
        return options[0]
    return default


def _is_truthy(value: Any) -> bool:
    """As JavaScript sees it: an empty list is."""
    return isinstance(value, list) or (not is_nan(value) and bool(value))


def _is_no_number(value: Any) -> bool:
    """As JavaScript's `isNaN` sees it."""
    if isinstance(value, list):
        value = ",".join(value)
    if not isinstance(value, str):
        return is_nan(value)
    text = value.strip(SPACES)
    number = r"0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|[+-]?(?:Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    return bool(text) and re.fullmatch(number, text) is None
