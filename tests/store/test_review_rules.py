"""What a tool or a quotation brought in waits for its user: unseen, unsearched, unaged, and first to go."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from memagent.memory import Scope, ScopeKind, Source
from memagent.store import DeleteMemory, EditStatus, Limits, Refusal
from tests.store.desk import Desk, at, direction, keys, opened, used

if TYPE_CHECKING:
    from memagent.store import Applied

FULL = Limits(entries=2, forget=True)


async def brought_in(desk: Desk, key: str = "rumour", **more: object) -> Applied:
    return await desk.save(key, source=Source.TOOL, trusted=False, **more)  # type: ignore[arg-type]  passed on as it is


async def test_what_is_not_trusted_is_neither_seen_nor_found(desk: Desk) -> None:
    await desk.save("fact", axis=2)
    await brought_in(desk, axis=1)
    recalled = await desk.chat(1, about=1)
    assert (keys(recalled), [hit.memory.key for hit in recalled.hits]) == (["fact"], ["fact"])
    assert not (await desk.memory("rumour")).trusted


async def test_it_is_not_seen_without_an_embedder_or_with_decay_off_either(desk: Desk) -> None:
    await brought_in(desk, axis=None)
    assert keys(await desk.chat(1, embedder="", about=None)) == []
    assert keys(await desk.chat(1, decay=False)) == []


async def test_it_does_not_age_while_it_waits(desk: Desk) -> None:
    await desk.save("fact", axis=2)
    await brought_in(desk)
    await desk.unmatched(*range(1, 9))
    assert (await desk.unused("rumour"), await desk.unused("fact")) == (0, 8)


async def test_what_the_user_says_too_is_trusted_from_then_on(desk: Desk) -> None:
    await brought_in(desk, value="The cat is called Mochi")
    await desk.save("other_key", value="the cat is called mochi!", day=2)
    assert (await desk.memory("rumour")).trusted
    assert used(await desk.chat(3, about=1)) == ["rumour"]


async def test_what_the_assistant_repeats_is_not(desk: Desk) -> None:
    await brought_in(desk, value="The cat is called Mochi")
    await desk.save("rumour", value="The cat is called Mochi", source=Source.ASSISTANT, day=2)
    assert not (await desk.memory("rumour")).trusted


async def test_words_of_the_user_under_its_key_replace_it(desk: Desk) -> None:
    await brought_in(desk)
    await desk.save("rumour", value="What is true", day=1)
    assert keys(await desk.chat(2)) == ["rumour"]


async def test_it_never_replaces_what_the_user_said(desk: Desk) -> None:
    await desk.save("fact", value="So it is")
    applied = await brought_in(desk, "fact", value="So it is not")
    assert applied.outcomes[0].refusal is Refusal.USER_SAID_OTHERWISE
    assert (await desk.memory("fact")).value == "So it is"


async def test_a_vector_that_comes_later_leaves_it_where_it_waits(desk: Desk) -> None:
    await brought_in(desk, axis=None)
    [waiting] = await desk.store.unsearched(desk.scope, "test-embedder")
    assert await desk.store.attach_vector(
        waiting, vector=direction(1), embedder="test-embedder", terms=(), now=at(1)
    )
    assert keys(await desk.chat(2, about=1)) == []


async def test_a_full_list_forgets_it_before_anything_dormant(desk: Desk) -> None:
    await desk.save("old", axis=2)
    await desk.unmatched(*range(1, 9))
    await brought_in(desk, day=9)
    applied = await desk.save("new", axis=3, day=9, limits=FULL)
    assert [memory.key for memory in applied.forgotten] == ["rumour"]
    assert await desk.keys() == {"old", "new"}


async def test_nothing_of_the_users_is_forgotten_for_it(desk: Desk) -> None:
    await desk.save("old", axis=2)
    await desk.save("older", axis=3)
    await desk.unmatched(*range(1, 9))
    applied = await brought_in(desk, day=9, limits=FULL)
    assert (applied.outcomes[0].status, applied.outcomes[0].refusal) == (
        EditStatus.REFUSED,
        Refusal.LIST_FULL,
    )
    assert await desk.keys() == {"old", "older"}


async def test_a_memory_keeps_its_id_through_edit_rename_and_undo_and_no_other_has_it(desk: Desk) -> None:
    await desk.save("cat", value="one")
    first = (await desk.memory("cat")).id
    await desk.save("cat", value="two")
    await desk.save("pet", value="two", rename_from="cat")
    assert (await desk.memory("pet")).id == first
    await desk.store.apply(desk.scope, [DeleteMemory("pet", source=Source.USER)], limits=Limits(), now=at(2))
    await desk.store.undo(desk.scope, limits=Limits(), now=at(2))
    assert (await desk.memory("pet")).id == first
    await desk.save("cat", value="one")
    assert (await desk.memory("cat")).id != first
    assert len(first) == 24
    assert int(first[:8], 16) == int(at(0, 10).timestamp())


async def test_a_users_scopes_are_those_that_hold_something(desk: Desk, team: Scope) -> None:
    agent, everywhere = Scope(ScopeKind.USER, "alice", "a:b{c}"), Scope(ScopeKind.GLOBAL, "alice")
    for scope in (desk.scope, agent, everywhere, team, Scope(ScopeKind.USER, "alice2")):
        await desk.save("cat", scope=scope)
    await desk.store.save_receipt(Scope(ScopeKind.USER, "alice", "quiet"), "m1", {})
    kept = {desk.scope, agent, everywhere, Scope(ScopeKind.USER, "alice", "quiet")}
    assert set(await desk.store.scopes("alice")) == kept
    await desk.store.erase(agent, closed=("m2",))
    assert set(await desk.store.scopes("alice")) == kept - {agent}


async def test_a_user_has_no_more_lists_than_the_limit(desk: Desk, team: Scope) -> None:
    two = Limits(partitions=2)
    scopes = [Scope(ScopeKind.USER, "alice", agent) for agent in ("", "a", "b")]
    applied = [await desk.save("cat", scope=scope, limits=two) for scope in scopes]
    assert [each.outcomes[0].refusal for each in applied] == [None, None, Refusal.TOO_MANY_PARTITIONS]
    assert len(await desk.store.scopes("alice")) == 2
    again = await desk.save("cat", value="again", scope=scopes[2], limits=two)
    assert again.outcomes[0].refusal is Refusal.TOO_MANY_PARTITIONS, "a refusal makes no list"
    assert (await desk.save("dog", scope=scopes[1], limits=two)).outcomes[0].status is EditStatus.SET
    assert (await desk.save("cat", scope=team, limits=two)).outcomes[0].status is EditStatus.SET
    await desk.store.erase(scopes[1])
    assert (await desk.save("cat", scope=scopes[2], limits=two)).outcomes[0].status is EditStatus.SET


async def test_without_a_history_nothing_is_logged_and_the_list_is_known_all_the_same(redis_url: str) -> None:
    prefix = f"t-{uuid.uuid4().hex[:12]}"
    async with opened(redis_url, prefix, embedder_id="", dimensions=0, history_changes=0) as store:
        desk = Desk(store)
        await desk.save("cat", axis=None)
        assert await store.history(desk.scope) == ()
        assert await store.scopes("alice") == (desk.scope,)
        await store.erase(desk.scope)
        async for key in store.client.scan_iter(match=f"{prefix}:*"):
            await store.client.unlink(key)
