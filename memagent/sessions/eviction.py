"""Making messages fit a limit: whole messages from the front, a call together with its results. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memagent.memory import Message

SYSTEM_ROLES = ("system", "developer")


def fit(
    messages: Sequence[Message],
    *,
    total: int,
    limit: int,
    weigh: Callable[[Message], int],
    turn_aligned: bool = False,
) -> tuple[Message, ...]:
    """The newest of `messages` whose weight is within `limit`; landing exactly on it fits (L20).

    `total` is the weight of all of them together; an evicted message takes its own weight away (L19). Never evicted: a
    system message at the head (L05), a call that still waits for results (L14), a user message nobody has answered (L22),
    and the newest messages when nothing at all would be left (V50). Such a window stands over its limit until the next
    message frees it. `turn_aligned` makes what is left open on a user message where there is one (L15).
    """
    kept = list(messages)
    while total > limit and (unit := _oldest_unit(kept)):
        total -= sum(weigh(kept[index]) for index in unit)
        kept = [message for index, message in enumerate(kept) if index not in unit]
    if turn_aligned and len(kept) < len(messages):
        kept = _from_user_turn(kept)
    return tuple(kept)


def _oldest_unit(kept: Sequence[Message]) -> set[int]:
    """Indexes of what goes next, together; empty when nothing may go."""
    start = _head(kept)
    if start >= len(kept):
        return set()
    unit = unit_at(kept, start)
    newest = len(kept) - 1 in unit and len(unit) == len(kept) - start
    if newest and (start == 0 or kept[start].role == "user" or is_open(kept, start)):
        return set()
    return unit


def _head(kept: Sequence[Message]) -> int:
    return 1 if kept and kept[0].role in SYSTEM_ROLES else 0


def unit_at(messages: Sequence[Message], start: int) -> set[int]:
    """A message, and if it calls tools, the results directly after it and any late result of its calls (L10)."""
    unit = {start}
    if not messages[start].tool_calls:
        return unit
    calls = {call.id for call in messages[start].tool_calls}
    direct = True
    for index in range(start + 1, len(messages)):
        result = messages[index].role == "tool"
        direct = direct and result
        if result and (direct or messages[index].tool_call_id in calls):
            unit.add(index)
    return unit


def is_open(messages: Sequence[Message], start: int) -> bool:
    """Whether the message calls a tool whose result is not there."""
    answered = {message.tool_call_id for message in messages[start + 1 :] if message.role == "tool"}
    return any(call.id not in answered for call in messages[start].tool_calls)


def _from_user_turn(kept: list[Message]) -> list[Message]:
    start = _head(kept)
    while any(message.role == "user" for message in kept[start + 1 :]) and kept[start].role != "user":
        unit = unit_at(kept, start)
        kept = [message for index, message in enumerate(kept) if index not in unit]
    return kept
