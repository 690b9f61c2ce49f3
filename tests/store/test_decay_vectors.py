"""V01 to V16: the worked examples of spec/seeds.md §7."""

from __future__ import annotations

import asyncio

from memagent.memory import Scope, ScopeKind, Source
from memagent.store import Limits, Refusal
from memagent.store.redis import RedisStore
from tests.store.desk import DIMENSIONS, Desk, at, direction, keys, near, used


async def lived_until(desk: Desk, rule: int) -> None:
    """The life of one memory up to and with V01, V02, ... of the story they tell together."""
    await desk.save("cat", axis=1, hour=10)
    for hour in (11, 12):
        await desk.chat(0, hour=hour)
    if rule >= 2:
        for day in range(1, 7):
            for hour in (9, 12, 18):
                await desk.chat(day, hour=hour)
    if rule >= 4:
        await desk.chat(14)
    if rule >= 5:
        await desk.chat(15, vector=near(0.62, 1)[[1, 0, *range(2, DIMENSIONS)]])


async def test_v01_two_replies_on_the_day_of_saving_leave_zero(desk: Desk) -> None:
    await lived_until(desk, 1)
    assert await desk.unused("cat") == 0


async def test_v02_six_further_days_leave_six_and_active(desk: Desk) -> None:
    await lived_until(desk, 2)
    assert await desk.unused("cat") == 6
    assert keys(await desk.chat(6, hour=20)) == ["cat"]


async def test_v03_seven_quiet_days_change_nothing(desk: Desk) -> None:
    await lived_until(desk, 2)
    assert await desk.unused("cat") == 6


async def test_v04_the_seventh_count_leaves_the_prefix_in_the_next_reply(desk: Desk) -> None:
    await lived_until(desk, 2)
    assert keys(await desk.chat(14)) == ["cat"]
    assert await desk.unused("cat") == 7
    assert keys(await desk.chat(14, hour=13)) == []


async def test_v05_a_match_at_062_brings_it_back_once(desk: Desk) -> None:
    await lived_until(desk, 4)
    message = near(0.62, 1)[[1, 0, *range(2, DIMENSIONS)]]
    back = await desk.chat(15, vector=message)
    assert (keys(back), used(back)) == ([], ["cat"])
    assert abs(back.hits[0].parts["vector"] - 0.62) < 0.002
    assert await desk.unused("cat") == 0
    assert keys(await desk.chat(15, hour=13)) == ["cat"]


async def test_v06_unrelated_replies_after_a_match_count_from_the_next_day(desk: Desk) -> None:
    await lived_until(desk, 5)
    for hour in (14, 15):
        await desk.chat(15, hour=hour)
    assert await desk.unused("cat") == 0
    await desk.chat(16)
    assert await desk.unused("cat") == 1


async def test_v07_the_best_three_over_server_and_personal_memories(desk: Desk, team: Scope) -> None:
    for axis, (scope, cosine) in enumerate(
        [(team, 0.81), (team, 0.77), (team, 0.52), (desk.scope, 0.79), (desk.scope, 0.60)], 1
    ):
        await desk.save(f"{cosine}", vector=near(cosine, axis), scope=scope)
    recalled = await desk.chat(1, about=0, scopes=(team, desk.scope))
    assert used(recalled) == ["0.81", "0.79", "0.77"]
    unused = {
        key: await desk.unused(key, scope)
        for scope, key in [
            (team, "0.81"),
            (team, "0.77"),
            (team, "0.52"),
            (desk.scope, "0.79"),
            (desk.scope, "0.6"),
        ]
    }
    assert unused == {"0.81": 0, "0.77": 0, "0.52": 1, "0.79": 0, "0.6": 1}


async def test_v08_fifty_failed_searches_on_ten_days_change_nothing(desk: Desk) -> None:
    await desk.save("active", axis=1)
    await desk.save("dormant", axis=2)
    for day in range(1, 8):
        await desk.chat(day, about=1)
    before = await desk.chat(7, about=1)
    for day in range(8, 18):
        for hour in range(5):
            failed = await desk.chat(day, hour=hour, about=None)
            assert (failed.active, failed.etag) == (before.active, before.etag)
    assert (await desk.unused("active"), await desk.unused("dormant")) == (0, 7)


async def test_v09_midnight_parts_two_counts_and_one_date_is_one(desk: Desk) -> None:
    await desk.save("cat")
    await desk.chat(1, hour=23 + 59.5 / 60)
    await desk.chat(2, hour=0.5 / 60)
    assert await desk.unused("cat") == 2
    await desk.chat(3, hour=10 / 60)
    await desk.chat(3, hour=23 + 50 / 60)
    assert await desk.unused("cat") == 3


async def test_v10_an_absent_owner_is_not_aged_by_the_others(desk: Desk, team: Scope) -> None:
    await desk.save("own")
    await desk.save("shared", scope=team)
    for day in range(1, 31):
        await desk.chat(day, scopes=(team,))
    assert (await desk.unused("own"), await desk.unused("shared", team)) == (0, 30)


async def test_v11_two_saves_into_a_full_list_forget_a_then_c(desk: Desk) -> None:
    room = Limits(entries=3, forget=True)
    await desk.save("B", axis=2, hour=1)
    await desk.save("C", axis=3, hour=2)
    await desk.chat(1, about=3)
    await desk.chat(120, about=2)
    await desk.save("A", axis=1, day=121)
    await desk.unmatched(*range(122, 130))
    first = await desk.save("first", axis=4, day=130, limits=room)
    second = await desk.save("second", axis=5, day=130, limits=room)
    assert [[memory.key for memory in applied.forgotten] for applied in (first, second)] == [["A"], ["C"]]


async def test_v12_full_of_protected_and_global_ones_it_refuses(desk: Desk) -> None:
    everywhere = Scope(ScopeKind.GLOBAL, "alice")
    room = Limits(entries=2, forget=True)
    for scope, source in ((desk.scope, Source.USER), (everywhere, Source.AGENT)):
        for axis in (1, 2):
            await desk.save(f"m{axis}", axis=axis, scope=scope, source=source)
        for day in range(1, 9):
            await desk.chat(day, scopes=(scope,))
        applied = await desk.save("new", day=9, scope=scope, limits=room)
        assert applied.outcomes[0].refusal is Refusal.LIST_FULL
        assert applied.totals.entries == 2


async def test_v13_full_with_dormant_ones_but_no_search_it_refuses(desk: Desk) -> None:
    await desk.save("cat")
    await desk.unmatched(*range(1, 9))
    applied = await desk.save("new", day=9, limits=Limits(entries=1, forget=False))
    assert (applied.outcomes[0].refusal, await desk.keys()) == (Refusal.LIST_FULL, {"cat"})


async def test_v14_the_switch_shows_everything_and_hides_it_again(desk: Desk) -> None:
    await desk.save("cat")
    await desk.unmatched(*range(1, 10))
    assert await desk.unused("cat") == 9
    assert keys(await desk.chat(10, decay=False)) == ["cat"]
    assert keys(await desk.chat(10)) == []


async def test_v15_parallel_saves_at_ninety_nine_never_make_a_hundred_and_one(desk: Desk) -> None:
    limits = Limits(entries=100, forget=True)
    for i in range(99):
        await desk.save(f"old {i}", axis=None)
    outcomes = await asyncio.gather(*(desk.save(f"new {i}", axis=None, limits=limits) for i in range(8)))
    refusals = [applied.outcomes[0].refusal for applied in outcomes]
    assert (refusals.count(None), refusals.count(Refusal.LIST_FULL)) == (1, 7)
    assert len(await desk.keys()) == 100


async def test_v16_only_what_is_embedded_again_ages_and_comes_back(desk: Desk, redis_url: str) -> None:
    for i in range(100):
        await desk.save(f"m{i:02}", axis=1, value=f"value number {i}", limits=Limits(entries=None))
    half = DIMENSIONS // 2
    store = await RedisStore.open(redis_url, prefix=desk.store.prefix, embedder_id="another", dimensions=half)
    moved = Desk(store)
    waiting = await store.unsearched(desk.scope, "another", limit=1000)
    assert len(waiting) == 100
    for memory in waiting[:40]:
        assert await store.attach_vector(
            memory, vector=direction(1)[:half], embedder="another", terms=(), now=at(1)
        )
    recalled = await moved.chat(2, vector=direction(1)[:half], embedder="another", used=2, hits=100)
    assert {hit.memory.key for hit in recalled.hits} == {memory.key for memory in waiting[:40]}
    unused = [memory.unused_days for memory in await store.list(desk.scope)]
    assert (unused.count(0), unused.count(1)) == (62, 38)
    await store.close()
