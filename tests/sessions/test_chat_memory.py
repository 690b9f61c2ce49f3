"""Windows: L01 to L36 and V45 to V55 of spec/seeds.md §4 and §7."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memagent.errors import BadRequest, NotFound
from memagent.memory import Message, ToolCall
from memagent.sessions.chat_memory import MessageWindowChatMemory, TokenWindowChatMemory
from memagent.sessions.chat_stores import InMemoryChatMemoryStore
from memagent.sessions.estimator import PART_TOKENS, O200kEstimator
from tests.sessions.chat_cases import (
    CountingStore,
    ThreeMethodStore,
    Weights,
    ai,
    call,
    result,
    system,
    user,
    weighed_call,
)


def messages(limit: Any, **options: Any) -> MessageWindowChatMemory:
    return MessageWindowChatMemory(max_messages=limit, **options)


def tokens(limit: Any, **options: Any) -> TokenWindowChatMemory:
    return TokenWindowChatMemory(max_tokens=limit, estimator=options.pop("estimator", Weights()), **options)


async def shown(memory: Any, *added: Message) -> list[Message]:
    await memory.add(*added)
    return list(await memory.messages())


# -- construction ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [messages, tokens])
def test_l01_the_id_is_default_unless_given(make: Any) -> None:
    assert make(5).id == "default"
    assert make(5, id=("ada", 7)).id == ("ada", 7)


@pytest.mark.parametrize("make", [messages, tokens])
@pytest.mark.parametrize("limit", [None, 0, -1, True, 2.5, "3"])
def test_l02_a_limit_must_be_a_whole_number_over_0(make: Any, limit: Any) -> None:
    with pytest.raises(BadRequest, match="whole number over 0"):
        make(limit)
    assert make(1)


def test_l02_an_id_of_none_is_refused() -> None:
    with pytest.raises(BadRequest, match="needs an id"):
        messages(1, id=None)


def test_l02_a_limit_cannot_be_left_out() -> None:
    with pytest.raises(TypeError):
        MessageWindowChatMemory()  # type: ignore[call-arg]


# -- message window ----------------------------------------------------------------------------------------------------


async def test_l03_v45_two_of_three_messages_stay() -> None:
    memory = messages(2)
    assert await shown(memory, user("a"), ai("b"), user("c")) == [ai("b"), user("c")]


async def test_l04_the_oldest_goes_first_one_at_a_time() -> None:
    memory = messages(3)
    assert await shown(memory, user("1"), ai("2"), user("3")) == [user("1"), ai("2"), user("3")]
    assert await shown(memory, ai("4")) == [ai("2"), user("3"), ai("4")]
    assert await shown(memory, user("5")) == [user("3"), ai("4"), user("5")]


async def test_l05_v46_a_system_message_at_the_head_stays() -> None:
    memory = messages(3)
    found = await shown(memory, system(), user("u1"), ai("a1"), user("u2"), ai("a2"))
    assert found == [system(), user("u2"), ai("a2")]


async def test_l06_a_system_message_that_reaches_the_head_is_safe_there() -> None:
    memory = messages(2)
    assert await shown(memory, user("a"), system(), ai("b")) == [system(), ai("b")]
    assert await shown(memory, user("c")) == [system(), user("c")]


@pytest.mark.parametrize("make", [messages, tokens])
async def test_l07_the_same_system_message_again_changes_nothing(make: Any) -> None:
    store = CountingStore()
    memory = make(100, store=store)
    await memory.add(system("10"), user("11"))
    before = dict(store.hits)
    await memory.add(system("10"))
    assert store.hits == {**before, "get": before["get"] + 1}
    assert await memory.messages() == (system("10"), user("11"))


async def test_l07_the_same_system_text_under_another_message_id_is_the_same() -> None:
    memory = messages(5)
    assert await shown(memory, Message("system", "S", id="1"), Message("system", "S", id="2")) == [
        Message("system", "S", id="1")
    ]


async def test_l08_v47_another_system_message_takes_the_place_at_the_end() -> None:
    found = await shown(messages(5), system("S1"), user("u"), ai("a"), system("S2"))
    assert found == [user("u"), ai("a"), system("S2")]


async def test_l09_v47_system_first_puts_it_at_the_head_also_when_late() -> None:
    assert await shown(messages(5, system_first=True), system("S1"), user("u"), ai("a"), system("S2")) == [
        system("S2"),
        user("u"),
        ai("a"),
    ]
    assert await shown(messages(5, system_first=True), user("u"), system()) == [system(), user("u")]
    assert await shown(messages(5), user("u"), system()) == [user("u"), system()]
    assert await shown(messages(2, system_first=True), user("u"), ai("a"), system()) == [system(), ai("a")]


async def test_l10_a_call_takes_its_results_along() -> None:
    found = await shown(messages(3), user("u"), call("1"), result("1"), ai("a"))
    assert found == [call("1"), result("1"), ai("a")]
    assert await shown(messages(3), user("u"), call("1"), result("1"), ai("a"), user("v")) == [
        ai("a"),
        user("v"),
    ]


async def test_l10_a_late_result_goes_with_its_call() -> None:
    found = await shown(messages(4), call("1", "2"), result("1"), user("hurry"), result("2"), ai("a"))
    assert found == [user("hurry"), ai("a")]


async def test_l11_v48_a_system_message_and_room_for_two_leaves_the_system_message() -> None:
    memory = messages(2)
    assert await shown(memory, system(), user("u"), call("1")) == [system(), call("1")]
    assert await shown(memory, result("1")) == [system()]


async def test_l12_v49_the_answer_after_two_parallel_calls_stays_alone() -> None:
    memory = messages(3)
    found = await shown(memory, user("u"), call("1", "2"), result("1"), result("2"))
    assert found == [call("1", "2"), result("1"), result("2")]
    assert await shown(memory, ai("a")) == [ai("a")]


async def test_l13_what_shrinks_below_the_limit_is_not_refilled() -> None:
    memory = messages(4)
    found = await shown(memory, user("u"), call("1", "2"), result("1"), result("2"), ai("a"))
    assert found == [call("1", "2"), result("1"), result("2"), ai("a")]
    assert await shown(memory, user("v")) == [ai("a"), user("v")]


async def test_l14_v50_four_parallel_results_are_never_torn_from_their_call() -> None:
    memory = messages(3)
    await memory.add(user("u"), call("1", "2", "3", "4"))
    for done, each in enumerate("1234", start=1):
        found = await shown(memory, result(each))
        pair = [call("1", "2", "3", "4"), *(result(str(n)) for n in range(1, done + 1))]
        assert found == ([user("u"), *pair] if done == 1 else pair)
        assert memory.fit(found) == tuple(found)
    assert await shown(memory, ai("a")) == [ai("a")]


async def test_l14_a_call_nobody_will_answer_does_not_hold_the_window_for_ever() -> None:
    memory = messages(2)
    assert await shown(memory, call("1"), user("never mind"), ai("ok")) == [user("never mind"), ai("ok")]


async def test_l15_turn_aligned_eviction_opens_on_a_user_message() -> None:
    turns = (user("u1"), ai("a1"), user("u2"), ai("a2"))
    assert await shown(messages(3), *turns) == [ai("a1"), user("u2"), ai("a2")]
    assert await shown(messages(3, turn_aligned=True), *turns) == [user("u2"), ai("a2")]
    assert await shown(messages(4, turn_aligned=True), system(), *turns) == [system(), user("u2"), ai("a2")]
    assert await shown(messages(4, turn_aligned=True), ai("hello"), user("u")) == [ai("hello"), user("u")]


async def test_l16_a_result_set_without_its_call_is_left_as_it_is() -> None:
    memory = messages(3)
    await memory.set([result("gone"), user("u")])
    assert await memory.messages() == (result("gone"), user("u"))


async def test_a_user_message_that_nobody_answered_stays_beside_the_system_message() -> None:
    assert await shown(messages(1), system(), user("u")) == [system(), user("u")]


# -- token window ------------------------------------------------------------------------------------------------------


async def test_l17_the_rules_of_system_and_tools_hold_for_tokens_too() -> None:
    assert await shown(tokens(100), system("10 a"), user("11"), system("10 b")) == [
        user("11"),
        system("10 b"),
    ]
    assert await shown(tokens(100, system_first=True), user("11"), system("10")) == [system("10"), user("11")]
    memory = tokens(39)
    assert await shown(memory, user("12"), weighed_call(24, "1")) == [user("12"), weighed_call(24, "1")]
    assert await shown(memory, result("1", "5")) == [weighed_call(24, "1"), result("1", "5")]
    assert await shown(memory, ai("11")) == [ai("11")]


async def test_l17_a_pair_of_calls_goes_with_both_results() -> None:
    memory = tokens(82)
    await memory.add(user("17"), weighed_call(57, "1", "2"))
    assert await shown(memory, result("1", "5")) == [user("17"), weighed_call(57, "1", "2"), result("1", "5")]
    assert len(await shown(memory, result("2", "5"))) == 3
    assert await shown(memory, ai("20")) == [ai("20")]


async def test_l17_room_for_36_leaves_the_system_message_only() -> None:
    memory = tokens(36)
    found = await shown(memory, system("9"), user("12"), weighed_call(24, "1"), result("1", "5"))
    assert found == [system("9")]


async def test_l18_messages_are_whole_or_gone() -> None:
    memory = tokens(24)
    found = await shown(memory, user("10 first"), ai("10 second"), user("10 third"))
    assert found == [ai("10 second"), user("10 third")]


async def test_l19_the_whole_list_is_estimated_once_and_what_goes_takes_its_own_weight() -> None:
    estimator = Weights(constant=3)
    memory = tokens(13, estimator=estimator)
    kept = memory.fit([user("10 a"), ai("10 b"), user("10 c"), ai("10 d")])
    assert (kept, estimator.requests) == ((ai("10 d"),), 1)


async def test_l20_v51_landing_exactly_on_the_limit_fits() -> None:
    four = [user("10 a"), ai("10 b"), user("10 c"), ai("10 d")]
    assert await shown(tokens(33), *four) == four[1:]
    assert await shown(tokens(32), *four) == four[2:]


async def test_l21_v53_a_system_message_over_the_limit_stays_and_nothing_fails() -> None:
    memory = tokens(2)
    assert await shown(memory, system("10")) == [system("10")]
    assert await shown(memory, user("5"), ai("5")) == [system("10")]


async def test_l22_v52_the_users_newest_message_is_never_gone_in_silence() -> None:
    memory = tokens(20)
    assert await shown(memory, user("100")) == [user("100")]
    assert await shown(memory, ai("5")) == [ai("5")]


async def test_l23_an_image_counts_and_does_not_fail() -> None:
    picture = Message(
        "user", ({"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:"}})
    )
    estimator = O200kEstimator()
    assert PART_TOKENS < estimator.count_message(picture) < PART_TOKENS + 10
    memory = TokenWindowChatMemory(max_tokens=PART_TOKENS)
    assert await shown(memory, ai("before"), picture) == [picture]


def test_the_built_in_estimator_counts_o200k_and_the_frame_of_messages() -> None:
    estimator = O200kEstimator()
    assert estimator.count_text("hello world") == 2
    assert estimator.count_message(user("hello world")) == 6
    assert estimator.count_messages([user("hello world"), ai("hello world")]) == 15
    called = Message("assistant", None, tool_calls=(ToolCall("1", "hello", "world"),))
    assert estimator.count_message(called) == 6


# -- dynamic limits ----------------------------------------------------------------------------------------------------


async def test_l24_a_limit_may_depend_on_the_id() -> None:
    def limit(memory_id: Any) -> int:
        return {"short": 2, "long": 4}.get(memory_id, 3)

    found = {}
    for each in ("short", "long", "other"):
        memory = messages(limit, id=each)
        found[each] = len(await shown(memory, *(user(str(n)) for n in range(6))))
    assert found == {"short": 2, "long": 4, "other": 3}


async def test_l25_v54_a_raised_limit_keeps_more_and_a_lowered_one_trims_the_next_read() -> None:
    limit = 3
    memory = messages(lambda _: limit)
    assert await shown(memory, *map(user, "abcd")) == [*map(user, "bcd")]
    limit = 5
    assert await shown(memory, user("e")) == [*map(user, "bcde")]
    limit = 2
    assert list(await memory.messages()) == [*map(user, "de")]


async def test_l26_trimming_on_a_read_is_not_written_back() -> None:
    limit = 3
    store = InMemoryChatMemoryStore()
    memory = messages(lambda _: limit, store=store)
    await memory.add(*map(user, "abc"))
    limit = 1
    assert list(await memory.messages()) == [user("c")]
    assert len(await store.get_messages("default")) == 3
    limit = 2
    await memory.add(user("d"))
    assert list(await store.get_messages("default")) == [user("c"), user("d")]


@pytest.mark.parametrize("bad", [0, -1, None])
@pytest.mark.parametrize("make", [messages, tokens])
async def test_l27_a_limit_that_turns_bad_raises_on_read_and_on_write(make: Any, bad: Any) -> None:
    limit: Any = 30
    memory = make(lambda _: limit)
    await memory.add(user("5"))
    limit = bad
    with pytest.raises(BadRequest):
        await memory.messages()
    with pytest.raises(BadRequest):
        await memory.add(user("5"))
    limit = 30
    assert await memory.messages() == (user("5"),)


# -- set, add many, clear ----------------------------------------------------------------------------------------------


async def test_l28_adding_nothing_does_nothing() -> None:
    store = CountingStore()
    memory = messages(3, store=store)
    await memory.add()
    await memory.add(None)
    await memory.add([])
    assert store.hits == {"get": 0, "update": 0, "delete": 0}


@pytest.mark.parametrize("nothing", [None, [], ()])
@pytest.mark.parametrize("make", [messages, tokens])
async def test_l29_setting_nothing_raises_always(make: Any, nothing: Any) -> None:
    memory = make(30)
    await memory.add(user("5"))
    with pytest.raises(BadRequest, match="clear"):
        await memory.set(nothing)
    assert await memory.messages() == (user("5"),)


async def test_l30_set_trims_and_leaves_the_callers_list_alone() -> None:
    mine = [user("a"), ai("b"), user("c")]
    memory = messages(2)
    await memory.set(mine)
    assert mine == [user("a"), ai("b"), user("c")]
    mine.clear()
    assert await memory.messages() == (ai("b"), user("c"))
    await memory.add(ai("d"))
    assert mine == []


async def test_l31_set_leaves_two_system_messages_and_protects_the_first() -> None:
    memory = messages(3)
    await memory.set([system("S1"), system("S2"), user("u")])
    assert await memory.messages() == (system("S1"), system("S2"), user("u"))
    assert await shown(memory, ai("a")) == [system("S1"), user("u"), ai("a")]


async def test_l32_clearing_twice_is_clearing_once() -> None:
    memory = messages(3)
    await memory.add(user("a"))
    await memory.clear()
    await memory.clear()
    assert await memory.messages() == ()


# -- persistence contract ----------------------------------------------------------------------------------------------


async def test_l33_v55_the_store_is_asked_as_often_as_promised() -> None:
    store = CountingStore()
    memory = messages(10, store=store)
    await memory.add(user("a"), ai("b"), user("c"))
    assert store.hits == {"get": 3, "update": 3, "delete": 0}
    await memory.messages()
    assert store.hits == {"get": 4, "update": 3, "delete": 0}
    await memory.set([user("d")])
    assert store.hits == {"get": 4, "update": 4, "delete": 0}
    await memory.clear()
    assert store.hits == {"get": 4, "update": 4, "delete": 1}
    await memory.add(system())
    before = dict(store.hits)
    await memory.add(system())
    assert store.hits == {**before, "get": before["get"] + 1}


async def test_l34_what_left_the_window_is_in_the_history() -> None:
    memory = messages(2)
    await memory.add(user("a"), ai("b"), user("c"))
    await memory.set([user("summary"), user("c")])
    await memory.clear()
    await memory.add(user("a"))
    assert await memory.messages() == (user("a"),)
    assert await memory.history() == (user("a"), ai("b"), user("c"), user("summary"), user("a"))


async def test_l34_a_store_of_three_methods_has_a_lock_and_says_that_it_keeps_no_history() -> None:
    memory = messages(2, store=ThreeMethodStore())
    assert await shown(memory, user("a"), ai("b"), user("c")) == [ai("b"), user("c")]
    with pytest.raises(NotFound, match="keeps no history"):
        await memory.history()


async def test_l36_a_change_of_the_store_from_outside_shows() -> None:
    store = InMemoryChatMemoryStore()
    memory = messages(5, store=store)
    await memory.add(user("a"))
    await store.update_messages("default", [user("edited")])
    assert await memory.messages() == (user("edited"),)
    await memory.add(ai("b"))
    assert await memory.messages() == (user("edited"), ai("b"))


# -- for any chat ------------------------------------------------------------------------------------------------------


@st.composite
def chats(draw: st.DrawFn) -> list[Message]:
    """Well-formed chats: turns of a user message, rounds of up to 4 parallel calls with all results, an answer."""
    chat: list[Message] = [system()] if draw(st.booleans()) else []
    for turn in range(draw(st.integers(1, 4))):
        chat.append(user(f"{turn} xin chào"))
        for round_ in range(draw(st.integers(0, 2))):
            ids = [f"{turn}.{round_}.{n}" for n in range(draw(st.integers(1, 4)))]
            chat += [call(*ids), *map(result, ids)]
        chat.append(ai(f"{turn} größer"))
    return chat


@settings(max_examples=60, deadline=None)
@given(chats(), st.integers(1, 8), st.booleans())
async def test_no_window_ever_holds_a_result_without_its_call_or_half_the_results(
    chat: list[Message],
    limit: int,
    aligned: bool,
) -> None:
    memory = messages(limit, turn_aligned=aligned)
    for position, message in enumerate(chat):
        await memory.add(message)
        window = await memory.messages()
        calls = {each.id for called in window for each in called.tool_calls}
        results = {each.tool_call_id for each in window if each.role == "tool"}
        came = {each.tool_call_id for each in chat[: position + 1] if each.role == "tool"}
        assert results == calls & came
        assert list(window) == [each for each in chat[: position + 1] if each in window]
        assert window
    assert await memory.history() == tuple(chat)
