"""Model parameters: from LibreChat's names and habits to what one provider accepts (spec/librechat.md §3.3, §4.5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DEFAULT_TEMPERATURE = 0.4
"""LibreChat's for its memory agent (spec/librechat.md §4.5)."""
DEFAULT_THINKING_TOKENS = 2_000
"""LibreChat's, for Claude with `thinking` and no `thinkingBudget`."""

OPENAI_WIRE = frozenset({"openai", "azure", "xai", "deepseek", "moonshot", "openrouter"})
"""litellm's names of the providers whose request body is OpenAI's, so that unknown parameters can travel in it as they are."""

_SPELLINGS = {
    "maxTokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "topP": "top_p",
    "topK": "top_k",
    "frequencyPenalty": "frequency_penalty",
    "presencePenalty": "presence_penalty",
    "stopSequences": "stop",
    "stop_sequences": "stop",
    "thinking_budget": "thinkingBudget",
}

_NEVER_SENT = frozenset(
    {
        # ours to say: the request itself
        *("model", "messages", "tools", "tool_choice", "functions", "function_call"),
        *(
            "stream",
            "streaming",
            "stream_options",
            "streamUsage",
            "disableStreaming",
            "maxRetries",
            "max_retries",
        ),
        # settings of LibreChat's own windows and prompts, which no provider knows
        *("modelLabel", "chatGptLabel", "promptPrefix", "system", "greeting", "examples", "iconURL", "spec"),
        *("maxContextTokens", "resendFiles", "imageDetail", "fileTokenLimit", "artifacts", "promptCache"),
        *("promptCacheTtl", "region"),
        # an extraction never searches the web
        *("web_search", "web_search_options", "grounding"),
    }
)

_COMPLETION_TOKENS = re.compile(r"\b(?:gpt-[5-9](?:\.\d+)?|o[1-9])\b", re.IGNORECASE | re.ASCII)
_NO_TEMPERATURE = re.compile(r"\bgpt-[5-9](?:\.\d+)?\b", re.IGNORECASE | re.ASCII)
_NO_SAMPLING = re.compile(r"\b(?:o[1-9]|gpt-5)(?!\.|-chat)(?:-|$)", re.IGNORECASE | re.ASCII)
_SAMPLING = (
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "n",
    "logprobs",
    "top_logprobs",
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """`named` go to litellm by name, `extra` into the request body as they are.

    `responses` says that the model is asked through OpenAI's Responses API.
    """

    named: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    responses: bool = False


def shape(
    parameters: Mapping[str, Any],
    *,
    provider: str,
    model: str,
    add: Mapping[str, Any] | None = None,
    drop: tuple[str, ...] = (),
    user_id: str = "",
) -> Parameters:
    """The parameters of one call; `provider` is litellm's name, `model` the name the file gives it.

    `add` wins over `parameters`, `drop` over both, and what a model refuses is left out whatever asked for it. A key that
    nobody knows is sent, as LibreChat does.
    """
    values: dict[str, Any] = {"temperature": DEFAULT_TEMPERATURE}
    values |= _respell(parameters)
    values |= _respell(add or {})
    wire = provider in OPENAI_WIRE
    if wire and user_id:
        values.setdefault("user", user_id)
    dropped = set(drop) | {_SPELLINGS.get(name, name) for name in drop}
    responses = values.pop("useResponsesApi", None) is True and provider in {"openai", "azure"}
    values = {
        name: value for name, value in values.items() if name not in dropped and name not in _NEVER_SENT
    }
    if wire:
        named, extra = _openai(values, model)
        return Parameters(named, extra, responses)
    return Parameters(
        {name: value for name, value in _native(values, provider).items() if name not in dropped}
    )


def _respell(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {_SPELLINGS.get(name, name): value for name, value in parameters.items() if value is not None}


def _openai(values: dict[str, Any], model: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Named and extra parameters of OpenAI's wire format.

    litellm refuses a named parameter that its tables do not list for the model, and its tables know no custom endpoint:
    only what every model takes is named, the rest travels in the body.
    """
    names: tuple[str, ...] = ("temperature", "top_p", "max_tokens")
    if _NO_SAMPLING.search(model):
        for name in _SAMPLING:
            values.pop(name, None)
    if _NO_TEMPERATURE.search(model):
        values.pop("temperature", None)
    if _COMPLETION_TOKENS.search(model):
        names = ("max_completion_tokens",)
        if "max_tokens" in values:
            values["max_completion_tokens"] = values.pop("max_tokens")
    named = {name: values.pop(name) for name in names if name in values}
    return named, values


def _native(values: dict[str, Any], provider: str) -> dict[str, Any]:
    """Parameters of a provider whose request body litellm writes: everything is named."""
    fields = values.pop("additionalModelRequestFields", None)
    if isinstance(fields, Mapping):
        values = {**fields, **values}
    thinking = _thinking(
        values.pop("thinking", None), values.pop("thinkingBudget", None), values.get("max_tokens")
    )
    if thinking is None:
        return values
    values["thinking"] = thinking
    if provider == "anthropic":
        values.pop("temperature", None)
        values.pop("top_k", None)
    elif provider == "bedrock" and "temperature" in values:
        values["temperature"] = 1
    return values


def _thinking(wanted: Any, budget: Any, max_tokens: Any) -> dict[str, Any] | None:
    """Claude's `thinking`, or None when it is off.

    The budget counts into `max_tokens` and must leave room for the answer: LibreChat takes nine tenths at most.
    """
    if isinstance(wanted, Mapping):
        if wanted.get("type") != "enabled":
            return None
        budget = wanted.get("budget_tokens", budget)
    elif wanted is not True:
        return None
    tokens = budget if _is_count(budget) else DEFAULT_THINKING_TOKENS
    if _is_count(max_tokens):
        tokens = min(tokens, max_tokens * 9 // 10)
    return {"type": "enabled", "budget_tokens": int(tokens)}


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
