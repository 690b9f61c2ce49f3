"""Sessions from message to message: O11, O16, O18 to O24, V22 to V24 and V38 of spec/seeds.md."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from memagent.errors import Conflict, NoSuchSession
from memagent.llm import Usage
from memagent.memory import Message
from memagent.sessions.archive import Reason, archives, transcript_of
from memagent.sessions.chat_memory import MessageWindowChatMemory
from memagent.sessions.chat_stores import JsonlChatMemoryStore
from memagent.sessions.compaction import CompactionSettings
from memagent.sessions.reset import ResetMode, ResetRule, ResetSettings
from memagent.sessions.service import Said, SessionSettings
from memagent.sessions.transcript import Transcript
from tests.sessions.chat_cases import ai, user
from tests.sessions.session_cases import KEY, Clock, desk, texts, turn

if TYPE_CHECKING:
    from pathlib import Path


def rules(**reset: Any) -> SessionSettings:
    return SessionSettings(reset=ResetSettings(**{"zone": "UTC", **reset}), sync=False)


async def row(sessions: Any, key: str = KEY) -> Any:
    found = await sessions.registry.get(key)
    assert found is not None
    return found


async def test_o11_a_session_that_is_over_stays_until_somebody_says_something(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    first = await turn(sessions, "today")
    clock.forward(days=3)
    assert await texts(sessions) == ["today", "ok"]
    await sessions.prepare(KEY)
    assert (await row(sessions)).session_id == first
    received = await sessions.receive(KEY, "three days later")
    assert (received.is_new, received.ended) == (True, "daily")
    assert await texts(sessions) == ["three days later"]


async def test_o12_v17_the_daily_reset_in_the_users_zone(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock, settings=rules(zone="Asia/Ho_Chi_Minh"))
    clock.to(1, 20, 59)  # 03:59 in Hanoi
    first = await turn(sessions, "a")
    clock.to(1, 21, 0)
    second = await turn(sessions, "b")
    clock.to(2, 16, 59)  # 23:59
    assert (first != second, await turn(sessions, "c")) == (True, second)


async def test_o16_v23_a_strangers_new_is_said_in_the_same_session(tmp_path: Path) -> None:
    sessions = desk(tmp_path)
    first = await turn(sessions, "hi")
    received = await sessions.receive(KEY, "/new", authorised=False)
    assert (received.session_id, received.is_new) == (first, False)
    assert (await texts(sessions))[-1] == "/new"


async def test_v22_what_follows_a_trigger_is_the_first_message_with_its_case(tmp_path: Path) -> None:
    sessions = desk(tmp_path)
    first = await turn(sessions, "hi")
    received = await sessions.receive(KEY, "/NEW Build X/Y.txt")
    assert received.session_id != first
    assert (received.text, received.ended, received.greeting) == ("Build X/Y.txt", "reset", "")
    assert await texts(sessions) == ["Build X/Y.txt"]


async def test_o18_a_reset_by_hand_carries_the_users_settings_and_a_daily_one_does_not(
    tmp_path: Path,
) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    await turn(sessions, "hi")
    mine = {
        "thinking_level": "high",
        "verbose_level": "on",
        "reasoning_level": "on",
        "speech": "always",
        "model_override": "opus",
        "provider_override": "x",
        "auth_override": "y",
        "label": "work",
    }
    await sessions.registry.patch(KEY, lambda entry: entry.model_copy(update=mine) if entry else None)
    await sessions.receive(KEY, "/reset")
    carried = (await row(sessions)).model_dump()
    assert {name: carried[name] for name in mine} == mine
    clock.forward(days=1)
    await sessions.receive(KEY, "good morning")
    fresh = (await row(sessions)).model_dump()
    assert {fresh[name] for name in mine} == {None}


async def test_o18_an_idle_roll_over_carries_nothing(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock, settings=rules(idle_minutes=30))
    await turn(sessions, "hi")
    await sessions.registry.patch(
        KEY, lambda entry: entry.model_copy(update={"label": "x"}) if entry else None
    )
    clock.forward(minutes=31)
    assert (await sessions.receive(KEY, "back")).ended == "idle"
    assert (await row(sessions)).label is None


async def test_o19_v38_the_new_session_starts_empty_and_the_totals_stay_with_the_old(tmp_path: Path) -> None:
    sessions = desk(tmp_path)
    await sessions.receive(KEY, "hi")
    calls = [Said(ai("a"), Usage(100, 10, 0, 900)), Said(ai("b"), Usage(50, 20, 950, 0, 0.5))]
    await sessions.record(KEY, calls)
    old = await row(sessions)
    assert old.total_tokens == 1_000
    await sessions.receive(KEY, "/new")
    new = await row(sessions)
    counters = (new.input_tokens, new.output_tokens, new.cache_read, new.cache_write, new.total_tokens)
    assert counters == (None, None, None, None, None)
    assert (new.totals.input, new.estimated_cost_usd, new.compaction_count) == (0, None, 0)
    last = Transcript(transcript_of(tmp_path, old.session_id)).read().entries[-1]
    assert last.type == "session_info"
    assert last.data["totals"] == {"input": 150, "output": 30, "cacheRead": 950, "cacheWrite": 900}
    assert (last.data["estimatedCostUsd"], last.data["next"]) == (0.5, new.session_id)


@pytest.mark.parametrize("why", ["reset", "daily", "idle"])
async def test_o20_the_old_transcript_is_archived_for_every_kind_of_reset(tmp_path: Path, why: str) -> None:
    clock = Clock()
    idle = rules(base=ResetRule(ResetMode.IDLE, idle_minutes=5)) if why == "idle" else None
    sessions = desk(tmp_path, clock, settings=idle)
    old = await turn(sessions, "hi")
    clock.forward(days=1)
    await sessions.receive(KEY, "/new" if why == "reset" else "next")
    kept = archives(tmp_path)
    assert [(each.session_id, each.reason, each.at) for each in kept] == [(old, Reason.RESET, clock.now)]
    assert kept[0].path.name == f"{old}.jsonl.reset.2026-03-03T12-00-00-000000"
    assert kept[0].path.stat().st_mode & 0o222 == 0
    assert b'"hi"' in kept[0].path.read_bytes()
    assert not (tmp_path / f"{old}.jsonl").exists()


async def test_o21_v24_only_the_user_keeps_a_session_fresh(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    clock.to(1, 22)
    first = await turn(sessions, "good night")
    clock.to(2, 3, 50)
    await sessions.record(KEY, [Said(user("[heartbeat]")), Said(ai("ok"), Usage(1, 1))])
    assert (await row(sessions)).updated_at == clock.now
    clock.to(2, 4, 5)
    received = await sessions.receive(KEY, "good morning")
    assert received.session_id != first
    assert received.ended == "daily"


async def test_o21_with_user_input_after_the_boundary_it_stays(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    clock.to(2, 4, 0)
    first = await turn(sessions, "early")
    clock.to(2, 23, 59)
    assert await turn(sessions, "late") == first


async def test_o22_a_bare_new_greets_with_the_date_and_says_nothing_in_the_users_name(tmp_path: Path) -> None:
    sessions = desk(tmp_path, settings=rules(zone="Asia/Ho_Chi_Minh"))
    await turn(sessions, "hi")
    received = await sessions.receive(KEY, "/new")
    assert "2026-03-02" in received.greeting
    assert await texts(sessions) == []


async def test_o22_new_with_a_model_switches_to_it(tmp_path: Path) -> None:
    sessions = desk(tmp_path)
    received = await sessions.receive(KEY, "/new opus hello", models=["opus"])
    assert received.text == "hello"
    assert (await row(sessions)).model_override == "opus"


async def test_o23_a_thread_starts_with_a_copy_of_its_parent_once(tmp_path: Path) -> None:
    sessions = desk(tmp_path)
    group, thread = "agent:main:x:group:1", "agent:main:x:group:1:thread:9"
    parent = await turn(sessions, "about tea", "yes", key=group, usage=Usage(50, 1))
    await sessions.receive(thread, "in the thread")
    assert await texts(sessions, thread) == ["about tea", "yes", "in the thread"]
    await turn(sessions, "more", key=group)
    await sessions.receive(thread, "again")
    assert await texts(sessions, thread) == ["about tea", "yes", "in the thread", "again"]
    assert await texts(sessions, group) == ["about tea", "yes", "more", "ok"]
    assert (await row(sessions, thread)).forked_from == parent
    assert archives(tmp_path) == []


async def test_o23_a_parent_that_is_too_large_is_not_copied(tmp_path: Path) -> None:
    sessions = desk(tmp_path)
    for n, size in enumerate((100_000, 100_001)):
        group = f"agent:main:x:group:{n}"
        await turn(sessions, "big", key=group, usage=Usage(size, 1))
        await sessions.receive(f"{group}:thread:9", "hi")
    assert await texts(sessions, "agent:main:x:group:0:thread:9") == ["big", "ok", "hi"]
    assert await texts(sessions, "agent:main:x:group:1:thread:9") == ["hi"]


async def test_o24_a_reset_drops_the_notices_of_the_old_session(tmp_path: Path) -> None:
    sessions = desk(tmp_path)
    await turn(sessions, "hi")
    sessions.notify(KEY, "a job ended")
    assert sessions.take_notices(KEY.upper()) == ("a job ended",)
    assert sessions.take_notices(KEY) == ()
    sessions.notify(KEY, "another ended")
    await sessions.receive(KEY, "/new")
    assert sessions.take_notices(KEY) == ()


async def test_o31_a_topics_transcript_carries_its_topic(tmp_path: Path) -> None:
    sessions = desk(tmp_path)
    key = "agent:main:x:group:1:topic:42"
    session_id = (await sessions.receive(key, "hi")).session_id
    assert (tmp_path / f"{session_id}-topic-42.jsonl").exists()
    assert transcript_of(tmp_path, session_id).name == f"{session_id}-topic-42.jsonl"
    await sessions.receive(key, "/reset")
    assert archives(tmp_path)[0].session_id == session_id


async def test_o05_any_case_of_a_key_is_one_session(tmp_path: Path) -> None:
    sessions = desk(tmp_path)
    first = await sessions.receive("Agent:Main:X", "a")
    second = await sessions.receive("agent:main:x", "b")
    assert first.session_id == second.session_id


async def test_an_answer_to_a_session_that_was_reset_meanwhile_is_not_put_into_the_next(
    tmp_path: Path,
) -> None:
    sessions = desk(tmp_path)
    received = await sessions.receive(KEY, "slow question")
    await sessions.receive(KEY, "/new")
    with pytest.raises(Conflict):
        await sessions.record(KEY, [Said(ai("late"))], session_id=received.session_id)
    assert await texts(sessions) == []


async def test_o32_a_mirrored_answer_is_one_line_and_counts_once(tmp_path: Path) -> None:
    sessions = desk(tmp_path)
    await sessions.receive(KEY, "hi")
    for _ in range(2):
        await sessions.record(KEY, [Said(ai("hello"), Usage(10, 1))], idempotency_key="m1")
    assert await texts(sessions) == ["hi", "hello"]
    assert (await row(sessions)).totals.input == 10


async def test_o32_a_users_message_handed_over_twice_is_one_line(tmp_path: Path) -> None:
    sessions = desk(tmp_path)
    for _ in range(2):
        await sessions.receive(KEY, "hi", idempotency_key="m1")
    assert await texts(sessions) == ["hi"]


async def test_o15_a_trigger_in_a_text_part_is_one_too(tmp_path: Path) -> None:
    sessions = desk(tmp_path)
    await turn(sessions, "hi")
    received = await sessions.receive(KEY, Message("user", ({"type": "text", "text": "/new go"},)))
    assert (received.ended, received.text, await texts(sessions)) == ("reset", "go", ["go"])


async def test_o13_every_message_of_the_user_starts_the_idle_minutes_anew(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock, settings=rules(idle_minutes=30))
    first = await turn(sessions, "a")
    for _ in range(3):
        clock.forward(minutes=20)
        assert await turn(sessions, "b") == first


async def test_reset_and_compact_of_a_key_nobody_used_name_it(tmp_path: Path) -> None:
    sessions = desk(tmp_path)
    for asked in (sessions.reset("agent:main:none"), sessions.compact("agent:main:none")):
        with pytest.raises(NoSuchSession, match="agent:main:none"):
            await asked
    assert (await sessions.context("agent:main:none")).messages == ()
    assert await sessions.registry.load() == {}


async def test_a_reset_from_outside_is_fresh_for_the_next_message(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    await turn(sessions, "hi")
    clock.forward(days=2)
    session_id = (await sessions.reset(KEY)).session_id
    assert (await sessions.receive(KEY, "back")).session_id == session_id


async def test_o28_a_broken_transcript_is_moved_aside_and_the_chat_goes_on(tmp_path: Path) -> None:
    sessions = desk(tmp_path)
    session_id = await turn(sessions, "precious")
    path = tmp_path / f"{session_id}.jsonl"
    content = path.read_bytes()[10:]
    path.write_bytes(content)
    await turn(sessions, "go on")
    assert await texts(sessions) == ["go on", "ok"]
    assert [each.path.read_bytes() for each in archives(tmp_path)] == [content]


async def test_many_messages_at_once_are_all_there(tmp_path: Path) -> None:
    one, two = desk(tmp_path), desk(tmp_path)
    await asyncio.gather(*(each.receive(KEY, f"{n}") for n in range(15) for each in (one, two)))
    found = await texts(one)
    assert sorted(found, key=int) == sorted([str(n) for n in range(15)] * 2, key=int)
    assert len(list(tmp_path.glob("*.jsonl"))) == 1


async def test_a_rotation_that_a_crash_cut_off_is_finished_when_the_key_is_opened(tmp_path: Path) -> None:
    sessions = desk(tmp_path)
    old = await turn(sessions, "hi")
    copy = (tmp_path / f"{old}.jsonl").read_bytes()
    await sessions.receive(KEY, "/new")
    archives(tmp_path)[0].path.unlink()
    (tmp_path / f"{old}.jsonl").write_bytes(copy)  # as if the process had died before archiving
    await sessions.receive(KEY, "on")
    assert [(each.session_id, each.reason) for each in archives(tmp_path)] == [(old, Reason.RESET)]
    assert await texts(sessions) == ["on"]


async def test_what_is_said_is_for_nobody_else_on_the_machine(tmp_path: Path) -> None:
    sessions = desk(tmp_path / "sessions")
    await turn(sessions, "hi")
    await sessions.receive(KEY, "/new")
    memory = MessageWindowChatMemory(
        max_messages=2, store=JsonlChatMemoryStore(tmp_path / "chats", sync=False)
    )
    await memory.add(user("hi"))
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert len(written) == 5
    assert [path for path in written if path.stat().st_mode & 0o077] == []


async def test_details_of_tools_are_kept_for_people_only(tmp_path: Path) -> None:
    sessions = desk(tmp_path)
    session_id = await turn(sessions, "hi")
    await sessions.record(KEY, [Said(ai("x"), details={"log": "long"}, is_error=True, stop_reason="error")])
    last = json.loads((tmp_path / f"{session_id}.jsonl").read_text().splitlines()[-1])
    assert (last["details"], last["isError"]) == ({"log": "long"}, True)
    assert await texts(sessions) == ["hi", "ok"]


def test_settings_have_the_seeds_defaults() -> None:
    settings = SessionSettings()
    assert (settings.compaction.ratio, settings.compaction.enabled) == (0.8, True)
    assert settings.reset.policy(kind="direct").at_hour == 4
    assert settings.triggers == ("/new", "/reset")
    assert CompactionSettings().threshold(200_000) == 160_000
