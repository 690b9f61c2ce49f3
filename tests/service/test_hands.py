from __future__ import annotations

import asyncio
from typing import Any

import pytest

from memagent.errors import (
    BadRequest,
    Conflict,
    InvalidKey,
    LimitExceeded,
    NoSuchMemory,
    NotFound,
    PersonalizationOff,
)
from memagent.llm.script import calling
from memagent.memory import Scope, ScopeKind, Source


async def test_a_memory_written_by_hand_is_protected_and_found(open_world: Any) -> None:
    async with open_world() as world:
        kept = await world.memory.put("juno", "food", "Juno dị ứng với đậu phộng")
        assert (kept.protected, kept.source, kept.searched) == (True, Source.USER, True)
        found = await world.memory.recall("juno", "đậu phộng có trong món này không?", commit=False)
        assert found.note.matches[0]["key"] == "food"


@pytest.mark.parametrize(
    "key", ["Food", "fo od", "a:b", "a{b}", "*", "a\nb", "", "nothing", "Nothing", "x" * 1_001]
)
async def test_a_key_of_another_shape_is_refused(open_world: Any, key: str) -> None:
    async with open_world() as world:
        with pytest.raises(InvalidKey):
            await world.memory.put("juno", key, "soup")
        assert await world.memory.list("juno") == ()


async def test_a_refused_key_comes_with_the_one_to_use(open_world: Any) -> None:
    async with open_world() as world:
        with pytest.raises(InvalidKey, match="use `lieblings_grosse`"):
            await world.memory.put("juno", "Lieblings-Größe", "M")


async def test_with_valid_keys_a_key_is_one_of_them_exactly(open_world: Any) -> None:
    async with open_world(extra="validKeys: ['a:b', Food]") as world:
        for key in ("a:b", "Food"):
            assert (await world.memory.put("juno", key, f"value of {key}")).key == key
        with pytest.raises(InvalidKey, match="a:b, Food"):
            await world.memory.put("juno", "food", "soup")


@pytest.mark.parametrize("value", ["", "  \n", "a\x00b", "half \ud800"])
async def test_a_value_that_cannot_be_kept_whole_is_refused(open_world: Any, value: str) -> None:
    async with open_world() as world:
        with pytest.raises(BadRequest):
            await world.memory.put("juno", "food", value)


async def test_a_value_may_be_as_long_as_the_limit_and_not_longer_in_utf16_units(open_world: Any) -> None:
    async with open_world(extra="charLimit: 4") as world:
        await world.memory.put("juno", "food", "🍜🍜")
        with pytest.raises(LimitExceeded, match="5"):
            await world.memory.put("juno", "food", "🍜🍜!")


async def test_a_total_may_land_exactly_on_the_limit(open_world: Any) -> None:
    async with open_world(extra="tokenLimit: 4") as world:
        await world.memory.put("juno", "a", "one two")
        await world.memory.put("juno", "b", "six ten")
        with pytest.raises(LimitExceeded, match="4 of the 4"):
            await world.memory.put("juno", "c", "red")
        assert (await world.memory.put("juno", "a", "big sky")).value == "big sky"


async def test_a_full_list_refuses_a_hand_and_forgets_nothing(open_world: Any) -> None:
    async with open_world(environ={"MEMAGENT_MAX_MEMORIES": "2"}) as world:
        await world.memory.put("juno", "a", "red")
        await world.memory.put("juno", "b", "green")
        with pytest.raises(LimitExceeded, match="full"):
            await world.memory.put("juno", "c", "blue")
        assert len(await world.memory.list("juno")) == 2


async def test_creating_over_a_taken_key_is_a_conflict_also_when_two_do_it_at_once(open_world: Any) -> None:
    async with open_world() as world:
        ended = await asyncio.gather(
            *(world.memory.put("juno", "a", f"value {n}", create_only=True) for n in range(4)),
            return_exceptions=True,
        )
        assert sum(isinstance(end, Conflict) for end in ended) == 3


async def test_renaming_moves_a_memory_in_one_step(open_world: Any) -> None:
    async with open_world() as world:
        first = await world.memory.put("juno", "a", "red")
        world.later(days=1)
        moved = await world.memory.put("juno", "b", "red", rename_from="a")
        assert (moved.key, moved.created_at) == ("b", first.created_at)
        assert [memory.key for memory in await world.memory.list("juno")] == ["b"]
        with pytest.raises(NoSuchMemory):
            await world.memory.put("juno", "c", "red", rename_from="a")


async def test_what_was_deleted_comes_back_with_undo_and_is_searched_again(open_world: Any) -> None:
    async with open_world() as world:
        await world.memory.put("juno", "pets", "Juno's cat is called Mochi")
        await world.memory.forget("juno", "pets")
        with pytest.raises(NoSuchMemory):
            await world.memory.get("juno", "pets")
        await world.memory.undo("juno")
        assert (await world.memory.get("juno", "pets")).searched
        with pytest.raises(NoSuchMemory):
            await world.memory.forget("juno", "never_there")
        with pytest.raises(NotFound):
            await world.memory.undo("nobody")


async def test_history_tells_who_changed_what(open_world: Any) -> None:
    async with open_world(calling("set_memory", key="pets", value="Juno has a dog named Bo")) as world:
        await world.memory.put("juno", "pets", "Juno's cat is called Mochi")
        await world.memory.observe(world.turn("I have a dog named Bo"))
        newest, oldest = await world.memory.history("juno", key="pets")
        assert (newest.before, newest.after, newest.source) == (
            "Juno's cat is called Mochi",
            "Juno has a dog named Bo",
            Source.AGENT,
        )
        assert (oldest.before, oldest.source) == (None, Source.USER)


async def test_the_switch_is_off_until_it_is_on_and_deleting_is_always_allowed(open_world: Any) -> None:
    async with open_world() as world:
        await world.memory.put("juno", "a", "red")
        await world.memory.set_personalization("juno", on=False)
        assert not await world.memory.personalization("juno")
        with pytest.raises(PersonalizationOff):
            await world.memory.put("juno", "b", "green")
        await world.memory.forget("juno", "a")
        await world.memory.set_personalization("juno", on=True)
        assert (await world.memory.put("juno", "b", "green")).key == "b"


async def test_a_file_that_switches_memory_off_leaves_nothing_to_switch_on(open_world: Any) -> None:
    async with open_world(extra="personalize: false") as world:
        assert not await world.memory.personalization("juno")
        with pytest.raises(PersonalizationOff):
            await world.memory.set_personalization("juno", on=True)


async def test_scopes_of_a_user_an_agent_and_a_team_are_apart(open_world: Any) -> None:
    async with open_world() as world:
        for scope in ("juno", Scope(ScopeKind.USER, "juno", "agent_1"), Scope(ScopeKind.SHARED, "juno")):
            assert await world.memory.list(scope) == ()
            await world.memory.put(scope, "a", "red")
        await world.memory.erase(Scope(ScopeKind.SHARED, "juno"))
        assert len(await world.memory.list("juno")) == 1


async def test_an_export_comes_back_in_and_says_what_did_not_fit(open_world: Any) -> None:
    async with open_world() as world:
        await world.memory.put("juno", "pets", "Juno's cat is called Mochi")
        await world.memory.put("juno", "food", "Juno isst gern Käse")
        data = await world.memory.export("juno")
        data["memories"] += [{"key": "x", "value": ""}, {"key": "Größe", "value": "M"}]
        rehearsal = await world.memory.import_memories("bau", data, dry_run=True)
        assert await world.memory.list("bau") == ()
        report = await world.memory.import_memories("bau", data)
        assert (report.taken, report.refused) == (rehearsal.taken, rehearsal.refused)
        assert set(report.taken) == {"pets", "food", "grosse"}
        assert [row["code"] for row in report.refused] == ["bad_request"]
        assert not (await world.memory.get("bau", "pets")).protected
        again = await world.memory.import_memories("bau", data)
        assert (again.taken, set(again.known)) == ((), {"pets", "food", "grosse"})


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"memagent": 2, "memories": []},
        {"memagent": 1},
        {"memagent": 1, "memories": [{"key": 1}]},
    ],
)
async def test_what_is_not_an_export_is_refused_whole(open_world: Any, data: Any) -> None:
    async with open_world() as world:
        with pytest.raises(BadRequest):
            await world.memory.import_memories("juno", data)
        assert await world.memory.list("juno") == ()
