"""Stores of windows: L35, L37 to L39, L52 and V58 of spec/seeds.md §4, for every store that needs no server."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memagent.errors import BadRequest, Conflict, StoreFault, StoreUnavailable
from memagent.memory import Message, ToolCall
from memagent.sessions.chat_memory import MessageWindowChatMemory
from memagent.sessions.chat_stores import (
    ChatMemoryStore,
    HistoryEntry,
    InMemoryChatMemoryStore,
    JsonlChatMemoryStore,
    SingleSlotChatMemoryStore,
    file_name,
    replay,
    storage_id,
)
from memagent.sessions.message_json import from_json, to_json
from tests.sessions.chat_cases import ThreeMethodStore, ai, call, result, user

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["memory", "slot", "jsonl", "own"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ChatMemoryStore:
    return {
        "memory": InMemoryChatMemoryStore,
        "slot": lambda: SingleSlotChatMemoryStore("id"),
        "jsonl": lambda: JsonlChatMemoryStore(tmp_path, sync=False),
        "own": ThreeMethodStore,
    }[request.param]()


async def test_l35_l37_an_unknown_id_is_empty_and_what_is_written_is_read(store: ChatMemoryStore) -> None:
    assert list(await store.get_messages("id")) == []
    window = [user("xin chào\u2028\x85"), call("1"), result("1", "\ud800 lone"), ai("größer")]
    await store.update_messages("id", window)
    assert list(await store.get_messages("id")) == window
    await store.update_messages("id", window[1:])
    assert list(await store.get_messages("id")) == window[1:]
    await store.delete_messages("id")
    await store.delete_messages("id")
    assert list(await store.get_messages("id")) == []


async def test_l37_reading_an_unknown_id_leaves_no_trace(tmp_path: Path) -> None:
    memory, files = InMemoryChatMemoryStore(), JsonlChatMemoryStore(tmp_path)
    await memory.get_messages("x")
    await files.get_messages("x")
    assert (memory._windows, list(tmp_path.iterdir())) == ({}, [])


async def test_l37_a_store_does_not_share_the_callers_list(store: ChatMemoryStore) -> None:
    mine = [user("a")]
    await store.update_messages("id", mine)
    mine.append(user("b"))
    assert list(await store.get_messages("id")) == [user("a")]


async def test_l38_a_single_slot_names_both_ids_when_asked_for_another() -> None:
    store = SingleSlotChatMemoryStore("ada")
    for asked in (store.get_messages("bob"), store.update_messages("bob", []), store.delete_messages("bob")):
        with pytest.raises(Conflict, match=r"'ada'.*'bob'"):
            await asked


async def test_l39_concurrent_adds_lose_and_mix_nothing(store: ChatMemoryStore) -> None:
    memory = MessageWindowChatMemory(max_messages=1_000, id="id", store=store)
    await asyncio.gather(*(memory.add(call(str(n)), result(str(n))) for n in range(20)))
    window = await memory.messages()
    assert len(window) == 40
    assert all(window[at].tool_calls[0].id == window[at + 1].tool_call_id for at in range(0, 40, 2))


@pytest.mark.parametrize("kind", ["memory", "jsonl"])
def test_v58_ten_threads_add_a_hundred_messages_each_and_none_is_lost(kind: str, tmp_path: Path) -> None:
    shared = InMemoryChatMemoryStore() if kind == "memory" else JsonlChatMemoryStore(tmp_path, sync=False)
    memory = MessageWindowChatMemory(max_messages=5_000, id="one", store=shared)

    def add(thread: int) -> None:
        async def all_of_them() -> None:
            for at in range(100 if kind == "memory" else 10):
                await memory.add(user(f"{thread}.{at}"))

        asyncio.run(all_of_them())

    threads = [threading.Thread(target=add, args=(each,)) for each in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts = [message.content for message in asyncio.run(memory.messages())]
    assert len(texts) == len(set(texts)) == (1_000 if kind == "memory" else 100)


def test_l39_two_processes_on_one_folder_lose_nothing(tmp_path: Path) -> None:
    script = """
import asyncio, pathlib, sys
from memagent.memory import Message
from memagent.sessions.chat_memory import MessageWindowChatMemory
from memagent.sessions.chat_stores import JsonlChatMemoryStore
async def main():
    store = JsonlChatMemoryStore(pathlib.Path(sys.argv[1]), sync=False)
    memory = MessageWindowChatMemory(max_messages=500, id=7, store=store)
    for n in range(40):
        await memory.add(Message("user", f"{sys.argv[2]}.{n}"))
asyncio.run(main())
"""
    running = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path), each]) for each in "ab"]
    assert [each.wait() for each in running] == [0, 0]
    memory = MessageWindowChatMemory(max_messages=500, id=7, store=JsonlChatMemoryStore(tmp_path))
    assert len(asyncio.run(memory.messages())) == len(asyncio.run(memory.history())) == 80


async def test_a_waiter_that_gives_up_passes_its_turn_on(store: ChatMemoryStore) -> None:
    order = []

    async def hold(name: str) -> None:
        async with store.lock("id"):
            order.append(name)
            await asyncio.sleep(0)

    async with store.lock("id"):
        first, second, third = (asyncio.create_task(hold(each)) for each in "abc")
        await asyncio.sleep(0)
        second.cancel()
    first.cancel()
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert order[-1] == "c"
    assert "b" not in order


# -- files -------------------------------------------------------------------------------------------------------------


async def test_files_survive_the_process_and_the_history_is_only_appended(tmp_path: Path) -> None:
    before = MessageWindowChatMemory(max_messages=2, id=1, store=JsonlChatMemoryStore(tmp_path))
    await before.add(user("a"), ai("b"))
    history = tmp_path / "int.1.history.jsonl"
    kept = history.read_bytes()
    after = MessageWindowChatMemory(max_messages=2, id=1, store=JsonlChatMemoryStore(tmp_path))
    await after.add(user("c"))
    assert await after.messages() == (ai("b"), user("c"))
    assert await after.history() == (user("a"), ai("b"), user("c"))
    assert history.read_bytes().startswith(kept)


async def test_a_damaged_window_is_named_and_never_taken_for_empty(tmp_path: Path) -> None:
    store = JsonlChatMemoryStore(tmp_path)
    await store.update_messages("a", [user("x"), user("y")])
    path = tmp_path / "str.a.jsonl"
    for damage in (b'{"type":"USER","conte', b'{"type":"ALIEN"}', b"[1]"):
        path.write_bytes(path.read_bytes().splitlines()[0] + b"\n" + damage + b"\n")
        with pytest.raises(StoreFault, match=r"str\.a\.jsonl:2"):
            await store.get_messages("a")


async def test_a_torn_last_line_of_the_history_hurts_no_other_line(tmp_path: Path) -> None:
    store = JsonlChatMemoryStore(tmp_path)
    await store.append_history("a", HistoryEntry("add", (user("x"),)))
    with (tmp_path / "str.a.history.jsonl").open("ab") as file:
        file.write(b'{"op":"add","messa')
    await store.append_history("a", HistoryEntry("add", (user("y"),)))
    assert replay(await store.history("a")) == (user("x"), user("y"))


async def test_a_folder_that_cannot_be_written_is_an_outage_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = JsonlChatMemoryStore(tmp_path / "file" / "below")
    memory = MessageWindowChatMemory(max_messages=2, store=store)
    with pytest.raises(StoreUnavailable, match="below"):
        await memory.add(user("a"))


@pytest.mark.parametrize("kind", ["memory", "jsonl"])
async def test_who_asks_to_be_forgotten_is_forgotten(kind: str, tmp_path: Path) -> None:
    store = InMemoryChatMemoryStore() if kind == "memory" else JsonlChatMemoryStore(tmp_path, sync=False)
    memory = MessageWindowChatMemory(max_messages=2, id="ada", store=store)
    other = MessageWindowChatMemory(max_messages=2, id="bob", store=store)
    for each in (memory, other):
        await each.add(user("my secret"), ai("b"), user("c"))
    await memory.erase()
    await memory.erase()
    assert (await memory.messages(), await memory.history()) == ((), ())
    assert len(await other.history()) == 3


# -- ids ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tenant:
    name: str


@pytest.mark.parametrize("make", [InMemoryChatMemoryStore, None])
async def test_ids_that_only_look_alike_are_kept_apart(make: Any, tmp_path: Path) -> None:
    store = make() if make else JsonlChatMemoryStore(tmp_path, sync=False)
    ids = [
        1,
        "1",
        True,
        1.0,
        (1,),
        "(1,)",
        "ada",
        "Ada",
        "ADA",
        "ä",
        "a/b",
        "a%2fb",
        "..",
        "",
        " ",
        Tenant("1"),
        "x" * 300,
    ]
    ids += ["x" * 301, UUID(int=1), frozenset({1}), b"1", "\ud800"]
    for at, each in enumerate(ids):
        await store.update_messages(each, [user(str(at))])
    assert [(await store.get_messages(each))[0].content for each in ids] == [
        str(at) for at in range(len(ids))
    ]
    if not make:
        names = [file_name(each).lower() for each in ids]
        assert len(set(names)) == len(names) == len(list(tmp_path.iterdir()))


def test_an_id_without_lasting_text_is_refused_where_it_would_be_stored() -> None:
    with pytest.raises(BadRequest, match="no lasting text"):
        storage_id(object())
    with pytest.raises(BadRequest, match="hashable"):
        storage_id([])  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="None"):
        storage_id(None)


# -- JSON of messages --------------------------------------------------------------------------------------------------

texts = st.text(max_size=20)
parts = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, texts),
    st.builds(lambda url: {"type": "image_url", "image_url": {"url": url}}, texts),
    st.just({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}),
    st.just({"type": "video_url", "video_url": {"url": "x"}}),
    st.just({"type": "file", "file": {"filename": "a.pdf"}}),
)
any_message = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool", "developer", "critic"]),
    content=st.one_of(st.none(), texts, st.lists(parts, max_size=3).map(tuple)),
    id=st.none() | texts,
    name=st.none() | texts,
    tool_calls=st.lists(st.builds(ToolCall, texts, texts, texts), max_size=2).map(tuple),
    tool_call_id=st.none() | texts,
)


@settings(max_examples=100, deadline=None)
@given(any_message)
def test_l52_a_message_comes_back_equal_by_value(message: Message) -> None:
    assert from_json(to_json(message)) == message


def test_l52_messages_carry_a_type() -> None:
    roles = ["system", "user", "assistant", "tool", "critic"]
    assert [to_json(Message(role))["type"] for role in roles] == [
        "SYSTEM",
        "USER",
        "AI",
        "TOOL_RESULT",
        "CUSTOM",
    ]


@pytest.mark.parametrize(
    "value",
    [
        {"type": "ALIEN", "content": "x"},
        {"content": "x"},
        {"type": "USER", "content": "x", "mood": "good"},
        {"type": "USER", "content": [{"type": "hologram"}]},
        {"type": "USER", "content": ["text"]},
        {"type": "USER", "content": 3},
        {"type": "AI", "toolCalls": [{"id": "1"}]},
        {"type": "CUSTOM", "content": "x"},
        ["USER"],
        None,
    ],
)
def test_l52_unknown_json_is_refused(value: object) -> None:
    with pytest.raises(BadRequest):
        from_json(value)
