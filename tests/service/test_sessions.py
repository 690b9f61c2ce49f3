from __future__ import annotations

from typing import Any

import pytest

from memagent.errors import ModelUnavailable
from memagent.llm.script import Answer, Rule, Script, calling
from memagent.memory import Message
from memagent.service.sessions import flush_into, open_sessions, pieces
from memagent.sessions.compaction import CompactionSettings, Status
from memagent.sessions.flush import FlushRequest
from memagent.sessions.service import Said, SessionSettings

KEY = "agent:main:main"
MOCHI = calling("set_memory", key="pets", value="Juno's cat is called Mochi")


def user(text: str) -> Message:
    return Message("user", text)


def ai(text: str) -> Message:
    return Message("assistant", text)


async def test_what_a_reset_would_lose_is_learned_before(open_world: Any, tmp_path: Any) -> None:
    data = {"MEMAGENT_DATA_DIR": str(tmp_path)}
    async with open_world(MOCHI, environ=data) as world:
        sessions = open_sessions(world.memory, "juno")
        await sessions.receive(KEY, "my cat is called Mochi")
        await sessions.record(KEY, [Said(ai("Lovely"))])
        await sessions.receive(KEY, "/new")
        assert [memory.key for memory in await world.memory.list("juno")] == ["pets"]
        await sessions.receive(KEY, "/new")
        assert len(world.model.requests) == 1
        assert (tmp_path / "sessions" / "main" / "sessions.json").exists()


async def test_a_compaction_is_written_by_the_memory_agents_model_after_it_has_learned(
    open_world: Any, tmp_path: Any
) -> None:
    script = Script([Rule((MOCHI,), tools=True), Rule((Answer("they spoke of a cat"),), tools=False)])
    async with open_world(script=script, environ={"MEMAGENT_DATA_DIR": str(tmp_path)}) as world:
        rules = SessionSettings(compaction=CompactionSettings(min_messages=2))
        sessions = open_sessions(world.memory, "juno", settings=rules)
        for text in ("my cat is called Mochi", "she sleeps all day"):
            await sessions.receive(KEY, text)
            await sessions.record(KEY, [Said(ai("I see"))])
        done = await sessions.compact(KEY)
        assert (done.status, done.summary) == (Status.COMPACTED, "they spoke of a cat")
        assert [memory.key for memory in await world.memory.list("juno")] == ["pets"]


async def test_without_a_memory_agent_sessions_work_and_compaction_says_why_not(
    open_world: Any, tmp_path: Any
) -> None:
    off = "disabled: true"
    async with open_world(extra=off, environ={"MEMAGENT_DATA_DIR": str(tmp_path)}) as world:
        sessions = open_sessions(
            world.memory, "juno", settings=SessionSettings(compaction=CompactionSettings(min_messages=0))
        )
        await sessions.receive(KEY, "hello")
        await sessions.record(KEY, [Said(ai("hi"))])
        await sessions.receive(KEY, "/new")
        assert await world.memory.list("juno") == ()


async def test_a_flush_that_cannot_be_learned_is_raised(open_world: Any) -> None:
    async with open_world(Answer(status=503)) as world:
        request = FlushRequest(
            KEY, "s1", "e1", "reset", (user("my cat is called Mochi"),), "memory/2026-03-02.md"
        )
        with pytest.raises(ModelUnavailable):
            await flush_into(world.memory, "juno")(request)


def test_pieces_begin_at_a_user_message_and_nothing_is_left_out() -> None:
    chat = [user("1"), ai("1"), user("2"), ai("2"), user("3"), *(ai(f"3.{n}") for n in range(6)), user("4")]
    found = list(pieces(chat, 5))
    assert [len(piece) for piece in found] == [4, 7, 1]
    assert [message for piece in found for message in piece] == chat
    assert all(piece[0].role == "user" for piece in found)
    assert list(pieces([], 5)) == []
    assert list(pieces([ai("a"), user("b")], 1)) == [(ai("a"),), (user("b"),)]
