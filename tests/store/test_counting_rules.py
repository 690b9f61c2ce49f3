"""T01 to T29: how unused days are counted, who goes dormant, who comes back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memagent.memory import Scope, ScopeKind, Source
from memagent.store import CONSENT, RecallQuery
from tests.store.desk import Desk, at, direction, keys, near, used

SAVED = 0


async def test_t01_a_new_memory_starts_at_zero_and_active(desk: Desk) -> None:
    await desk.save("cat")
    cat = await desk.memory("cat")
    assert (cat.unused_days, cat.dormant) == (0, False)
    assert keys(await desk.chat(0)) == ["cat"]


async def test_t02_a_searched_memory_outside_the_used_set_counts_a_day(desk: Desk) -> None:
    await desk.save("cat", axis=1)
    await desk.save("dog", axis=2)
    assert used(await desk.chat(1, about=2)) == ["dog"]
    assert (await desk.unused("cat"), await desk.unused("dog")) == (1, 0)


async def test_t03_a_date_counts_once_however_many_turns_it_has(desk: Desk) -> None:
    await desk.save("cat")
    for minute in range(20):
        await desk.chat(1, hour=minute / 60)
    assert await desk.unused("cat") == 1


async def test_t04_a_match_takes_the_counter_to_zero_at_once(desk: Desk) -> None:
    await desk.save("cat", axis=1)
    await desk.unmatched(1, 2, 3)
    assert await desk.unused("cat") == 3
    await desk.chat(3, hour=23, about=1)
    assert await desk.unused("cat") == 0


async def test_t05_the_used_set_is_the_best_three_over_all_scopes_that_pass_the_floor(
    desk: Desk, team: Scope
) -> None:
    own = {"a": 0.79, "b": 0.60}
    shared = {"c": 0.81, "d": 0.77, "e": 0.40}
    for axis, (key, cosine) in enumerate(own.items(), 1):
        await desk.save(key, vector=near(cosine, axis))
    for axis, (key, cosine) in enumerate(shared.items(), 5):
        await desk.save(key, vector=near(cosine, axis), scope=team)
    recalled = await desk.chat(1, about=0, scopes=(desk.scope, team))
    assert used(recalled) == ["c", "a", "d"]
    assert [(hit.memory.key, hit.reason) for hit in recalled.hits[3:]] == [
        ("b", "beyond_used_set"),
        ("e", "below_floor"),
    ]


async def test_t06_above_the_floor_only_the_best_three_reset(desk: Desk) -> None:
    for axis, cosine in enumerate((0.95, 0.9, 0.85, 0.8, 0.75), 1):
        await desk.save(f"m{axis}", vector=near(cosine, axis))
    await desk.chat(1, about=0)
    assert [await desk.unused(f"m{axis}") for axis in range(1, 6)] == [0, 0, 0, 1, 1]


async def test_t07_with_nothing_above_the_floor_all_age(desk: Desk) -> None:
    await desk.save("a", vector=near(0.45, 1))
    await desk.save("b", vector=near(0.30, 2))
    recalled = await desk.chat(1, about=0)
    assert used(recalled) == []
    assert (await desk.unused("a"), await desk.unused("b")) == (1, 1)


@pytest.mark.parametrize(("floor", "counts"), [(0.5, True), (0.5001, False)])
async def test_t07_landing_on_the_floor_counts(desk: Desk, floor: float, counts: bool) -> None:
    await desk.save("half", vector=near(0.5, 1))
    score = (await desk.chat(1, about=0, commit=False)).hits[0].score
    recalled = await desk.chat(1, about=0, floor=floor * score / 0.5)
    assert (used(recalled) == ["half"]) is counts


async def test_t08_standing_in_every_prompt_is_not_being_used(desk: Desk) -> None:
    await desk.save("cat")
    for day in (1, 2, 3):
        assert keys(await desk.chat(day)) == ["cat"]
    assert await desk.unused("cat") == 3


async def test_t09_days_without_a_turn_and_failed_searches_change_nothing(desk: Desk) -> None:
    await desk.save("cat")
    await desk.chat(1)
    for day in range(20, 40):
        recalled = await desk.chat(day, about=None)
        assert not recalled.searched
    assert await desk.unused("cat") == 1


async def test_t10_a_quiet_week_at_six_leaves_six(desk: Desk) -> None:
    await desk.save("cat")
    await desk.unmatched(*range(1, 7))
    assert (await desk.unused("cat"), (await desk.memory("cat")).dormant) == (6, False)
    await desk.chat(14)
    assert (await desk.unused("cat"), (await desk.memory("cat")).dormant) == (7, True)


async def test_t11_the_day_of_saving_does_not_count(desk: Desk) -> None:
    await desk.save("cat", day=SAVED)
    await desk.chat(SAVED, hour=13)
    await desk.chat(SAVED, hour=14)
    assert await desk.unused("cat") == 0
    await desk.unmatched(*range(1, 7))
    assert await desk.unused("cat") == 6


async def test_t11_the_day_of_saving_does_not_count_even_before_its_first_search(desk: Desk) -> None:
    await desk.save("old", day=0)
    await desk.chat(3)
    await desk.save("new", day=4, hour=8)
    await desk.chat(4, hour=9)
    assert (await desk.unused("old"), await desk.unused("new")) == (2, 0)


async def test_t11_a_day_of_saving_without_any_search_costs_the_next_day_nothing(desk: Desk) -> None:
    await desk.save("old", day=0)
    await desk.chat(1)
    await desk.save("imported", day=2)
    await desk.chat(5)
    assert (await desk.unused("old"), await desk.unused("imported")) == (2, 1)


async def test_t12_each_scope_counts_its_own_first_search_of_the_day(desk: Desk, team: Scope) -> None:
    await desk.save("own")
    await desk.save("shared", scope=team)
    await desk.chat(1, hour=9, scopes=(team,))
    await desk.chat(1, hour=21, scopes=(desk.scope, team))
    assert (await desk.unused("own"), await desk.unused("shared", team)) == (1, 1)


async def test_t13_a_matched_day_is_not_an_unused_day(desk: Desk) -> None:
    await desk.save("cat", axis=1)
    await desk.chat(1, hour=9, about=1)
    await desk.chat(1, hour=10)
    assert await desk.unused("cat") == 0
    await desk.chat(2)
    assert await desk.unused("cat") == 1


async def test_t14_the_dates_are_utc_and_midnight_parts_two_days(desk: Desk) -> None:
    await desk.save("cat")
    await desk.chat(1, hour=23 + 59 / 60)
    await desk.chat(2, hour=1 / 60)
    assert await desk.unused("cat") == 2


async def test_t15_a_clock_that_jumps_back_does_not_count(desk: Desk) -> None:
    await desk.save("cat")
    await desk.chat(5)
    await desk.unmatched(2, 3, 4)
    assert await desk.unused("cat") == 1
    await desk.chat(6)
    assert await desk.unused("cat") == 2


async def test_t16_shared_memories_age_on_the_days_of_their_own_scope(desk: Desk, team: Scope) -> None:
    other = Scope(ScopeKind.SHARED, "other team")
    await desk.save("ours", scope=team)
    await desk.save("theirs", scope=other)
    for day in (1, 2, 3):
        await desk.chat(day, scopes=(other,))
    assert (await desk.unused("ours", team), await desk.unused("theirs", other)) == (0, 3)


async def test_t17_a_monthly_visitor_has_seven_visits(desk: Desk) -> None:
    await desk.save("cat")
    for month in range(1, 7):
        await desk.chat(30 * month)
    assert not (await desk.memory("cat")).dormant
    await desk.chat(30 * 7)
    assert (await desk.memory("cat")).dormant


async def test_t18_a_hidden_memory_neither_ages_nor_returns(desk: Desk) -> None:
    await desk.save("plan", axis=1, tags=("holiday",))
    await desk.save("cat", axis=2)
    for day in range(1, 8):
        await desk.chat(day, about=1)
    assert (await desk.unused("plan"), await desk.unused("cat")) == (0, 7)
    recalled = await desk.chat(8, about=1)
    assert (keys(recalled), [hit.memory.key for hit in recalled.hits]) == ([], ["cat"])


async def test_t19_without_consent_nothing_is_searched_counted_or_shown(desk: Desk) -> None:
    """memagent's privacy level is the user's own switch."""
    await desk.save("cat", axis=1)
    await desk.store.set_preference("alice", CONSENT, False)
    recalled = await desk.chat(1, about=1)
    assert (recalled.opted_out, recalled.active, recalled.hits, recalled.searched) == (True, (), (), False)
    await desk.store.set_preference("alice", CONSENT, True)
    assert await desk.unused("cat") == 0
    assert keys(await desk.chat(1)) == ["cat"]


async def test_t19_a_shared_scope_asks_nobody_of_that_name(desk: Desk, team: Scope) -> None:
    await desk.store.set_preference("team", CONSENT, False)
    await desk.save("shared", scope=team)
    assert keys(await desk.chat(1, scopes=(team,))) == ["shared"]


@pytest.mark.parametrize(
    ("tags", "said", "channel", "visible"),
    [
        ((), (), "", True),
        (("holiday",), (), "", False),
        (("Holiday",), ("holida",), "", True),
        (("holiday", "work"), ("work",), "", True),
        (("#general",), (), "general", True),
        (("#General",), (), "#general", True),
        (("#general",), (), "random", False),
        (("#general", "work"), (), "general", False),
        (("#general", "work"), ("work",), "random", False),
        (("#general", "work"), ("work",), "general", True),
        (("board games",), ("board",), "", False),
        (("board games",), ("board", "game"), "", True),
        (("kỳ nghỉ",), ("ky", "nghi"), "", True),
    ],
)
async def test_t20_keyword_and_channel_are_two_filters_and_both_must_pass(
    desk: Desk, tags: tuple[str, ...], said: tuple[str, ...], channel: str, visible: bool
) -> None:
    await desk.save("plan", tags=tags)
    recalled = await desk.chat(1, context_terms=said, channel=channel)
    assert (keys(recalled) == ["plan"]) is visible
    assert (await desk.unused("plan") == 1) is visible


async def test_t20_the_words_of_a_chat_are_asked_for_only_where_a_tag_depends_on_them(desk: Desk) -> None:
    asked: list[int] = []

    async def chat(day: int) -> list[str]:
        def in_sight() -> tuple[str, ...]:
            asked.append(day)
            return ("holida",)

        query = RecallQuery(
            now=at(day), vector=direction(15), embedder="test-embedder", context_terms=in_sight
        )
        return keys(await desk.store.recall([desk.scope], query))

    await desk.save("cat")
    await desk.save("room", tags=("#general",))
    assert (await chat(1), asked) == (["cat"], [])
    await desk.save("plan", tags=("holiday",), day=1)
    assert (await chat(1), asked) == (["cat", "plan"], [1])
    assert (await chat(2), await chat(2), asked) == (["cat", "plan"], ["cat", "plan"], [1, 2, 2])
    await desk.save("plan", value="no tag any more", day=2, hour=13)
    assert await chat(2) == ["cat", "plan"]


async def test_t21_at_seven_days_a_memory_is_dormant_and_still_stored_and_searchable(desk: Desk) -> None:
    await desk.save("cat", axis=1)
    await desk.unmatched(*range(1, 8))
    assert keys(await desk.chat(8)) == []
    assert (await desk.memory("cat")).dormant
    assert [hit.memory.key for hit in (await desk.chat(8, about=1)).hits] == ["cat"]


@pytest.mark.parametrize(("days", "dormant"), [(1, True), (2, False)])
async def test_t21_the_threshold_is_a_setting(desk: Desk, days: int, dormant: bool) -> None:
    await desk.save("cat")
    await desk.chat(1)
    assert (keys(await desk.chat(1, dormant_after_days=days)) == []) is dormant
    found = await desk.store.get(desk.scope, "cat", dormant_after_days=days)
    assert found is not None
    assert found.dormant is dormant


async def test_t22_a_dormant_memory_that_matches_comes_back_and_is_active_afterwards(desk: Desk) -> None:
    await desk.save("cat", axis=1)
    await desk.unmatched(*range(1, 8))
    back = await desk.chat(8, about=1)
    assert (keys(back), used(back), back.hits[0].memory.dormant) == ([], ["cat"], True)
    assert await desk.unused("cat") == 0
    assert keys(await desk.chat(8)) == ["cat"]


async def test_t23_at_most_three_come_back_at_once(desk: Desk) -> None:
    for axis in range(1, 6):
        await desk.save(f"m{axis}", vector=near(0.9 - axis / 100, axis))
    await desk.unmatched(*range(1, 8))
    assert used(await desk.chat(8, about=0)) == ["m1", "m2", "m3"]
    assert keys(await desk.chat(8)) == ["m1", "m2", "m3"]


async def test_t24_the_prefix_and_its_etag_stay_while_no_memory_changes_state(desk: Desk) -> None:
    await desk.save("cat", axis=1)
    await desk.save("dog", axis=2, hour=11)
    first = await desk.chat(1, about=1)
    for turn in (await desk.chat(1, about=2), await desk.chat(2), await desk.chat(3, about=1)):
        assert (turn.active, turn.etag) == (first.active, first.etag) or (
            [replace(memory, unused_days=0, last_matched_at=None) for memory in turn.active]
            == [replace(memory, unused_days=0, last_matched_at=None) for memory in first.active]
            and turn.etag == first.etag
        )
    await desk.save("bird", axis=3, day=3, hour=20)
    assert (await desk.chat(3, hour=21)).etag != first.etag


async def test_t24_the_prefix_is_oldest_first_so_that_a_new_memory_only_extends_it(
    desk: Desk, team: Scope
) -> None:
    await desk.save("zebra", hour=1)
    await desk.save("shared", hour=2, scope=team)
    await desk.save("b", hour=3)
    await desk.save("a", hour=3)
    assert keys(await desk.chat(0, scopes=(desk.scope, team))) == ["zebra", "shared", "a", "b"]


async def test_t25_the_prefix_changes_in_the_turn_after_a_switch(desk: Desk) -> None:
    await desk.save("cat", axis=1)
    await desk.unmatched(*range(1, 7))
    assert keys(await desk.chat(7)) == ["cat"]
    assert keys(await desk.chat(7, hour=13)) == []


async def test_t26_a_memory_that_comes_back_was_not_in_that_prefix(desk: Desk) -> None:
    await desk.save("cat", axis=1)
    await desk.save("dog", axis=2)
    for day in range(1, 9):
        recalled = await desk.chat(day, about=2)
    recalled = await desk.chat(9, about=1)
    back = {hit.memory.key for hit in recalled.hits if hit.used and hit.memory.dormant}
    assert back == {"cat"}
    assert not back & set(keys(recalled))


async def test_t28_a_turn_too_short_to_search_ages_nothing_and_keeps_the_prefix(desk: Desk) -> None:
    await desk.save("cat", axis=1)
    await desk.save("dog", axis=2)
    for day in range(1, 9):
        await desk.chat(day, about=2)
    recalled = await desk.chat(9, about=None, terms=("ok",))
    assert (keys(recalled), recalled.hits, recalled.searched) == (["dog"], (), False)


async def test_t29_a_search_that_fails_counts_nothing_at_all(desk: Desk) -> None:
    await desk.save("cat")
    broken = RecallQuery(now=at(1), vector=direction(1)[:4], embedder="test-embedder")
    with pytest.raises(Exception, match="dimensions"):
        await desk.store.recall((desk.scope,), broken)
    assert await desk.unused("cat") == 0
    await desk.chat(1)
    await desk.chat(1)
    assert await desk.unused("cat") == 1


async def test_t29_explaining_a_search_counts_nothing(desk: Desk) -> None:
    await desk.save("cat", axis=1)
    await desk.unmatched(1, 2)
    looked = await desk.chat(3, about=1, commit=False)
    assert (used(looked), looked.searched, await desk.unused("cat")) == (["cat"], True, 2)
    assert (await desk.memory("cat")).last_matched_at is None


async def test_what_is_searched_by_hand_counts_like_any_other(desk: Desk) -> None:
    await desk.save("by hand", source=Source.USER)
    await desk.chat(1)
    assert await desk.unused("by hand") == 1


async def test_t22_what_comes_back_later_the_same_day_is_in_the_next_prefix(desk: Desk) -> None:
    await desk.save("cat", axis=1)
    await desk.unmatched(*range(1, 9))
    for _ in range(2):
        assert keys(await desk.chat(8)) == []
    assert used(await desk.chat(8, about=1)) == ["cat"]
    assert keys(await desk.chat(8)) == ["cat"]


async def test_equal_scores_go_by_scope_then_by_key(desk: Desk, team: Scope) -> None:
    for key in "dbac":
        await desk.save(key, axis=1)
        await desk.save(key, axis=1, scope=team)
    for scopes in ((desk.scope, team), (team, desk.scope)):
        recalled = await desk.chat(1, about=1, scopes=scopes, used=5, commit=False)
        found = [(hit.scope, hit.memory.key) for hit in recalled.hits if hit.used]
        assert found == [*((scopes[0], key) for key in "abcd"), (scopes[1], "a")]


async def test_while_an_index_lacks_one_of_many_nothing_ages(desk: Desk) -> None:
    """More memories than candidates: only a count of all can notice."""
    for i in range(6):
        await desk.save(f"m{i}", axis=1)
    name = f"{desk.store.prefix}:m:{{u:alice}}u::m5"
    scope = await desk.store.client.hget(name, "scope")
    await desk.store.client.hset(name, "scope", "elsewhere")
    assert not (await desk.chat(1, about=1, candidates=3)).searched
    assert await desk.unused("m0") == 0
    await desk.store.client.hset(name, "scope", scope)
    assert (await desk.chat(1, candidates=3)).searched
    assert await desk.unused("m0") == 1
