"""The parameters that LibreChat knows for each kind of endpoint, as far as its check of definitions looks at them."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

Definition: TypeAlias = "dict[str, Any]"

TEXT_INPUT: Final[Definition] = {"type": "string", "component": "input", "default": ""}
TEXT_AREA: Final[Definition] = {"type": "string", "component": "textarea", "default": ""}
NUMBER_INPUT: Final[Definition] = {"type": "number", "component": "input"}
TAGS: Final[Definition] = {"type": "array", "component": "tags", "default": [], "minTags": 0, "maxTags": 4}
REGION: Final[Definition] = {"type": "string", "component": "combobox"}
CACHE_TTL: Final[Definition] = {"type": "enum", "component": "combobox", "options": ["5m", "1h"]}


def _switch(*, on: bool) -> Definition:
    return {"type": "boolean", "component": "switch", "default": on}


def _slider(lowest: float, highest: float, default: float | None) -> Definition:
    slider: Definition = {"type": "number", "component": "slider", "range": {"min": lowest, "max": highest}}
    return slider if default is None else slider | {"default": default}


def _number(lowest: float, highest: float, default: float | None = None) -> Definition:
    return _slider(lowest, highest, default) | {"component": "input"}


def _choice(*options: str, default: str = "") -> Definition:
    return {
        "type": "enum",
        "component": "slider",
        "default": default,
        "options": list(options),
        "enumMappings": dict.fromkeys(options, ""),
    }


COMMON: Final[dict[str, Definition]] = {
    "modelLabel": TEXT_INPUT,
    "maxContextTokens": NUMBER_INPUT,
    "resendFiles": _switch(on=True),
    "fileTokenLimit": NUMBER_INPUT,
}
PROMPT: Final = {"promptPrefix": TEXT_AREA}
SYSTEM: Final = {"system": TEXT_AREA}
CACHE: Final = {"promptCache": _switch(on=True), "promptCacheTtl": CACHE_TTL}
EFFORT: Final = _choice("", "low", "medium", "high", "xhigh", "max")
REASONING: Final = {"reasoning_effort": _choice("", "low", "medium", "high")}
CLAUDE: Final = {
    **CACHE,
    "thinking": _switch(on=True),
    "thinkingBudget": _number(1024, 200_000, 2000),
    "effort": EFFORT,
    "thinkingDisplay": _choice("auto", "summarized", "omitted", default="auto"),
}
OPENAI: Final = {
    **COMMON,
    **PROMPT,
    "max_tokens": NUMBER_INPUT,
    "temperature": _slider(0, 2, 1),
    "top_p": _slider(0, 1, 1),
    "frequency_penalty": _slider(-2, 2, 0),
    "presence_penalty": _slider(-2, 2, 0),
    "stop": TAGS,
    "imageDetail": _choice("low", "auto", "high", default="auto"),
    "web_search": _switch(on=False),
    "reasoning_effort": _choice("", "none", "minimal", "low", "medium", "high", "xhigh", "max"),
    "useResponsesApi": _switch(on=False),
    "reasoning_summary": _choice("", "auto", "concise", "detailed"),
    "reasoning_mode": _choice("", "standard", "pro"),
    "reasoning_context": _choice("", "auto", "current_turn", "all_turns"),
    "verbosity": _choice("", "low", "medium", "high"),
    "disableStreaming": _switch(on=False),
}
BEDROCK: Final = {**COMMON, "region": REGION, "temperature": _slider(0, 1, 0.5), "topP": _slider(0, 1, 0.9)}
BEDROCK_CACHED: Final = {**BEDROCK, **PROMPT, **CACHE}
MOONSHOT: Final = {
    **BEDROCK,
    **SYSTEM,
    **REASONING,
    "maxTokens": NUMBER_INPUT | {"default": 16_384},
    "temperature": _slider(0, 1, 1),
    "topP": _slider(0, 1, 0.999),
    "stop": TAGS,
}

DEFINITIONS: Final[dict[str, dict[str, Definition]]] = {
    "openAI": OPENAI,
    "azureOpenAI": OPENAI,
    "custom": OPENAI,
    "openrouter": {**OPENAI, **CACHE},
    "anthropic": {
        **COMMON,
        **PROMPT,
        **CLAUDE,
        "maxOutputTokens": _number(1, 128_000),
        "temperature": _slider(0, 1, 1),
        "topP": _slider(0, 1, 0.7),
        "topK": _slider(1, 40, 5),
        "web_search": _switch(on=False),
    },
    "bedrock-anthropic": {
        **BEDROCK,
        **SYSTEM,
        **CLAUDE,
        "maxTokens": NUMBER_INPUT,
        "temperature": _slider(0, 1, 1),
        "topP": _slider(0, 1, 0.999),
        "topK": _slider(0, 500, 5),
        "stop": TAGS,
    },
    "bedrock-mistral": {
        **BEDROCK,
        **PROMPT,
        "maxTokens": NUMBER_INPUT,
        "temperature": _slider(0, 1, 0.7),
        "topP": _slider(0, 1, None),
    },
    "bedrock-cohere": {
        **BEDROCK,
        **PROMPT,
        "maxTokens": NUMBER_INPUT,
        "temperature": _slider(0, 1, 0.3),
        "topP": _slider(0.01, 0.99, 0.75),
    },
    "bedrock-meta": BEDROCK_CACHED,
    "bedrock-ai21": BEDROCK_CACHED,
    "bedrock-amazon": BEDROCK_CACHED,
    "bedrock-deepseek": BEDROCK_CACHED,
    "bedrock-moonshot": MOONSHOT,
    "bedrock-moonshotai": MOONSHOT,
    "bedrock-openai": BEDROCK_CACHED,
    "bedrock-zai": {**BEDROCK, **PROMPT, **REASONING},
    "google": {
        **COMMON,
        **PROMPT,
        "maxContextTokens": _number(10, 2_000_000),
        "maxOutputTokens": _number(1, 65_535, 8192),
        "temperature": _slider(0, 2, 1),
        "topP": _slider(0, 1, 0.95),
        "topK": _slider(1, 40, 40),
        "thinking": _switch(on=True),
        "thinkingBudget": _number(-1, 32_000),
        "thinkingLevel": _choice("", "minimal", "low", "medium", "high"),
        "web_search": _switch(on=False),
        "url_context": _switch(on=False),
    },
}
"""By what `customParams.defaultParamsEndpoint` may name."""
