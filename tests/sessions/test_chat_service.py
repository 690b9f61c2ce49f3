"""A turn with a memory: L48 to L51 and V57 of spec/seeds.md §4."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from memagent.errors import ModelReplyInvalid, ModelUnavailable
from memagent.llm import ModelReply, ToolSpec
from memagent.memory import Message
from memagent.sessions.chat_memory import MessageWindowChatMemory
from memagent.sessions.chat_service import MAX_TOOL_ROUNDS, ChatService, Tool
from memagent.sessions.chat_stores import InMemoryChatMemoryStore
from tests.sessions.chat_cases import Answers, ai, call, system, user

if TYPE_CHECKING:
    from collections.abc import Hashable

CALL = ModelReply("", tool_calls=call("1").tool_calls)


async def found(_: str) -> str:
    return "found"


LOOK_UP = Tool(ToolSpec("look_up", "Look something up.", {"type": "object"}), found)


async def test_four_turns_keep_their_order_and_the_system_message_is_there_once() -> None:
    memory = MessageWindowChatMemory(max_messages=20)
    service = ChatService(Answers(*"abcd"), memory=memory, system="be kind")
    for text in "1234":
        await service.chat(text)
    turns = [each for ask, answer in zip("1234", "abcd", strict=True) for each in (user(ask), ai(answer))]
    assert list(await memory.messages()) == [system("be kind"), *turns]


async def test_l48_the_model_is_never_shown_more_than_the_window() -> None:
    model = Answers(*"abcd")
    service = ChatService(model, memory=MessageWindowChatMemory(max_messages=3))
    for text in "1234":
        await service.chat(text)
    assert [len(each) for each in model.shown] == [1, 3, 3, 3]
    assert model.shown[-1] == (user("3"), ai("c"), user("4"))


async def test_l49_v57_a_retry_after_a_failed_call_asks_once() -> None:
    memory = MessageWindowChatMemory(max_messages=10)
    model = Answers(ModelUnavailable("down"), "here")
    service = ChatService(model, memory=memory)
    with pytest.raises(ModelUnavailable):
        await service.chat("hello")
    assert await memory.messages() == ()
    assert await service.chat("hello") == "here"
    assert await memory.messages() == (user("hello"), ai("here"))


async def test_l49_a_turn_that_fails_between_tool_rounds_leaves_no_half() -> None:
    memory = MessageWindowChatMemory(max_messages=10)
    model = Answers(CALL, ModelUnavailable("down"), CALL, "done")
    service = ChatService(model, memory=memory, tools=[LOOK_UP])
    with pytest.raises(ModelUnavailable):
        await service.chat("hello")
    assert await memory.messages() == ()
    await service.chat("hello")
    assert await memory.messages() == (
        user("hello"),
        call("1"),
        Message("tool", "found", name="look_up", tool_call_id="1"),
        ai("done"),
    )


@pytest.mark.parametrize("kept", [True, False])
async def test_l50_augmented_text_is_stored_unless_switched_off_and_always_shown(kept: bool) -> None:
    async def augment(text: str) -> str:
        return f"{text} (retrieved: tea)"

    memory = MessageWindowChatMemory(max_messages=10)
    model = Answers(CALL, "tea")
    service = ChatService(model, memory=memory, augment=augment, store_augmented=kept, tools=[LOOK_UP])
    await service.chat("what?")
    assert all(each[0] == user("what? (retrieved: tea)") for each in model.shown)
    assert len(model.shown) == 2
    assert (await memory.messages())[0] == user("what? (retrieved: tea)" if kept else "what?")


async def test_l51_a_tool_round_reads_the_memory_again_and_may_evict() -> None:
    memory = MessageWindowChatMemory(max_messages=3)
    await memory.add(user("old"), ai("older"))
    model = Answers(CALL, "done")
    await ChatService(model, memory=memory, tools=[LOOK_UP]).chat("new")
    assert model.shown[0] == (user("old"), ai("older"), user("new"))
    assert [each.role for each in model.shown[1]] == ["user", "assistant", "tool"]


async def test_a_tool_the_model_made_up_is_answered_with_those_there_are() -> None:
    model = Answers(ModelReply("", tool_calls=call("9").tool_calls), "sorry")
    await ChatService(model, tools=[]).chat("hi")
    assert model.shown[1][-1] == Message(
        "tool", "unknown tool; known tools: none", name="look_up", tool_call_id="9"
    )


async def test_a_model_that_only_calls_tools_is_stopped() -> None:
    model = Answers(*[CALL] * (MAX_TOOL_ROUNDS + 2))
    with pytest.raises(ModelReplyInvalid):
        await ChatService(model, tools=[LOOK_UP]).chat("hi")
    assert len(model.shown) == MAX_TOOL_ROUNDS + 1


async def test_turns_of_one_id_run_one_after_the_other() -> None:
    memory = MessageWindowChatMemory(max_messages=100)
    model = Answers(
        *[each for n in range(10) for each in (ModelReply("", tool_calls=call(str(n)).tool_calls), f"a{n}")]
    )

    async def slow(_: str) -> str:
        await asyncio.sleep(0)
        return "found"

    service = ChatService(model, memory=memory, tools=[Tool(LOOK_UP.spec, slow)])
    await asyncio.gather(*(service.chat(f"u{n}") for n in range(10)))
    assert [each.role for each in await memory.messages()] == ["user", "assistant", "tool", "assistant"] * 10


class HesitantStore(InMemoryChatMemoryStore):
    async def get_messages(self, memory_id: Hashable) -> tuple[Message, ...]:
        await asyncio.sleep(0)
        return await super().get_messages(memory_id)


async def test_turns_of_two_services_on_one_store_are_kept_in_one_piece_each() -> None:
    store = HesitantStore()
    services = [
        ChatService(
            Answers(*[f"{name}{n}" for n in range(10)]),
            memory=MessageWindowChatMemory(max_messages=100, store=store),
        )
        for name in "ab"
    ]
    await asyncio.gather(*(services[at].chat(f"{'ab'[at]}{n}") for n in range(10) for at in (0, 1)))
    said = [message.content for message in await store.get_messages("default")]
    assert said[0::2] == said[1::2]
    assert len(said) == 40


async def test_without_a_memory_every_turn_stands_alone() -> None:
    model = Answers("a", "b")
    service = ChatService(model, system="be kind")
    await service.chat("1")
    await service.chat("2")
    assert model.shown[1] == (system("be kind"), user("2"))
