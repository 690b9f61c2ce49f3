"""One memory per id: L40 to L47 and V56 of spec/seeds.md §4."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from memagent.errors import BadRequest, Conflict
from memagent.sessions.chat_memory import MessageWindowChatMemory
from memagent.sessions.chat_provider import ChatMemoryProvider
from memagent.sessions.chat_service import ChatService
from memagent.sessions.chat_stores import InMemoryChatMemoryStore
from tests.sessions.chat_cases import Answers, ai, user

if TYPE_CHECKING:
    from collections.abc import Hashable


def provider(store: InMemoryChatMemoryStore | None = None) -> ChatMemoryProvider:
    return ChatMemoryProvider(lambda id: MessageWindowChatMemory(id=id, max_messages=10, store=store))  # noqa: A006  as the seed writes it


async def test_l40_an_id_without_a_provider_is_refused_before_the_model_is_asked() -> None:
    model = Answers("never")
    service = ChatService(model, memory=MessageWindowChatMemory(max_messages=10))
    with pytest.raises(BadRequest, match="needs a provider"):
        await service.chat("hi", memory_id=1)
    assert model.shown == []


def test_l40_a_memory_and_a_provider_together_are_a_mistake_of_the_setup() -> None:
    with pytest.raises(BadRequest, match="not both"):
        ChatService(Answers(), memory=MessageWindowChatMemory(max_messages=1), provider=provider())


def test_l41_none_is_no_id_and_empty_texts_and_blanks_are() -> None:
    memories = provider()
    with pytest.raises(BadRequest):
        memories(None)
    assert len({id(memories(each)) for each in ("", " ", "  ")}) == 3


def test_l42_each_id_has_one_memory_of_its_own() -> None:
    memories = provider()
    assert memories(1) is memories(1)
    assert memories(1) is not memories(2)
    assert memories(1) is not memories("1")


def test_l43_ten_threads_asking_for_a_new_id_get_one_memory() -> None:
    made = []

    def make(memory_id: Hashable) -> MessageWindowChatMemory:
        made.append(memory_id)
        threading.Event().wait(0.02)  # long enough for the others to come
        return MessageWindowChatMemory(id=memory_id, max_messages=10)

    memories = ChatMemoryProvider(make)
    together = threading.Barrier(10)
    got = []

    def ask() -> None:
        together.wait()
        got.append(memories("new"))

    threads = [threading.Thread(target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["new"]
    assert len(got) == 10
    assert len({id(each) for each in got}) == 1


async def test_l44_an_evicted_memory_is_gone_and_what_its_store_holds_is_not() -> None:
    memories = provider(InMemoryChatMemoryStore())
    await memories("ada").add(user("hi"))
    assert memories.get("ada") is memories("ada")
    assert (memories.evict("ada"), memories.evict("ada")) == (True, False)
    assert memories.get("ada") is None
    assert await memories("ada").messages() == (user("hi"),)


async def test_l45_one_shared_memory_is_found_by_an_equal_id_and_never_evicted() -> None:
    shared = MessageWindowChatMemory(max_messages=10)
    service = ChatService(Answers("one", "two"), memory=shared)
    await service.chat("a")
    await service.chat("b")
    assert len(await shared.messages()) == 4
    assert service.memory("DEFAULT".lower()) is shared
    assert service.memory("other") is None
    assert service.evict("default") is False
    assert service.memory() is shared


def test_l46_v56_a_provider_that_ignores_the_id_fails_loudly() -> None:
    store = InMemoryChatMemoryStore()
    memories = ChatMemoryProvider(lambda _: MessageWindowChatMemory(max_messages=10, store=store))
    with pytest.raises(Conflict, match="'ada' has the id 'default'"):
        memories("ada")
    assert memories.get("ada") is None


async def test_l47_users_of_one_store_have_histories_of_their_own() -> None:
    store = InMemoryChatMemoryStore()
    model = Answers("1a", "2a", "1b")
    service = ChatService(model, provider=provider(store))
    await service.chat("from 1", memory_id=1)
    await service.chat("from 2", memory_id=2)
    await service.chat("again 1", memory_id=1)
    assert await store.get_messages(1) == (user("from 1"), ai("1a"), user("again 1"), ai("1b"))
    assert await store.get_messages(2) == (user("from 2"), ai("2a"))
    assert model.shown[1] == (user("from 2"),)
    assert await store.get_messages("default") == ()
    assert service.memory(3) is None
    assert service.evict(2)
