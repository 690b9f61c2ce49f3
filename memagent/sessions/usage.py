"""Counting what calls of a model cost: the last call, the last run and the session's sums, never mixed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memagent.llm import Usage
from memagent.sessions.entry import Counters, SessionEntry

INPUT = ("input", "input_tokens", "inputTokens", "prompt_tokens", "promptTokens")
OUTPUT = ("output", "output_tokens", "outputTokens", "completion_tokens", "completionTokens")
CACHE_READ = (
    "cache_read",
    "cacheRead",
    "cache_read_tokens",
    "cacheReadTokens",
    "cache_read_input_tokens",
    "cacheReadInputTokens",
    "cached_tokens",
    "cachedTokens",
)
CACHE_WRITE = (
    "cache_write",
    "cacheWrite",
    "cache_write_tokens",
    "cacheWriteTokens",
    "cache_creation_input_tokens",
    "cacheCreationInputTokens",
)
DETAILS = ("prompt_tokens_details", "promptTokensDetails", "input_tokens_details", "inputTokensDetails")
COST = ("cost_usd", "costUsd", "cost")


def read_usage(raw: Mapping[str, Any] | None) -> Usage | None:
    """Usage as any provider spells it; None when it says nothing (O37). Negative numbers become 0.

    Where a provider's prompt includes what it read from a cache (details, or a bare `cached_tokens`), that is taken out:
    `input_tokens` excludes it.
    """
    if not isinstance(raw, Mapping):
        return None
    details: Mapping[str, Any] = next(
        (raw[name] for name in DETAILS if isinstance(raw.get(name), Mapping)), {}
    )
    found = [_number(raw, names) for names in (INPUT, OUTPUT, CACHE_READ, CACHE_WRITE)]
    inside = _number(details, CACHE_READ) if found[2] is None else None
    if found[2] is None:
        found[2] = inside
    if all(each is None for each in found):
        return None
    sent, out, read, write = (each or 0 for each in found)
    if inside or any(name in raw for name in ("cached_tokens", "cachedTokens")):
        sent = max(sent - read, 0)
    cost = next((raw[name] for name in COST if isinstance(raw.get(name), int | float)), None)
    return Usage(sent, out, read, write, cost)


def _number(raw: Mapping[str, Any], names: Sequence[str]) -> int | None:
    for name in names:
        value = raw.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return max(int(value), 0)
    return None


def usage_json(usage: Usage) -> dict[str, Any]:
    """Usage as a transcript keeps it; `read_usage` reads it back."""
    found: dict[str, Any] = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cacheRead": usage.cache_read_tokens,
        "cacheWrite": usage.cache_write_tokens,
    }
    return found if usage.cost_usd is None else {**found, "costUsd": usage.cost_usd}


def context_size(call: Usage) -> int:
    """What the model was shown in this call, from a cache or not; its answer is left out (O39). 0 is unknown."""
    return call.input_tokens + call.cache_read_tokens + call.cache_write_tokens


def after_run(entry: SessionEntry, calls: Sequence[Usage | None]) -> SessionEntry:
    """The row after one run: every call of the model until the answer, in order.

    The last run's input and output replace those before it, the cache fields and the context's size are the last call's
    (O38, O39), the session's totals and its cost grow (O40). A last call without numbers makes the size stale, not 0.
    """
    known = [call for call in calls if call is not None]
    if not known:
        return entry.model_copy(update={"total_tokens_fresh": False})
    last = calls[-1]
    costs = [call.cost_usd for call in known if call.cost_usd is not None]
    size = context_size(last) if last else 0
    update: dict[str, Any] = {
        "input_tokens": sum(call.input_tokens for call in known),
        "output_tokens": sum(call.output_tokens for call in known),
        "totals": _sum(entry.totals, known),
        "estimated_cost_usd": (entry.estimated_cost_usd or 0) + sum(costs)
        if costs
        else entry.estimated_cost_usd,
        "total_tokens_fresh": size > 0,
    }
    if last:
        update |= {"cache_read": last.cache_read_tokens, "cache_write": last.cache_write_tokens}
    if size:
        update["total_tokens"] = size
    return entry.model_copy(update=update)


def after_compaction(entry: SessionEntry, size: int) -> SessionEntry:
    """The row of a session that begins with a summary and a tail of `size` tokens (O41)."""
    cleared = dict.fromkeys(("input_tokens", "output_tokens", "cache_read", "cache_write"))
    return entry.model_copy(update={**cleared, "total_tokens": size, "total_tokens_fresh": True})


def _sum(totals: Counters, calls: Sequence[Usage]) -> Counters:
    return Counters(
        input=totals.input + sum(call.input_tokens for call in calls),
        output=totals.output + sum(call.output_tokens for call in calls),
        cache_read=totals.cache_read + sum(call.cache_read_tokens for call in calls),
        cache_write=totals.cache_write + sum(call.cache_write_tokens for call in calls),
    )
