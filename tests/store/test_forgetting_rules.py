"""T30 to T43: what happens when a list is full."""

from __future__ import annotations

import asyncio

import pytest

from memagent.memory import Scope, ScopeKind, Source
from memagent.store import Applied, EditStatus, Limits, Refusal
from tests.store.desk import Desk, keys

ROOM = Limits(entries=3, forget=True)
NO_SEARCH = Limits(entries=3, forget=False)


async def fill(desk: Desk, *, source: Source = Source.AGENT, scope: Scope | None = None) -> None:
    """Three memories, dormant from day 7 on."""
    for axis, key in enumerate("abc", 1):
        await desk.save(key, axis=axis, hour=axis, source=source, scope=scope)
    for day in range(1, 8):
        await desk.chat(day, scopes=(scope or desk.scope,))


def status(applied: Applied) -> tuple[EditStatus, Refusal | None]:
    return applied.outcomes[0].status, applied.outcomes[0].refusal


def gone(applied: Applied) -> list[str]:
    return [memory.key for memory in applied.forgotten]


FULL = (EditStatus.REFUSED, Refusal.LIST_FULL)


async def test_t30_below_the_limit_nothing_is_forgotten(desk: Desk) -> None:
    await fill(desk)
    applied = await desk.save("new", day=8, limits=Limits(entries=4, forget=True))
    assert (status(applied)[0], gone(applied), applied.totals.entries) == (EditStatus.SET, [], 4)


async def test_t31_a_full_list_forgets_one_dormant_memory_and_saves_one(desk: Desk) -> None:
    await fill(desk)
    applied = await desk.save("new", day=8, limits=ROOM)
    assert (status(applied)[0], gone(applied)) == (EditStatus.SET, ["a"])
    assert await desk.keys() == {"b", "c", "new"}


async def test_t32_never_matched_goes_first_then_the_oldest_match(desk: Desk) -> None:
    await desk.save("matched early", axis=1, hour=1)
    await desk.save("matched late", axis=2, hour=2)
    await desk.save("never matched", axis=3, hour=3)
    await desk.chat(1, about=1)
    await desk.chat(2, about=2)
    await desk.unmatched(*range(3, 12))
    order = [gone(await desk.save(f"new {i}", axis=None, day=12, limits=ROOM)) for i in range(3)]
    assert order == [["never matched"], ["matched early"], ["matched late"]]


async def test_t32_ties_go_by_creation_then_by_key(desk: Desk) -> None:
    for key, hour in (("b", 2), ("a", 2), ("c", 1)):
        await desk.save(key, axis=1, hour=hour)
    await desk.unmatched(*range(1, 9))
    order = [gone(await desk.save(f"new {i}", axis=None, day=9, limits=ROOM)) for i in range(3)]
    assert order == [["c"], ["a"], ["b"]]


async def test_t33_global_memories_are_never_forgotten(desk: Desk) -> None:
    everywhere = Scope(ScopeKind.GLOBAL, "alice")
    await fill(desk, scope=everywhere)
    assert status(await desk.save("new", day=8, limits=ROOM, scope=everywhere)) == FULL
    assert await desk.keys(everywhere) == {"a", "b", "c"}


async def test_t33_what_the_user_wrote_is_never_forgotten(desk: Desk) -> None:
    await fill(desk, source=Source.USER)
    assert status(await desk.save("new", day=8, limits=ROOM)) == FULL


async def test_t34_an_import_is_not_protected_until_the_user_saves_it_once(desk: Desk) -> None:
    await fill(desk, source=Source.IMPORT)
    assert not (await desk.memory("a")).protected
    applied = await desk.save("a", day=8, source=Source.USER)
    assert status(applied)[0] is EditStatus.REFRESHED
    assert (await desk.memory("a")).protected
    assert gone(await desk.save("new", day=8, limits=ROOM)) == ["b"]


async def test_t35_protection_only_stops_forgetting(desk: Desk) -> None:
    await fill(desk, source=Source.USER)
    assert (await desk.memory("a")).dormant
    assert keys(await desk.chat(8, about=1)) == []
    assert keys(await desk.chat(8)) == ["a"]


async def test_t36_an_edit_of_the_model_neither_protects_nor_unprotects(desk: Desk) -> None:
    await desk.save("model's")
    await desk.save("user's", source=Source.USER)
    for key in ("model's", "user's"):
        await desk.save(key, value=f"{key} new words", day=1)
    assert not (await desk.memory("model's")).protected
    assert (await desk.memory("user's")).protected


async def test_t37_active_memories_are_never_forgotten(desk: Desk) -> None:
    for axis, key in enumerate("abc", 1):
        await desk.save(key, axis=axis)
    assert status(await desk.save("new", day=1, limits=ROOM)) == FULL
    assert await desk.keys() == {"a", "b", "c"}


async def test_t37_the_threshold_parts_who_may_go(desk: Desk) -> None:
    for axis, key in enumerate("abc", 1):
        await desk.save(key, axis=axis)
    await desk.unmatched(*range(1, 7))
    assert status(await desk.save("new", day=6, hour=20, limits=ROOM)) == FULL
    await desk.chat(7)
    assert gone(await desk.save("new", day=7, hour=20, limits=ROOM)) == ["a"]


async def test_t38_without_a_search_a_full_list_refuses_though_some_are_dormant(desk: Desk) -> None:
    await fill(desk)
    applied = await desk.save("new", day=8, limits=NO_SEARCH)
    assert (status(applied), gone(applied), await desk.keys()) == (FULL, [], {"a", "b", "c"})


async def test_t39_what_no_turn_stands_behind_refuses(desk: Desk) -> None:
    await fill(desk)
    for source in (Source.USER, Source.IMPORT):
        assert status(await desk.save("new", day=8, source=source, limits=NO_SEARCH)) == FULL


async def test_t40_the_answer_names_what_was_saved_and_what_was_forgotten_with_its_words(desk: Desk) -> None:
    await fill(desk)
    applied = await desk.save("new", day=8, limits=ROOM)
    assert applied.outcomes[0].key == "new"
    assert [(memory.key, memory.value) for memory in applied.forgotten] == [("a", "Words kept under a")]
    assert [change.op for change in await desk.store.history(desk.scope, limit=2)] == ["set", "forget"]


async def test_t41_a_save_that_is_refused_for_its_size_forgets_nobody(desk: Desk) -> None:
    await fill(desk)
    tight = Limits(entries=3, forget=True, tokens=16)
    assert status(await desk.save("new", day=8, tokens=2, limits=tight)) == (
        EditStatus.REFUSED,
        Refusal.WOULD_EXCEED,
    )
    assert await desk.keys() == {"a", "b", "c"}


async def test_t42_a_list_over_its_limit_forgets_down_to_it_or_refuses(desk: Desk) -> None:
    for axis in range(1, 6):
        await desk.save(f"m{axis}", axis=axis, hour=axis)
    await desk.unmatched(*range(1, 8))
    applied = await desk.save("new", day=8, axis=6, limits=ROOM)
    assert gone(applied) == ["m1", "m2", "m3"]
    assert applied.totals.entries == 3


async def test_t42_it_refuses_when_forgetting_every_dormant_one_is_not_enough(desk: Desk) -> None:
    await desk.save("dormant", axis=1)
    await desk.unmatched(*range(1, 8))
    for axis in range(2, 6):
        await desk.save(f"m{axis}", axis=axis, day=8)
    assert status(await desk.save("new", day=8, limits=ROOM)) == FULL
    assert "dormant" in await desk.keys()


async def test_t42_each_partition_has_its_own_list(desk: Desk) -> None:
    partition = Scope(ScopeKind.USER, "alice", "helper agent")
    await fill(desk)
    assert status(await desk.save("new", scope=partition, limits=ROOM))[0] is EditStatus.SET


async def test_t43_counting_and_writing_are_one_step_so_no_count_can_fail_alone(desk: Desk) -> None:
    """Our equivalent of failing closed: many writers at the limit, none passes it."""
    limits = Limits(entries=10)
    await asyncio.gather(*(desk.save(f"k{i}", axis=None, limits=limits) for i in range(25)))
    assert len(await desk.keys()) == 10


@pytest.mark.parametrize("edit_of", ["a", "b"])
async def test_rewriting_a_key_needs_no_room(desk: Desk, edit_of: str) -> None:
    await fill(desk)
    applied = await desk.save(edit_of, value="other words", day=8, limits=ROOM)
    assert (status(applied)[0], gone(applied)) == (EditStatus.SET, [])


async def test_forgetting_twice_takes_two_different_memories(desk: Desk) -> None:
    await fill(desk)
    assert gone(await desk.save("new", day=8, axis=4, limits=ROOM)) == ["a"]
    assert gone(await desk.save("newer", day=8, axis=5, limits=ROOM)) == ["b"]
