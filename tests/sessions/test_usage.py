"""Counting tokens: O37 to O41 and V37 of spec/seeds.md."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memagent.llm import Usage
from memagent.sessions.entry import Counters, SessionEntry
from memagent.sessions.usage import after_compaction, after_run, context_size, read_usage, usage_json
from tests.sessions.session_cases import START

EMPTY = SessionEntry(session_id="s", updated_at=START)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4}, Usage(1, 2, 3, 4)),
        ({"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3}, Usage(1, 2, 3, 0)),
        ({"inputTokens": 1, "outputTokens": 2, "cacheCreationInputTokens": 4}, Usage(1, 2, 0, 4)),
        ({"prompt_tokens": 10, "completion_tokens": 2}, Usage(10, 2)),
        ({"promptTokens": 10}, Usage(10)),
        (
            {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens": 1},
            Usage(6, 1, 4),
        ),
        ({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}}, Usage(6, 0, 4)),
        ({"prompt_tokens": 10, "cached_tokens": 4}, Usage(6, 0, 4)),
        ({"input": -5, "output": 2}, Usage(0, 2)),
        ({"prompt_tokens": 1, "cached_tokens": 4}, Usage(0, 0, 4)),
        ({"input": 1, "costUsd": 0.5}, Usage(1, cost_usd=0.5)),
        ({"input": 0}, Usage()),
    ],
)
def test_o37_usage_in_many_spellings(raw: dict[str, Any], expected: Usage) -> None:
    assert read_usage(raw) == expected


@pytest.mark.parametrize("raw", [None, {}, {"model": "x"}, {"input": "7"}, {"input": True}, [1]])
def test_o37_what_says_nothing_is_no_usage(raw: Any) -> None:
    assert read_usage(raw) is None


@given(st.builds(Usage, *[st.integers(0, 10**9)] * 4, st.none() | st.floats(0, 100)))
def test_o37_what_a_transcript_keeps_is_read_back(usage: Usage) -> None:
    assert read_usage(usage_json(usage)) == usage


def test_o38_o39_v37_last_call_last_run_and_totals_are_kept_apart() -> None:
    row = after_run(EMPTY, [Usage(100, 10, 0, 900), Usage(50, 20, 950, 0)])
    assert (row.input_tokens, row.output_tokens) == (150, 30)
    assert (row.cache_read, row.cache_write) == (950, 0)
    assert (row.total_tokens, row.total_tokens_fresh) == (1_000, True)
    assert row.totals == Counters(input=150, output=30, cache_read=950, cache_write=900)


def test_o38_the_next_run_replaces_the_last() -> None:
    row = after_run(after_run(EMPTY, [Usage(100, 10, 7, 8)]), [Usage(1, 2, 3, 4)])
    assert (row.input_tokens, row.output_tokens, row.cache_read, row.cache_write) == (1, 2, 3, 4)
    assert row.total_tokens == 8
    assert row.totals == Counters(input=101, output=12, cache_read=10, cache_write=12)


def test_o39_the_context_is_what_went_in_and_is_not_clamped() -> None:
    assert context_size(Usage(5, 1_000, 7, 9)) == 21
    assert after_run(EMPTY, [Usage(3_000_000, 1)]).total_tokens == 3_000_000


def test_o39_without_numbers_of_the_last_call_the_size_is_stale() -> None:
    known = after_run(EMPTY, [Usage(100, 10)])
    for calls in ([None], [Usage(5, 1), None], [Usage()]):
        row = after_run(known, calls)
        assert (row.total_tokens, row.total_tokens_fresh) == (100, False)
    assert after_run(EMPTY, [None]).total_tokens is None


def test_o39_the_cost_adds_up_and_a_free_model_costs_0() -> None:
    row = after_run(after_run(EMPTY, [Usage(1, cost_usd=0.25)]), [Usage(1, cost_usd=0.5), Usage(1)])
    assert row.estimated_cost_usd == 0.75
    assert after_run(EMPTY, [Usage(1, cost_usd=0.0)]).estimated_cost_usd == 0
    assert after_run(EMPTY, [Usage(1)]).estimated_cost_usd is None


def test_o40_totals_grow_and_never_shrink() -> None:
    row = EMPTY
    for _ in range(5):
        row = after_run(row, [Usage(10, 1, 100, 5)])
    assert row.totals == Counters(input=50, output=5, cache_read=500, cache_write=25)
    assert row.total_tokens == 115


def test_o41_after_a_compaction_only_the_new_size_is_known() -> None:
    row = after_compaction(after_run(EMPTY, [Usage(100, 10, 7, 8)]), 42)
    assert (row.input_tokens, row.output_tokens, row.cache_read, row.cache_write) == (None, None, None, None)
    assert (row.total_tokens, row.total_tokens_fresh) == (42, True)
