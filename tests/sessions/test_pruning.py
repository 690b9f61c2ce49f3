"""Making old tool results small for one request: O87 of spec/seeds.md."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from memagent.llm import ModelReply
from memagent.memory import Message
from memagent.sessions.compaction import CompactionSettings
from memagent.sessions.pruning import prune
from memagent.sessions.service import Said, SessionSettings
from tests.sessions.chat_cases import ai, call, user
from tests.sessions.session_cases import KEY, START, Clock, desk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def wide(width: int, of: str, letter: str = "r") -> Message:
    return Message("tool", letter * width, tool_call_id=of)


def chat(*widths: int, after: int = 3) -> list[Message]:
    """A user message, a call and a result of each width, then `after` answers."""
    found: list[Message] = [user("go")]
    for n, width in enumerate(widths):
        found += [call(str(n)), wide(width, str(n))]
    return [*found, *(ai(f"answer {n}") for n in range(after))]


def pruned(messages: list[Message], *, window: int, **options: Any) -> list[Message]:
    return list(
        prune(messages, window=window, now=START, last_call=options.pop("last_call", None), **options)
    )


def sizes(messages: list[Message]) -> list[int]:
    return [len(str(message.content)) for message in messages if message.role == "tool"]


def test_o87_a_long_result_keeps_its_head_and_its_tail() -> None:
    before = chat(4_001, 4_000)
    text = "h" * 1_500 + "m" * 1_001 + "t" * 1_500
    before[2] = Message("tool", text, tool_call_id="0")
    after = pruned(before, window=5_000)
    content = str(after[2].content)
    assert content.startswith("h" * 1_500 + "\n")
    assert content.endswith("\n" + "t" * 1_500)
    assert "1001 characters left out" in content
    assert after[4] == before[4]
    assert [each for each in after if each.role != "tool"] == [each for each in before if each.role != "tool"]
    assert len(str(before[2].content)) == 4_001


def test_o87_under_30_percent_of_the_window_nothing_happens() -> None:
    before = chat(6_000)
    assert pruned(before, window=5_100) == before
    assert pruned(before, window=5_000) != before


@pytest.mark.parametrize(("age", "expected"), [(0, False), (299, False), (300, True), (None, True)])
def test_o87_while_the_providers_cache_lives_nothing_happens(age: int | None, expected: bool) -> None:
    before = chat(10_000)
    last = None if age is None else START - timedelta(seconds=age)
    assert (pruned(before, window=5_000, last_call=last) != before) is expected


def test_o87_the_last_three_answers_and_what_is_before_the_first_user_message_stay() -> None:
    before = [call("x"), wide(9_000, "x"), *chat(9_000, 9_000, after=2)]
    after = pruned(before, window=6_000)
    assert sizes(after)[0] == 9_000
    assert sizes(after)[1] < 4_000
    assert sizes(after)[2] == 9_000
    assert pruned(chat(9_000, after=1), window=3_000) == chat(9_000, after=1)


def test_o87_in_a_window_half_full_the_oldest_become_a_placeholder_until_it_is_not() -> None:
    before = chat(*[4_000] * 14)
    after = pruned(before, window=20_000)
    contents = [str(each.content) for each in after if each.role == "tool"]
    cleared = [each == "[old tool result left out]" for each in contents]
    assert cleared == [True] * sum(cleared) + [False] * (14 - sum(cleared))
    assert 0 < sum(cleared) < 14
    assert sum(map(len, contents)) < 40_000


def test_o87_under_50000_prunable_characters_none_becomes_a_placeholder() -> None:
    before = chat(*[4_000] * 12)
    assert pruned(before, window=10_000) == before


def test_o87_a_picture_in_a_result_is_left_alone() -> None:
    before = chat(9_000)
    picture = Message("tool", ({"type": "image_url", "image_url": {"url": "x"}},), tool_call_id="0")
    before[2] = picture
    assert pruned([*before, user("x" * 9_000)], window=3_000)[2] == picture


def test_o87_pairs_stay_pairs() -> None:
    before = chat(*[8_000] * 14)
    after = pruned(before, window=20_000)
    assert [(each.role, each.tool_call_id) for each in after] == [
        (each.role, each.tool_call_id) for each in before
    ]


async def test_o87_a_request_is_pruned_and_the_transcript_is_not(tmp_path: Path) -> None:
    clock = Clock()
    rules = SessionSettings(compaction=CompactionSettings(window_tokens=5_000, enabled=False), sync=False)
    sessions = desk(tmp_path, clock, settings=rules)
    await sessions.receive(KEY, "go")
    await sessions.record(
        KEY, [Said(call("0")), Said(wide(9_000, "0")), *(Said(ai(f"{n}")) for n in range(3))]
    )
    shown: list[int] = []

    async def model(messages: Sequence[Message]) -> ModelReply:
        shown.extend(sizes(list(messages)))
        return ModelReply("done")

    await sessions.ask(KEY, model)
    clock.forward(minutes=5)
    await sessions.ask(KEY, model)
    assert shown[0] == 9_000
    assert shown[1] < 4_000
    assert sizes(list((await sessions.context(KEY)).messages)) == [9_000]
