"""T44 to T49: decay switched off, no embedder, another embedder, other words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memagent.memory import Source
from memagent.store import EditStatus, Limits, Refusal
from memagent.store.redis import RedisStore
from tests.store.desk import DIMENSIONS, Desk, at, direction, keys, used

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

import pytest


@pytest.fixture
async def moved(desk: Desk, redis_url: str) -> AsyncIterator[Desk]:
    """The same memories, seen by a process with another embedder of other dimensions."""
    opened = await RedisStore.open(
        redis_url, prefix=desk.store.prefix, embedder_id="another", dimensions=DIMENSIONS // 2
    )
    yield Desk(opened, desk.scope)
    await opened.close()


async def reembed(desk: Desk, *keys_wanted: str, day: int) -> None:
    for memory in await desk.store.unsearched(desk.scope, "another"):
        if memory.key in keys_wanted:
            vector = direction(int(memory.key[1:]))[: DIMENSIONS // 2]
            assert await desk.store.attach_vector(
                memory, vector=vector, embedder="another", terms=(), now=at(day)
            )


async def test_t44_switched_off_everything_is_active_and_a_full_list_refuses(desk: Desk) -> None:
    await desk.save("cat", axis=1)
    await desk.unmatched(*range(1, 10))
    recalled = await desk.chat(10, about=1, decay=False)
    assert keys(recalled) == ["cat"]
    assert not recalled.active[0].dormant
    assert recalled.searched, "searching goes on"
    assert used(recalled) == ["cat"]
    applied = await desk.save("new", day=10, limits=Limits(entries=1, forget=False))
    assert applied.outcomes[0].refusal is Refusal.LIST_FULL


async def test_t45_without_an_embedder_everything_is_active_and_nothing_ages(desk: Desk) -> None:
    await desk.save("cat", axis=1)
    await desk.unmatched(*range(1, 10))
    recalled = await desk.chat(10, about=None, embedder="")
    assert (keys(recalled), recalled.searched) == (["cat"], False)
    assert await desk.unused("cat") == 9


async def test_t45_a_store_without_an_embedder_needs_no_index(redis_url: str, desk: Desk) -> None:
    plain = await RedisStore.open(redis_url, prefix=f"{desk.store.prefix}-plain")
    other = Desk(plain)
    await other.save("cat", axis=None)
    recalled = await other.chat(5, about=None, embedder="")
    assert (keys(recalled), recalled.searched) == (["cat"], False)
    await plain.erase(other.scope)
    await plain.close()


async def test_t46_off_freezes_the_counters_and_on_goes_on_from_there(desk: Desk) -> None:
    await desk.save("a", axis=1)
    await desk.save("b", axis=2)
    await desk.chat(1, about=1)
    await desk.unmatched(2, 3)
    before = [(await desk.memory(key)).last_matched_at for key in "ab"]
    for day in range(4, 30):
        await desk.chat(day, about=2, decay=False)
    assert (await desk.unused("a"), await desk.unused("b")) == (2, 3)
    assert [(await desk.memory(key)).last_matched_at for key in "ab"] == before
    await desk.chat(30)
    assert (await desk.unused("a"), await desk.unused("b")) == (3, 4)


async def test_t47_no_engine_is_told_apart_from_no_embedder(desk: Desk) -> None:
    """Without the engine, memagent opens a store without an embedder: T45. With one, opening fails and says why
    (see test_store_faults)."""
    assert desk.store.index is not None


async def test_t48_another_embedder_never_compares_never_ages_never_brings_back(
    desk: Desk, moved: Desk
) -> None:
    await desk.save("m1", axis=1)
    await desk.unmatched(1, 2)
    recalled = await moved.chat(3, vector=direction(1)[: DIMENSIONS // 2], embedder="another")
    assert (keys(recalled), recalled.hits, recalled.searched) == (["m1"], (), True)
    assert await desk.unused("m1") == 2
    assert not (await moved.memory("m1")).searched
    assert (await desk.memory("m1")).searched


async def test_t48_embedding_again_keeps_the_unused_days(desk: Desk, moved: Desk) -> None:
    await desk.save("m1", axis=1)
    await desk.unmatched(1, 2, 3)
    await reembed(moved, "m1", day=3)
    assert await moved.unused("m1") == 3
    await moved.chat(3, vector=direction(2)[: DIMENSIONS // 2], embedder="another")
    assert await moved.unused("m1") == 3, "day 3 was counted already"
    await moved.chat(4, vector=direction(2)[: DIMENSIONS // 2], embedder="another")
    assert await moved.unused("m1") == 4
    await moved.chat(4, vector=direction(1)[: DIMENSIONS // 2], embedder="another")
    assert await moved.unused("m1") == 0


async def test_t48_a_memory_that_is_dormant_stays_so_until_it_is_embedded_again(
    desk: Desk, moved: Desk
) -> None:
    await desk.save("m1", axis=1)
    await desk.unmatched(*range(1, 9))
    matching = direction(1)[: DIMENSIONS // 2]
    assert keys(await moved.chat(9, vector=matching, embedder="another")) == []
    await reembed(moved, "m1", day=9)
    assert used(await moved.chat(9, vector=matching, embedder="another")) == ["m1"]


async def test_t48_the_old_embedder_goes_on_serving_while_the_new_one_is_filled(
    desk: Desk, moved: Desk
) -> None:
    for axis in (1, 2):
        await desk.save(f"m{axis}", axis=axis)
    await reembed(moved, "m1", day=1)
    assert used(await desk.chat(1, about=2)) == ["m2"]
    assert sorted(keys(await desk.chat(1))) == ["m1", "m2"]


async def test_t49_new_words_without_a_vector_lose_the_old_one(desk: Desk) -> None:
    await desk.save("cat", axis=1)
    await desk.save("cat", value="Mochi moved out", axis=None, day=1)
    assert (await desk.chat(1, about=1)).hits == ()
    assert not (await desk.memory("cat")).searched
    assert [memory.value for memory in await desk.store.unsearched(desk.scope, "test-embedder")] == [
        "Mochi moved out"
    ]


async def test_t49_a_vector_of_words_that_changed_meanwhile_is_not_attached(desk: Desk) -> None:
    await desk.save("cat", axis=None)
    (waiting,) = await desk.store.unsearched(None, "test-embedder")
    await desk.save("cat", value="Mochi moved out", axis=None, hour=11)
    attach = {"vector": direction(1), "embedder": "test-embedder", "terms": ("mochi",), "now": at(0)}
    assert not await desk.store.attach_vector(waiting, **attach)
    (waiting,) = await desk.store.unsearched(None, "test-embedder")
    assert await desk.store.attach_vector(waiting, **attach)
    assert await desk.store.unsearched(None, "test-embedder") == ()
    assert used(await desk.chat(1, about=1)) == ["cat"]


async def test_t49_a_rename_that_keeps_the_words_keeps_their_vector(desk: Desk) -> None:
    await desk.save("cat", axis=1)
    await desk.unmatched(1, 2)
    value = (await desk.memory("cat")).value
    applied = await desk.save("pet", value=value, axis=None, day=3, rename_from="cat", source=Source.USER)
    assert applied.outcomes[0].status is EditStatus.SET
    assert (await desk.keys(), await desk.unused("pet")) == ({"pet"}, 2)
    assert used(await desk.chat(3, about=1)) == ["pet"]


async def test_t48_a_day_that_counted_for_the_old_embedder_does_not_count_again(
    desk: Desk, moved: Desk
) -> None:
    half = DIMENSIONS // 2
    await desk.save("m1", axis=1)
    await desk.save("m2", axis=2)
    await desk.unmatched(1, 2)
    await reembed(moved, "m1", day=2)
    await desk.unmatched(3, 4, 5)
    assert (await moved.unused("m1"), await desk.unused("m2")) == (2, 5)
    await reembed(moved, "m2", day=5)
    await moved.chat(5, vector=direction(3)[:half], embedder="another")
    assert (await moved.unused("m1"), await moved.unused("m2")) == (3, 5)
    await moved.chat(6, vector=direction(3)[:half], embedder="another")
    assert (await moved.unused("m1"), await moved.unused("m2")) == (4, 6)


async def test_a_rename_keeps_the_last_match(desk: Desk) -> None:
    await desk.save("cat", axis=1)
    await desk.chat(1, about=1)
    await desk.save("pet", value="other words", axis=2, day=2, rename_from="cat")
    assert (await desk.memory("pet")).last_matched_at == at(1)
