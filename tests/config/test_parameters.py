"""Model parameters (spec/librechat.md §3.3, §4.5)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memagent.config.parameters import Parameters, shape


def shaped(
    parameters: dict[str, Any], *, provider: str = "openai", model: str = "gpt-4.1-mini", **more: Any
) -> Parameters:
    return shape(parameters, provider=provider, model=model, **more)


def test_the_default_temperature_is_two_fifths() -> None:
    assert shaped({}).named == {"temperature": 0.4}
    assert shaped({}, provider="anthropic", model="claude").named == {"temperature": 0.4}
    assert shaped({"temperature": 0}).named == {"temperature": 0}


@pytest.mark.parametrize("spelling", ["max_tokens", "maxTokens", "maxOutputTokens", "max_output_tokens"])
def test_every_spelling_of_the_token_cap_is_understood(spelling: str) -> None:
    assert shaped({spelling: 100}).named["max_tokens"] == 100


def test_unknown_parameters_are_sent_as_they_are() -> None:
    assert shaped({"verbosity": "low", "frequency_penalty": 0.1}).extra == {
        "verbosity": "low",
        "frequency_penalty": 0.1,
    }
    assert shaped({"odd": 1}, provider="gemini", model="gemini-2.5-flash").named["odd"] == 1


def test_settings_of_librechats_own_are_never_sent() -> None:
    asked = {
        "promptPrefix": "x",
        "maxContextTokens": 5,
        "resendFiles": True,
        "stream": True,
        "web_search": True,
        "model": "m",
    }

    for provider in ("openai", "anthropic", "bedrock"):
        result = shape(asked, provider=provider, model="m", add={"messages": [], "tools": []})
        assert (result.named, result.extra) == ({"temperature": 0.4}, {})


def test_added_parameters_win_and_dropped_ones_win_over_them() -> None:
    result = shaped(
        {"temperature": 0.9, "max_tokens": 5}, add={"temperature": 0.1, "x": {"y": [1]}}, drop=("maxTokens",)
    )

    assert result == Parameters({"temperature": 0.1}, {"x": {"y": [1]}})
    assert shaped({}, drop=("temperature", "user"), user_id="u1") == Parameters()


def test_an_openai_like_provider_is_told_the_user() -> None:
    assert shaped({}, user_id="u1").extra == {"user": "u1"}
    assert shaped({"user": "mine"}, user_id="u1").extra == {"user": "mine"}
    assert "user" not in shaped({}, provider="anthropic", user_id="u1").named


@pytest.mark.parametrize(
    "model",
    ["gpt-5", "gpt-5-mini", "GPT-5", "openai/gpt-5", "gpt-5.1", "gpt-5-chat-latest", "gpt-6", "gpt-9.2-x"],
)
def test_gpt_5_and_later_lose_temperature_and_count_completion_tokens(model: str) -> None:
    result = shaped({"temperature": 0.7, "max_tokens": 9}, model=model)

    assert result.named == {"max_completion_tokens": 9}


@pytest.mark.parametrize(
    "model", ["gpt-4o", "gpt-4.1-mini", "gpt-35-turbo", "gpt-50", "gpt-5o", "mygpt-5x", "gpt-oss-120b"]
)
def test_earlier_and_other_models_keep_both(model: str) -> None:
    assert shaped({"max_tokens": 9}, model=model).named == {"temperature": 0.4, "max_tokens": 9}


SAMPLING = {
    "temperature": 1,
    "top_p": 1,
    "frequency_penalty": 1,
    "presence_penalty": 1,
    "logit_bias": 1,
    "n": 1,
    "logprobs": True,
}


@pytest.mark.parametrize(
    "model", ["o1", "o3-mini", "o1-preview", "openai/o3", "o4-mini", "gpt-5", "gpt-5-nano"]
)
def test_reasoning_models_lose_every_sampling_parameter(model: str) -> None:
    assert shaped({**SAMPLING, "stop": "x"}, model=model) == Parameters({}, {"stop": "x"})


@pytest.mark.parametrize("model", ["gpt-5.1", "gpt-5-chat", "foo1", "gpt-4o1", "o11y"])
def test_other_models_keep_their_sampling_parameters(model: str) -> None:
    assert shaped(SAMPLING, model=model).extra["frequency_penalty"] == 1


def test_the_responses_api_is_asked_for_where_it_exists() -> None:
    assert shaped({"useResponsesApi": True}, model="gpt-5").responses
    assert shaped({}, add={"useResponsesApi": True}).responses
    assert not shaped({"useResponsesApi": False}).responses
    result = shaped({"useResponsesApi": True}, provider="xai")
    assert not result.responses
    assert "useResponsesApi" not in {**result.named, **result.extra}


def test_claude_with_thinking_loses_its_temperature() -> None:
    result = shaped(
        {"thinking": True, "temperature": 0.2, "topK": 5}, provider="anthropic", model="claude-sonnet-4-5"
    )

    assert result.named == {"thinking": {"type": "enabled", "budget_tokens": 2000}}


@pytest.mark.parametrize(
    "off", [{}, {"thinking": False}, {"thinking": {"type": "disabled"}}, {"thinking": "yes"}]
)
def test_claude_without_thinking_keeps_its_temperature(off: dict[str, Any]) -> None:
    assert shaped({**off, "thinkingBudget": 9}, provider="anthropic", model="claude").named == {
        "temperature": 0.4
    }


@pytest.mark.parametrize(
    ("max_tokens", "budget", "tokens"),
    [(None, None, 2000), (None, 5000, 5000), (4000, 3600, 3600), (4000, 3601, 3600), (4000, -1, 2000)],
)
def test_thinking_leaves_room_for_the_answer(max_tokens: int | None, budget: int | None, tokens: int) -> None:
    asked = {"thinking": {"type": "enabled", "budget_tokens": budget}, "max_tokens": max_tokens}

    assert shaped(asked, provider="anthropic", model="claude").named["thinking"]["budget_tokens"] == tokens


def test_bedrock_with_thinking_runs_at_temperature_one() -> None:
    model = "anthropic.claude-3-7-sonnet-20250219-v1:0"
    fields = {
        "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}, "x": 1}
    }

    assert shaped({"thinking": True}, provider="bedrock", model=model).named["temperature"] == 1
    assert shaped(fields, provider="bedrock", model=model).named == {
        "temperature": 1,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "x": 1,
    }
    assert shaped({}, provider="bedrock", model=model).named["temperature"] == 0.4
    assert (
        "temperature"
        not in shaped({"thinking": True}, provider="bedrock", model=model, drop=("temperature",)).named
    )


@given(
    names=st.sets(st.sampled_from(["temperature", "top_p", "maxTokens", "thinking", "user", "stop", "odd"])),
    provider=st.sampled_from(["openai", "anthropic", "bedrock", "gemini", "openrouter"]),
    model=st.sampled_from(["gpt-4o", "gpt-5", "o3", "claude", "m"]),
)
def test_a_dropped_parameter_is_never_sent(names: set[str], provider: str, model: str) -> None:
    asked = {"temperature": 1, "top_p": 1, "maxTokens": 5, "thinking": True, "stop": "x", "odd": 1}
    result = shape(asked, provider=provider, model=model, add=asked, drop=tuple(names), user_id="u1")

    sent = {*result.named, *result.extra}
    assert not sent & names
    if "maxTokens" in names:
        assert not sent & {"max_tokens", "max_completion_tokens"}
